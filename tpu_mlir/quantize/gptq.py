"""GPTQ packing, versions 1 and 2, with act-order; AutoRound's auto_gptq packing is the same."""

import numpy as np
import numpy.typing as npt

from tpu_mlir.quantize.bit_packing import Codes, Int32s, unpack_words
from tpu_mlir.quantize.formats import ZeroRule
from tpu_mlir.quantize.group_quantised import GroupQuantised, permutation_of


def stored_zeros(qzeros: Int32s, bits: int) -> Codes:
    """Return zero points [groups, outputs] as stored, before the rule of the version."""
    return unpack_words(np.ascontiguousarray(qzeros), bits, axis=1)


def zero_points(stored: Codes, bits: int, rule: ZeroRule) -> Codes:
    """Return real zero points.

    Version 1 stores a zero point less one. All ones is then minus one, zero point 0: a stored 16 would not fit 4
    bits, so no quantiser can have meant it, although some readers compute it.
    """
    if rule == "plain":
        return stored
    return (stored + np.uint8(1)) & np.uint8((1 << bits) - 1)


def decode_gptq(
    layer: str,
    *,
    qweight: Int32s,
    qzeros: Int32s,
    scales: npt.NDArray[np.generic],
    g_idx: npt.NDArray[np.int32] | None,
    bits: int,
    group_size: int,
    rule: ZeroRule,
) -> GroupQuantised:
    """Return the canonical form of a GPTQ layer.

    Args:
        layer: for messages.
        qweight: [inputs * bits / 32, outputs], inputs packed along the first axis.
        qzeros: [groups, outputs * bits / 32].
        scales: [groups, outputs].
        g_idx: group of each input; None or empty: in order.
        bits: 4 or 8.
        group_size: inputs a group.
        rule: how zero points are stored.

    Raises:
        BadInput: the parts do not fit each other; names the layer.
    """
    codes = unpack_words(np.ascontiguousarray(qweight), bits, axis=0)
    permutation = None
    if g_idx is not None and g_idx.size:
        permutation = permutation_of(layer, np.asarray(g_idx), scales.shape[0])
    if permutation is not None:
        codes = codes[permutation]
    zeros = zero_points(stored_zeros(qzeros, bits), bits, rule)
    return GroupQuantised(
        layer=layer,
        codes=np.ascontiguousarray(codes.T),
        scales=np.ascontiguousarray(scales.T),
        zeros=np.ascontiguousarray(zeros.T),
        bits=bits,
        group_size=group_size,
        permutation=permutation,
    )
