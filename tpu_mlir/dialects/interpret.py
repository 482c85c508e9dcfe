"""Runs a module on the host, op by op, with each op's own numpy definition: the oracle at both dialect levels."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from core.errors import BadInput
from tpu_mlir.dialects import adapter
from tpu_mlir.dialects.adapter import Call, Diagnostic, Function, IrError, Module, Value, Values
from tpu_mlir.dialects.spec import Mismatch, OperandArrays
from tpu_mlir.dialects.types import Array, tensor_of

Constants = Callable[[Call], Array]
"""Gives the array that a weight op names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """What a run produced: the returned arrays in order, and every named tensor."""

    outputs: tuple[Array, ...]
    tensors: Mapping[str, Array]


def run(module: Module, inputs: Iterable[Array], constants: Constants, *, function: str | None = None) -> Trace:
    """Run one function of a module.

    Args:
        module: at any state.
        inputs: one array an argument, of exactly its type.
        constants: gives the array of a weight op; called once for each.
        function: its name; may be left out when there is only one.

    Raises:
        BadInput: no such function, or inputs that do not fit its arguments.
        IrError: an op failed; it is named with its location.
    """
    chosen = _choose(module, function)
    arguments = adapter.arguments(chosen)
    given = tuple(inputs)
    if len(given) != len(arguments):
        raise BadInput(f"{len(given)} inputs for the {len(arguments)} arguments of {chosen.name}.")
    values: dict[Value, Array] = {}
    for index, (argument, array) in enumerate(zip(arguments, given, strict=True)):
        wanted = adapter.tensor_type(argument)
        if tensor_of(array) != wanted:
            raise BadInput(f"Input {index} of {chosen.name} is {tensor_of(array)}, wanted {wanted}.")
        values[argument] = array
    tensors: dict[str, Array] = {}
    _run_block(chosen, values, tensors, constants)
    return Trace(outputs=tuple(values[v] for v in adapter.outputs(chosen)), tensors=tensors)


def _choose(module: Module, name: str | None) -> Function:
    found = adapter.functions(module)
    chosen = [f for f in found if name in (None, f.name)]
    if len(chosen) != 1:
        raise BadInput(f"The module has the functions {', '.join(f.name for f in found)}.", "Name one of them.")
    return chosen[0]


def _run_block(
    inside: Function | Call, values: dict[Value, Array], tensors: dict[str, Array], constants: Constants
) -> None:
    for call in adapter.calls(inside):
        results = _run_op(call, values, tensors, constants)
        for index, (value, array) in enumerate(zip(call.results, results, strict=True)):
            wanted = adapter.tensor_type(value)
            if tensor_of(array) != wanted:
                raise _failed(call, f"{call.spec.name} computed {tensor_of(array)}, its type is {wanted}")
            values[value] = array
            if call.name:
                tensors[call.name if index == 0 else f"{call.name}:{index}"] = array


def _run_op(
    call: Call, values: dict[Value, Array], tensors: dict[str, Array], constants: Constants
) -> tuple[Array, ...]:
    if call.spec.name in ("top.weight", "tpu.weight"):
        return (constants(call),)
    if call.spec.terminator:
        return ()
    if call.spec.region:
        _run_block(call, values, tensors, constants)
        outs = adapter.calls(call)[-1].operands["outs"]
        return tuple(values[v] for v in outs) if isinstance(outs, tuple) else ()
    operands: dict[str, OperandArrays] = {k: _arrays(v, values) for k, v in call.operands.items()}
    try:
        with np.errstate(all="ignore"):  # a chip makes infinities and NaN without a word; comparing tensors finds them
            return call.spec.compute(operands, call.attrs)
    except Mismatch as fault:
        raise _failed(call, f"{call.spec.name}: {fault}") from fault


def _arrays(value: Values, values: Mapping[Value, Array]) -> OperandArrays:
    if isinstance(value, tuple):
        return tuple(values[v] for v in value)
    return None if value is None else values[value]


def _failed(call: Call, message: str) -> IrError:
    return IrError("The module cannot be run.", [Diagnostic(call.where, message)])
