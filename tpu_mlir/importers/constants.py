"""The array of a weight op, at both dialect levels: read by role, quantised or rounded as the op says."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tpu_mlir.dialects.adapter import Call
from tpu_mlir.dialects.specs.tpu_compute import rounded
from tpu_mlir.dialects.types import Array, DType
from tpu_mlir.quantize.casts import FloatType
from tpu_mlir.quantize.chip_packing import ChipWeight, pack_for_chip
from tpu_mlir.quantize.round_to_nearest import quantise_groups


@dataclass(frozen=True, slots=True)
class RoleConstants:
    """Gives weight ops their arrays; `read` gives the checkpoint's array of a role."""

    read: Callable[[str], Array]

    def __call__(self, call: Call) -> Array:
        """Return the array of a `top.weight` or `tpu.weight` op, of exactly its type.

        Raises:
            BadInput: the checkpoint has no such weight, or one that cannot be quantised so.
        """
        attrs: dict[str, Any] = dict(call.attrs)
        dtype, shape = DType(attrs["dtype"]), attrs["shape"]
        if attrs.get("part", "value") == "value":
            array = self.read(attrs["role"])
            return (rounded(array, dtype) if dtype.is_float else array.astype(dtype.numpy)).reshape(shape)
        part: Array = getattr(self._quantised(attrs), _PARTS[attrs["part"]])
        return (rounded(part, dtype) if dtype.is_float else part).reshape(shape)

    def _quantised(self, attrs: dict[str, Any]) -> ChipWeight:
        scale_type: FloatType = attrs["dtype"] if DType(attrs["dtype"]).is_float else "f32"
        return pack_for_chip(
            quantise_groups(
                attrs["role"],
                self.read(attrs["role"]),
                bits=attrs["bits"],
                group_size=attrs["group_size"],
                symmetric=attrs["symmetric"],
                scale_type=scale_type,
            )
        )


_PARTS = {"packed": "weight", "scale": "scales", "zero": "zeros"}
