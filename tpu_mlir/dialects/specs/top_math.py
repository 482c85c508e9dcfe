"""`top` ops that compute element by element or along an axis."""

from collections.abc import Callable
from typing import Literal

import numpy as np

from tpu_mlir.dialects import shapes
from tpu_mlir.dialects.spec import F32, Ids, op, require
from tpu_mlir.dialects.types import Array, DType, Tensor


def _both(x: Tensor, y: Tensor) -> Tensor:
    shapes.same_dtype(x, y)
    return x.with_shape(shapes.broadcast(x, y))


@op("top.add", vendor="Add", host=lambda x, y: x + y, flops=1)
def add(x: F32, y: F32) -> Tensor:
    """Sum, with broadcast."""
    return _both(x, y)


@op("top.sub", vendor="Sub", host=lambda x, y: x - y, flops=1)
def sub(x: F32, y: F32) -> Tensor:
    """Difference, with broadcast."""
    return _both(x, y)


@op("top.mul", vendor="Mul", host=lambda x, y: x * y, flops=1)
def mul(x: F32, y: F32) -> Tensor:
    """Product, with broadcast."""
    return _both(x, y)


@op("top.div", vendor="Div", host=lambda x, y: x / y, flops=1)
def div(x: F32, y: F32) -> Tensor:
    """Quotient, with broadcast."""
    return _both(x, y)


@op("top.min", vendor="Min", host=lambda x, y: np.minimum(x, y), flops=1)
def minimum(x: F32, y: F32) -> Tensor:
    """The smaller of two, with broadcast."""
    return _both(x, y)


@op("top.max", vendor="Max", host=lambda x, y: np.maximum(x, y), flops=1)
def maximum(x: F32, y: F32) -> Tensor:
    """The larger of two, with broadcast."""
    return _both(x, y)


@op("top.add_const", vendor="AddConst", host=lambda x, *, value: x + np.float32(value), flops=1)
def add_const(x: F32, *, value: float) -> Tensor:
    """Sum with one number."""
    return x


@op("top.mul_const", vendor="MulConst", host=lambda x, *, value: x * np.float32(value), flops=1)
def mul_const(x: F32, *, value: float) -> Tensor:
    """Product with one number."""
    return x


@op("top.clip", vendor="Clip", host=lambda x, *, low, high: np.clip(x, np.float32(low), np.float32(high)), flops=2)
def clip(x: F32, *, low: float, high: float) -> Tensor:
    """`x` limited to low..high."""
    require(low <= high, f"low {low} is above high {high}")
    return x


def logistic(x: Array) -> Array:
    """Return 1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1, small) / (1 + small), dtype=x.dtype)


def gelu_of(x: Array, *, form: str) -> Array:
    """Return GELU of x, exact (through erf) or by the usual tanh formula."""
    if form == "tanh":
        return np.asarray(0.5 * x * (1 + np.tanh(np.float32(0.7978845608) * (x + np.float32(0.044715) * x**3))))
    from scipy.special import erf

    return np.asarray(0.5 * x * (1 + erf(x * np.float32(0.70710678118))))


@op("top.silu", vendor="SiLU", host=lambda x: x * logistic(x), flops=5)
def silu(x: F32) -> Tensor:
    """`x` times its logistic."""
    return x


@op("top.gelu", vendor="GELU", host=gelu_of, flops=8)
def gelu(x: F32, *, form: Literal["erf", "tanh"] = "erf") -> Tensor:
    """`x` times the normal distribution function of x."""
    return x


@op("top.relu", vendor="Relu", host=lambda x: np.maximum(x, 0), flops=1)
def relu(x: F32) -> Tensor:
    """`x` where positive, else zero."""
    return x


@op("top.sigmoid", vendor="Sigmoid", host=logistic, flops=4)
def sigmoid(x: F32) -> Tensor:
    """The logistic of x."""
    return x


@op("top.tanh", vendor="Tanh", host=lambda x: np.tanh(x), flops=4)
def tanh(x: F32) -> Tensor:
    """The hyperbolic tangent of x."""
    return x


@op("top.rsqrt", vendor="Rsqrt", host=lambda x: 1 / np.sqrt(x), flops=2)
def rsqrt(x: F32) -> Tensor:
    """The reciprocal square root of x."""
    return x


def _reduce(x: Array, *, mode: str, axes: tuple[int, ...], keepdims: bool) -> Array:
    functions: dict[str, Callable[..., Array]] = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}
    return np.asarray(functions[mode](x, axis=axes, keepdims=keepdims), dtype=x.dtype)


@op("top.reduce", vendor="Reduce", host=_reduce, flops=lambda x, **_: x.size)
def reduce(
    x: F32, *, mode: Literal["sum", "mean", "max", "min"], axes: tuple[int, ...], keepdims: bool = True
) -> Tensor:
    """Sum, mean, largest or smallest along the named axes."""
    drop = {shapes.normal_axis(a, x) for a in axes}
    require(bool(drop), "attribute axes is empty")
    return x.with_shape(tuple(1 if i in drop else d for i, d in enumerate(x.shape) if keepdims or i not in drop))


@op("top.cumsum", vendor="CumSum", host=lambda x, *, axis: np.cumsum(x, axis=axis, dtype=x.dtype), flops=1)
def cumsum(x: F32, *, axis: int) -> Tensor:
    """Running sum along one axis."""
    shapes.normal_axis(axis, x)
    return x


def softmax_of(x: Array, *, axis: int) -> Array:
    """Return the softmax along one axis, shifted by the largest element."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.asarray(e / e.sum(axis=axis, keepdims=True))


@op("top.softmax", vendor="Softmax", host=softmax_of, flops=5)
def softmax(x: F32, *, axis: int) -> Tensor:
    """Exponentials along one axis, divided by their sum."""
    shapes.normal_axis(axis, x)
    return x


def _topk(x: Array, *, k: int, axis: int, largest: bool) -> tuple[Array, Array]:
    order = np.argsort(-x if largest else x, axis=axis, kind="stable")
    ids = np.take(order, range(k), axis=axis)
    return np.take_along_axis(x, ids, axis), ids.astype(np.int32)


@op("top.topk", vendor="TopK", results=("values", "ids"), host=_topk, flops=lambda x, **_: x.size)
def topk(x: F32, *, k: int, axis: int, largest: bool = True) -> tuple[Tensor, ...]:
    """The k largest (or smallest) along one axis in order, and their positions; of equals the first position wins."""
    axis = shapes.normal_axis(axis, x)
    require(0 < k <= x.shape[axis], f"k {k} is not within axis {axis} of {shapes.text(x.shape)}")
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return x.with_shape(shape), Tensor(shape, DType.SI32)


_COMPARE = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@op("top.compare", vendor="Compare", host=lambda x, y, *, mode: _COMPARE[mode](x, y).astype(x.dtype), flops=1)
def compare(x: F32, y: F32, *, mode: Literal["eq", "ne", "lt", "le", "gt", "ge"]) -> Tensor:
    """1 where the comparison holds, else 0; with broadcast."""
    return _both(x, y)


def _compare_const(x: Array, *, mode: str, value: float) -> Array:
    return np.asarray(_COMPARE[mode](x, np.float32(value)).astype(x.dtype))


@op("top.compare_const", vendor="CompareConst", host=_compare_const, flops=1)
def compare_const(x: F32, *, mode: Literal["eq", "ne", "lt", "le", "gt", "ge"], value: float) -> Tensor:
    """1 where x compares so with one number, else 0."""
    return x


@op("top.where", vendor="Where", host=lambda condition, x, y: np.where(condition != 0, x, y), flops=1)
def where(condition: F32, x: F32, y: F32) -> Tensor:
    """`x` where the condition is not zero, else y; with broadcast."""
    out = _both(x, y)
    return out.with_shape(shapes.broadcast(condition, out, "condition", "x and y"))


def _masked_fill(x: Array, mask: Array, *, value: float) -> Array:
    return np.where(mask != 0, np.float32(value), x)


@op("top.masked_fill", vendor="MaskedFill", host=_masked_fill, flops=1)
def masked_fill(x: F32, mask: F32, *, value: float) -> Tensor:
    """`x` with one number where the mask is not zero."""
    out = shapes.broadcast(x, mask, y_name="mask")
    require(out == x.shape, f"mask {shapes.text(mask.shape)} is larger than x {shapes.text(x.shape)}")
    return x


@op("top.range_mask", host=lambda length, *, size: (np.arange(size) < length.reshape(-1, 1)).astype(np.float32))
def range_mask(length: Ids, *, size: int) -> Tensor:
    """A row of ones up to a length that is known at run time, then zeros (top-k and top-p cut-offs)."""
    require(length.size == 1, f"length {shapes.text(length.shape)} is not a single number")
    require(size > 0, f"size {size} is not positive")
    return Tensor((1, size), DType.F32)
