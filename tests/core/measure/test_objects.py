from pathlib import Path

import pytest

from core.measure.objects import SharedObjects
from core.measure.samples import ArmFailed, BlockPlan
from core.measure.service import Measure
from core.native.build import build
from core.sandbox.policy import Sandbox

SOURCE = """
#include <stddef.h>
#include <stdlib.h>
static unsigned seed, result;
int complab_setup(const unsigned char *input, size_t size) { seed = size ? input[0] : 0; return FAIL; }
void complab_run(void) {
    unsigned x = seed;
    for (unsigned i = 0; i < ROUNDS; i++) { x = x * 1664525u + 1013904223u; x ^= x >> 7; __asm__("" : "+r"(x)); }
    result = seed + 1;
    EXTRA;
}
const unsigned char *complab_output(size_t *size) { *size = sizeof result; return (const unsigned char *)&result; }
"""


def library(directory: Path, *, rounds: int = 20_000, extra: str = "", fail: int = 0, prelude: str = "") -> Path:
    source = directory / "arm.c"
    source.write_text(prelude + SOURCE)
    return build(source, ("-O1", f"-DROUNDS={rounds}", f"-DEXTRA={extra}", f"-DFAIL={fail}", "-lpthread"))


def source(baseline: Path, candidate: Path, **other: object) -> SharedObjects:
    return SharedObjects(
        baseline=(baseline,),
        candidate=(candidate,),
        input=b"\x05",
        expected=b"\x06\0\0\0",
        **other,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("seed", range(4))
def test_arms_are_not_mixed_up_whatever_the_order(tmp_path: Path, box: Sandbox, seed: int) -> None:
    arms = source(library(tmp_path), library(tmp_path, rounds=80_000))
    (block,) = arms.take(box, [BlockPlan(index=0, seed=seed, pairs=6, repeats=10)])
    assert (block.thread_s[:, 1] > 2 * block.thread_s[:, 0]).all()
    assert (block.cpu_s >= block.thread_s).all()


@pytest.mark.serial
def test_comparison_finds_the_candidate_with_half_the_work(tmp_path: Path, measure: Measure) -> None:
    arms = source(library(tmp_path), library(tmp_path, rounds=10_000))
    found = measure.compare(arms, baseline="0" * 64, candidate="1" * 64, stage="screen", seed=1)
    assert found.decision == "faster"
    assert found.low > 1.4


def test_thread_that_lives_on_is_seen(tmp_path: Path, box: Sandbox) -> None:
    prelude = "#include <pthread.h>\n#include <unistd.h>\nstatic void *idle(void *x) { pause(); return x; }\n"
    extra = "static int made; static pthread_t t; if (!made) { made = 1; pthread_create(&t, NULL, idle, NULL); }"
    arms = source(library(tmp_path), library(tmp_path, extra=extra, prelude=prelude))
    (block,) = arms.take(box, [BlockPlan(index=0, seed=1, pairs=2)])
    assert block.extra_threads


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("fault", "reason", "words"),
    [
        ({"extra": "*(volatile int *)0 = 1"}, "crash", "signal 11"),
        ({"extra": "result = 9"}, "wrong_output", "output"),
        ({"extra": "for (;;) { }"}, "timeout", "0.3 s"),
        ({"fail": 3}, "crash", "complab_setup returned 3"),
    ],
)
def test_fault_is_laid_on_the_arm_that_has_it(
    tmp_path: Path, box: Sandbox, fault: dict[str, object], reason: str, words: str, seed: int
) -> None:
    arms = source(library(tmp_path), library(tmp_path, **fault), timeout_s=0.3)  # type: ignore[arg-type]
    with pytest.raises(ArmFailed, match=words) as failure:
        arms.take(box, [BlockPlan(index=0, seed=seed, pairs=2)])
    assert (failure.value.arm, failure.value.reason) == (1, reason)


def test_library_without_the_functions_is_told_so(tmp_path: Path, box: Sandbox) -> None:
    empty = tmp_path / "empty.c"
    empty.write_text("int nothing;")
    with pytest.raises(ArmFailed, match="does not export complab_setup"):
        source(library(tmp_path), build(empty)).take(box, [BlockPlan(index=0, seed=1, pairs=1)])
