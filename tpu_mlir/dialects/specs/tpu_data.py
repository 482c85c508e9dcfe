"""`tpu` ops that hold, move, group and convert data."""

from typing import Annotated, Literal

import numpy as np

from tpu_mlir.dialects import shapes
from tpu_mlir.dialects.spec import Allowed, AnyTensor, Bytes, op, require
from tpu_mlir.dialects.types import Array, DType, Tensor

Numbers = Annotated[Tensor, Allowed((*(d for d in DType if d.is_float), DType.SI32))]
Accumulator = Annotated[Tensor, Allowed((DType.SI32,))]
Rounding = Literal["half_away", "half_up", "half_even"]


@op("tpu.input", vendor="Input", host=lambda x: x)
def input_(x: AnyTensor) -> Tensor:
    """Name a function argument; the location is the tensor's name."""
    return x


@op("tpu.weight", vendor="Weight")
def weight(
    *,
    role: str,
    shape: tuple[int, ...],
    dtype: Literal["f32", "f16", "bf16", "si8", "ui8", "si32"],
    part: Literal["value", "packed", "scale", "zero"] = "value",
    bits: int = 0,
    group_size: int = 0,
    symmetric: bool = False,
) -> Tensor:
    """A constant in the form the chip reads it.

    `value` is the checkpoint's tensor, rounded to the element type. The other parts are those of its group-wise
    quantisation to `bits` bits, in groups of `group_size` along the last axis: packed integers, scales, zero points.
    """
    require(bool(role), "attribute role is empty")
    require(all(d > 0 for d in shape), f"shape {shapes.text(shape)} has an axis that is not positive")
    if part == "value":
        plain = (bits, group_size, symmetric) == (0, 0, False)
        require(plain, "bits, group_size and symmetric belong to the parts of a quantised weight")
    else:
        require(bits in (4, 8), f"attribute bits is {bits}, wanted 4 or 8")
        require(group_size > 0, f"attribute group_size is {group_size}, wanted a positive number")
        integers = dtype == "ui8"
        require(integers == (part != "scale"), f"part {part} cannot have elements of {dtype}")
        require(not (symmetric and part == "zero"), "a symmetric weight has no zero points")
    return Tensor(shape, DType(dtype))


def _cast(x: Array, *, to: str) -> Array:
    with np.errstate(over="ignore"):
        return x.astype(DType(to).numpy)


@op("tpu.cast", vendor="Cast", host=_cast, flops=0)
def cast(x: Numbers, *, to: Literal["f32", "f16", "bf16", "si32"]) -> Tensor:
    """`x` with another element type, rounded to nearest even; floats lose their fraction on the way to integers."""
    return x.with_dtype(DType(to))


def round_half(value: Array, rounding: str) -> Array:
    """Round f64 values to integers, ties as named."""
    if rounding == "half_even":
        return np.asarray(np.rint(value))
    if rounding == "half_up":
        return np.asarray(np.floor(value + 0.5))
    return np.asarray(np.copysign(np.floor(np.abs(value) + 0.5), value))


def saturate(value: Array, dtype: DType) -> Array:
    """Return integers limited to the range of an element type."""
    limits = np.iinfo(dtype.numpy)
    return np.clip(value, limits.min, limits.max).astype(dtype.numpy)


def _shift_right(value: Array, shift: Array, rounding: str) -> Array:
    """Shift int64 right, ties as named; the integer counterpart of round_half on value / 2**shift."""
    half = np.where(shift > 0, np.int64(1) << np.maximum(shift - 1, 0), 0)
    if rounding == "half_up":
        return np.asarray((value + half) >> shift)
    if rounding == "half_away":
        return np.asarray(np.sign(value) * ((np.abs(value) + half) >> shift))
    floor = value >> shift
    rest = value - (floor << shift)
    up = (rest > half) | ((rest == half) & (shift > 0) & (floor & 1 == 1))
    return np.asarray(floor + up)


def _per_channel(values: tuple[int, ...] | tuple[float, ...], x: Array, axis: int) -> Array:
    column = [1] * x.ndim
    column[axis] = len(values) if len(values) > 1 else 1
    return np.asarray(values).reshape(column)


def _requant_int(
    x: Array,
    *,
    multipliers: tuple[int, ...],
    shifts: tuple[int, ...],
    zero_point: int,
    axis: int,
    rounding: str,
    to: str,
) -> Array:
    product = x.astype(np.int64) * _per_channel(multipliers, x, axis).astype(np.int64)
    shifted = _shift_right(product, _per_channel(shifts, x, axis).astype(np.int64), rounding)
    return saturate(shifted + zero_point, DType(to))


@op("tpu.requant_int", vendor="RequantInt", host=_requant_int, flops=3)
def requant_int(
    x: Accumulator,
    *,
    multipliers: tuple[int, ...],
    shifts: tuple[int, ...],
    zero_point: int = 0,
    axis: int = -1,
    rounding: Rounding = "half_away",
    to: Literal["si8", "ui8"] = "si8",
) -> Tensor:
    """A 32-bit sum brought to 8 bits: times a multiplier, shifted right with rounding, plus zero point, saturated.

    One multiplier and shift for all, or one a channel of the axis. Exact in 64-bit integers.
    """
    _channels(x, axis, multipliers=multipliers, shifts=shifts)
    require(all(0 <= s < 63 for s in shifts), f"shifts {shifts} must lie in 0..62")
    require(all(0 <= m < 1 << 31 for m in multipliers), f"multipliers {multipliers} must lie in 0..2^31-1")
    return x.with_dtype(DType(to))


def _requant_fp(x: Array, *, scales: tuple[float, ...], zero_point: int, axis: int, rounding: str, to: str) -> Array:
    scaled = x.astype(np.float32) * _per_channel(scales, x, axis).astype(np.float32)
    return saturate(round_half(scaled.astype(np.float64), rounding) + zero_point, DType(to))


@op("tpu.requant_fp", vendor="RequantFp", host=_requant_fp, flops=3)
def requant_fp(
    x: Numbers,
    *,
    scales: tuple[float, ...],
    zero_point: int = 0,
    axis: int = -1,
    rounding: Rounding = "half_away",
    to: Literal["si8", "ui8"] = "si8",
) -> Tensor:
    """A float or a 32-bit sum brought to 8 bits: times a float scale, rounded, plus zero point, saturated."""
    _channels(x, axis, scales=scales)
    return x.with_dtype(DType(to))


def _dequant_int(x: Array, *, scales: tuple[float, ...], zero_point: int, axis: int, to: str) -> Array:
    centred = (x.astype(np.int64) - zero_point).astype(np.float32)
    with np.errstate(over="ignore"):
        return (centred * _per_channel(scales, x, axis).astype(np.float32)).astype(DType(to).numpy)


@op("tpu.dequant_int", vendor="DequantInt", host=_dequant_int, flops=2)
def dequant_int(
    x: AnyTensor,
    *,
    scales: tuple[float, ...],
    zero_point: int = 0,
    axis: int = -1,
    to: Literal["f32", "f16", "bf16"] = "f32",
) -> Tensor:
    """Integers back to floats: minus the zero point, times the scale (one, or one a channel of the axis)."""
    require(not x.dtype.is_float, f"x is {x}, wanted integers")
    _channels(x, axis, scales=scales)
    return x.with_dtype(DType(to))


def _channels(x: Tensor, axis: int, **values: tuple[int, ...] | tuple[float, ...]) -> None:
    length = x.shape[shapes.normal_axis(axis, x)]
    for name, value in values.items():
        require(len(value) in (1, length), f"{name} has {len(value)} entries, wanted 1 or {length} (axis {axis})")


def _lut(x: Array, table: Array) -> Array:
    return np.asarray(table.reshape(-1)[x.view(np.uint8)])


@op("tpu.lut", vendor="Lut", host=_lut)
def lut(x: Bytes, table: AnyTensor) -> Tensor:
    """A table of 256 entries, looked up by the bit pattern of each byte of x."""
    require(table.size == 256, f"table {shapes.text(table.shape)} has {table.size} entries, wanted 256")
    return x.with_dtype(table.dtype)


@op("tpu.load", vendor="Load", host=lambda x: x, pure=False)
def load(x: AnyTensor) -> Tensor:
    """`x` brought from global to local memory; where it lies is in the attribute tpu.lmem."""
    return x


@op("tpu.store", vendor="Store", host=lambda x: x, pure=False)
def store(x: AnyTensor) -> Tensor:
    """`x` brought from local to global memory."""
    return x


@op("tpu.move", vendor="Move", host=lambda x: x, pure=False)
def move(x: AnyTensor) -> Tensor:
    """`x` copied to another place in the same memory."""
    return x


@op("tpu.group", vendor="Group", results=("outs",), many_results=True, region=True)
def group(yielded: tuple[Tensor, ...], *, sections: tuple[int, ...] = (1, 1, 1, 1)) -> tuple[Tensor, ...]:
    """Ops that run together on data kept in local memory, in slices; the body uses outer values and ends in tpu.yield.

    sections is the number of slices along batch, channels, height, width.
    """
    require(len(sections) == 4 and min(sections) > 0, f"sections {sections} must be four positive numbers")
    require(bool(yielded), "the body yields nothing")
    return yielded


@op("tpu.yield", vendor="Yield", results=(), terminator=True)
def yield_(outs: tuple[AnyTensor, ...]) -> tuple[Tensor, ...]:
    """End a group; the operands are its results."""
    require(bool(outs), "no operands")
    return ()
