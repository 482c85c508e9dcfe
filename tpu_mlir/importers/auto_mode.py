"""Which mode a checkpoint asks for."""

from core.errors import BadInput
from tpu_mlir.importers.checkpoints.checkpoint import Checkpoint
from tpu_mlir.transforms.lower_to_tpu import LowerToTpu
from tpu_mlir.transforms.mode import MODES, mode_named


def lowering_for(checkpoint: Checkpoint, chip: str, mode: str, group_size: int, symmetric: bool) -> LowerToTpu:
    """Return the lowering of a checkpoint.

    Args:
        checkpoint: floats, or quantised already.
        chip: its name.
        mode: a mode's name, or `auto`: what the checkpoint is stored in.
        group_size: for float weights that the mode packs.
        symmetric: likewise.

    Raises:
        BadInput: no such mode, or one of another weight width than the quantised checkpoint has.
    """
    kind = "f16" if checkpoint.config.weight_type == "float16" else "bf16"
    if checkpoint.quantised is None:
        chosen = kind if mode == "auto" else mode_named(mode).name
        return LowerToTpu(chip=chip, mode=chosen, group_size=group_size, symmetric=symmetric)
    widths = sorted({layer.bits for layer in checkpoint.quantised.layers.values()})
    if len(widths) != 1:
        raise BadInput(
            f"{checkpoint.path} mixes layers of {' and '.join(map(str, widths))} bits, which is not supported."
        )
    chosen = f"w{widths[0]}{kind}" if mode == "auto" else mode_named(mode).name
    if MODES[chosen].weight_bits != widths[0]:
        raise BadInput(
            f"{checkpoint.path} is quantised ({checkpoint.quantised.name}), mode {mode} is not.",
            f"Leave --quant at auto, or take w{widths[0]}f16 or w{widths[0]}bf16.",
        )
    return LowerToTpu(chip=chip, mode=chosen, pack_floats=False)
