import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.score.means import capped_geomean, fast_p, geomean, geomean_ci

ratios = st.lists(st.floats(0.01, 100), min_size=1, max_size=30)


@given(ratios)
def test_the_geometric_mean_lies_between_the_extremes_and_inverts(values):
    mean = geomean(values)
    assert min(values) * (1 - 1e-12) <= mean <= max(values) * (1 + 1e-12)
    assert geomean([1 / v for v in values]) == pytest.approx(1 / mean)


@given(ratios, st.floats(0.01, 100))
def test_a_cap_only_lowers(values, cap):
    assert capped_geomean(values, cap) <= min(geomean(values), cap) * (1 + 1e-12)
    assert capped_geomean(values, max(values)) == geomean(values)


@given(ratios, st.integers(0, 2**31))
def test_the_interval_holds_the_mean_and_is_repeatable(values, seed):
    interval = geomean_ci(values, seed=seed, resamples=200)
    assert interval.low <= interval.mean == geomean(values) <= interval.high
    assert geomean_ci(values, seed=seed, resamples=200) == interval


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    hits = 0
    for trial in range(200):
        values = np.exp(rng.normal(math.log(1.1), 0.2, size=40)).tolist()
        interval = geomean_ci(values, seed=trial, resamples=500)
        hits += interval.low <= 1.1 <= interval.high
    assert 176 <= hits <= 199


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_impossible_speedups_are_refused(bad):
    with pytest.raises(ValueError, match="positive and finite"):
        geomean([1.0, bad])


def test_no_values_are_refused():
    for mean in (geomean, lambda v: capped_geomean(v, 2), lambda v: geomean_ci(v, seed=0)):
        with pytest.raises(ValueError, match="at least one value"):
            mean([])
    with pytest.raises(ValueError, match="at least one task"):
        fast_p([], 1)


def test_fast_p_counts_the_correct_and_faster():
    assert fast_p([None, 0.5, 1.0, 1.5, 3.0], 1) == pytest.approx(0.4)
    assert fast_p([None, 0.5, 1.0, 1.5, 3.0], 2) == pytest.approx(0.2)
    assert fast_p([None], 0) == 0
