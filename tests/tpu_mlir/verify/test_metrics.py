"""The measures mean what they say."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tpu_mlir.verify.metrics import HINTS, compare

X = np.random.default_rng(0).standard_normal((4, 50)).astype(np.float32)


def test_equal_tensors_are_equal_in_every_measure():
    got = compare("x", X, X.copy())
    assert (got.cosine, got.euclid, got.sqnr_db, got.max_ulp, got.max_error) == (pytest.approx(1), 1, None, 0, 0)
    assert got.trouble is None


def test_all_zeros_are_equal_to_all_zeros_and_to_nothing_else():
    zeros = np.zeros((3,), np.float32)
    assert compare("z", zeros, zeros).cosine == 1
    assert compare("z", zeros, zeros + 1).cosine == 0
    assert compare("z", zeros, zeros + 1).trouble == "noise"


def test_a_factor_is_a_scale_and_not_noise():
    got = compare("x", X, X * 1.5)
    assert got.cosine == pytest.approx(1)
    assert got.euclid == pytest.approx(1 - 0.5 / 1.25)
    assert got.trouble == "scale"


def test_noise_is_measured_in_decibels():
    noise = np.random.default_rng(1).standard_normal(X.shape).astype(np.float32)
    got = compare("x", X, X + 0.1 * noise)
    assert got.sqnr_db == pytest.approx(20, abs=1.5)
    assert compare("x", X, noise).trouble == "noise"


def test_an_infinity_is_named():
    bad = X.copy()
    bad[0, 0] = np.inf
    got = compare("x", X, bad)
    assert got.trouble == "not_finite"
    assert got.max_error is None
    assert "f16 ends at 65504" in HINTS["not_finite"]


@settings(deadline=None, max_examples=60)
@given(arrays(np.float32, (8,), elements=st.floats(-100, 100, width=32)))
def test_rounding_once_is_at_most_no_step(x):
    """The reference is rounded to the candidate's type, so a correctly rounded tensor is no step away."""
    assert compare("x", x, x.astype(ml_dtypes.bfloat16)).max_ulp == 0


@settings(deadline=None, max_examples=60)
@given(st.floats(1, 100), st.integers(-5, 5))
def test_steps_count_neighbours(value, steps):
    one = np.array([value, -value], ml_dtypes.bfloat16)
    moved = (one.view(np.int16) + steps).view(ml_dtypes.bfloat16)
    assert compare("x", one, moved).max_ulp == abs(steps)


def test_other_shapes_are_refused():
    with pytest.raises(ValueError, match="differ"):
        compare("x", X, X[:2])
