"""One pattern for every `top` op that can be lowered.

Every pattern keeps the types of its op: it casts f32 operands to what the chip computes in, and casts the result back.
So patterns know nothing of each other, and the conversion is complete or names what is missing. `FoldCasts` and
`StripIoCasts` then remove the pairs, and what is left is where two number formats really meet.
"""

from collections.abc import Callable, Sequence
from functools import partial

from tpu_mlir.dialects import adapter
from tpu_mlir.dialects.adapter import Call, Make, Pattern, Value, Values
from tpu_mlir.dialects.specs.tpu_compute import LOWERED
from tpu_mlir.dialects.types import DType
from tpu_mlir.transforms.lowering.target import Target

_ACTIVE = {
    "silu": "silu",
    "relu": "relu",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "rsqrt": "rsqrt",
}

_IN_F32 = ("softmax", "topk", "cumsum", "range_mask")
"""Computed in f32 in every mode: their results steer choices, or add up many small terms."""


def patterns(target: Target) -> tuple[Pattern, ...]:
    """Return the lowering patterns for a target."""
    act = target.mode.activations
    wide = {f"top.{name}" for name in _IN_F32}
    counterparts = {spec.name.replace("tpu.", "top."): spec.name for spec in LOWERED}
    special: dict[str, Callable[[Call, Make], Sequence[Value]]] = {
        "top.input": lambda call, make: (make("tpu.input", call.operands["x"]),),
        "top.weight": _weight,
        "top.cast": lambda call, make: make.again(call.operands, call.attrs, "tpu.cast"),
        "top.squeeze": _reshape,
        "top.unsqueeze": _reshape,
        "top.expand": partial(_expand, act),
        "top.matmul": partial(_matmul, target),
        "top.a16_matmul": partial(_a16_matmul, act),
        "top.conv": partial(_conv, act),
        "top.gelu": lambda call, make: _active(call, make, "gelu_tanh" if call.attrs["form"] == "tanh" else "gelu"),
        **{f"top.{op}": partial(_active, mode=mode) for op, mode in _ACTIVE.items()},
    }
    same = {
        top: partial(_counterpart, DType.F32 if top in wide else act, name)
        for top, name in counterparts.items()
        if top not in special
    }
    return tuple(Pattern(root, rewrite) for root, rewrite in (special | same).items())


def _to(make: Make, dtype: DType, value: Values) -> Values:
    """Return float values in an element type; integers and absent operands as they are."""
    if isinstance(value, tuple):
        return tuple(_one(make, dtype, v) for v in value)
    return None if value is None else _one(make, dtype, value)


def _one(make: Make, dtype: DType, value: Value) -> Value:
    kind = adapter.tensor_type(value).dtype
    if kind is dtype or not kind.is_float:
        return value
    return make("tpu.cast", value, name=f"{make.call.name}.cast", to=dtype.value)


def _back(make: Make, values: Sequence[Value]) -> tuple[Value, ...]:
    return tuple(_one(make, DType.F32, v) for v in values)


def _counterpart(dtype: DType, name: str, call: Call, make: Make) -> Sequence[Value]:
    operands = {k: _to(make, dtype, v) for k, v in call.operands.items()}
    return _back(make, make.again(operands, call.attrs, name))


def _weight(call: Call, make: Make) -> Sequence[Value]:
    return (make("tpu.weight", role=call.attrs["role"], shape=call.attrs["shape"], dtype=call.attrs["dtype"]),)


def _active(call: Call, make: Make, mode: str) -> Sequence[Value]:
    return (make("tpu.active", call.operands["x"], mode=mode),)


def _reshape(call: Call, make: Make) -> Sequence[Value]:
    return (make("tpu.reshape", call.operands["x"], shape=adapter.tensor_type(call.results[0]).shape),)


def _expand(act: DType, call: Call, make: Make) -> Sequence[Value]:
    x = _to(make, act, call.operands["x"])
    shape = adapter.tensor_type(call.results[0]).shape
    before = adapter.tensor_type(call.results[0]).with_shape(_shape_of(call.operands["x"]))
    padded = (1,) * (len(shape) - before.rank) + before.shape
    x = make("tpu.reshape", x, name=f"{call.name}.axes", shape=padded)
    repeats = tuple(new // old for new, old in zip(shape, padded, strict=True))
    return _back(make, (make("tpu.tile", x, repeats=repeats),))


def _shape_of(value: Values) -> tuple[int, ...]:
    return adapter.tensor_type(value).shape


def _matmul(target: Target, call: Call, make: Make) -> Sequence[Value]:
    act, bias = target.mode.activations, call.operands["bias"]
    x = _to(make, act, call.operands["x"])
    if target.packs(call):
        return _back(make, (_packed(target, call, make, x),))
    operands = {"x": x, "w": _to(make, act, call.operands["w"]), "bias": bias}
    return _back(make, make.again(operands, {**call.attrs, "out": act.value}, "tpu.matmul"))


def _packed(target: Target, call: Call, make: Make, x: Values) -> Value:
    """Return the product with the weight packed by the mode."""
    bits, group, act = target.mode.weight_bits or 0, target.group_size, target.mode.activations
    source = adapter.producer(call.operands["w"])
    assert source is not None, "Target.packs asks for a constant"
    role, (outputs, inputs) = str(source.attrs["role"]), _shape_of(call.operands["w"])

    def part(name: str, shape: tuple[int, ...], dtype: DType) -> Value:
        return make(
            "tpu.weight",
            name=f"{role}.{name}",
            role=role,
            shape=shape,
            dtype=dtype.value,
            part=name,
            bits=bits,
            group_size=group,
            symmetric=target.symmetric,
        )

    groups = (outputs, inputs // group)
    packed = part("packed", (outputs, inputs * bits // 8), DType.UI8)
    scale = part("scale", groups, act)
    zero = None if target.symmetric else part("zero", groups, DType.UI8)
    bias = call.operands["bias"]
    return make("tpu.a16_matmul", x, packed, scale, zero, bias, bits=bits, group_size=group, out=act.value)


def _a16_matmul(act: DType, call: Call, make: Make) -> Sequence[Value]:
    operands = {**call.operands, **{k: _to(make, act, call.operands[k]) for k in ("x", "scale")}}
    return _back(make, make.again(operands, {**call.attrs, "out": act.value}, "tpu.a16_matmul"))


def _conv(act: DType, call: Call, make: Make) -> Sequence[Value]:
    operands = {**call.operands, **{k: _to(make, act, call.operands[k]) for k in ("x", "w")}}
    return _back(make, make.again(operands, {**call.attrs, "out": act.value}, "tpu.conv"))
