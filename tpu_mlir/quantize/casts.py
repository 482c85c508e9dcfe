"""Casts between float types, rounding to nearest, ties to even."""

from typing import Any, Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt

from core.errors import BadInput

FloatType = Literal["f32", "f16", "bf16"]
NUMPY_TYPES: dict[FloatType, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
}


def cast(name: str, values: npt.NDArray[Any], to: FloatType) -> npt.NDArray[Any]:
    """Return the values in another float type.

    Args:
        name: the tensor, for messages.
        values: f32, f16, bf16 or f64 (which rounds to f32 on the way to bf16).
        to: the type wanted.

    Raises:
        BadInput: finite values become infinite, as large weights do in f16; names the tensor, how many, and the
            largest.
    """
    target = NUMPY_TYPES[to]
    if values.dtype == target:
        return values
    if values.dtype == np.float64 and to == "bf16":
        values = cast(name, values, "f32")
    with np.errstate(over="ignore"):
        result = values.astype(target)
    if to != "f32" or values.dtype == np.float64:
        overflown = np.isinf(result) & np.isfinite(values)
        if overflown.any():
            largest = float(np.abs(values[overflown].astype(np.float64)).max())
            raise BadInput(
                f"{name}: {int(overflown.sum())} values overflow {to}, the largest is {largest:.4g}.",
                "Use bf16 or f32." if to == "f16" else "Use f32.",
            )
    return result
