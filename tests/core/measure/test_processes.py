from pathlib import Path

import numpy as np
import pytest

from core.errors import BadInput, InfraError
from core.measure.processes import WholeProcesses
from core.measure.samples import ArmFailed, BlockPlan
from core.measure.service import Measure
from core.native.build import build
from core.sandbox.policy import Sandbox

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char line[64] = "";
    if (!fgets(line, sizeof line, stdin)) return 9;
    volatile unsigned x = 1;
    for (unsigned i = 0; i < ROUNDS; i++) x = x * 1664525u + 1013904223u;
    EXTRA;
    printf("%s %s %s", argv[0], argc > 1 ? argv[1] : "-", line);
    return 0;
}
"""


def program(directory: Path, *, rounds: int = 500_000, extra: str = "") -> Path:
    source = directory / "arm.c"
    source.write_text(SOURCE)
    return build(source, ("-O1", f"-DROUNDS={rounds}", f"-DEXTRA={extra}"), "exe")


def arms(baseline: Path | bytes, candidate: Path | bytes, *, timeout_s: float = 5.0) -> WholeProcesses:
    return WholeProcesses(
        baseline=(baseline,),
        candidate=(candidate,),
        args=("word",),
        stdin=b"line\n",
        expected=b"program word line\n",
        timeout_s=timeout_s,
    )


@pytest.mark.parametrize("seed", range(3))
def test_arms_are_not_mixed_up_whatever_the_order(tmp_path: Path, box: Sandbox, seed: int) -> None:
    source = arms(program(tmp_path), program(tmp_path, rounds=10_000_000))
    blocks = source.take(box, [BlockPlan(index=i, seed=seed, pairs=3) for i in (0, 1)])
    assert [block.index for block in blocks] == [0, 1]
    for block in blocks:
        assert block.wall_s.shape == (3, 2)
        assert (block.cpu_s[:, 1] > 2 * block.cpu_s[:, 0]).all()
        assert (block.wall_s > 0).all()


def test_programs_may_be_given_as_content(tmp_path: Path, box: Sandbox) -> None:
    path = program(tmp_path)
    (block,) = arms(path.read_bytes(), path).take(box, [BlockPlan(index=0, seed=1, pairs=2)])
    assert block.cpu_s.shape == (2, 2)
    assert path.exists(), "only copies in the working directory may be unlinked"


def test_layouts_take_turns_by_block_index(tmp_path: Path, box: Sandbox) -> None:
    short, long = program(tmp_path), program(tmp_path, rounds=10_000_000)
    source = WholeProcesses(
        baseline=(short, long), candidate=(long, short), stdin=b"line\n", expected=b"program - line\n"
    )
    blocks = source.take(box, [BlockPlan(index=i, seed=1, pairs=2) for i in range(4)])
    assert [bool(np.median(b.cpu_s[:, 0]) < np.median(b.cpu_s[:, 1])) for b in blocks] == [True, False, True, False]


def test_work_in_a_child_process_is_counted(tmp_path: Path, box: Sandbox) -> None:
    work = "volatile unsigned y = 0; for (unsigned i = 0; i < 10000000; i++) y += i;"
    extra = f"pid_t p = fork(); if (!p) {{ {work} _exit(0); }} wait(NULL)"
    (block,) = arms(program(tmp_path), program(tmp_path, extra=extra)).take(box, [BlockPlan(index=0, seed=1, pairs=3)])
    assert np.median(block.cpu_s[:, 1]) > 2 * np.median(block.cpu_s[:, 0])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("extra", "reason", "words"),
    [
        ("abort()", "crash", "signal 6"),
        ("return 4", "crash", "exit code 4"),
        ('line[0] = \\"X\\"[0]', "wrong_output", "not the expected one"),
        ("sleep(30)", "timeout", "0.3 s"),
        ("if (!fork()) { sleep(1); _exit(0); }", "tampered", "without waiting"),
    ],
)
def test_fault_is_laid_on_the_arm_that_has_it(
    tmp_path: Path, box: Sandbox, extra: str, reason: str, words: str, seed: int
) -> None:
    extra = extra.replace('\\"X\\"[0]', "88")
    source = arms(program(tmp_path), program(tmp_path, extra=extra), timeout_s=0.3)
    with pytest.raises(ArmFailed, match=words) as failure:
        source.take(box, [BlockPlan(index=0, seed=seed, pairs=2)])
    assert (failure.value.arm, failure.value.reason) == (1, reason)


def test_program_cannot_read_what_is_expected_of_it(tmp_path: Path, box: Sandbox) -> None:
    cheat = 'if (!access("expected", R_OK) || !access("plan", R_OK)) return 7'
    blocks = arms(program(tmp_path), program(tmp_path, extra=cheat)).take(box, [BlockPlan(index=0, seed=1, pairs=2)])
    assert len(blocks) == 1


def test_program_does_not_inherit_the_channel(tmp_path: Path, box: Sandbox) -> None:
    cheat = 'if (getenv("COMPLAB_CHANNEL")) return 7; for (int f = 3; f < 64; f++) if (fcntl(f, F_GETFD) >= 0) return 8'
    source = tmp_path / "arm.c"
    source.write_text("#include <fcntl.h>\n" + SOURCE)
    path = build(source, ("-O1", "-DROUNDS=1000", f"-DEXTRA={cheat}"), "exe")
    assert len(arms(path, path).take(box, [BlockPlan(index=0, seed=1, pairs=2)])) == 1


def test_an_empty_argument_is_passed_on(tmp_path: Path, box: Sandbox) -> None:
    one = program(tmp_path)
    source = WholeProcesses(
        baseline=(one,), candidate=(one,), args=("",), stdin=b"line\n", expected=b"program  line\n", timeout_s=5.0
    )
    assert len(source.take(box, [BlockPlan(index=0, seed=1, pairs=1)])) == 1


def test_runner_that_fails_is_our_own_fault(tmp_path: Path, box: Sandbox) -> None:
    with pytest.raises(InfraError, match="nowhere"):
        arms(tmp_path / "nowhere", program(tmp_path)).take(box, [BlockPlan(index=0, seed=1, pairs=1)])


@pytest.mark.parametrize("wrong", [{"baseline": ()}, {"candidate": ()}, {"args": ("a\0b",)}])
def test_source_that_cannot_run_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        WholeProcesses(**{"baseline": (b"x",), "candidate": (b"x",), "expected": b"", **wrong})  # type: ignore[arg-type]


@pytest.mark.serial
def test_comparison_finds_the_candidate_with_half_the_work(tmp_path: Path, measure: Measure) -> None:
    source = arms(program(tmp_path, rounds=6_000_000), program(tmp_path, rounds=3_000_000))
    found = measure.compare(source, baseline="0" * 64, candidate="1" * 64, stage="screen", seed=1)
    assert found.decision == "faster"
    assert found.low > 1.2
    assert "few_layouts" in found.flags
