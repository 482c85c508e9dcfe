"""The number formats that a model is lowered to."""

from dataclasses import dataclass
from types import MappingProxyType

from core.errors import BadInput
from tpu_mlir.dialects.types import DType


@dataclass(frozen=True, kw_only=True, slots=True)
class Mode:
    """Activations in one float type; weights of linear layers in the same, or packed to `weight_bits`."""

    name: str
    activations: DType
    weight_bits: int | None = None


MODES = MappingProxyType(
    {
        mode.name: mode
        for mode in (
            Mode(name="f32", activations=DType.F32),
            Mode(name="f16", activations=DType.F16),
            Mode(name="bf16", activations=DType.BF16),
            Mode(name="w8f16", activations=DType.F16, weight_bits=8),
            Mode(name="w8bf16", activations=DType.BF16, weight_bits=8),
            Mode(name="w4f16", activations=DType.F16, weight_bits=4),
            Mode(name="w4bf16", activations=DType.BF16, weight_bits=4),
        )
    }
)
"""The modes by name."""


def mode_named(name: str) -> Mode:
    """Return a mode.

    Raises:
        BadInput: there is none of that name.
    """
    if name not in MODES:
        raise BadInput(f"There is no mode {name!r}.", f"There are {', '.join(MODES)}.")
    return MODES[name]
