"""Shape rules shared by several ops; each refuses what does not fit with a message in the op's own words."""

from collections.abc import Sequence

from tpu_mlir.dialects.spec import Mismatch, require
from tpu_mlir.dialects.types import Tensor

Shape = tuple[int, ...]


def text(shape: Sequence[int]) -> str:
    """Return a shape as people write it: 1x64x128."""
    return "x".join(map(str, shape)) or "scalar"


def normal_axis(axis: int, x: Tensor, name: str = "axis") -> int:
    """Return the axis counted from the front.

    Raises:
        Mismatch: the axis is out of range.
    """
    require(-x.rank <= axis < x.rank, f"{name} {axis} is out of range for {text(x.shape)} (rank {x.rank})")
    return axis % x.rank


def broadcast(x: Tensor, y: Tensor, x_name: str = "x", y_name: str = "y") -> Shape:
    """Return the common shape of two operands under numpy's rules.

    Raises:
        Mismatch: an axis differs and neither side is 1 there.
    """
    rank = max(x.rank, y.rank)
    left, right = ((1,) * (rank - len(s)) + s for s in (x.shape, y.shape))
    out = []
    for axis, (a, b) in enumerate(zip(left, right, strict=True)):
        if a != b and 1 not in (a, b):
            both = f"{x_name} {text(x.shape)} and {y_name} {text(y.shape)}"
            raise Mismatch(f"{both} do not broadcast: axis {axis - rank} has {a} and {b}")
        out.append(b if a == 1 else a)
    return tuple(out)


def same_dtype(*tensors: Tensor | None) -> None:
    """Require one element type.

    Raises:
        Mismatch: two of the given operands differ.
    """
    kinds = {t.dtype for t in tensors if t is not None}
    require(len(kinds) <= 1, f"operands mix element types {', '.join(sorted(kinds))}; cast one of them")


def matmul_shape(x: Shape, w: Shape, left_transpose: bool, right_transpose: bool) -> tuple[Shape, int]:
    """Return the shape of a batched matrix product and its inner length.

    Raises:
        Mismatch: fewer than two axes, differing inner lengths, or batch axes that do not broadcast.
    """
    require(len(x) >= 2 and len(w) >= 2, f"x {text(x)} and w {text(w)} need at least two axes")
    rows, inner = (x[-1], x[-2]) if left_transpose else (x[-2], x[-1])
    inner_w, columns = (w[-1], w[-2]) if right_transpose else (w[-2], w[-1])
    flags = f"left_transpose = {str(left_transpose).lower()}, right_transpose = {str(right_transpose).lower()}"
    require(inner == inner_w, f"inner lengths differ: {inner} in x {text(x)}, {inner_w} in w {text(w)} ({flags})")
    rank = max(len(x), len(w)) - 2
    left, right = ((1,) * (rank + 2 - len(s)) + s[:-2] for s in (x, w))
    for a, b in zip(left, right, strict=True):
        require(a == b or 1 in (a, b), f"batch axes of x {text(x)} and w {text(w)} do not broadcast: {a} and {b}")
    batch = tuple(b if a == 1 else a for a, b in zip(left, right, strict=True))
    return (*batch, rows, columns), inner


def reshape(x: Tensor, shape: Shape) -> Shape:
    """Return the target shape with its one -1 filled in.

    Raises:
        Mismatch: several -1, or a different number of elements.
    """
    require(shape.count(-1) <= 1, f"shape {text(shape)} has more than one -1")
    require(all(d == -1 or d > 0 for d in shape), f"shape {text(shape)} has an axis that is neither positive nor -1")
    known = 1
    for d in shape:
        known *= d if d != -1 else 1
    if -1 in shape:
        require(x.size % known == 0, f"{x.size} elements of {text(x.shape)} do not divide into {text(shape)}")
        return tuple(x.size // known if d == -1 else d for d in shape)
    require(x.size == known, f"{text(x.shape)} has {x.size} elements, {text(shape)} has {known}")
    return shape


def window(length: int, kernel: int, stride: int, before: int, after: int, dilation: int = 1) -> int:
    """Return the number of positions of a sliding window.

    Raises:
        Mismatch: the window is longer than the padded input, or a parameter is not positive.
    """
    require(min(kernel, stride, dilation) > 0, "kernel, strides and dilations must be positive")
    require(min(before, after) >= 0, "pads must not be negative")
    span = dilation * (kernel - 1) + 1
    room = length + before + after - span
    require(room >= 0, f"a window of {span} does not fit into {length} + {before + after} of padding")
    return room // stride + 1
