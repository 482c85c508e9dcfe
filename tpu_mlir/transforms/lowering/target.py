"""What a module is lowered to, and whether that can be done: asked before anything is changed."""

from dataclasses import dataclass

from core.errors import BadInput
from tpu_mlir.chips.chip import Chip
from tpu_mlir.dialects import adapter
from tpu_mlir.dialects.adapter import Call, Diagnostic, IrError, Module
from tpu_mlir.transforms.mode import MODES, Mode


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A chip, a mode, and whether and how float weights are packed in modes that pack weights."""

    chip: Chip
    mode: Mode
    group_size: int
    symmetric: bool
    pack_floats: bool

    def check(self, module: Module) -> None:
        """Refuse what the chip or the mode cannot do.

        Raises:
            BadInput: the chip does not compute in the mode's formats.
            IrError: layers whose inputs do not divide into groups, or that the checkpoint packed to another width than
                the mode's; all of them, each with its name.
        """
        self._check_formats()
        calls = [call for function in adapter.functions(module) for call in adapter.calls(function)]
        faults = [Diagnostic(c.where, fault) for c in calls if (fault := self._fault(c)) is not None]
        if faults:
            raise IrError(f"The model cannot be lowered to {self.mode.name} on {self.chip.name}.", faults)

    def _check_formats(self) -> None:
        chip, mode = self.chip, self.mode
        able = [m.name for m in MODES.values() if self._reaches(m)]
        if not self._reaches(mode):
            raise BadInput(f"{chip.name} cannot compute in mode {mode.name}.", f"It can in {', '.join(able)}.")

    def _reaches(self, mode: Mode) -> bool:
        packs = mode.weight_bits is None or mode.weight_bits in self.chip.weight_bits
        return mode.activations in self.chip.formats and packs

    def _fault(self, call: Call) -> str | None:
        bits = self.mode.weight_bits
        if call.spec.name == "top.a16_matmul" and call.attrs["bits"] != bits:
            return f"its weight has {call.attrs['bits']} bits in the checkpoint, which is not mode {self.mode.name}"
        if bits is not None and self.packs(call):
            inputs = adapter.tensor_type(call.operands["w"]).shape[-1]
            if inputs % self.group_size:
                return f"its {inputs} inputs do not divide into groups of {self.group_size}"
            if inputs * bits % 8:
                return f"its {inputs} inputs of {bits} bits do not fill whole bytes"
        return None

    def packs(self, call: Call) -> bool:
        """Tell whether a product gets a packed weight: one with a constant [outputs, inputs] matrix on its right."""
        if call.spec.name != "top.matmul" or self.mode.weight_bits is None or not self.pack_floats:
            return False
        if not call.attrs["right_transpose"] or call.attrs["left_transpose"]:
            return False
        source = adapter.producer(call.operands["w"])
        matrix = adapter.tensor_type(call.operands["w"]).rank == 2
        return matrix and source is not None and source.spec.name in ("top.weight", "tpu.weight")
