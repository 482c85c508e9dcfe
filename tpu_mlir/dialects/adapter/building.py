"""Builds functions and ops."""

from collections.abc import Mapping, Sequence
from typing import Any

from tpu_mlir.dialects.adapter.bindings import Module, Value, Values, func, ir
from tpu_mlir.dialects.adapter.errors import Diagnostic, IrError
from tpu_mlir.dialects.adapter.reading import Call, Function, block_of
from tpu_mlir.dialects.adapter.values import many, mlir_attr, mlir_type, types_of
from tpu_mlir.dialects.spec import AttrValue, Mismatch, OpSpec, require
from tpu_mlir.dialects.types import Tensor


def add_function(module: Module, name: str, inputs: Mapping[str, Tensor]) -> Function:
    """Add a function with named arguments and no results yet; close it with `finish_function`."""
    with module.context, ir.Location.name(name), ir.InsertionPoint(module.body):
        types = [mlir_type(t) for t in inputs.values()]
        function = func.FuncOp(name, (types, []))
        ir.Block.create_at_start(function.regions[0], types, [ir.Location.name(n) for n in inputs])
        return Function(module, function)


def finish_function(function: Function, outputs: Sequence[Value]) -> None:
    """Return the outputs from a function and write its type."""
    block = block_of(function.raw)
    with function.module.context, ir.Location.unknown(), ir.InsertionPoint(block):
        func.ReturnOp(list(outputs))
        kind = ir.FunctionType.get([a.type for a in block.arguments], [v.type for v in outputs])
        function.raw.attributes["function_type"] = ir.TypeAttr.get(kind)


def set_outputs(function: Function, outputs: Sequence[Value]) -> None:
    """Return other values from a function; its type follows, from them and from its arguments' types."""
    *_, last = block_of(function.raw).operations
    for index, value in enumerate(outputs):
        last.operation.operands[index] = value
    with function.module.context:
        kind = ir.FunctionType.get([a.type for a in block_of(function.raw).arguments], [v.type for v in outputs])
        function.raw.attributes["function_type"] = ir.TypeAttr.get(kind)


def replace(call: Call, values: Sequence[Value]) -> None:
    """Use other values in place of an op's results, and erase the op."""
    for old, new in zip(call.results, values, strict=True):
        old.replace_all_uses_with(new)
    call.raw.erase()


def set_type(value: Value, tensor: Tensor) -> None:
    """Give a value another type; the caller keeps its op valid."""
    with value.context, ir.Location.unknown():
        value.set_type(mlir_type(tensor))


def at_end(function: Function) -> Any:
    """Return the insertion point at the end of a function under construction."""
    return ir.InsertionPoint(block_of(function.raw))


def build(
    spec: OpSpec, operands: Mapping[str, Values], attrs: Mapping[str, AttrValue], name: str, point: Any
) -> tuple[Value, ...]:
    """Add one op and return its results; their types are inferred.

    Args:
        spec: the op.
        operands: by name; absent ones may be left out.
        attrs: those without a default, and others as wanted.
        name: the tensor's name, kept as the op's location.
        point: where to insert.

    Raises:
        IrError: the op does not take these operands or attributes.
    """
    values = {o.name: operands.get(o.name, () if o.arity == "many" else None) for o in spec.operands}
    try:
        for o in spec.operands:
            require(o.arity != "one" or values[o.name] is not None, f"operand {o.name} is missing")
        full = spec.with_defaults(attrs)
        results = spec.infer({k: types_of(v) for k, v in values.items()}, full)
    except Mismatch as fault:
        raise IrError("The op cannot be built.", [Diagnostic(f'"{name}"', f"{spec.name}: {fault}")]) from fault
    with point.block.owner.context, ir.Location.name(name):
        flat = [v for o in spec.operands for v in many(values[o.name])]
        attributes = {k: mlir_attr(v) for k, v in full.items()}
        if spec.segmented:
            sizes = spec.segments({o.name: len(many(values[o.name])) for o in spec.operands})
            attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(sizes)
        made = ir.Operation.create(
            spec.name, results=[mlir_type(t) for t in results], operands=flat, attributes=attributes, ip=point
        )
        return tuple(made.results)
