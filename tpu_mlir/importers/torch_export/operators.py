"""How each ATen operator is written in TopOps; parameters are those of the operator's schema."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from core.errors import BadInput
from tpu_mlir.dialects.adapter import Value
from tpu_mlir.importers.plan import MASK_FILL
from tpu_mlir.importers.torch_export.graph import Graph, Item


def _pair(values: Sequence[int]) -> tuple[int, int]:
    first, *rest = values
    return first, rest[0] if rest else first


def _all_sides(padding: Sequence[int]) -> tuple[int, ...]:
    height, width = _pair(padding)
    return height, width, height, width


def _refuse(graph: Graph, condition: bool, what: str) -> None:
    if condition:
        raise BadInput(f"{graph.name}: {what} cannot be imported.")


def _binary(tensor_op: str, g: Graph, *, self: Any, other: Any, alpha: float = 1, rounding_mode: None = None) -> Value:
    _refuse(g, rounding_mode is not None, f"division with rounding_mode {rounding_mode}")
    if not isinstance(other, int | float):
        if alpha != 1:
            other = g.op("top.mul_const", other, part="alpha", value=float(alpha))
        return g.op(f"top.{tensor_op}", self, other)
    number = float(other) * alpha
    if tensor_op in ("add", "sub"):
        return g.op("top.add_const", self, value=number if tensor_op == "add" else -number)
    return g.op("top.mul_const", self, value=number if tensor_op == "mul" else 1 / number)


def _unary(op: str, g: Graph, *, self: Value) -> Value:
    return g.op(f"top.{op}", self)


def _gelu(g: Graph, *, self: Value, approximate: str) -> Value:
    return g.op("top.gelu", self, form="tanh" if approximate == "tanh" else "erf")


def _softmax(g: Graph, *, self: Value, dim: int, dtype: Any = None, half_to_float: bool = False) -> Value:
    return g.op("top.softmax", self, axis=dim)


def _conv2d(
    g: Graph,
    *,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Sequence[int],
    padding: Any,
    dilation: Sequence[int],
    groups: int,
) -> Value:
    _refuse(g, isinstance(padding, str), f"padding {padding!r}")
    return g.op(
        "top.conv",
        input,
        weight,
        bias,
        strides=_pair(stride),
        pads=_all_sides(padding),
        dilations=_pair(dilation),
        groups=groups,
    )


def _batch_norm(
    g: Graph,
    *,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    momentum: float,
    eps: float,
) -> Item:
    """The operator also gives two tensors that only training uses."""
    channels = g.shape(input)[1]
    gamma = weight if weight is not None else g.constant(f"{g.name}.ones", np.ones(channels, np.float32))
    beta = bias if bias is not None else g.constant(f"{g.name}.zeros", np.zeros(channels, np.float32))
    return (g.op("top.batch_norm", input, gamma, beta, running_mean, running_var, eps=eps),)


def _layer_norm(
    g: Graph,
    *,
    input: Value,
    normalized_shape: Sequence[int],
    weight: Value | None,
    bias: Value | None,
    eps: float,
    cudnn_enable: bool,
) -> Value:
    _refuse(g, len(normalized_shape) != 1, f"layer norm over {len(normalized_shape)} axes")
    return g.op("top.layer_norm", input, weight, bias, eps=eps)


def _max_pool2d(
    g: Graph,
    *,
    self: Value,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> Value:
    _refuse(g, ceil_mode or _pair(dilation) != (1, 1), "pooling with ceil_mode or dilation")
    strides = _pair(stride or kernel_size)
    return g.op("top.max_pool", self, kernel=_pair(kernel_size), strides=strides, pads=_all_sides(padding))


def _avg_pool2d(
    g: Graph,
    *,
    self: Value,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Value:
    _refuse(g, ceil_mode or divisor_override is not None, "pooling with ceil_mode or divisor_override")
    return g.op(
        "top.avg_pool",
        self,
        kernel=_pair(kernel_size),
        strides=_pair(stride or kernel_size),
        pads=_all_sides(padding),
        count_pad=count_include_pad,
    )


def _adaptive_avg_pool2d(g: Graph, *, self: Value, output_size: Sequence[int]) -> Value:
    if tuple(output_size) == (1, 1):
        return g.op("top.reduce", self, mode="mean", axes=(2, 3), keepdims=True)
    sizes = g.shape(self)[2:]
    _refuse(g, any(s % o for s, o in zip(sizes, output_size, strict=True)), f"pooling {sizes} to {list(output_size)}")
    kernel = tuple(s // o for s, o in zip(sizes, output_size, strict=True))
    return g.op("top.avg_pool", self, kernel=kernel, strides=kernel)


def _linear(g: Graph, *, input: Value, weight: Value, bias: Value | None) -> Value:
    return g.op("top.matmul", input, weight, bias, right_transpose=True)


def _addmm(g: Graph, *, self: Value, mat1: Value, mat2: Value, beta: float, alpha: float) -> Value:
    _refuse(g, (beta, alpha) != (1, 1), "addmm with beta or alpha")
    return g.op("top.matmul", mat1, mat2, self)


def _matmul(g: Graph, **operands: Value) -> Value:
    x, w = operands.values()
    return g.op("top.matmul", x, w, None)


def _reshape(g: Graph, *, self: Value, shape: Sequence[int] = (), size: Sequence[int] = ()) -> Value:
    return g.op("top.reshape", self, shape=tuple(shape or size))


def _flatten(g: Graph, *, self: Value, start_dim: int, end_dim: int) -> Value:
    shape = g.shape(self)
    start, end = start_dim % len(shape), end_dim % len(shape)
    return g.op("top.reshape", self, shape=(*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


def _permute(g: Graph, *, self: Value, dims: Sequence[int]) -> Value:
    rank = len(g.shape(self))
    return g.op("top.permute", self, order=tuple(d % rank for d in dims))


def _transpose(g: Graph, *, self: Value, dim0: int, dim1: int) -> Value:
    order = list(range(len(g.shape(self))))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return g.op("top.permute", self, order=tuple(order))


def _unsqueeze(g: Graph, *, self: Value, dim: int) -> Value:
    return g.op("top.unsqueeze", self, axes=(dim,))


def _squeeze(g: Graph, *, self: Value, dim: Any = None) -> Value:
    shape = g.shape(self)
    asked = range(len(shape)) if dim is None else [dim] if isinstance(dim, int) else dim
    axes = tuple(d % len(shape) for d in asked if shape[d] == 1)
    return g.op("top.squeeze", self, axes=axes)


def _expand(g: Graph, *, self: Value, size: Sequence[int], implicit: bool = False) -> Value:
    shape = g.shape(self)
    padded = (1,) * (len(size) - len(shape)) + shape
    return g.op("top.expand", self, shape=tuple(p if s == -1 else s for s, p in zip(size, padded, strict=True)))


def _cat(g: Graph, *, tensors: Sequence[Value], dim: int) -> Value:
    return g.op("top.concat", tuple(tensors), axis=dim)


def _part(g: Graph, x: Value, dim: int, start: int, end: int, step: int = 1, part: str = "") -> Value:
    shape = g.shape(x)
    axis = dim % len(shape)
    starts, ends, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], ends[axis], steps[axis] = start, end, step
    return g.op("top.slice", x, part=part, starts=tuple(starts), ends=tuple(ends), steps=tuple(steps))


def _slice(g: Graph, *, self: Value, dim: int, start: int | None, end: int | None, step: int) -> Value:
    first, last, stride = slice(start, end, step).indices(g.shape(self)[dim])
    return _part(g, self, dim, first, last, stride)


def _select(g: Graph, *, self: Value, dim: int, index: int, part: str = "") -> Value:
    place = index % g.shape(self)[dim]
    one = _part(g, self, dim, place, place + 1, part=f"{part}row")
    axis = dim % len(g.shape(self))
    return g.op("top.squeeze", one, part=part, axes=(axis,))


def _unbind(g: Graph, *, self: Value, dim: int) -> Item:
    return tuple(_select(g, self=self, dim=dim, index=i, part=f"{i}") for i in range(g.shape(self)[dim]))


def _split(g: Graph, *, self: Value, split_size: Any = None, split_sizes: Any = None, dim: int = 0) -> Item:
    length, sizes = g.shape(self)[dim], split_sizes or split_size
    if isinstance(sizes, int):
        sizes = [min(sizes, length - start) for start in range(0, length, sizes)]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return tuple(_part(g, self, dim, a, a + n, part=f"{i}") for i, (a, n) in enumerate(zip(starts, sizes, strict=True)))


def _chunk(g: Graph, *, self: Value, chunks: int, dim: int) -> Item:
    return _split(g, self=self, split_size=-(-g.shape(self)[dim] // chunks), dim=dim)


def _mean(g: Graph, *, self: Value, dim: Sequence[int] | None, keepdim: bool, dtype: Any = None) -> Value:
    axes = tuple(dim) if dim else tuple(range(len(g.shape(self))))
    return g.op("top.reduce", self, mode="mean", axes=axes, keepdims=keepdim)


def _embedding(
    g: Graph, *, weight: Value, indices: Value, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Value:
    return g.op("top.gather", weight, indices, axis=0)


def _attention(
    g: Graph,
    *,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Value:
    """PyTorch has heads before rows, `top.attention` rows before heads."""
    batch, heads, rows, dim = g.shape(query)
    keys = g.shape(key)[2]
    _refuse(g, is_causal and rows != keys, f"causal attention of {rows} queries on {keys} keys")
    q, k, v = (
        g.op("top.permute", x, part=part, order=(0, 2, 1, 3)) for x, part in ((query, "q"), (key, "k"), (value, "v"))
    )
    side = max(rows, 2)
    triangle = np.triu(np.full((side, side), MASK_FILL, np.float32), 1)
    tile = g.constant(f"{g.name}.causal", triangle) if is_causal else None
    factor = dim**-0.5 if scale is None else scale
    joined = g.op("top.attention", q, k, v, attn_mask, tile, part="joined", scale=factor)
    apart = g.op("top.reshape", joined, part="heads", shape=(batch, rows, heads, dim))
    return g.op("top.permute", apart, order=(0, 2, 1, 3))


def _same(g: Graph, **operands: Any) -> Value:
    value: Value = operands["self"] if "self" in operands else operands["input"]
    _refuse(g, bool(operands.get("train")), "dropout that is training")
    return value


OPERATORS: dict[str, Callable[..., Item]] = {
    **{name: partial(_binary, name) for name in ("add", "sub", "mul", "div")},
    **{name: partial(_unary, name) for name in ("relu", "silu", "sigmoid", "tanh", "rsqrt")},
    **dict.fromkeys(("contiguous", "clone", "alias", "detach", "dropout"), _same),
    **dict.fromkeys(("reshape", "view", "_unsafe_view"), _reshape),
    **dict.fromkeys(("matmul", "mm", "bmm"), _matmul),
    **dict.fromkeys(("split", "split_with_sizes"), _split),
    **dict.fromkeys(("softmax", "_softmax"), _softmax),
    "gelu": _gelu,
    "conv2d": _conv2d,
    "_native_batch_norm_legit_no_training": _batch_norm,
    "layer_norm": _layer_norm,
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "adaptive_avg_pool2d": _adaptive_avg_pool2d,
    "linear": _linear,
    "addmm": _addmm,
    "flatten": _flatten,
    "permute": _permute,
    "transpose": _transpose,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "expand": _expand,
    "cat": _cat,
    "slice": _slice,
    "select": _select,
    "unbind": _unbind,
    "chunk": _chunk,
    "mean": _mean,
    "embedding": _embedding,
    "scaled_dot_product_attention": _attention,
}
"""The operators that can be imported, by name without overload."""
