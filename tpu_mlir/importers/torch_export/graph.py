"""What the translation of one operator writes to."""

from dataclasses import dataclass, field
from typing import TypeAlias

from tpu_mlir.dialects import adapter
from tpu_mlir.dialects.adapter import Value, Values
from tpu_mlir.dialects.build import FunctionWriter
from tpu_mlir.dialects.spec import AttrValue
from tpu_mlir.dialects.types import Array, tensor_of

Item: TypeAlias = Value | tuple[Value, ...]
"""What a node of the exported graph stands for: a tensor, or several."""


@dataclass
class Graph:
    """The function under construction, its constants, and the name of the node that is being translated."""

    writer: FunctionWriter
    arrays: dict[str, Array] = field(default_factory=dict)
    name: str = ""

    def op(self, op_name: str, *operands: Values, part: str = "", **attrs: AttrValue) -> Value:
        """Add an op under the node's name, or under a part of it where a node becomes several ops."""
        return self.writer.op(op_name, *operands, name=f"{self.name}.{part}" if part else self.name, **attrs)

    def constant(self, role: str, array: Array) -> Value:
        """Add a constant and keep its array."""
        self.arrays[role] = array
        kind = tensor_of(array)
        return self.writer.weight(role, kind.shape, kind.dtype)

    @staticmethod
    def shape(value: Value) -> tuple[int, ...]:
        """Return the shape of a value."""
        return adapter.tensor_type(value).shape
