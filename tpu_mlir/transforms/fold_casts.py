"""Removes the casts that lowering put in and that change nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tpu_mlir.dialects import adapter
from tpu_mlir.dialects.adapter import Call, Make, Module, Pattern, Value
from tpu_mlir.dialects.state import State
from tpu_mlir.dialects.types import DType

_PRODUCTS = ("tpu.matmul", "tpu.a16_matmul")


@dataclass(frozen=True, kw_only=True)
class FoldCasts:
    """Three rules, applied until none applies.

    - A narrow value widened and narrowed again is itself.
    - A weight that is only cast is stored in the type that it is cast to.
    - A product of one row or one column whose only use is widened gives f32 at once (logits; gates while decoding):
      one rounding less, for a few bytes more.
    """

    name: ClassVar[str] = "fold-casts"
    needs: ClassVar[State] = State.LOWERED
    leaves: ClassVar[State] = State.LOWERED

    def run(self, module: Module) -> None:
        """Apply the rules, then drop what became equal or unused."""
        adapter.run_upstream(module, "cse")
        adapter.rewrite_greedily(module, (Pattern("tpu.cast", _fold),))
        adapter.run_upstream(module, "canonicalize,cse")


def _fold(call: Call, make: Make) -> Sequence[Value] | None:
    x, to = call.operands["x"], DType(str(call.attrs["to"]))
    kind = adapter.tensor_type(x).dtype
    if kind is to:
        return (x,)
    source = adapter.producer(x)
    if source is None or not (kind.is_float and to.is_float):
        return None
    if source.spec.name == "tpu.cast":
        return _of_cast(source, kind, to, make)
    if source.spec.name == "tpu.weight" and source.attrs["part"] == "value":
        weight = make.again({}, {**source.attrs, "dtype": to.value}, "tpu.weight")
        return weight
    return _wide_product(call, source, make) if to is DType.F32 else None


def _of_cast(source: Call, kind: DType, to: DType, make: Make) -> Sequence[Value] | None:
    """A cast through f32 is exact on the way there, so only the last type counts."""
    start = source.operands["x"]
    if kind is not DType.F32 or not adapter.tensor_type(start).dtype.is_float:
        return None
    return (start,) if adapter.tensor_type(start).dtype is to else (make("tpu.cast", start, to=to.value),)


def _wide_product(call: Call, source: Call, make: Make) -> Sequence[Value] | None:
    if any(user.spec.name == "tpu.cast" for user in adapter.users(call.results[0])):
        return None  # that pair goes first
    chain = [source]
    if source.spec.name == "tpu.reshape":
        before = adapter.producer(source.operands["x"])
        if before is None:
            return None
        chain.append(before)
    product = chain[-1]
    thin = min(adapter.tensor_type(product.results[0]).shape[-2:]) == 1
    if product.spec.name not in _PRODUCTS or not thin or any(adapter.use_count(c.results[0]) != 1 for c in chain):
        return None
    (wide,) = make.renamed(product.name).again(product.operands, {**product.attrs, "out": "f32"}, product.spec.name)
    if product is source:
        return (wide,)
    return make.renamed(source.name).again({"x": wide}, source.attrs, "tpu.reshape")
