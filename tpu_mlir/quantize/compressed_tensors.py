"""The pack-quantized format of compressed-tensors."""

import numpy as np
import numpy.typing as npt

from core.errors import BadInput
from tpu_mlir.quantize.bit_packing import Codes, Int32s, unpack_words
from tpu_mlir.quantize.group_quantised import GroupQuantised, permutation_of


def decode_compressed_tensors(
    layer: str,
    *,
    packed: Int32s,
    scale: npt.NDArray[np.generic],
    zero_point: npt.NDArray[np.generic] | None,
    g_idx: npt.NDArray[np.int32] | None,
    inputs: int,
    bits: int,
    group_size: int,
) -> GroupQuantised:
    """Return the canonical form of a pack-quantized layer.

    Values are signed in this format and stored with half the range added, so codes and zero points are unsigned here
    without any further change.

    Args:
        layer: for messages.
        packed: [outputs, ceil(inputs * bits / 32)], inputs packed along the last axis.
        scale: [outputs, groups], or one value for all.
        zero_point: int32 packed along the outputs [ceil(outputs * bits / 32), groups], or int8 [outputs, groups] (older
            writers); None: symmetric.
        g_idx: group of each input; None, empty or all -1: in order.
        inputs: inputs without padding.
        bits: 4 or 8.
        group_size: inputs a group.

    Raises:
        BadInput: the parts do not fit each other; names the layer.
    """
    outputs, groups = packed.shape[0], inputs // group_size
    scales = np.ascontiguousarray(np.broadcast_to(scale.reshape(1, 1) if scale.size == 1 else scale, (outputs, groups)))
    codes = unpack_words(np.ascontiguousarray(packed), bits, axis=1)[:, :inputs]
    permutation = None
    if g_idx is not None and g_idx.size and not (g_idx == -1).all():
        permutation = permutation_of(layer, np.asarray(g_idx), groups)
    if permutation is not None:
        codes = codes[:, permutation]
    return GroupQuantised(
        layer=layer,
        codes=np.ascontiguousarray(codes),
        scales=scales,
        zeros=read_zeros(layer, zero_point, (outputs, groups), bits),
        bits=bits,
        group_size=group_size,
        permutation=permutation,
    )


def read_zeros(layer: str, zero_point: npt.NDArray[np.generic] | None, shape: tuple[int, int], bits: int) -> Codes:
    """Return zero points [outputs, groups], the middle of the range when there are none.

    Raises:
        BadInput: they have a wrong shape or type; names the tensor.
    """
    middle = 1 << (bits - 1)
    if zero_point is None:
        return np.full(shape, middle, dtype=np.uint8)
    words = -(-shape[0] * bits // 32)
    if zero_point.dtype == np.int32 and zero_point.shape == (words, shape[1]):
        zeros = unpack_words(np.ascontiguousarray(zero_point).view(np.int32), bits, axis=0)[: shape[0]]
        return np.ascontiguousarray(zeros)
    if zero_point.dtype == np.int8 and zero_point.shape in (shape, (1,)):
        return np.broadcast_to(zero_point.astype(np.int16) + middle, shape).astype(np.uint8)
    raise BadInput(
        f"{layer}.weight_zero_point is {zero_point.dtype} {zero_point.shape}, "
        f"expected int32 {(words, shape[1])} (packed) or int8 {shape}."
    )
