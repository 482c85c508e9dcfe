"""Histograms do not depend on how data arrives; each method chooses the range it promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BadInput
from tpu_mlir.quantize.calibration import (
    ActivationRange,
    ActivationStatistics,
    Int8Parameters,
    asymmetric_int8,
    choose_range,
    dequantise_int8,
    quantise_int8,
    symmetric_int8,
)
from tpu_mlir.quantize.histogram import HALF_BINS, histogram_of, merge

METHODS = ("max", "percentile", "mse", "kl")
chunks = st.lists(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=20).map(lambda x: np.array(x, np.float32)),
    min_size=1,
    max_size=6,
)


def equal(a, b) -> bool:
    return np.array_equal(a.counts, b.counts) and (a.limit, a.low, a.high, a.zeros, a.total) == (
        b.limit,
        b.low,
        b.high,
        b.zeros,
        b.total,
    )


@settings(max_examples=80, deadline=None)
@given(chunks)
def test_a_stream_gives_the_histogram_of_all_its_data_in_any_order(parts: list[np.ndarray]) -> None:
    whole = histogram_of("x", np.concatenate(parts))
    for order in (parts, parts[::-1]):
        stream = histogram_of("x", order[0])
        for part in order[1:]:
            stream = merge(stream, histogram_of("x", part))
        assert equal(stream, whole)


@settings(max_examples=60, deadline=None)
@given(chunks)
def test_no_value_is_lost_and_each_is_in_its_bin(parts: list[np.ndarray]) -> None:
    values = np.concatenate(parts)
    histogram = histogram_of("x", values)
    assert histogram.total == values.size
    assert histogram.low == values.min()
    assert histogram.high == values.max()
    if values.any():
        assert histogram.limit / 2 <= np.abs(values).max() < histogram.limit or histogram.limit == 2.0**-126
    for index in np.flatnonzero(histogram.counts):
        low = (index - HALF_BINS) * histogram.width
        inside = (values != 0) & (values >= low) & (values < low + histogram.width)
        assert inside.sum() == histogram.counts[index]


def normal(size: int = 20000, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=size).astype(np.float32)


def error_of(values: np.ndarray, threshold: float) -> float:
    parameters = Int8Parameters(scale=threshold / 127, zero_point=0)
    codes = np.clip(quantise_int8(values, parameters), -127, 127)
    return float(((dequantise_int8(codes, parameters) - values) ** 2).mean())


def test_max_covers_all_values() -> None:
    values = normal()
    chosen = choose_range(histogram_of("x", values), "max")
    assert (chosen.low, chosen.high, chosen.values) == (values.min(), values.max(), values.size)


@pytest.mark.parametrize("percentile", [50, 90, 99, 99.9])
def test_percentile_keeps_that_share_of_values(percentile: float) -> None:
    values = normal()
    chosen = choose_range(histogram_of("x", values), "percentile", percentile)
    exact = np.percentile(np.abs(values), percentile)
    width = histogram_of("x", values).width
    assert abs(chosen.high - exact) <= 2 * width
    assert chosen.low == -chosen.high


def test_mse_is_at_least_as_good_as_every_other_threshold() -> None:
    values = np.concatenate([normal(), np.array([40.0, -37.0], np.float32)])
    chosen = choose_range(histogram_of("x", values), "mse")
    mine = error_of(values, chosen.high)
    best = min(error_of(values, t) for t in np.linspace(1, 40, 60))
    assert mine <= best * 1.02
    assert chosen.high < 39


def test_kl_cuts_a_rare_outlier() -> None:
    values = np.concatenate([normal(200000), np.array([1000.0], np.float32)])
    chosen = choose_range(histogram_of("x", values), "kl")
    assert chosen.high < 500


def test_kl_keeps_the_whole_of_a_flat_distribution() -> None:
    values = np.random.default_rng(1).uniform(-1, 1, 400000)
    assert choose_range(histogram_of("x", values), "kl").high > 0.9


def test_kl_cuts_the_tail_of_a_normal_distribution_a_little() -> None:
    chosen = choose_range(histogram_of("x", normal(400000)), "kl")
    assert 2.0 < chosen.high < 4.9


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=25, deadline=None)
@given(parts=chunks)
def test_every_range_holds_zero_and_no_more_than_the_data(method: str, parts: list[np.ndarray]) -> None:
    values = np.concatenate(parts)
    chosen = choose_range(histogram_of("x", values), method)
    assert min(0.0, float(values.min())) <= chosen.low <= 0 <= chosen.high <= max(0.0, float(values.max()))
    if values.any():
        assert chosen.high > chosen.low


@pytest.mark.parametrize("method", METHODS)
def test_scaling_the_data_by_a_power_of_two_scales_the_range(method: str) -> None:
    values = normal(5000, seed=3)
    one, four = (choose_range(histogram_of("x", values * k), method) for k in (1, 4))
    assert (four.low, four.high) == (4 * one.low, 4 * one.high)


def test_positive_activations_get_a_one_sided_range() -> None:
    chosen = choose_range(histogram_of("x", np.abs(normal())), "mse")
    assert chosen.low == 0
    assert asymmetric_int8(chosen).zero_point == -128


ranges = st.builds(
    lambda low, high: ActivationRange(low=-low, high=high, method="max", values=1),
    low=st.floats(0, 1e4),
    high=st.floats(0.01, 1e4),
)


@given(ranges, st.floats(0, 1), st.booleans())
def test_int8_is_within_half_a_step_inside_the_range(chosen: ActivationRange, where: float, symmetric: bool) -> None:
    parameters = symmetric_int8(chosen) if symmetric else asymmetric_int8(chosen)
    value = np.array([chosen.low + where * (chosen.high - chosen.low)])
    back = dequantise_int8(quantise_int8(value, parameters), parameters)
    # Asymmetric zero points are rounded, which may clip the ends by up to half a step more.
    assert abs(float(back[0]) - value[0]) <= parameters.scale * (0.5 if symmetric else 1.0) * (1 + 1e-5)
    assert dequantise_int8(np.array([parameters.zero_point], np.int8), parameters)[0] == 0


def test_int8_saturates_and_rounds_ties_to_even() -> None:
    parameters = Int8Parameters(scale=1.0, zero_point=0)
    values = np.array([-1e9, -1.5, -0.5, 0.5, 1.5, 2.5, 1e9])
    assert quantise_int8(values, parameters).tolist() == [-128, -2, 0, 0, 2, 2, 127]


def test_statistics_keep_activations_apart() -> None:
    statistics = ActivationStatistics()
    statistics.observe("a", normal(100, 1))
    statistics.observe("b", np.zeros(10))
    statistics.observe("a", 8 * normal(100, 2))
    assert statistics.histograms["a"].total == 200
    ranges = statistics.ranges("max")
    assert (ranges["b"].low, ranges["b"].high) == (0, 0)
    assert symmetric_int8(ranges["b"]).scale == 1
    assert ranges["a"].high == max(normal(100, 1).max(), (8 * normal(100, 2)).max())


@pytest.mark.parametrize("values", [np.array([]), np.array([1.0, np.nan]), np.array([np.inf])])
def test_activations_that_are_no_numbers_are_refused_by_name(values: np.ndarray) -> None:
    with pytest.raises(BadInput, match=r"^Activation block_3/silu is empty, or has infinities or NaN"):
        ActivationStatistics().observe("block_3/silu", values)


def test_a_percentile_out_of_range_is_refused() -> None:
    with pytest.raises(BadInput, match="percentile is 0"):
        choose_range(histogram_of("x", normal(10)), "percentile", 0)
