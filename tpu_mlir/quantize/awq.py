"""AWQ's gemm packing; AutoRound's auto_awq packing is the same."""

import numpy as np
import numpy.typing as npt

from tpu_mlir.quantize.bit_packing import Int32s, unpack_words
from tpu_mlir.quantize.group_quantised import GroupQuantised

NIBBLE_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
"""Output, of the eight in a word, that slot i holds."""


def decode_awq(
    layer: str, *, qweight: Int32s, qzeros: Int32s, scales: npt.NDArray[np.generic], group_size: int
) -> GroupQuantised:
    """Return the canonical form of a 4-bit AWQ gemm layer.

    Args:
        layer: for messages.
        qweight: [inputs, outputs / 8].
        qzeros: [groups, outputs / 8], zero points as they are.
        scales: [groups, outputs].
        group_size: inputs a group.

    Raises:
        BadInput: the parts do not fit each other; names the layer.
    """
    codes = unpack_words(np.ascontiguousarray(qweight), 4, axis=1, order=NIBBLE_ORDER)
    zeros = unpack_words(np.ascontiguousarray(qzeros), 4, axis=1, order=NIBBLE_ORDER)
    return GroupQuantised(
        layer=layer,
        codes=np.ascontiguousarray(codes.T),
        scales=np.ascontiguousarray(scales.T),
        zeros=np.ascontiguousarray(zeros.T),
        bits=4,
        group_size=group_size,
    )
