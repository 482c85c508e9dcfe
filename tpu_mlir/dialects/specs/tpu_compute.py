"""`tpu` ops that compute.

Most are a `top` op on the chip: `lowered` keeps its operands, attributes and rule, allows the chip's float types, and
states the arithmetic once for all of them: operands are widened to f32, the op is computed in f32, the result is
rounded once to nearest even. What differs (integer products, accumulators wider than the operands) is declared by hand.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np

from tpu_mlir.dialects import shapes
from tpu_mlir.dialects.spec import Allowed, Float, Operand, OpSpec, op, require
from tpu_mlir.dialects.specs import top_data, top_linear, top_math, top_vision
from tpu_mlir.dialects.types import FLOATS, Array, DType, Tensor

Factor = Annotated[Tensor, Allowed((*FLOATS, DType.SI8, DType.UI8))]
Bias = Annotated[Tensor, Allowed((*FLOATS, DType.SI32))]
UI8 = Annotated[Tensor, Allowed((DType.UI8,))]


def widened(value: Any) -> Any:
    """Return float arrays as f32; integers and absent operands as they are."""
    if isinstance(value, tuple):
        return tuple(widened(v) for v in value)
    return value.astype(np.float32, copy=False) if value is not None and _is_float(value) else value


def _is_float(value: Array) -> bool:
    return any(value.dtype == d.numpy for d in FLOATS)


def rounded(value: Array, dtype: DType) -> Array:
    """Return f32 values rounded to nearest even; what is too large becomes infinite, as on the chip."""
    with np.errstate(over="ignore"):
        return value.astype(dtype.numpy)


def _narrow(value: Array, dtype: DType) -> Array:
    return rounded(value, dtype) if _is_float(value) else value


def lowered(spec: OpSpec) -> OpSpec:
    """Return the `tpu` counterpart of a `top` op."""
    host = spec.host

    def rule(*operands: Any, **attrs: Any) -> Tensor | tuple[Tensor, ...]:
        flat = [t for o in operands for t in (o if isinstance(o, tuple) else (o,)) if t is not None]
        shapes.same_dtype(*(t for t in flat if t.dtype.is_float))
        return spec.rule(*operands, **attrs)

    def compute(*operands: Any, **attrs: Any) -> Array | tuple[Array, ...]:
        assert host is not None, "only ops with host inference are lowered"
        flat = [a for o in operands for a in (o if isinstance(o, tuple) else (o,)) if a is not None]
        kind = next((d for d in FLOATS if any(a.dtype == d.numpy for a in flat)), DType.F32)
        out = host(*map(widened, operands), **attrs)
        return tuple(_narrow(a, kind) for a in out) if isinstance(out, tuple) else _narrow(out, kind)

    return replace(
        spec,
        name=spec.name.replace("top.", "tpu."),
        operands=tuple(_on_chip(o) for o in spec.operands),
        rule=rule,
        host=compute,
    )


def _on_chip(operand: Operand) -> Operand:
    return replace(operand, dtypes=FLOATS) if operand.dtypes == (DType.F32,) else operand


_LOWERED = (
    top_data.gather,
    top_data.gather_elements,
    top_data.scatter_elements,
    top_data.concat,
    top_data.insert,
    top_data.slice_,
    top_data.reshape,
    top_data.permute,
    top_data.tile,
    top_data.pad,
    top_math.add,
    top_math.sub,
    top_math.mul,
    top_math.div,
    top_math.minimum,
    top_math.maximum,
    top_math.add_const,
    top_math.mul_const,
    top_math.clip,
    top_math.reduce,
    top_math.cumsum,
    top_math.softmax,
    top_math.topk,
    top_math.compare,
    top_math.compare_const,
    top_math.where,
    top_math.masked_fill,
    top_math.range_mask,
    top_linear.rms_norm,
    top_linear.layer_norm,
    top_linear.rope,
    top_linear.attention,
    top_vision.max_pool,
    top_vision.avg_pool,
    top_vision.batch_norm,
)

LOWERED = tuple(map(lowered, _LOWERED))
"""The chip's ops that keep a `top` op's operands, attributes and shape rule."""

_ACTIVE: dict[str, Callable[[Array], Array]] = {
    "silu": lambda x: x * top_math.logistic(x),
    "gelu": lambda x: top_math.gelu_of(x, form="erf"),
    "gelu_tanh": lambda x: top_math.gelu_of(x, form="tanh"),
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": top_math.logistic,
    "tanh": np.tanh,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}


def _active(x: Array, *, mode: str) -> Array:
    kind = next(d for d in FLOATS if x.dtype == d.numpy)
    return rounded(np.asarray(_ACTIVE[mode](widened(x))), kind)


@op("tpu.active", vendor="Active", host=_active, flops=5)
def active(x: Float, *, mode: Literal["silu", "gelu", "gelu_tanh", "relu", "sigmoid", "tanh", "rsqrt"]) -> Tensor:
    """One function of every element, named by its mode."""
    return x


def _product_rule(x: Tensor, w: Tensor, bias: Tensor | None, out: str, shape: Tensor) -> Tensor:
    """Return the result type of a product and refuse mixed operand kinds."""
    integers = not x.dtype.is_float
    if integers:
        require(not w.dtype.is_float, f"x is {x}, w is {w}: integers multiply with integers")
        require(out == "si32", f"attribute out is {out}, wanted si32 for integer operands")
        require(
            bias is None or bias.dtype is DType.SI32, f"bias is {bias}, wanted elements of si32 for integer operands"
        )
    else:
        shapes.same_dtype(x, w)
        require(out != "si32", "attribute out is si32, wanted a float type for float operands")
        require(bias is None or bias.dtype.is_float, f"bias is {bias}, wanted floats for float operands")
    return shape.with_dtype(DType(out))


def _exact(function: Callable[..., Array], x: Array, w: Array, bias: Array | None, out: str, **attrs: Any) -> Array:
    """Run a product in f32, or for integers in f64, where every 8-bit product sum below 2^53 is exact."""
    if _is_float(x):
        return rounded(function(widened(x), widened(w), widened(bias), **attrs), DType(out))
    wide = [None if a is None else a.astype(np.float64) for a in (x, w, bias)]
    total = function(*wide, **attrs)
    return np.asarray(total.astype(np.int64).astype(np.int32))


def _matmul(x: Array, w: Array, bias: Array | None, *, out: str, **attrs: bool) -> Array:
    return _exact(top_linear.matmul_of, x, w, bias, out, **attrs)


@op(
    "tpu.matmul",
    vendor="MatMul",
    host=_matmul,
    flops=lambda x, w, bias, *, out, **flags: top_linear.matmul_flops(x, w, bias, **flags),
)
def matmul(
    x: Factor,
    w: Factor,
    bias: Bias | None,
    *,
    left_transpose: bool = False,
    right_transpose: bool = False,
    out: Literal["f32", "f16", "bf16", "si32"],
) -> Tensor:
    """Matrix product plus bias; floats are summed in f32 and rounded once, 8-bit integers summed exactly in si32."""
    return _product_rule(x, w, bias, out, top_linear.matmul_rule(x, w, bias, left_transpose, right_transpose))


def _a16_matmul(
    x: Array, w: Array, scale: Array, zero: Array | None, bias: Array | None, *, bits: int, group_size: int, out: str
) -> Array:
    kind = next(d for d in FLOATS if x.dtype == d.numpy)
    weight = rounded(
        top_linear.unpack_weight(w, widened(scale), zero, bits=bits, group_size=group_size), kind
    )  # the chip unpacks to the activations' type before it multiplies
    product = top_linear.matmul_of(
        widened(x), widened(weight), widened(bias), left_transpose=False, right_transpose=True
    )
    return rounded(product, DType(out))


@op(
    "tpu.a16_matmul",
    vendor="A16MatMul",
    host=_a16_matmul,
    flops=lambda x, w, scale, zero, bias, *, out, **attrs: top_linear.a16_matmul_flops(
        x, w, scale, zero, bias, **attrs
    ),
)
def a16_matmul(
    x: Float,
    w: UI8,
    scale: Float,
    zero: UI8 | None,
    bias: Float | None,
    *,
    bits: int,
    group_size: int,
    out: Literal["f32", "f16", "bf16"],
) -> Tensor:
    """`x` times a weight of group-wise 4- or 8-bit integers, unpacked to x's type, summed in f32, rounded once."""
    shapes.same_dtype(x, scale)
    return top_linear.a16_matmul_rule(x, w, scale, zero, bias, bits, group_size).with_dtype(DType(out))


def _conv(x: Array, w: Array, bias: Array | None, *, out: str, **attrs: Any) -> Array:
    return _exact(top_vision.conv_of, x, w, bias, out, **attrs)


@op(
    "tpu.conv",
    vendor="Conv2D",
    host=_conv,
    flops=lambda x, w, bias, *, out, **attrs: top_vision.conv_flops(x, w, bias, **attrs),
)
def conv(
    x: Factor,
    w: Factor,
    bias: Bias | None,
    *,
    strides: tuple[int, ...] = (1, 1),
    pads: tuple[int, ...] = (0, 0, 0, 0),
    dilations: tuple[int, ...] = (1, 1),
    groups: int = 1,
    out: Literal["f32", "f16", "bf16", "si32"],
) -> Tensor:
    """Convolution plus bias, summed as the matrix product is."""
    return _product_rule(x, w, bias, out, top_vision.conv_rule(x, w, bias, strides, pads, dilations, groups))
