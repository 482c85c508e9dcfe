"""Reads, verifies and prints our IR without MLIR, by the pure-Python package xdsl.

The documented way out when no torch-mlir can be installed: text written on one machine can be inspected, checked by the
same op specs and printed again on another. Rewriting, upstream passes and compilation need the real bindings.
Printed text is generic form, which `adapter.parse` reads back.
"""

import re
from io import StringIO

from xdsl.context import Context
from xdsl.dialects.builtin import (
    BFloat16Type,
    Builtin,
    DenseArrayBase,
    Float16Type,
    Float32Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    NameLoc,
    Signedness,
    StringAttr,
    TensorType,
)
from xdsl.dialects.func import Func
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from core.errors import BadInput
from tpu_mlir.dialects.catalog import SPECS
from tpu_mlir.dialects.spec import YIELDED, AttrValue, Mismatch, OperandTypes, OpSpec, require
from tpu_mlir.dialects.types import DType, Tensor

_SIGNED = {"si8": DType.SI8, "ui8": DType.UI8, "si32": DType.SI32}


def parse(text: str) -> ModuleOp:
    """Parse a module and verify it by the op specs.

    Raises:
        BadInput: text that is no module, or an op that its spec refuses; the message names it.
    """
    context = Context(allow_unregistered=True)
    context.load_dialect(Builtin)
    context.load_dialect(Func)
    try:
        module = Parser(context, _expand_locations(text)).parse_module()
        module.verify()
    except (ParseError, VerifyException) as error:
        raise BadInput(f"The text is not a valid module: {error}") from error
    for operation in module.walk():
        name = _name(operation)
        if name in SPECS:
            _verify(SPECS[name], operation)
        elif name.startswith(("top.", "tpu.")):
            raise BadInput(f"{name} is not an op of the top or tpu dialect.")
    return module


def print_module(module: ModuleOp, *, names: bool = False) -> str:
    """Return a module as text in generic form; with names, locations are written too."""
    out = StringIO()
    Printer(stream=out, print_generic_format=True, print_debuginfo=names).print_op(module)
    return out.getvalue() + "\n"


def _expand_locations(text: str) -> str:
    """Write out location aliases (`#loc3 = loc("q")`), which MLIR prints at the end and xdsl cannot look ahead for."""
    aliases = dict(re.findall(r"^#(loc\d*) = loc\((.*)\)$", text, re.MULTILINE))
    text = re.sub(r"^#loc\d* = loc\(.*\)\n?", "", text, flags=re.MULTILINE)
    while re.search(r"#loc\d*\b", text):
        text = re.sub(r"#(loc\d*)\b", lambda found: aliases[found[1]], text)
    return text


def _name(operation: Operation) -> str:
    found = operation.attributes.get("op_name__")
    return found.data if isinstance(found, StringAttr) else operation.name


def _verify(spec: OpSpec, operation: Operation) -> None:
    try:
        operands = _bind(spec, operation)
        if spec.region:
            *_, last = operation.regions[0].block.ops
            operands[YIELDED] = tuple(map(_tensor, last.operands))
        attrs = {
            a.name: _plain(operation.attributes[a.name]) for a in spec.attributes if a.name in operation.attributes
        }
        wanted = spec.infer(operands, attrs)
        given = tuple(map(_tensor, operation.results))
        require(given == wanted, f"results are {', '.join(map(str, given))}, inferred {', '.join(map(str, wanted))}")
    except Mismatch as fault:
        where = operation.location.desc.data if isinstance(operation.location, NameLoc) else "-"
        raise BadInput(f'"{where}": {spec.name}: {fault}') from fault


def _bind(spec: OpSpec, operation: Operation) -> dict[str, OperandTypes]:
    flat = list(map(_tensor, operation.operands))
    counts = {o.name: 1 for o in spec.operands}
    if spec.segmented:
        found = operation.attributes.get("operandSegmentSizes")
        if not isinstance(found, DenseArrayBase):
            raise Mismatch("attribute operandSegmentSizes is missing")
        counts = spec.counts([int(v) for v in found.get_values()], len(flat))
    require(sum(counts.values()) == len(flat), f"{len(flat)} operands given, wanted {', '.join(counts) or 'none'}")
    bound: dict[str, OperandTypes] = {}
    for operand in spec.operands:
        part, flat = tuple(flat[: counts[operand.name]]), flat[counts[operand.name] :]
        bound[operand.name] = part if operand.arity == "many" else part[0] if part else None
    return bound


def _tensor(value: SSAValue) -> Tensor:
    kind = value.type
    if not isinstance(kind, TensorType):
        raise Mismatch(f"{kind} is not a ranked tensor")
    shape = tuple(kind.get_shape())
    require(all(d >= 0 for d in shape), f"{kind} has a dynamic shape")
    return Tensor(shape, _dtype(kind.element_type))


def _dtype(element: Attribute) -> DType:
    match element:
        case Float32Type():
            return DType.F32
        case Float16Type():
            return DType.F16
        case BFloat16Type():
            return DType.BF16
        case IntegerType(signedness=sign):
            prefix = {Signedness.SIGNED: "si", Signedness.UNSIGNED: "ui"}.get(sign.data, "i")
            dtype = _SIGNED.get(f"{prefix}{element.width.data}")
            if dtype is not None:
                return dtype
    raise Mismatch(f"element type {element} is none of {', '.join(DType)}")


def _plain(attr: Attribute) -> AttrValue:
    match attr:
        case IntegerAttr(type=IntegerType(width=width)):
            return bool(attr.value.data) if width.data == 1 else int(attr.value.data)
        case FloatAttr():
            return float(attr.value.data)
        case StringAttr():
            return attr.data
        case DenseArrayBase():
            return tuple(attr.get_values())
    raise Mismatch(f"attribute {attr} is of a kind that no op has")
