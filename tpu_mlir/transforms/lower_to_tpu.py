"""Lowers `top` to `tpu` for one chip and mode."""

from dataclasses import dataclass
from typing import ClassVar

from tpu_mlir.chips.chip import chip_named
from tpu_mlir.dialects import adapter
from tpu_mlir.dialects.adapter import Module
from tpu_mlir.dialects.state import State
from tpu_mlir.transforms.lowering.patterns import patterns
from tpu_mlir.transforms.lowering.target import Target
from tpu_mlir.transforms.mode import mode_named


@dataclass(frozen=True, kw_only=True)
class LowerToTpu:
    """A full conversion: every op is lowered, or the first thing said is which ones cannot be, and where.

    In the w4 and w8 modes, weights that the checkpoint has as floats are packed in groups of `group_size`, about the
    middle when `symmetric`. A checkpoint that is quantised itself keeps its remaining floats with `pack_floats=False`.
    """

    chip: str
    mode: str
    group_size: int = 64
    symmetric: bool = False
    pack_floats: bool = True
    name: ClassVar[str] = "lower-to-tpu"
    needs: ClassVar[State] = State.TOP_F32
    leaves: ClassVar[State] = State.LOWERED

    def run(self, module: Module) -> None:
        """Check the target, convert, and write chip and mode into the module.

        Raises:
            BadInput: no such chip or mode, or one that the other cannot do.
            IrError: ops that cannot be lowered, each with its location.
        """
        target = Target(
            chip=chip_named(self.chip),
            mode=mode_named(self.mode),
            group_size=self.group_size,
            symmetric=self.symmetric,
            pack_floats=self.pack_floats,
        )
        target.check(module)
        adapter.convert(module, patterns(target), "tpu")
        adapter.set_module_attr(module, "tpu.chip", self.chip)
        adapter.set_module_attr(module, "tpu.mode", self.mode)
