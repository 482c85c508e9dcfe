"""Plain tensor types: what specs, shape inference and host inference speak, with no MLIR in sight."""

from dataclasses import dataclass
from enum import StrEnum
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class DType(StrEnum):
    """An element type; the value is its MLIR spelling."""

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    SI8 = "si8"
    UI8 = "ui8"
    SI32 = "si32"

    @property
    def is_float(self) -> bool:
        """True for the floating-point types."""
        return self in FLOATS

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy type that holds exactly these values."""
        return _NUMPY[self]

    @property
    def bytes(self) -> int:
        """Bytes of one element."""
        return self.numpy.itemsize


FLOATS = (DType.F32, DType.F16, DType.BF16)

_NUMPY: dict[DType, np.dtype[Any]] = {
    DType.F32: np.dtype(np.float32),
    DType.F16: np.dtype(np.float16),
    DType.BF16: np.dtype(ml_dtypes.bfloat16),
    DType.SI8: np.dtype(np.int8),
    DType.UI8: np.dtype(np.uint8),
    DType.SI32: np.dtype(np.int32),
}


@dataclass(frozen=True, slots=True)
class Tensor:
    """A ranked tensor type: a static shape and an element type."""

    shape: tuple[int, ...]
    dtype: DType

    def __str__(self) -> str:
        return f"tensor<{''.join(f'{d}x' for d in self.shape)}{self.dtype}>"

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of all elements, packed."""
        return self.size * self.dtype.bytes

    def with_shape(self, shape: tuple[int, ...]) -> "Tensor":
        """Return this type with another shape."""
        return Tensor(shape, self.dtype)

    def with_dtype(self, dtype: DType) -> "Tensor":
        """Return this type with another element type."""
        return Tensor(self.shape, dtype)


def tensor_of(array: Array) -> Tensor:
    """Return the type of a numpy array.

    Raises:
        ValueError: the array's element type has no counterpart.
    """
    for dtype, kind in _NUMPY.items():
        if kind == array.dtype:
            return Tensor(tuple(array.shape), dtype)
    raise ValueError(f"no tensor type holds numpy {array.dtype}")
