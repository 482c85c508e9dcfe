"""Our own weight quantisation keeps its error bound, for every shape and scale."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BadInput
from tpu_mlir.quantize.casts import NUMPY_TYPES, FloatType
from tpu_mlir.quantize.round_to_nearest import ROWS_AT_ONCE, quantise_groups

weights = st.builds(
    lambda rows, groups, size, seed, spread, shift: (
        (np.random.default_rng(seed).normal(size=(rows, groups * size)) + shift) * 10.0**spread
    ).astype(np.float32),
    rows=st.integers(1, 5),
    groups=st.integers(1, 4),
    size=st.just(32),
    seed=st.integers(0, 999),
    spread=st.integers(-6, 3),
    shift=st.sampled_from([0.0, 0.0, 3.0, -20.0]),
)


@settings(max_examples=60, deadline=None)
@given(weights, st.sampled_from([4, 8]), st.booleans(), st.sampled_from(["f32", "f16", "bf16"]))
def test_the_error_is_at_most_half_a_scale(
    weight: np.ndarray, bits: int, symmetric: bool, scale_type: FloatType
) -> None:
    quantised = quantise_groups("l", weight, bits=bits, group_size=32, symmetric=symmetric, scale_type=scale_type)
    error = np.abs(quantised.dequantise().astype(np.float64) - weight).reshape(weight.shape[0], -1, 32).max(axis=2)
    # float32 arithmetic may move a tie: a few parts in 10**6 of the largest code.
    assert (error <= quantised.scales.astype(np.float64) * (0.5 + 2.0**bits * 1e-6)).all()
    assert quantised.scales.dtype == NUMPY_TYPES[scale_type]


@settings(max_examples=30, deadline=None)
@given(weights, st.sampled_from([4, 8]), st.booleans())
def test_the_scale_is_no_coarser_than_the_range_needs(weight: np.ndarray, bits: int, symmetric: bool) -> None:
    quantised = quantise_groups("l", weight, bits=bits, group_size=32, symmetric=symmetric)
    groups = weight.astype(np.float64).reshape(weight.shape[0], -1, 32)
    if symmetric:
        needed = np.abs(groups).max(axis=2) / (2 ** (bits - 1) - 1)
    else:
        needed = (np.maximum(groups.max(axis=2), 0) - np.minimum(groups.min(axis=2), 0)) / (2**bits - 1)
    assert np.allclose(quantised.scales, needed, rtol=1e-6, atol=0)


def test_values_that_are_codes_come_back_exactly() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 16, size=(4, 64))
    codes[:, ::32], codes[:, 1::32] = 0, 15
    weight = ((codes - 7) * 0.25).astype(np.float32)
    quantised = quantise_groups("l", weight, bits=4, group_size=32, symmetric=False)
    assert np.array_equal(quantised.codes, codes)
    assert (quantised.zeros == 7).all()
    assert np.array_equal(quantised.dequantise(), weight)


def test_symmetric_codes_of_opposite_weights_are_opposite() -> None:
    weight = np.random.default_rng(1).normal(size=(3, 64)).astype(np.float32)
    plus = quantise_groups("l", weight, bits=4, group_size=64, symmetric=True)
    minus = quantise_groups("l", -weight, bits=4, group_size=64, symmetric=True)
    assert plus.symmetric
    assert np.array_equal(plus.codes.astype(int) - 8, 8 - minus.codes.astype(int))


def test_zero_groups_stay_zero() -> None:
    weight = np.zeros((2, 64), np.float32)
    for symmetric in (True, False):
        quantised = quantise_groups("l", weight, bits=4, group_size=32, symmetric=symmetric)
        assert (quantised.dequantise() == 0).all()
        assert (quantised.scales == 1).all()


@pytest.mark.parametrize("symmetric", [True, False])
def test_tiny_groups_keep_the_bound_in_f16_scales(symmetric: bool) -> None:
    weight = (np.random.default_rng(2).normal(size=(8, 64)) * 1e-7).astype(np.float32)
    quantised = quantise_groups("l", weight, bits=4, group_size=32, symmetric=symmetric, scale_type="f16")
    assert (np.abs(quantised.dequantise() - weight) <= 0.51 * quantised.scales.astype(np.float32).repeat(32, 1)).all()


def test_group_size_minus_one_is_one_group_a_row() -> None:
    quantised = quantise_groups("l", np.ones((2, 96), np.float32), bits=8, group_size=-1, symmetric=False)
    assert (quantised.groups, quantised.group_size) == (1, 96)


def test_rows_do_not_depend_on_their_block() -> None:
    weight = np.random.default_rng(3).normal(size=(ROWS_AT_ONCE + 5, 32)).astype(ml_dtypes.bfloat16)
    whole = quantise_groups("l", weight, bits=4, group_size=32, symmetric=False)
    last = quantise_groups("l", weight[-7:], bits=4, group_size=32, symmetric=False)
    assert np.array_equal(whole.codes[-7:], last.codes)
    assert np.array_equal(whole.scales[-7:], last.scales)


@pytest.mark.parametrize(
    ("weight", "arguments", "message"),
    [
        (np.ones((2, 100), np.float32), {}, r"^model\.x: its 100 inputs do not divide into groups of 32"),
        (np.ones((2, 64), np.float32), {"bits": 3}, r"^model\.x: 3-bit"),
        (np.ones((2, 64), np.float32), {"group_size": 0}, r"^model\.x: its 64 inputs"),
        (np.full((2, 64), np.nan, np.float32), {}, r"^model\.x: the weight has infinities or NaN"),
        (np.full((2, 64), 1e9, np.float32), {"scale_type": "f16"}, r"^model\.x scales: 4 values overflow f16"),
        (np.ones(64, np.float32), {}, r"^model\.x: a weight of shape \(64,\)"),
    ],
)
def test_what_cannot_be_quantised_is_refused_by_layer(
    weight: np.ndarray, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        quantise_groups("model.x", weight, **{"bits": 4, "group_size": 32, "symmetric": False, **arguments})
