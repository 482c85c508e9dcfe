from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.measure import statistics as stats
from core.measure.simulate import NOISES, Noise, rates

LOOKS = (6, 8, 10, 13, 16, 20)
RULE = stats.Rule(looks=LOOKS, alpha=0.01, margin=0.01, rho=1.5)
values = st.lists(st.floats(-2, 2).map(lambda x: round(x, 6)), min_size=2, max_size=25)


def test_levels_of_a_pocock_like_design_match_published_ones() -> None:
    # Pocock's constant for 2 equally spaced looks at 0.05 is a nominal level of 0.0294 at both.
    found = stats.nominal_levels((1, 2), 0.05, 0.73)
    assert found == pytest.approx((0.0302, 0.0286), abs=2e-3)


def test_one_look_uses_the_whole_level() -> None:
    assert stats.nominal_levels((12,), 0.01, 1.5) == pytest.approx((0.01,), rel=1e-6)


@pytest.mark.parametrize("rho", [1.0, 1.5, 3.0])
def test_levels_are_individually_below_and_together_above_alpha(rho: float) -> None:
    levels = stats.nominal_levels(LOOKS, 0.01, rho)
    assert all(0 < level < 0.01 for level in levels)
    assert sum(levels) > 0.01


@pytest.mark.parametrize("looks", [(), (3, 3), (5, 4)])
def test_looks_must_rise(looks: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="rise"):
        stats.nominal_levels(looks, 0.01, 1.5)


@pytest.mark.parametrize("noise", NOISES)
def test_error_and_coverage_hold_whatever_the_noise(noise: Noise) -> None:
    # At alpha = 5%, so that 300 trials say something: more than 27 errors have a chance of about 0.1%.
    found = rates(300, 0.0, noise, replace(RULE, alpha=0.05), seed=7)
    assert found.faster + found.slower <= 27 / 300
    assert found.covered >= 1 - 27 / 300


@pytest.mark.parametrize("noise", ["student", "contaminated"])
def test_five_percent_are_found_under_heavy_tails(noise: Noise) -> None:
    assert rates(100, 0.05, noise, RULE, seed=8).faster >= 0.95
    assert rates(100, -0.05, noise, RULE, seed=8).slower >= 0.95


def test_nothing_is_called_the_same_that_differs_by_twice_the_margin() -> None:
    assert rates(200, 0.02, "normal", RULE, seed=9).same <= 0.01


@given(values, st.integers(0, 100))
def test_swapping_the_arms_mirrors_the_interval(blocks: list[float], seed: int) -> None:
    there = stats.repeated_interval(np.array(blocks), 0.004, 0.01, seed)
    back = stats.repeated_interval(-np.array(blocks), 0.004, 0.01, seed)
    assert back == pytest.approx((-there[1], -there[0]), abs=1e-9)


@given(values, st.randoms(use_true_random=False))
def test_order_of_blocks_does_not_matter(blocks: list[float], shuffle: object) -> None:
    other = list(blocks)
    shuffle.shuffle(other)  # type: ignore[attr-defined]
    there = stats.repeated_interval(np.array(blocks), 0.004, 0.01, 3)
    assert stats.repeated_interval(np.array(other), 0.004, 0.01, 3) == pytest.approx(there, abs=1e-9)


@given(st.lists(st.tuples(st.floats(1e-6, 10), st.floats(1e-6, 10)), min_size=1, max_size=9), st.floats(0.01, 100))
def test_block_estimate_ignores_scale_and_mirrors_when_swapped(pairs: list[tuple[float, float]], scale: float) -> None:
    times = np.array(pairs)
    estimate = stats.block_estimate(times)
    assert stats.block_estimate(times * scale) == pytest.approx(estimate, abs=1e-9)
    assert stats.block_estimate(times[:, ::-1]) == pytest.approx(-estimate, abs=1e-9)


@given(values)
def test_interval_holds_the_center_and_the_t_interval(blocks: list[float]) -> None:
    array = np.array(blocks)
    low, high = stats.repeated_interval(array, 0.004, 0.01, 3)
    t_low, t_high = stats.t_interval(array, 0.004)
    assert low <= t_low <= stats.center(array) + 1e-12
    assert high >= t_high >= stats.center(array) - 1e-12


def test_t_interval_is_the_textbooks_where_nothing_is_trimmed() -> None:
    # Mean 3, standard deviation sqrt(2.5), five values: 3 -+ 2.776 * sqrt(2.5 / 5).
    assert stats.t_interval(np.array([1.0, 2, 3, 4, 5]), 0.05) == pytest.approx((1.037, 4.963), abs=1e-3)


def test_one_spoilt_block_among_ten_does_not_move_the_center() -> None:
    calm = np.array([0.03, 0.031, 0.029, 0.03, 0.032, 0.028, 0.03, 0.031, 0.029, 0.03])
    spoilt = np.where(np.arange(10) == 4, -5.0, calm)
    assert stats.center(spoilt) == pytest.approx(0.03, abs=1e-3)
    assert stats.t_interval(spoilt, 0.01)[0] > 0


@pytest.mark.parametrize(
    ("interval", "decision"),
    [
        ((0.001, 0.2), "faster"),
        ((-0.2, -0.001), "slower"),
        ((-0.005, 0.005), "same"),
        ((-0.02, 0.005), "undecided"),
        ((0.0, 0.5), "undecided"),
        ((-np.log1p(0.01), np.log1p(0.01)), "same"),
    ],
)
def test_decisions_follow_the_interval(interval: tuple[float, float], decision: str) -> None:
    assert stats.decide(interval, 0.01) == decision


@given(st.integers(2, 12), st.integers(2, 40), st.integers(1, 8))
def test_schedule_rises_and_ends_at_the_last_block(first: int, last: int, count: int) -> None:
    looks = stats.look_schedule(first, last, count)
    assert looks[-1] == last
    assert list(looks) == sorted(set(looks))
    assert len(looks) <= max(1, count)


def test_sign_disagreement_counts_blocks_against_the_mean() -> None:
    assert stats.sign_disagreement([0.1, 0.2, -0.01, 0.3]) == 0.25
    assert stats.sign_disagreement([0.1, 0.2]) == 0.0
