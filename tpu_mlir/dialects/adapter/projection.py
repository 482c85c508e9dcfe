"""Projects the op specs on the bindings: one class an op, with its verifier; and the contexts that hold them."""

import functools
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

from tpu_mlir.dialects.adapter.bindings import Operation, Value, ext, ir
from tpu_mlir.dialects.adapter.reading import bind, read_attrs
from tpu_mlir.dialects.adapter.values import tensor_type, types_of
from tpu_mlir.dialects.catalog import TOP, TPU
from tpu_mlir.dialects.spec import SLOTS, YIELDED, Mismatch, OperandTypes, OpSpec, require


@functools.cache
def shared_context() -> Any:
    """Return the process's context, in which modules live unless they are given another."""
    return new_context()


def new_context() -> Any:
    """Return an MLIR context with both dialects loaded (about 0.1 s)."""
    context = ir.Context()
    with context, ir.Location.unknown():
        for dialect in _DIALECTS:
            dialect.load()
    return context


def fault_of(spec: OpSpec, operation: Operation) -> str | None:
    """Return what is wrong with an op, or None."""
    try:
        operands: dict[str, OperandTypes] = {
            k: types_of(v) for k, v in bind(spec, operation, operation.operands).items()
        }
        if spec.region:
            operands[YIELDED] = tuple(tensor_type(v) for v in _yielded(operation))
        wanted = spec.infer(operands, read_attrs(spec, operation))
        given = tuple(tensor_type(r) for r in operation.results)
        require(len(given) == len(wanted), f"{len(given)} results given, {len(wanted)} inferred")
        for index, (have, want) in enumerate(zip(given, wanted, strict=True)):
            label = spec.results[index] if index < len(spec.results) else f"result {index}"
            require(have == want, f"{label} is {have}, inferred {want}")
    except Mismatch as fault:
        return str(fault)
    return None


def _yielded(operation: Operation) -> Sequence[Value]:
    blocks = list(operation.regions[0].blocks) if len(operation.regions) else []
    ops = list(blocks[0].operations) if blocks else []
    require(len(blocks) == 1 and bool(ops), "the region needs one block that ends in tpu.yield")
    require(ops[-1].operation.name == "tpu.yield", f"the region ends in {ops[-1].operation.name}, not in tpu.yield")
    return tuple(ops[-1].operation.operands)


def _project(dialect: str, specs: Mapping[str, OpSpec]) -> Any:
    """Return a bindings dialect with one class for every spec.

    For every op that they meet, the bindings look for the Python module of its dialect until they have found one. Ours
    have none; an empty one ends the search, which is otherwise half of the time of all passes.
    """
    place = f"{ext.__package__}.{dialect}"
    sys.modules.setdefault(place, types.ModuleType(place))
    made = type(dialect.capitalize(), (ext.Dialect,), {}, name=dialect)
    for spec in specs.values():
        _project_op(made, spec)
    return made


def _project_op(dialect: Any, spec: OpSpec) -> None:
    annotations: dict[str, Any] = {}
    for operand in spec.operands:
        if operand.arity == "many":
            annotations |= {f"{operand.name}_{i}": ext.Operand[Any] | None for i in range(SLOTS)}
        else:
            annotations[operand.name] = ext.Operand[Any] if operand.arity == "one" else ext.Operand[Any] | None
    kinds = {bool: ir.IntegerAttr, int: ir.IntegerAttr, float: ir.FloatAttr, str: ir.StringAttr}
    for attribute in spec.attributes:
        annotations[attribute.name] = kinds.get(attribute.kind, Any)
    for result in spec.results:
        if spec.many_results:
            annotations |= {f"{result}_{i}": ext.Result[Any] | None for i in range(SLOTS)}
        else:
            annotations[result] = ext.Result[Any]
    if spec.region:
        annotations["body"] = ir.Region

    def verify_invariants(operation: Any) -> bool:
        fault = fault_of(spec, operation.operation)
        if fault is not None:
            operation.location.emit_error(f"{spec.name}: {fault}")
        return fault is None

    traits = [ext.Pure] * spec.pure + [ir.IsTerminatorTrait] * spec.terminator
    namespace = {"__annotations__": annotations, "verify_invariants": staticmethod(verify_invariants)}
    type(spec.name.replace(".", "_"), (dialect.Operation,), namespace, name=spec.name.split(".")[1], traits=traits)


_DIALECTS = (_project("top", TOP), _project("tpu", TPU))
