"""`top` ops for images: convolution, pooling, batch norm. Axes are batch, channels, height, width."""

import numpy as np

from tpu_mlir.dialects import shapes
from tpu_mlir.dialects.spec import F32, op, require
from tpu_mlir.dialects.types import Array, Tensor


def windows(
    x: Array,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    pads: tuple[int, ...],
    dilations: tuple[int, ...],
    fill: float,
) -> Array:
    """Return a view [batch, channels, out_h, out_w, kernel_h, kernel_w] of the padded input."""
    top, left, bottom, right = pads
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    spans = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True))
    view = np.lib.stride_tricks.sliding_window_view(padded, spans, axis=(2, 3))
    return view[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]


def plane(
    x: Tensor,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    pads: tuple[int, ...],
    dilations: tuple[int, ...] = (1, 1),
) -> tuple[int, int]:
    """Return the height and width that a sliding window leaves.

    Raises:
        Mismatch: a wrong number of entries, or a window that does not fit.
    """
    require(x.rank == 4, f"x {shapes.text(x.shape)} needs the axes batch, channels, height, width")
    for name, value, count in (
        ("kernel", kernel, 2),
        ("strides", strides, 2),
        ("pads", pads, 4),
        ("dilations", dilations, 2),
    ):
        require(len(value) == count, f"{name} {value} needs {count} entries")
    return (
        shapes.window(x.shape[2], kernel[0], strides[0], pads[0], pads[2], dilations[0]),
        shapes.window(x.shape[3], kernel[1], strides[1], pads[1], pads[3], dilations[1]),
    )


def conv_of(
    x: Array,
    w: Array,
    bias: Array | None,
    *,
    strides: tuple[int, ...],
    pads: tuple[int, ...],
    dilations: tuple[int, ...],
    groups: int,
) -> Array:
    """Return the convolution plus bias."""
    view = windows(x, w.shape[2:], strides, pads, dilations, 0)
    batch, _, height, width = view.shape[:4]
    grouped = view.reshape(batch, groups, w.shape[1], height, width, *w.shape[2:])
    filters = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    out = np.einsum("ngchwij,gocij->ngohw", grouped, filters, optimize=True).reshape(batch, w.shape[0], height, width)
    return out if bias is None else np.asarray(out + bias.reshape(-1, 1, 1))


def conv_rule(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None,
    strides: tuple[int, ...],
    pads: tuple[int, ...],
    dilations: tuple[int, ...],
    groups: int,
) -> Tensor:
    """Return the type of a convolution; x's element type is kept."""
    require(w.rank == 4, f"w {shapes.text(w.shape)} needs the axes out, in / groups, height, width")
    height, width = plane(x, w.shape[2:], strides, pads, dilations)
    require(
        groups > 0 and x.shape[1] == w.shape[1] * groups,
        f"{x.shape[1]} channels of x, {w.shape[1]} x {groups} groups of w",
    )
    require(w.shape[0] % groups == 0, f"{w.shape[0]} output channels do not divide into {groups} groups")
    if bias is not None:
        require(bias.size == w.shape[0], f"bias {shapes.text(bias.shape)} does not fit {w.shape[0]} output channels")
    return x.with_shape((x.shape[0], w.shape[0], height, width))


def conv_flops(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None,
    *,
    strides: tuple[int, ...],
    pads: tuple[int, ...],
    dilations: tuple[int, ...],
    groups: int,
) -> int:
    """Two per multiply-add, one per bias addition."""
    out = conv_rule(x, w, bias, strides, pads, dilations, groups)
    return out.size * (2 * w.size // w.shape[0] + (bias is not None))


@op("top.conv", vendor="Conv", host=conv_of, flops=conv_flops)
def conv(
    x: F32,
    w: F32,
    bias: F32 | None,
    *,
    strides: tuple[int, ...] = (1, 1),
    pads: tuple[int, ...] = (0, 0, 0, 0),
    dilations: tuple[int, ...] = (1, 1),
    groups: int = 1,
) -> Tensor:
    """Two-dimensional convolution; pads are top, left, bottom, right; as many groups as channels is depthwise."""
    return conv_rule(x, w, bias, strides, pads, dilations, groups)


def max_pool_of(x: Array, *, kernel: tuple[int, ...], strides: tuple[int, ...], pads: tuple[int, ...]) -> Array:
    """Return the largest element of every window."""
    return np.asarray(windows(x, kernel, strides, pads, (1, 1), -np.inf).max(axis=(4, 5)))


@op(
    "top.max_pool",
    vendor="MaxPool",
    host=max_pool_of,
    flops=lambda x, *, kernel, strides, pads: _pool_flops(x, kernel, strides, pads),
)
def max_pool(
    x: F32, *, kernel: tuple[int, ...], strides: tuple[int, ...], pads: tuple[int, ...] = (0, 0, 0, 0)
) -> Tensor:
    """The largest element of every window."""
    return _pool(x, kernel, strides, pads)


def avg_pool_of(
    x: Array, *, kernel: tuple[int, ...], strides: tuple[int, ...], pads: tuple[int, ...], count_pad: bool
) -> Array:
    """Return the mean of every window, with or without the padding in the count."""
    total = windows(x, kernel, strides, pads, (1, 1), 0).sum(axis=(4, 5))
    if count_pad:
        return np.asarray(total / x.dtype.type(kernel[0] * kernel[1]))
    count = windows(np.ones_like(x[:1, :1]), kernel, strides, pads, (1, 1), 0).sum(axis=(4, 5))
    return np.asarray(total / count)


@op(
    "top.avg_pool",
    vendor="AvgPool",
    host=avg_pool_of,
    flops=lambda x, *, kernel, strides, pads, count_pad: _pool_flops(x, kernel, strides, pads),
)
def avg_pool(
    x: F32,
    *,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    pads: tuple[int, ...] = (0, 0, 0, 0),
    count_pad: bool = False,
) -> Tensor:
    """The mean of every window; padding counts only when count_pad is set."""
    return _pool(x, kernel, strides, pads)


def _pool(x: Tensor, kernel: tuple[int, ...], strides: tuple[int, ...], pads: tuple[int, ...]) -> Tensor:
    height, width = plane(x, kernel, strides, pads)
    for before, after, length in ((pads[0], pads[2], kernel[0]), (pads[1], pads[3], kernel[1])):
        require(max(before, after) < length, f"padding {max(before, after)} leaves a window of {length} without input")
    return x.with_shape((*x.shape[:2], height, width))


def _pool_flops(x: Tensor, kernel: tuple[int, ...], strides: tuple[int, ...], pads: tuple[int, ...]) -> int:
    return _pool(x, kernel, strides, pads).size * kernel[0] * kernel[1]


def batch_norm_of(x: Array, gamma: Array, beta: Array, mean: Array, variance: Array, *, eps: float) -> Array:
    """Return x normalised per channel with stored statistics."""
    column = (1, -1) + (1,) * (x.ndim - 2)
    factor = gamma / np.sqrt(variance + np.float32(eps))
    return np.asarray(x * factor.reshape(column) + (beta - mean * factor).reshape(column))


@op("top.batch_norm", vendor="BatchNorm", host=batch_norm_of, flops=2)
def batch_norm(x: F32, gamma: F32, beta: F32, mean: F32, variance: F32, *, eps: float) -> Tensor:
    """`x` normalised per channel (axis 1) with stored mean and variance, times gamma, plus beta."""
    require(x.rank >= 2, f"x {shapes.text(x.shape)} needs a channel axis")
    require(eps >= 0, f"attribute eps is {eps}, wanted zero or more")
    for name, t in (("gamma", gamma), ("beta", beta), ("mean", mean), ("variance", variance)):
        require(t.shape == (x.shape[1],), f"{name} {shapes.text(t.shape)} does not fit the {x.shape[1]} channels of x")
    return x
