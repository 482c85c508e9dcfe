"""Linear layers of a checkpoint in a graph: floats, or packed integers as GPTQ, AWQ and their kin store them."""

from collections.abc import Mapping
from dataclasses import dataclass

from tpu_mlir.dialects.adapter import Value
from tpu_mlir.dialects.build import FunctionWriter
from tpu_mlir.dialects.types import DType
from tpu_mlir.quantize.group_quantised import GroupQuantised


@dataclass(frozen=True, kw_only=True, slots=True)
class Packed:
    """How a linear layer is packed; what the graph must know of it without its numbers."""

    bits: int
    group_size: int
    symmetric: bool
    permuted: bool
    """Its columns are in another order than its input features (act-order)."""

    @classmethod
    def of(cls, weight: GroupQuantised) -> "Packed":
        """Return the form of a weight."""
        return cls(
            bits=weight.bits,
            group_size=weight.group_size,
            symmetric=weight.symmetric,
            permuted=weight.permutation is not None,
        )


Forms = Mapping[str, Packed]
"""The packed linear modules by name; modules that are not in it have float weights."""


@dataclass(frozen=True, slots=True)
class LinearWriter:
    """Writes linear layers in whatever form the checkpoint has them."""

    writer: FunctionWriter
    forms: Forms

    def __call__(self, x: Value, module: str, shape: tuple[int, int], *, bias: bool = False) -> Value:
        """Add `x` times the transpose of a module's weight [outputs, inputs], plus its bias.

        Roles: `MODULE.weight` for floats; `MODULE.qweight`, `.scales`, `.qzeros` (absent when symmetric) and
        `.permutation` for packed integers; `MODULE.bias`.

        Raises:
            IrError: shapes that do not fit, named with the module.
        """
        outputs, inputs = shape
        write = self.writer
        added = write.weight(f"{module}.bias", (outputs,)) if bias else None
        form = self.forms.get(module)
        if form is None:
            weight = write.weight(f"{module}.weight", (outputs, inputs))
            return write.op("top.matmul", x, weight, added, name=module, right_transpose=True)
        if form.permuted:
            order = write.weight(f"{module}.permutation", (inputs,), DType.SI32)
            x = write.op("top.gather", x, order, name=f"{module}.input", axis=-1)
        groups = inputs // form.group_size
        packed = write.weight(f"{module}.qweight", (outputs, inputs * form.bits // 8), DType.UI8)
        scales = write.weight(f"{module}.scales", (outputs, groups))
        zeros = None if form.symmetric else write.weight(f"{module}.qzeros", (outputs, groups), DType.UI8)
        return write.op(
            "top.a16_matmul",
            x,
            packed,
            scales,
            zeros,
            added,
            name=module,
            bits=form.bits,
            group_size=form.group_size,
        )
