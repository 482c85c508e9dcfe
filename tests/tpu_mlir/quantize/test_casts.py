"""Casts round to nearest, ties to even, and never lose a value to infinity in silence."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import BadInput
from tpu_mlir.quantize.casts import cast

BF16 = np.dtype(ml_dtypes.bfloat16)


def bf16_by_bits(value: np.float32) -> int:
    """Round to bfloat16 by integer arithmetic on the bits."""
    bits = int(np.float32(value).view(np.uint32))
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**127), max_value=2.0**127))
def test_bf16_rounds_as_the_bits_say(value: float) -> None:
    values = np.array([value], np.float32)
    assert int(cast("t", values, "bf16").view(np.uint16)[0]) == bf16_by_bits(values[0])


@given(st.floats(width=32, min_value=-65000, max_value=65000))
def test_f16_is_the_nearest_and_even_on_ties(value: float) -> None:
    result = cast("t", np.array([value], np.float32), "f16")[0]
    below, above = np.nextafter(result, np.float16(-np.inf)), np.nextafter(result, np.float16(np.inf))
    distance = abs(Fraction(float(result)) - Fraction(value))
    for other in (below, above):
        assert distance <= abs(Fraction(float(other)) - Fraction(value))
        if distance == abs(Fraction(float(other)) - Fraction(value)) and other != result:
            assert int(result.view(np.uint16)) % 2 == 0


@pytest.mark.parametrize("to", ["f32", "f16", "bf16"])
def test_values_of_the_type_itself_are_not_copied(to: str) -> None:
    values = cast("t", np.arange(4.0), to)
    assert cast("t", values, to) is values


def test_f16_to_bf16_goes_through_no_other_rounding() -> None:
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    finite = every[np.isfinite(every)]
    assert np.array_equal(
        cast("t", finite, "bf16").view(np.uint16), np.array([bf16_by_bits(v) for v in finite.astype(np.float32)])
    )


@pytest.mark.parametrize(
    ("values", "to", "fix"),
    [
        (np.array([1.0, 7e4, -1e5], np.float32), "f16", "bf16"),
        (np.array([1.0, 7e4, -1e5]).astype(BF16), "f16", "bf16"),
        (np.array([1.0, 3.4e38, -3.4e38], np.float32), "bf16", "f32"),
        (np.array([1.0, 1e39, -1e39], np.float64), "f32", "f32"),
    ],
)
def test_overflow_is_refused_by_tensor(values: np.ndarray, to: str, fix: str) -> None:
    with pytest.raises(BadInput, match=r"^model\.norm\.weight: 2 values overflow") as refused:
        cast("model.norm.weight", values, to)
    assert fix in refused.value.fix


def test_infinities_stay() -> None:
    assert np.isinf(cast("t", np.array([np.inf, -np.inf], np.float32), "f16")).all()
