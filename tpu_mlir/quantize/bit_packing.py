"""Small integers inside 32-bit words."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]
Codes = npt.NDArray[np.uint8]


def unpack_words(words: Int32s, bits: int, axis: int, order: Sequence[int] | None = None) -> Codes:
    """Return the codes that a matrix of int32 words holds, lowest bits first.

    Args:
        words: a matrix; the sign bit is an ordinary bit.
        bits: width of a code, a divisor of 32 that is at most 8.
        axis: the axis along which one word holds 32 / bits neighbours.
        order: slot i of a word holds neighbour ``order[i]``; None: slot i holds neighbour i.

    Returns:
        The codes, with 32 / bits times as many entries along the axis.
    """
    per_word = 32 // bits
    unsigned = words.view(np.uint32)
    shape = list(words.shape)
    shape[axis] *= per_word
    codes = np.empty(shape, dtype=np.uint8)
    mask = np.uint32((1 << bits) - 1)
    places = range(per_word) if order is None else order
    for slot, place in enumerate(places):
        where = (
            (slice(place, None, per_word), slice(None)) if axis == 0 else (slice(None), slice(place, None, per_word))
        )
        codes[where] = (unsigned >> np.uint32(slot * bits)) & mask
    return codes
