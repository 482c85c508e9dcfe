"""IR in, IR out: the files of tests/tpu_mlir/ir.

Cases of a file are separated by `// -----`. `// RUN:` names the passes; `// CHECK` lines are matched with filecheck
against the module they leave. Every case of `*_invalid.mlir` must be refused with every `// EXPECT:` text.
"""

import io
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts

from tpu_mlir.dialects import adapter
from tpu_mlir.dialects.adapter import IrError
from tpu_mlir.transforms.passes import run_passes
from tpu_mlir.transforms.pipeline import parse_pipeline

FILES = sorted((Path(__file__).parent / "ir").glob("*.mlir"))


def cases(invalid):
    return [
        pytest.param(text, id=f"{path.stem}-{index}")
        for path in FILES
        if path.stem.endswith("_invalid") == invalid
        for index, text in enumerate(path.read_text().split("// -----\n"))
    ]


def lines(text, mark):
    return [line.split(mark, 1)[1].strip() for line in text.splitlines() if line.strip().startswith(mark)]


def run_case(text):
    module = adapter.parse(text)
    for pipeline in lines(text, "// RUN:"):
        run_passes(module, parse_pipeline(pipeline))


def check(text, printed, name="case"):
    options = Options(match_filename=name)
    return (
        Matcher(options, FInput(name, printed), Parser(options, io.StringIO(text), *pattern_for_opts(options))).run()
        == 0
    )


@pytest.mark.parametrize("text", cases(invalid=False))
def test_the_passes_leave_what_the_file_says(text):
    (pipeline,) = lines(text, "// RUN:")
    module = adapter.parse(text)
    run_passes(module, parse_pipeline(pipeline))
    printed = adapter.print_module(module)
    assert check(text, printed), printed


@pytest.mark.parametrize("text", cases(invalid=True))
def test_what_is_wrong_is_named_with_its_place(text):
    expected = lines(text, "// EXPECT:")
    assert expected
    with pytest.raises(IrError) as caught:
        run_case(text)
    found = "\n".join(map(str, caught.value.diagnostics))
    for message in expected:
        assert message in found


def test_the_checker_can_fail():
    assert not check("// CHECK: nothing like it\n", "module {\n}\n")
    assert check("// CHECK: module\n", "module {\n}\n")
