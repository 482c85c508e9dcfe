"""The three modes in the real sandbox, which hides most of the host and has another user."""

from pathlib import Path

import pytest

from core.measure.callables import Callables
from core.measure.objects import SharedObjects
from core.measure.processes import WholeProcesses
from core.measure.samples import BlockPlan, SampleSource
from core.native.build import build
from core.native.layout import link_layouts
from core.sandbox.policy import Sandbox
from core.sandbox.service import open_sandbox

PROGRAM = '#include <stdio.h>\nint main(void) { for (volatile int i = 0; i < 100000; i++) { } puts("done"); return 0; }'
LIBRARY = """
#include <stddef.h>
int complab_setup(const unsigned char *input, size_t size) { return size != 2 || input[0] != 'i'; }
void complab_run(void) { for (volatile int i = 0; i < 1000; i++) { } }
const unsigned char *complab_output(size_t *size) { *size = 2; return (const unsigned char *)"ok"; }
"""
MODULE = "def run():\n    sum(range(100))\n\ndef output():\n    return b'ok'\n"


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return open_sandbox()


def source(mode: str, directory: Path) -> SampleSource:
    if mode == "callables":
        return Callables(baseline=MODULE, candidate=MODULE, input=b"in", expected=b"ok")
    path = directory / "arm.c"
    if mode == "objects":
        path.write_text(LIBRARY)
        library = build(path)
        return SharedObjects(baseline=(library,), candidate=(library,), input=b"in", expected=b"ok")
    path.write_text(PROGRAM)
    layouts = tuple(link_layouts([build(path, ("-O1",), "object")], count=2, seed=1))
    return WholeProcesses(baseline=layouts, candidate=(layouts[0].read_bytes(), layouts[1]), expected=b"done\n")


@pytest.mark.parametrize("mode", ["processes", "objects", "callables"])
def test_mode_takes_blocks_in_the_sandbox(mode: str, tmp_path: Path, sandbox: Sandbox) -> None:
    arms = source(mode, tmp_path)
    blocks = arms.take(sandbox, [BlockPlan(index=i, seed=1, pairs=3, core=None) for i in range(2)])
    assert [block.wall_s.shape for block in blocks] == [(3, 2), (3, 2)]
    assert all((block.cpu_s > 0).all() and not block.extra_threads for block in blocks)
