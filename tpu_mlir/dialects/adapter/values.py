"""Translates types, attributes and addresses between MLIR and plain terms."""

from typing import Any

from tpu_mlir.dialects.adapter.bindings import Value, Values, ir
from tpu_mlir.dialects.spec import AttrValue, Mismatch, OperandTypes, require
from tpu_mlir.dialects.types import DType, Tensor


def tensor_type(value: Value) -> Tensor:
    """Return a value's type in plain terms.

    Raises:
        Mismatch: not a ranked tensor of static shape and known element type.
    """
    kind = value.type
    require(isinstance(kind, ir.RankedTensorType), f"{kind} is not a ranked tensor")
    require(kind.has_static_shape, f"{kind} has a dynamic shape")
    dtype = _DTYPES.get(str(kind.element_type))
    if dtype is None:
        raise Mismatch(f"{kind} has an element type other than {', '.join(DType)}")
    return Tensor(tuple(kind.shape), dtype)


def types_of(value: Values) -> OperandTypes:
    """Return the types of an operand in plain terms."""
    if isinstance(value, tuple):
        return tuple(tensor_type(v) for v in value)
    return None if value is None else tensor_type(value)


def many(value: Values) -> tuple[Value, ...]:
    """Return the elements of an operand: none, one, or several."""
    return value if isinstance(value, tuple) else () if value is None else (value,)


def mlir_type(tensor: Tensor) -> Any:
    """Return the MLIR type of a tensor; needs an active context."""
    return ir.RankedTensorType.get(tensor.shape, ir.Type.parse(tensor.dtype.value))


def address_of(value: Value) -> int | None:
    """Return the global address in a value's type, or None before addresses are assigned."""
    encoding = ir.RankedTensorType(value.type).encoding
    return None if encoding is None else int(ir.IntegerAttr(encoding).value)


def set_address(value: Value, address: int) -> None:
    """Write a global address into a value's type."""
    kind = ir.RankedTensorType(value.type)
    with value.context, ir.Location.unknown():
        encoding = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), address)
        value.set_type(ir.RankedTensorType.get(kind.shape, kind.element_type, encoding))


def plain_attr(name: str, attr: Any) -> AttrValue:
    """Return an MLIR attribute in plain terms.

    Raises:
        Mismatch: a kind of attribute that no op has.
    """
    match attr:
        case ir.BoolAttr() | ir.IntegerAttr() | ir.FloatAttr() | ir.StringAttr():
            value: AttrValue = attr.value
            return value
        case ir.DenseI64ArrayAttr() | ir.DenseF64ArrayAttr():
            return tuple(attr)
    raise Mismatch(f"attribute {name} is {attr}, which is none of i64, i1, f64, text, array<i64>, array<f64>")


def mlir_attr(value: AttrValue) -> Any:
    """Return the MLIR attribute of a plain value; needs an active context."""
    match value:
        case bool():
            return ir.BoolAttr.get(value)
        case int():
            return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
        case float():
            return ir.FloatAttr.get(ir.F64Type.get(), value)
        case str():
            return ir.StringAttr.get(value)
    if value and isinstance(value[0], float):
        return ir.DenseF64ArrayAttr.get(list(value))
    return ir.DenseI64ArrayAttr.get(list(value))


_DTYPES = {d.value: d for d in DType}
