import numpy as np
import pytest

from core.measure.callables import Callables
from core.measure.samples import ArmFailed, BlockPlan
from core.measure.service import Measure
from core.sandbox.policy import Sandbox

MODULE = """
state = {{}}

def setup(given):
    state["n"] = given[0]

def run():
    total = 0
    for i in range({rounds}):
        total += i * i
    state["out"] = bytes([state["n"] + 1])
    {extra}

def output():
    return state["out"]
"""


def module(*, rounds: int = 3000, extra: str = "pass") -> str:
    return MODULE.format(rounds=rounds, extra=extra)


def arms(baseline: str, candidate: str, **other: object) -> Callables:
    return Callables(baseline=baseline, candidate=candidate, input=b"\x05", expected=b"\x06", **other)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(3))
def test_arms_are_not_mixed_up_whatever_the_order(box: Sandbox, seed: int) -> None:
    (block,) = arms(module(), module(rounds=12000)).take(box, [BlockPlan(index=0, seed=seed, pairs=4, repeats=5)])
    assert np.median(block.thread_s[:, 1]) > 2 * np.median(block.thread_s[:, 0])
    assert (block.wall_s >= block.thread_s - 1e-4).all(), "what the parent saw pass contains what the child used"
    assert not block.extra_threads


@pytest.mark.serial
def test_comparison_finds_the_candidate_with_half_the_work(measure: Measure) -> None:
    source = arms(module(rounds=4000), module(rounds=2000))
    found = measure.compare(source, baseline="0" * 64, candidate="1" * 64, stage="screen", seed=1)
    assert found.decision == "faster"
    assert found.low > 1.4
    assert "suspect" not in found.flags


def test_arm_that_falsifies_its_clocks_does_not_reach_the_parents(box: Sandbox) -> None:
    # It finds the harness's clocks and lets time pass at a quarter of its speed for itself.
    lie = """
    import sys
    main = sys.modules["__main__"]
    if not hasattr(main, "real"):
        main.real = main._timed
        def timed(run, calls):
            found = main.real(run, calls)
            if run.__module__ == "candidate":
                found = {name: value // 4 for name, value in found.items()}
            return found
        main._timed = timed
    """.replace("\n    ", "\n    ")
    source = arms(module(rounds=4000), module(rounds=4000, extra=lie.strip()))
    (block,) = source.take(box, [BlockPlan(index=0, seed=1, pairs=9, repeats=100)])
    claimed, passed = block.cpu_s[:, 1], block.wall_s[:, 1]
    assert np.median(claimed) < np.median(block.cpu_s[:, 0]) / 2, "the lie must work for this test to say anything"
    assert np.median(passed / claimed) > 2


@pytest.mark.parametrize(
    ("extra", "reason", "words"),
    [
        ("raise ValueError('broken arm')", "crash", "ValueError: broken arm"),
        ("state['out'] = b'9'", "wrong_output", "not the expected"),
        ("import os; os._exit(3)", "crash", "failed while"),
        ("import time; time.sleep(9)", "timeout", "failed while"),
    ],
)
@pytest.mark.parametrize("seed", range(2))
def test_fault_is_laid_on_the_arm_that_has_it(box: Sandbox, extra: str, reason: str, words: str, seed: int) -> None:
    source = arms(module(), module(extra=extra), timeout_s=1.0)
    with pytest.raises(ArmFailed, match=words) as failure:
        source.take(box, [BlockPlan(index=0, seed=seed, pairs=2)])
    assert (failure.value.arm, failure.value.reason) == (1, reason)
