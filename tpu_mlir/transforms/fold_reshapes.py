"""Removes ops that only rename the axes of a tensor and do not need to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tpu_mlir.dialects import adapter
from tpu_mlir.dialects.adapter import Call, Make, Module, Pattern, Value
from tpu_mlir.dialects.state import State


@dataclass(frozen=True, kw_only=True)
class FoldReshapes:
    """squeeze and unsqueeze become reshape; of two reshapes or permutes one is left; what changes nothing goes."""

    name: ClassVar[str] = "fold-reshapes"
    needs: ClassVar[State] = State.TOP_F32
    leaves: ClassVar[State] = State.TOP_F32

    def run(self, module: Module) -> None:
        """Apply the patterns until none applies."""
        adapter.rewrite_greedily(
            module,
            (
                Pattern("top.squeeze", _as_reshape),
                Pattern("top.unsqueeze", _as_reshape),
                Pattern("top.reshape", _fold),
                Pattern("top.permute", _fold_permute),
            ),
        )


def _as_reshape(call: Call, make: Make) -> Sequence[Value]:
    return (make("top.reshape", call.operands["x"], shape=adapter.tensor_type(call.results[0]).shape),)


def _fold(call: Call, make: Make) -> Sequence[Value] | None:
    x = call.operands["x"]
    shape = adapter.tensor_type(call.results[0]).shape
    if adapter.tensor_type(x).shape == shape:
        return (x,)
    before = adapter.producer(x)
    if before is not None and before.spec is call.spec:
        return (make("top.reshape", before.operands["x"], shape=shape),)
    return None


def _fold_permute(call: Call, make: Make) -> Sequence[Value] | None:
    rank = adapter.tensor_type(call.results[0]).rank
    order = _order(call)
    if order == tuple(range(rank)):
        return (call.operands["x"],)
    before = adapter.producer(call.operands["x"])
    if before is not None and before.spec is call.spec:
        inner = _order(before)
        return (make("top.permute", before.operands["x"], order=tuple(inner[i] for i in order)),)
    return None


def _order(call: Call) -> tuple[int, ...]:
    order: Any = call.attrs["order"]
    return tuple(order)
