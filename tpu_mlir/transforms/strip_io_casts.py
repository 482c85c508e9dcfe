"""Lets a program take and give its tensors in the types it computes in."""

from dataclasses import dataclass
from typing import ClassVar

from tpu_mlir.dialects import adapter
from tpu_mlir.dialects.adapter import Call, Function, Module
from tpu_mlir.dialects.state import State
from tpu_mlir.dialects.types import DType


@dataclass(frozen=True, kw_only=True)
class StripIoCasts:
    """An input that is only used narrowed becomes narrow; a result that was only widened to be returned stays narrow.

    Integers, and floats that are really computed in f32 such as logits, stay as they are.
    """

    name: ClassVar[str] = "strip-io-casts"
    needs: ClassVar[State] = State.LOWERED
    leaves: ClassVar[State] = State.LOWERED

    def run(self, module: Module) -> None:
        """Change every function's arguments and results."""
        for function in adapter.functions(module):
            _narrow_inputs(function)
            adapter.set_outputs(function, [_unwidened(v) for v in adapter.outputs(function)])
        adapter.run_upstream(module, "canonicalize,cse")


def _narrow_inputs(function: Function) -> None:
    for call in adapter.calls(function):
        if call.spec.name != "tpu.input":
            continue
        users = adapter.users(call.results[0])
        kinds = {adapter.tensor_type(u.results[0]).dtype if _is_cast(u) else None for u in users}
        returned = adapter.use_count(call.results[0]) != len(users)
        if len(kinds) != 1 or returned or None in kinds:
            continue
        (kind,) = kinds
        if kind is None or not kind.is_float:
            continue
        narrow = adapter.tensor_type(call.results[0]).with_dtype(kind)
        adapter.set_type(call.operands["x"], narrow)
        adapter.set_type(call.results[0], narrow)
        for user in users:
            adapter.replace(user, call.results)


def _unwidened(value: adapter.Value) -> adapter.Value:
    source = adapter.producer(value)
    if source is None or not _is_cast(source) or source.attrs["to"] != "f32":
        return value
    start = source.operands["x"]
    return start if adapter.tensor_type(start).dtype in (DType.F16, DType.BF16) else value


def _is_cast(call: Call) -> bool:
    return call.spec.name == "tpu.cast"
