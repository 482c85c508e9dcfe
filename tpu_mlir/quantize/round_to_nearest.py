"""Our own weight quantisation: group-wise rounding to nearest, 4 or 8 bits."""

from typing import Any

import numpy as np
import numpy.typing as npt

from core.errors import BadInput
from tpu_mlir.quantize.casts import NUMPY_TYPES, FloatType, cast
from tpu_mlir.quantize.group_quantised import GroupQuantised, group_count

ROWS_AT_ONCE = 512
"""Outputs quantised at a time: bounds the float32 copies, whatever the size of the layer."""


def quantise_groups(
    layer: str,
    weight: npt.NDArray[Any],
    *,
    bits: int,
    group_size: int,
    symmetric: bool,
    scale_type: FloatType = "f32",
) -> GroupQuantised:
    """Return the weight rounded to the nearest code in each group of inputs.

    A value differs from its dequantised one by at most half its group's scale. Scales are rounded up to ``scale_type``
    so that the ends of a group's range never clip. Symmetric groups use codes 1 to 2**bits - 1 about the middle;
    asymmetric ones span from the least to the greatest value, zero included. A group of zeros has scale 1.

    Args:
        layer: for messages.
        weight: [outputs, inputs] in any float type; may be memory mapped.
        bits: 4 or 8.
        group_size: inputs a group; -1: one group a row.
        symmetric: zero point fixed at the middle.
        scale_type: type of the scales.

    Raises:
        BadInput: the group size does not divide the inputs, or the weight has infinities, NaN, or a range that
            ``scale_type`` cannot hold; names the layer.
    """
    if bits not in (4, 8):
        raise BadInput(f"{layer}: {bits}-bit weights are not supported.", "Use 4 or 8 bits.")
    if weight.ndim != 2:
        raise BadInput(f"{layer}: a weight of shape {weight.shape} is not a matrix.")
    outputs, inputs = weight.shape
    size = inputs if group_size == -1 else group_size
    groups = group_count(layer, inputs, size)
    codes = np.empty((outputs, inputs), dtype=np.uint8)
    scales = np.empty((outputs, groups), dtype=NUMPY_TYPES[scale_type])
    zeros = np.empty((outputs, groups), dtype=np.uint8)
    for start in range(0, outputs, ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        values = weight[rows].astype(np.float32).reshape(-1, groups, size)
        if not np.isfinite(values).all():
            raise BadInput(f"{layer}: the weight has infinities or NaN.", "The checkpoint is damaged.")
        scale, zero = _scales_and_zeros(layer, values, bits, symmetric, scale_type)
        scales[rows], zeros[rows] = scale, zero
        values /= scale.astype(np.float32)[:, :, None]
        np.rint(values, out=values)
        values += zero.astype(np.float32)[:, :, None]
        np.clip(values, 0, (1 << bits) - 1, out=values)
        codes[rows] = values.reshape(-1, inputs)
    return GroupQuantised(layer=layer, codes=codes, scales=scales, zeros=zeros, bits=bits, group_size=size)


def _scales_and_zeros(
    layer: str, values: npt.NDArray[np.float32], bits: int, symmetric: bool, scale_type: FloatType
) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    wide = values.astype(np.float64)
    low, high = np.minimum(wide.min(axis=2), 0.0), np.maximum(wide.max(axis=2), 0.0)
    middle, top = 1 << (bits - 1), (1 << bits) - 1
    exact = np.maximum(-low, high) / (middle - 1) if symmetric else (high - low) / top
    exact[exact == 0] = 1.0
    scale = _round_up(layer, exact, scale_type)
    if symmetric:
        return scale, np.full(scale.shape, middle, dtype=np.uint8)
    zero = np.clip(np.rint(-low / scale.astype(np.float64)), 0, top)
    return scale, zero.astype(np.uint8)


def _round_up(layer: str, exact: npt.NDArray[np.float64], scale_type: FloatType) -> npt.NDArray[Any]:
    nearest = cast(f"{layer} scales", exact, scale_type)
    below = nearest.astype(np.float64) < exact
    up = np.nextafter(nearest, np.asarray(np.inf, dtype=nearest.dtype))
    return np.where(below, up, nearest).astype(nearest.dtype)
