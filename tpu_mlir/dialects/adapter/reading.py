"""Reads functions and ops of a module into plain terms."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tpu_mlir.dialects.adapter.bindings import Module, Operation, Value, Values, func, ir
from tpu_mlir.dialects.adapter.errors import Diagnostic, IrError, where_of
from tpu_mlir.dialects.adapter.values import plain_attr, types_of
from tpu_mlir.dialects.catalog import SPECS
from tpu_mlir.dialects.spec import AttrValue, OperandTypes, OpSpec, require

_SEGMENTS = ("operandSegmentSizes", "resultSegmentSizes")


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a module."""

    module: Module
    raw: Any

    @property
    def name(self) -> str:
        """The function's name."""
        return str(self.raw.name.value)


@dataclass(frozen=True, slots=True)
class Call:
    """One op of a module, read into plain terms: its spec, operands by name, attributes, results and tensor name."""

    spec: OpSpec
    operands: Mapping[str, Values]
    attrs: Mapping[str, AttrValue]
    results: tuple[Value, ...]
    name: str
    raw: Operation
    inside: Any
    """What the op was reached through, kept alive; None during a rewrite."""

    @property
    def where(self) -> str:
        """The op's location, for messages."""
        return where_of(self.raw)

    @property
    def types(self) -> dict[str, OperandTypes]:
        """The types of the operands by name."""
        return {k: types_of(v) for k, v in self.operands.items()}

    @property
    def flops(self) -> int:
        """Operations of one execution; a multiply-add counts as two."""
        return self.spec.count_flops(self.types, self.attrs) if not self.spec.region else 0


def functions(module: Module) -> list[Function]:
    """Return the functions of a module in order."""
    return [Function(module, f) for f in module.body.operations if isinstance(f, func.FuncOp)]


def arguments(function: Function) -> tuple[Value, ...]:
    """Return the arguments of a function."""
    return tuple(block_of(function.raw).arguments)


def outputs(function: Function) -> tuple[Value, ...]:
    """Return the values that a function returns."""
    *_, last = block_of(function.raw).operations
    return tuple(last.operation.operands)


def calls(inside: Function | Call) -> list[Call]:
    """Return the ops of a function (without its return), or of an op's region, in order.

    Raises:
        IrError: an op of another dialect.
    """
    found = [o.operation for o in block_of(inside.raw).operations if o.operation.name != "func.return"]
    foreign = [
        Diagnostic(where_of(o), f"{o.name} is not an op of the top or tpu dialect")
        for o in found
        if o.name not in SPECS
    ]
    if foreign:
        raise IrError("The module holds foreign ops.", foreign)
    return [read(o, inside=inside) for o in found]


def read(operation: Operation, replaced: Sequence[Value] | None = None, inside: Any = None) -> Call:
    """Read an op of the `top` or `tpu` dialect into plain terms.

    Args:
        operation: the op.
        replaced: operands to show in place of the op's own, during a conversion.
        inside: what to keep alive with the result.

    Raises:
        Mismatch: an op whose text contradicts its declaration.
    """
    operation = operation.operation
    spec = SPECS[operation.name]
    return Call(
        spec=spec,
        operands=bind(spec, operation, operation.operands if replaced is None else replaced),
        attrs=read_attrs(spec, operation),
        results=tuple(operation.results),
        name=name_of(operation),
        raw=operation,
        inside=inside,
    )


def producer(value: Value) -> Call | None:
    """Return the op that makes a value, or None for a function's argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else read(owner)


def users(value: Value) -> list[Call]:
    """Return the ops that use a value, without the function's return; an op that uses it twice comes twice."""
    owners = [use.owner.operation for use in value.uses]
    return [read(o) for o in owners if o.name in SPECS]


def use_count(value: Value) -> int:
    """Return how many operands a value is."""
    return len(list(value.uses))


def name_of(operation: Operation) -> str:
    """Return the tensor name in an op's location, or the empty string."""
    found = re.match(r'loc\("((?:[^"\\]|\\.)*)"(?:\)|\()', str(operation.location))
    return found[1] if found else ""


def bind(spec: OpSpec, operation: Operation, values: Sequence[Value]) -> dict[str, Values]:
    """Return a flat operand list by the spec's names.

    Raises:
        Mismatch: too many or too few, or segment sizes that do not fit.
    """
    flat = list(values)
    if spec.segmented:
        require("operandSegmentSizes" in operation.attributes, "attribute operandSegmentSizes is missing")
        counts = spec.counts(list(operation.attributes["operandSegmentSizes"]), len(flat))
    else:
        counts = {o.name: 1 for o in spec.operands}
        names = ", ".join(counts) or "none"
        require(len(counts) == len(flat), f"{len(flat)} operands given, {len(counts)} wanted ({names})")
    bound: dict[str, Values] = {}
    for operand in spec.operands:
        part, flat = tuple(flat[: counts[operand.name]]), flat[counts[operand.name] :]
        bound[operand.name] = part if operand.arity == "many" else part[0] if part else None
    return bound


def read_attrs(spec: OpSpec, operation: Operation) -> dict[str, AttrValue]:
    """Return the attributes that the spec declares, as far as they are there.

    Raises:
        Mismatch: an attribute without dialect prefix that it does not declare, or one of an unknown kind.
    """
    known = {a.name for a in spec.attributes}
    for attr in operation.attributes:
        name = attr.name if hasattr(attr, "name") else attr
        good = name in known or name in _SEGMENTS or "." in name
        require(good, f"unknown attribute {name}; the op has {', '.join(sorted(known)) or 'none'}")
    return {
        n: plain_attr(n, operation.attributes[n])
        for n in (a.name for a in spec.attributes)
        if n in operation.attributes
    }


def block_of(operation: Any) -> Any:
    """Return the one block of an op's region."""
    return operation.regions[0].blocks[0]
