"""`top` ops of a decoder layer that are more than element-wise: linear maps, norms, rotary embedding, attention."""

from typing import Annotated, Literal

import numpy as np

from tpu_mlir.dialects import shapes
from tpu_mlir.dialects.spec import F32, Allowed, op, require
from tpu_mlir.dialects.types import Array, DType, Tensor

UI8 = Annotated[Tensor, Allowed((DType.UI8,))]


def matmul_of(x: Array, w: Array, bias: Array | None, *, left_transpose: bool, right_transpose: bool) -> Array:
    """Return the batched matrix product plus bias, in the operands' element type."""
    out = np.matmul(x.swapaxes(-1, -2) if left_transpose else x, w.swapaxes(-1, -2) if right_transpose else w)
    return out if bias is None else np.asarray(out + bias)


def matmul_rule(x: Tensor, w: Tensor, bias: Tensor | None, left_transpose: bool, right_transpose: bool) -> Tensor:
    """Return the type of a matrix product; x's element type is kept."""
    shape, _ = shapes.matmul_shape(x.shape, w.shape, left_transpose, right_transpose)
    out = x.with_shape(shape)
    if bias is not None:
        fits = shapes.broadcast(out, bias, "the product", "bias") == shape
        require(fits, f"bias {shapes.text(bias.shape)} is larger than the product {shapes.text(shape)}")
    return out


def matmul_flops(x: Tensor, w: Tensor, bias: Tensor | None, *, left_transpose: bool, right_transpose: bool) -> int:
    """Two per multiply-add, one per bias addition."""
    shape, inner = shapes.matmul_shape(x.shape, w.shape, left_transpose, right_transpose)
    size = x.with_shape(shape).size
    return 2 * size * inner + (size if bias is not None else 0)


@op("top.matmul", vendor="MatMul", host=matmul_of, flops=matmul_flops)
def matmul(x: F32, w: F32, bias: F32 | None, *, left_transpose: bool = False, right_transpose: bool = False) -> Tensor:
    """Matrix product over the last two axes, batch axes broadcast, plus bias; either side may come transposed."""
    return matmul_rule(x, w, bias, left_transpose, right_transpose)


def unpack_weight(w: Array, scale: Array, zero: Array | None, *, bits: int, group_size: int) -> Array:
    """Return the [N, K] floats that packed group-wise integers stand for, in the element type of scale.

    Byte j of a 4-bit row holds element 2j in its low and 2j+1 in its high nibble. Without zero points the
    integers are symmetric about 2^(bits-1).
    """
    rows = w.shape[0]
    q = np.stack((w & 15, w >> 4), axis=-1).reshape(rows, -1) if bits == 4 else w
    grouped = q.astype(scale.dtype).reshape(rows, -1, group_size)
    middle = scale.dtype.type(1 << (bits - 1)) if zero is None else zero.astype(scale.dtype)[..., None]
    return np.asarray((grouped - middle) * scale[..., None]).reshape(rows, -1)


def a16_matmul_of(
    x: Array, w: Array, scale: Array, zero: Array | None, bias: Array | None, *, bits: int, group_size: int
) -> Array:
    """Return x times the transpose of the unpacked weight, plus bias."""
    weight = unpack_weight(w, scale, zero, bits=bits, group_size=group_size)
    return matmul_of(x, weight, bias, left_transpose=False, right_transpose=True)


def a16_matmul_rule(
    x: Tensor, w: Tensor, scale: Tensor, zero: Tensor | None, bias: Tensor | None, bits: int, group_size: int
) -> Tensor:
    """Return the type of a product with a packed weight."""
    require(bits in (4, 8), f"attribute bits is {bits}, wanted 4 or 8")
    require(
        w.rank == 2 and scale.rank == 2, f"w {shapes.text(w.shape)} and scale {shapes.text(scale.shape)} need two axes"
    )
    rows, inner = w.shape[0], w.shape[1] * 8 // bits
    require(group_size > 0, f"attribute group_size is {group_size}, wanted a positive number")
    require(inner % group_size == 0, f"groups of {group_size} do not divide the inner length {inner}")
    wanted = (rows, inner // group_size)
    require(
        scale.shape == wanted,
        f"scale is {shapes.text(scale.shape)}, wanted {shapes.text(wanted)} for w {shapes.text(w.shape)}",
    )
    if zero is not None:
        require(zero.shape == wanted, f"zero is {shapes.text(zero.shape)}, wanted {shapes.text(wanted)} like scale")
    return matmul_rule(x, x.with_shape((rows, inner)), bias, False, True)


def a16_matmul_flops(
    x: Tensor, w: Tensor, scale: Tensor, zero: Tensor | None, bias: Tensor | None, *, bits: int, group_size: int
) -> int:
    """As of the matrix product, plus subtraction and multiplication for every unpacked weight."""
    weight = x.with_shape((w.shape[0], w.shape[1] * 8 // bits))
    return matmul_flops(x, weight, bias, left_transpose=False, right_transpose=True) + 2 * weight.size


@op("top.a16_matmul", vendor="A16MatMul", host=a16_matmul_of, flops=a16_matmul_flops)
def a16_matmul(x: F32, w: UI8, scale: F32, zero: UI8 | None, bias: F32 | None, *, bits: int, group_size: int) -> Tensor:
    """`x` times a weight of group-wise 4- or 8-bit integers: w is [N, K * bits / 8], scale and zero [N, K / group]."""
    return a16_matmul_rule(x, w, scale, zero, bias, bits, group_size)


def check_gain(x: Tensor, name: str, gain: Tensor | None) -> None:
    """Refuse a per-channel vector that does not fit the last axis of x.

    Raises:
        Mismatch: its last axis differs, or another axis is not 1.
    """
    if gain is not None:
        fits = gain.rank > 0 and gain.shape[-1] == x.shape[-1] and gain.size == x.shape[-1]
        require(fits, f"{name} {shapes.text(gain.shape)} does not fit the last axis of x {shapes.text(x.shape)}")


def rms_norm_of(x: Array, gamma: Array, *, eps: float) -> Array:
    """Return x over its root mean square along the last axis, times gamma."""
    mean = np.mean(x * x, axis=-1, keepdims=True, dtype=np.float32)
    return np.asarray(x / np.sqrt(mean + np.float32(eps)) * gamma)


@op("top.rms_norm", vendor="RMSNorm", host=rms_norm_of, flops=5)
def rms_norm(x: F32, gamma: F32, *, eps: float) -> Tensor:
    """`x` divided by its root mean square along the last axis, times gamma."""
    require(eps >= 0, f"attribute eps is {eps}, wanted zero or more")
    check_gain(x, "gamma", gamma)
    return x


def layer_norm_of(x: Array, gamma: Array | None, beta: Array | None, *, eps: float) -> Array:
    """Return x with zero mean and unit variance along the last axis, scaled and shifted."""
    centred = x - np.mean(x, axis=-1, keepdims=True, dtype=np.float32)
    variance = np.mean(centred * centred, axis=-1, keepdims=True, dtype=np.float32)
    out = centred / np.sqrt(variance + np.float32(eps))
    out = out if gamma is None else out * gamma
    return np.asarray(out if beta is None else out + beta)


@op("top.layer_norm", vendor="LayerNorm", host=layer_norm_of, flops=8)
def layer_norm(x: F32, gamma: F32 | None, beta: F32 | None, *, eps: float) -> Tensor:
    """`x` with zero mean and unit variance along the last axis, times gamma, plus beta."""
    require(eps >= 0, f"attribute eps is {eps}, wanted zero or more")
    check_gain(x, "gamma", gamma)
    check_gain(x, "beta", beta)
    return x


def rope_of(x: Array, sin: Array, cos: Array, *, mode: str) -> Array:
    """Return x with every pair of channels turned by its angle."""
    if mode == "interleaved":
        turned = np.stack((-x[..., 1::2], x[..., ::2]), axis=-1).reshape(x.shape)
    else:
        half = x.shape[-1] // 2
        turned = np.concatenate((-x[..., half:], x[..., :half]), axis=-1)
    return np.asarray(x * cos + turned * sin)


@op("top.rope", vendor="Rope", host=rope_of, flops=3)
def rope(
    x: F32, sin: F32, cos: F32, *, mode: Literal["contiguous_halves", "interleaved"] = "contiguous_halves"
) -> Tensor:
    """Rotary position embedding: x is [batch, rows, heads, dim], sin and cos are gathered rows of the tables."""
    require(x.rank == 4, f"x {shapes.text(x.shape)} needs the axes batch, rows, heads, dim")
    require(x.shape[-1] % 2 == 0, f"dim {x.shape[-1]} is odd")
    require(sin.shape == cos.shape, f"sin {shapes.text(sin.shape)} and cos {shapes.text(cos.shape)} differ")
    require(
        shapes.broadcast(x, sin, y_name="sin") == x.shape and sin.shape[-1] == x.shape[-1],
        f"sin {shapes.text(sin.shape)} does not fit x {shapes.text(x.shape)}",
    )
    return x


def causal_addend(tile: Array, rows: int, columns: int) -> Array:
    """Return the [rows, columns] addend that one square triangle stands for.

    Query i sits at key position i + columns - rows. Blocks of the new rows above the diagonal hold the triangle's fill,
    blocks on the diagonal the triangle itself; earlier blocks, and all history columns, hold zero.
    """
    side = tile.shape[0]
    i = np.arange(rows)[:, None]
    j = np.arange(columns)[None, :] - (columns - rows)
    inside = tile[i % side, j % side]
    out = np.where(j // side > i // side, tile[0, side - 1], np.where(j // side < i // side, 0, inside))
    return np.asarray(np.where(j < 0, 0, out), dtype=tile.dtype)


def attention_of(q: Array, k: Array, v: Array, mask: Array | None, tile: Array | None, *, scale: float) -> Array:
    """Return softmax(q k^T scale + masks) v per head, heads joined, in q's element type."""
    batch, rows, heads, dim = q.shape
    columns, shared = k.shape[1], heads // k.shape[2]
    grouped = q.reshape(batch, rows, k.shape[2], shared, dim)
    scores = np.einsum("brgsd,bcgd->bgsrc", grouped, k, optimize=True) * np.float32(scale)
    scores = scores.reshape(batch, heads, rows, columns)
    if mask is not None:
        scores = scores + mask
    if tile is not None:
        scores = scores + causal_addend(tile, rows, columns)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = (weights / weights.sum(axis=-1, keepdims=True)).reshape(batch, k.shape[2], shared, rows, columns)
    return np.asarray(np.einsum("bgsrc,bcgd->brgsd", weights, v, optimize=True)).reshape(batch, rows, heads * dim)


def _attention_flops(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, tile: Tensor | None, *, scale: float) -> int:
    batch, rows, heads, dim = q.shape
    return batch * heads * rows * k.shape[1] * (4 * dim + 5 + (mask is not None) + (tile is not None))


@op("top.attention", vendor="FAttention", host=attention_of, flops=_attention_flops)
def attention(q: F32, k: F32, v: F32, mask: F32 | None, tile: F32 | None, *, scale: float) -> Tensor:
    """Attention with fewer key/value heads than query heads allowed; operands are [batch, rows, heads, dim].

    The result is [batch, rows, heads * dim]. mask is added to the scores, with broadcast. tile is one small square
    upper triangle that is reused all along the diagonal: causal, with the rows of q the last ones of k.
    """
    for name, t in (("q", q), ("k", k), ("v", v)):
        require(t.rank == 4, f"{name} {shapes.text(t.shape)} needs the axes batch, rows, heads, dim")
    require(k.shape == v.shape, f"k {shapes.text(k.shape)} and v {shapes.text(v.shape)} differ")
    shapes.same_dtype(q, k, v)
    batch, rows, heads, dim = q.shape
    same = k.shape[0] == batch and k.shape[3] == dim
    require(same, f"q {shapes.text(q.shape)} and k {shapes.text(k.shape)} differ in batch or dim")
    require(heads % k.shape[2] == 0, f"{heads} query heads do not divide by {k.shape[2]} key/value heads")
    if mask is not None:
        scores = q.with_shape((batch, heads, rows, k.shape[1]))
        fits = shapes.broadcast(scores, mask, "the scores", "mask") == scores.shape
        require(fits, f"mask {shapes.text(mask.shape)} is larger than the scores {shapes.text(scores.shape)}")
    if tile is not None:
        square = tile.rank == 2 and tile.shape[0] == tile.shape[1] >= 2
        require(square, f"tile {shapes.text(tile.shape)} is not a square of at least 2x2")
        require(rows <= k.shape[1], f"a causal tile needs no more query rows ({rows}) than key rows ({k.shape[1]})")
    return q.with_shape((batch, rows, heads * dim))
