import numpy as np
import pytest

from core.measure import bench, rivals
from core.measure.bench import FULL, QUICK, Trial, figures, schedule
from core.measure.comparison import Comparison, Decision


def trial(kind: bench.Kind, decision: Decision, *, ratio: float = 1.0, rival: Decision = "undecided") -> Trial:
    found = Comparison(
        baseline="a" * 64,
        candidate="b" * 64,
        stage="prove",
        seed=1,
        ratio=ratio,
        low=ratio * 0.99,
        high=ratio * 1.01,
        level=0.99,
        margin=0.01,
        decision=decision,
        rule="",
        pairs=9,
        clock="cpu",
        modelled=False,
        samples=None,
        environment="c" * 64,
        wall_s=2.0,
        flags=("few_layouts",),
    )
    return Trial(kind=kind, found=found, rival={"minimum_wall": rival})


def by_name(trials: list[Trial], *, complete: bool = True) -> dict[str, tuple[float, bool | None]]:
    return {figure.name: (figure.value, figure.holds) for figure in figures(trials, FULL, complete=complete)}


GOOD = [trial("aa_files", "same")] * 97 + [trial("aa_layouts", "faster", rival="faster")] * 3
GOOD += (
    [trial("aa_layouts", "undecided")] * 100 + [trial("ab", "faster", ratio=1.03)] * 57 + [trial("ab", "slower")] * 3
)


def test_bars_hold_for_good_trials() -> None:
    found = by_name(GOOD)
    assert found["aa_wrong_decisions"] == (3, True)
    assert found["ab_found_rate"] == (0.95, True)
    assert found["ab_median_time"] == (2.0, True)
    assert found["ab_wrong_rate"][0] == pytest.approx(0.05)
    assert found["minimum_wall_aa_wrong_rate"] == (0.015, None)
    assert found["flagged_few_layouts"] == (1.0, None)


def test_seven_wrong_decisions_miss_the_bar() -> None:
    assert by_name(GOOD + [trial("aa_files", "slower")] * 4)["aa_wrong_decisions"] == (7, False)


def test_too_few_wins_miss_the_bar() -> None:
    assert (
        by_name([*GOOD[:200], *[trial("ab", "faster")] * 53, *[trial("ab", "same")] * 7])["ab_found_rate"][1] is False
    )


@pytest.mark.parametrize("trials", [[], GOOD[:50], GOOD[:50] + GOOD[-20:]])
def test_partial_results_never_pass(trials: list[Trial]) -> None:
    found = figures(trials, FULL, complete=False)
    assert not any(figure.holds for figure in found)
    assert {figure.name: figure.holds for figure in found}["aa_trials"] is False


@pytest.mark.parametrize("size", [FULL, QUICK])
def test_schedule_halves_the_controls_and_mixes_all_from_the_start(size: bench.Size) -> None:
    plan = schedule(size)
    kinds = [kind for kind, _, _ in plan]
    assert kinds.count("aa_files") == kinds.count("aa_layouts") == size.aa_trials / 2
    assert kinds.count("ab") == size.ab_trials
    assert set(kinds[:6]) == {"aa_files", "aa_layouts", "ab"}
    assert {(kernel, s) for kind, kernel, s in plan if kind == "aa_layouts"} == {
        (kernel, s) for kernel in size.kernels for s in size.aa_s
    }


def test_hyperfines_rule_needs_disjoint_bands() -> None:
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 0.01, (30, 2))
    assert rivals.mean_and_deviation(1 + noise) == "undecided"
    assert rivals.mean_and_deviation((1 + noise) * [1.1, 1.0]) == "faster"
    assert rivals.mean_and_deviation((1 + noise) * [1.0, 1.1]) == "slower"


def test_minimum_rule_looks_at_the_shortest_samples_only() -> None:
    assert rivals.minimum(np.array([[1.0, 9.0], [9.0, 0.9]]), 0.01) == "faster"
    assert rivals.minimum(np.array([[1.0, 1.005], [9.0, 9.0]]), 0.01) == "same"
    assert rivals.minimum(np.array([[0.9, 1.0], [9.0, 9.0]]), 0.01) == "slower"
