"""What the compiler must know of a chip, and the chips there are."""

from types import MappingProxyType

from core.errors import BadInput
from core.records import Record
from tpu_mlir.dialects.types import DType


class Chip(Record):
    """Machine parameters of one chip. Local memory is divided into lanes, each lane into banks of equal size."""

    name: str
    cores: int
    lanes: int
    """Per core."""
    lmem_bytes: int
    """Local memory of one lane."""
    banks: int
    vector_bytes: int
    """What one lane's vector unit handles in a cycle."""
    formats: tuple[DType, ...]
    """Element types that the matrix unit multiplies."""
    weight_bits: tuple[int, ...]
    """Widths of packed integer weights that can be unpacked for float activations."""

    @property
    def mask_tile(self) -> int:
        """Side of the small causal triangle that attention reuses."""
        return 4 * self.lanes


_FORMATS = (DType.F32, DType.F16, DType.BF16, DType.SI8)

CHIPS = MappingProxyType(
    {
        chip.name: chip
        for chip in (
            Chip(
                name="bm1684x",
                cores=1,
                lanes=64,
                lmem_bytes=256 << 10,
                banks=16,
                vector_bytes=64,
                formats=_FORMATS,
                weight_bits=(4, 8),
            ),
            Chip(
                name="bm1688",
                cores=2,
                lanes=32,
                lmem_bytes=128 << 10,
                banks=16,
                vector_bytes=16,
                formats=_FORMATS,
                weight_bits=(4, 8),
            ),
            Chip(
                name="cv186x",
                cores=1,
                lanes=32,
                lmem_bytes=128 << 10,
                banks=16,
                vector_bytes=16,
                formats=_FORMATS,
                weight_bits=(4, 8),
            ),
            Chip(
                name="bm1690",
                cores=8,
                lanes=64,
                lmem_bytes=256 << 10,
                banks=16,
                vector_bytes=64,
                formats=_FORMATS,
                weight_bits=(4, 8),
            ),
        )
    }
)
"""The chips by name."""


def chip_named(name: str) -> Chip:
    """Return a chip.

    Raises:
        BadInput: there is none of that name.
    """
    if name not in CHIPS:
        raise BadInput(f"There is no chip {name!r}.", f"There are {', '.join(CHIPS)}.")
    return CHIPS[name]
