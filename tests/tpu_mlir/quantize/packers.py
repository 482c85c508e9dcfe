"""Writers of packed weights, in plain loops that share nothing with the readers under test."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def pack_rows(codes: npt.NDArray[np.integer], bits: int, order: Sequence[int] | None = None) -> npt.NDArray[np.int32]:
    """Pack along the last axis, lowest bits first; a short last word is filled with zeros."""
    per_word = 32 // bits
    rows, columns = codes.shape
    words = -(-columns // per_word)
    packed = np.zeros((rows, words), dtype=np.int64)
    for row in range(rows):
        for word in range(words):
            value = 0
            for slot in range(per_word):
                column = word * per_word + (order[slot] if order else slot)
                if column < columns:
                    value |= int(codes[row, column]) << (slot * bits)
            packed[row, word] = value - (1 << 32) if value >= 1 << 31 else value
    return packed.astype(np.int32)


def pack_columns(codes: npt.NDArray[np.integer], bits: int) -> npt.NDArray[np.int32]:
    return np.ascontiguousarray(pack_rows(codes.T, bits).T)


def gptq_layer(
    codes: npt.NDArray[np.integer],
    zeros: npt.NDArray[np.integer],
    scales: npt.NDArray[np.floating],
    bits: int,
    version: int = 1,
    g_idx: npt.NDArray[np.integer] | None = None,
) -> dict[str, npt.NDArray]:
    """Tensors of a GPTQ layer from codes [inputs, outputs], zeros and scales [groups, outputs]."""
    stored = (zeros.astype(np.int64) - 1) % (1 << bits) if version == 1 else zeros
    layer = {
        "qweight": pack_columns(codes, bits),
        "qzeros": pack_rows(stored, bits),
        "scales": scales.astype(np.float16),
    }
    return layer if g_idx is None else {**layer, "g_idx": g_idx.astype(np.int32)}


def awq_layer(
    codes: npt.NDArray[np.integer], zeros: npt.NDArray[np.integer], scales: npt.NDArray[np.floating], bits: int = 4
) -> dict[str, npt.NDArray]:
    order = AWQ_ORDER if bits == 4 else None
    return {
        "qweight": pack_rows(codes, bits, order),
        "qzeros": pack_rows(zeros, bits, order),
        "scales": scales.astype(np.float16),
    }


def compressed_tensors_layer(
    codes: npt.NDArray[np.integer],
    zeros: npt.NDArray[np.integer] | None,
    scales: npt.NDArray[np.generic],
    bits: int,
    packed_zeros: bool = True,
    g_idx: npt.NDArray[np.integer] | None = None,
) -> dict[str, npt.NDArray]:
    """Tensors of a pack-quantized layer from codes [outputs, inputs], zeros and scales [outputs, groups]."""
    layer: dict[str, npt.NDArray] = {
        "weight_packed": pack_rows(codes, bits),
        "weight_scale": np.ascontiguousarray(scales),
        "weight_shape": np.array(codes.shape, dtype=np.int64),
    }
    if zeros is not None and packed_zeros:
        layer["weight_zero_point"] = pack_columns(zeros, bits)
    elif zeros is not None:
        signed = zeros.astype(np.int16) - (1 << (bits - 1))
        layer["weight_zero_point"] = np.ascontiguousarray(signed.astype(np.int8))
    return layer if g_idx is None else {**layer, "weight_g_idx": g_idx.astype(np.int32)}


def random_layer(
    inputs: int, outputs: int, bits: int, group_size: int, seed: int, symmetric: bool = False
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], npt.NDArray[np.float16]]:
    """Codes [inputs, outputs], zeros and scales [groups, outputs] of normally distributed weights."""
    rng = np.random.default_rng(seed)
    groups = inputs // group_size
    weight = rng.normal(size=(groups, group_size, outputs))
    top = (1 << bits) - 1
    if symmetric:
        scales = (np.abs(weight).max(axis=1) / (top // 2)).astype(np.float16)
        zeros = np.full(scales.shape, (top + 1) // 2)
    else:
        low, high = weight.min(axis=1), weight.max(axis=1)
        scales = ((high - low) / top).astype(np.float16)
        zeros = np.clip(np.rint(-low / scales), 1, top)
    codes = np.clip(np.rint(weight / scales[:, None]) + zeros[:, None], 0, top)
    return codes.reshape(inputs, outputs).astype(np.uint8), zeros.astype(np.uint8), scales


def under(layer: str, parts: dict[str, npt.NDArray]) -> dict[str, npt.NDArray]:
    return {f"{layer}.{name}": part for name, part in parts.items()}
