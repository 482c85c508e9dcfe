"""A pass pipeline is text that a model may have written: whatever it holds, it costs one candidate and nothing else."""

import pytest

from core.errors import BadInput
from core.sandbox.service import open_sandbox
from llvm_tuning.program import load_program
from llvm_tuning.toolchain.build import preprocess
from llvm_tuning.toolchain.discover import discover
from llvm_tuning.toolchain.routes import MOST_TEXT, frontend_bitcode, optimize

HOSTILE = {
    "nul": "function(dce)\0-load=/x.so",
    "surrogate": "\ud800",
    "line break": "function(dce)\n-load=/x.so",
    "longer than an argument": "a" * 200_000,
    "deep": "function(" * (MOST_TEXT // 10),
    "another option": "function(dce) -load=/x.so",
    "shell": "$(touch owned)",
    "response file": "@/etc/passwd",
}


@pytest.fixture(scope="module")
def stage():
    box, tools = open_sandbox(), discover()
    program = load_program("matmul_int8")
    return box, tools, frontend_bitcode(box, tools, program, preprocess(tools, program))


@pytest.mark.parametrize("pipeline", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_pipeline_gives_no_module_and_a_reason(stage, pipeline):
    box, tools, bitcode = stage
    built = optimize(box, tools, bitcode, pipeline)
    assert built.code is None
    assert built.message
    assert not built.timed_out


@pytest.mark.parametrize(
    "flag",
    ["-load=x.so", "-fplugin=x.so", "-fpass-plugin=x.so", "@flags", "-ofile", "-o x", "-Xclang -load", "-mllvm -x"],
)
def test_flags_that_load_code_or_move_the_output_are_refused(tmp_path, flag):
    source = tmp_path / "p.c"
    source.write_text("int main(void) { return 0; }")
    with pytest.raises(BadInput, match="--cflags holds"):
        load_program(str(source), cflags=flag)
