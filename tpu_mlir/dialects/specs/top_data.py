"""`top` ops that bring data in, move it and change its shape, without arithmetic."""

from typing import Literal

import numpy as np

from tpu_mlir.dialects import shapes
from tpu_mlir.dialects.spec import AnyTensor, Ids, op, require
from tpu_mlir.dialects.types import Array, DType, Tensor


@op("top.input", vendor="Input", host=lambda x: x)
def input_(x: AnyTensor) -> Tensor:
    """Name a function argument; the location is the tensor's name."""
    return x


@op("top.weight", vendor="Weight")
def weight(*, role: str, shape: tuple[int, ...], dtype: Literal["f32", "ui8", "si8", "si32"] = "f32") -> Tensor:
    """A constant of the checkpoint, by the name of its role; the bytes stay in the weight file."""
    require(bool(role), "attribute role is empty")
    require(all(d > 0 for d in shape), f"shape {shapes.text(shape)} has an axis that is not positive")
    return Tensor(shape, DType(dtype))


def _gather(x: Array, ids: Array, *, axis: int) -> Array:
    length = x.shape[axis]
    require(bool(((ids >= -length) & (ids < length)).all()), f"ids reach outside 0..{length - 1}")
    return np.take(x, ids, axis=axis)


@op("top.gather", vendor="Gather", host=_gather)
def gather(x: AnyTensor, ids: Ids, *, axis: int) -> Tensor:
    """Rows of x by index: the axes of ids take the place of one axis of x (embedding, RoPE tables)."""
    axis = shapes.normal_axis(axis, x)
    return x.with_shape((*x.shape[:axis], *ids.shape, *x.shape[axis + 1 :]))


@op("top.gather_elements", vendor="GatherElements", host=lambda x, ids, *, axis: np.take_along_axis(x, ids, axis))
def gather_elements(x: AnyTensor, ids: Ids, *, axis: int) -> Tensor:
    """One element of x for every element of ids, which give the position along one axis."""
    _check_elements(x, ids, shapes.normal_axis(axis, x))
    return x.with_shape(ids.shape)


def _scatter_elements(x: Array, ids: Array, updates: Array, *, axis: int) -> Array:
    out = x.copy()
    np.put_along_axis(out, ids, updates, axis)
    return out


@op("top.scatter_elements", vendor="ScatterElements", host=_scatter_elements)
def scatter_elements(x: AnyTensor, ids: Ids, updates: AnyTensor, *, axis: int) -> Tensor:
    """`x` with the elements named by ids replaced by updates; of several writes to one place the last stays."""
    _check_elements(x, ids, shapes.normal_axis(axis, x))
    require(updates.shape == ids.shape, f"updates {shapes.text(updates.shape)} and ids {shapes.text(ids.shape)} differ")
    shapes.same_dtype(x, updates)
    return x


def _check_elements(x: Tensor, ids: Tensor, axis: int) -> None:
    fits = x.rank == ids.rank and all(
        i == axis or a == b for i, (a, b) in enumerate(zip(x.shape, ids.shape, strict=False))
    )
    require(fits, f"ids {shapes.text(ids.shape)} must match x {shapes.text(x.shape)} on every axis but {axis}")


@op("top.concat", vendor="Concat", host=lambda inputs, *, axis: np.concatenate(inputs, axis))
def concat(inputs: tuple[AnyTensor, ...], *, axis: int) -> Tensor:
    """The operands one after the other along one axis (history and new key/value rows)."""
    require(bool(inputs), "no operands")
    first = inputs[0]
    axis = shapes.normal_axis(axis, first)
    shapes.same_dtype(*inputs)
    for other in inputs[1:]:
        rest = [s[:axis] + s[axis + 1 :] for s in (first.shape, other.shape)]
        require(
            first.rank == other.rank and rest[0] == rest[1],
            f"operands {shapes.text(first.shape)} and {shapes.text(other.shape)} differ outside axis {axis}",
        )
    return first.with_shape((*first.shape[:axis], sum(t.shape[axis] for t in inputs), *first.shape[axis + 1 :]))


def _insert(x: Array, update: Array, *, axis: int, offset: int) -> Array:
    out = x.copy()
    place = [slice(None)] * x.ndim
    place[axis] = slice(offset, offset + update.shape[axis])
    out[tuple(place)] = update
    return out


@op("top.insert", vendor="Insert", host=_insert)
def insert(x: AnyTensor, update: AnyTensor, *, axis: int, offset: int) -> Tensor:
    """`x` with a stretch of one axis replaced by update, in place on the chip (a new key/value row)."""
    axis = shapes.normal_axis(axis, x)
    shapes.same_dtype(x, update)
    same = x.rank == update.rank and all(
        i == axis or a == b for i, (a, b) in enumerate(zip(x.shape, update.shape, strict=False))
    )
    require(same, f"x {shapes.text(x.shape)} and update {shapes.text(update.shape)} differ outside axis {axis}")
    end = offset + update.shape[axis]
    require(
        offset >= 0 and end <= x.shape[axis], f"rows {offset}..{end} lie outside axis {axis} of {shapes.text(x.shape)}"
    )
    return x


def _slice(x: Array, *, starts: tuple[int, ...], ends: tuple[int, ...], steps: tuple[int, ...]) -> Array:
    return x[tuple(slice(*part) for part in zip(starts, ends, steps, strict=True))]


@op("top.slice", vendor="Slice", host=_slice)
def slice_(x: AnyTensor, *, starts: tuple[int, ...], ends: tuple[int, ...], steps: tuple[int, ...]) -> Tensor:
    """A strided part of x: from starts to before ends on every axis, none of them counted from the end."""
    lengths = {len(starts), len(ends), len(steps)}
    require(lengths == {x.rank}, f"starts, ends and steps need {x.rank} entries each for x {shapes.text(x.shape)}")
    for axis, (start, end, step) in enumerate(zip(starts, ends, steps, strict=True)):
        good = 0 <= start < end <= x.shape[axis] and step > 0
        require(good, f"{start}:{end}:{step} is not a part of axis {axis} of {shapes.text(x.shape)}")
    return x.with_shape(tuple(-(-(e - s) // t) for s, e, t in zip(starts, ends, steps, strict=True)))


@op("top.reshape", vendor="Reshape", host=lambda x, *, shape: x.reshape(shape))
def reshape(x: AnyTensor, *, shape: tuple[int, ...]) -> Tensor:
    """The same elements in row-major order under another shape; one length may be -1."""
    return x.with_shape(shapes.reshape(x, shape))


@op("top.squeeze", vendor="Squeeze", host=lambda x, *, axes: np.squeeze(x, axes))
def squeeze(x: AnyTensor, *, axes: tuple[int, ...]) -> Tensor:
    """`x` without the named axes, which must have length 1."""
    drop = {shapes.normal_axis(a, x) for a in axes}
    for axis in drop:
        require(x.shape[axis] == 1, f"axis {axis} of {shapes.text(x.shape)} is {x.shape[axis]} long, not 1")
    return x.with_shape(tuple(d for i, d in enumerate(x.shape) if i not in drop))


@op("top.unsqueeze", vendor="Unsqueeze", host=lambda x, *, axes: np.expand_dims(x, axes))
def unsqueeze(x: AnyTensor, *, axes: tuple[int, ...]) -> Tensor:
    """`x` with axes of length 1 put in at the named places of the result."""
    rank = x.rank + len(axes)
    require(all(-rank <= a < rank for a in axes), f"axes {axes} are out of range for a result of rank {rank}")
    places = {a % rank for a in axes}
    require(len(places) == len(axes), f"axes {axes} name one place twice")
    rest = iter(x.shape)
    return x.with_shape(tuple(1 if i in places else next(rest) for i in range(rank)))


@op("top.permute", vendor="Permute", host=lambda x, *, order: np.ascontiguousarray(x.transpose(order)))
def permute(x: AnyTensor, *, order: tuple[int, ...]) -> Tensor:
    """`x` with its axes in another order."""
    require(
        sorted(order) == list(range(x.rank)),
        f"order {order} is not a permutation of the axes of {shapes.text(x.shape)}",
    )
    return x.with_shape(tuple(x.shape[i] for i in order))


@op("top.tile", vendor="Tile", host=lambda x, *, repeats: np.tile(x, repeats))
def tile(x: AnyTensor, *, repeats: tuple[int, ...]) -> Tensor:
    """`x` repeated along every axis."""
    require(len(repeats) == x.rank, f"repeats needs {x.rank} entries for x {shapes.text(x.shape)}")
    require(all(r > 0 for r in repeats), f"repeats {repeats} must be positive")
    return x.with_shape(tuple(d * r for d, r in zip(x.shape, repeats, strict=True)))


@op("top.expand", vendor="Expand", host=lambda x, *, shape: np.broadcast_to(x, shape).copy())
def expand(x: AnyTensor, *, shape: tuple[int, ...]) -> Tensor:
    """`x` broadcast to a larger shape."""
    out = shapes.broadcast(x, x.with_shape(shape), y_name="shape")
    require(out == shape, f"x {shapes.text(x.shape)} does not broadcast to {shapes.text(shape)}")
    return x.with_shape(shape)


def _pad(x: Array, *, before: tuple[int, ...], after: tuple[int, ...], value: float) -> Array:
    return np.pad(x, tuple(zip(before, after, strict=True)), constant_values=value)


@op("top.pad", vendor="Pad", host=_pad)
def pad(x: AnyTensor, *, before: tuple[int, ...], after: tuple[int, ...], value: float = 0.0) -> Tensor:
    """`x` with a constant border."""
    require(len(before) == len(after) == x.rank, f"before and after need {x.rank} entries for x {shapes.text(x.shape)}")
    require(min((*before, *after), default=0) >= 0, "before and after must not be negative")
    return x.with_shape(tuple(d + b + a for d, b, a in zip(x.shape, before, after, strict=True)))


@op("top.cast", vendor="Cast", host=lambda x, *, to: x.astype(DType(to).numpy))
def cast(x: AnyTensor, *, to: Literal["f32", "si32"]) -> Tensor:
    """`x` with another element type; floats lose their fraction on the way to integers."""
    return x.with_dtype(DType(to))
