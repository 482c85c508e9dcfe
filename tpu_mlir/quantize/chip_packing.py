"""Quantised weights as the chip's dequantising kernels read them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from core.errors import BadInput
from tpu_mlir.quantize.group_quantised import GroupQuantised


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ChipWeight:
    """A weight in the chip's layout: unsigned bytes along the inputs, one scale and one zero point a group."""

    layer: str
    weight: npt.NDArray[np.uint8]
    """4 bits: [outputs, inputs / 2], input 2i in the low half of byte i. 8 bits: [outputs, inputs]."""
    scales: npt.NDArray[Any]
    """[outputs, groups]."""
    zeros: npt.NDArray[np.uint8]
    """[outputs, groups], one a byte."""
    bits: int
    group_size: int
    permutation: npt.NDArray[np.int32] | None
    """Input feature of each column, None when in order: the kernel's input must be gathered with it."""

    @property
    def nbytes(self) -> int:
        """Bytes of weight, scales and zero points."""
        return self.weight.nbytes + self.scales.nbytes + self.zeros.nbytes


def pack_for_chip(weight: GroupQuantised) -> ChipWeight:
    """Return the weight in the chip's layout.

    Raises:
        BadInput: 4-bit codes of an odd number of inputs do not fill whole bytes.
    """
    if weight.bits == 4 and weight.shape[1] % 2:
        raise BadInput(f"{weight.layer}: {weight.shape[1]} inputs of 4 bits do not fill whole bytes.", "Use 8 bits.")
    packed = weight.codes if weight.bits == 8 else weight.codes[:, 0::2] | (weight.codes[:, 1::2] << np.uint8(4))
    return ChipWeight(
        layer=weight.layer,
        weight=np.ascontiguousarray(packed),
        scales=np.ascontiguousarray(weight.scales),
        zeros=np.ascontiguousarray(weight.zeros),
        bits=weight.bits,
        group_size=weight.group_size,
        permutation=weight.permutation,
    )


def unpack_from_chip(packed: ChipWeight) -> GroupQuantised:
    """Return the canonical form; the inverse of pack_for_chip."""
    codes = packed.weight
    if packed.bits == 4:
        codes = np.empty((packed.weight.shape[0], 2 * packed.weight.shape[1]), dtype=np.uint8)
        codes[:, 0::2] = packed.weight & np.uint8(15)
        codes[:, 1::2] = packed.weight >> np.uint8(4)
    return GroupQuantised(
        layer=packed.layer,
        codes=codes,
        scales=packed.scales,
        zeros=packed.zeros,
        bits=packed.bits,
        group_size=packed.group_size,
        permutation=packed.permutation,
    )
