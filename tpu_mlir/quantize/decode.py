"""A quantised layer of a checkpoint in canonical form."""

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from tpu_mlir.quantize.awq import decode_awq
from tpu_mlir.quantize.compressed_tensors import decode_compressed_tensors
from tpu_mlir.quantize.formats import LayerFormat, ZeroRule
from tpu_mlir.quantize.gptq import decode_gptq
from tpu_mlir.quantize.group_quantised import GroupQuantised


def decode_layer(tensors: Mapping[str, npt.NDArray[Any]], found: LayerFormat, rule: ZeroRule) -> GroupQuantised:
    """Return a layer's weight in canonical form.

    Args:
        tensors: the checkpoint's tensors.
        found: the layer's format, as detected.
        rule: how GPTQ zero points are stored, as detected.

    Raises:
        BadInput: the layer's tensors do not fit each other; names the layer.
    """
    layer = found.layer
    if found.packing == "gptq":
        return decode_gptq(
            layer,
            qweight=tensors[f"{layer}.qweight"],
            qzeros=tensors[f"{layer}.qzeros"],
            scales=tensors[f"{layer}.scales"],
            g_idx=tensors.get(f"{layer}.g_idx"),
            bits=found.bits,
            group_size=found.group_size,
            rule=rule,
        )
    if found.packing == "awq_gemm":
        return decode_awq(
            layer,
            qweight=tensors[f"{layer}.qweight"],
            qzeros=tensors[f"{layer}.qzeros"],
            scales=tensors[f"{layer}.scales"],
            group_size=found.group_size,
        )
    return decode_compressed_tensors(
        layer,
        packed=tensors[f"{layer}.weight_packed"],
        scale=tensors[f"{layer}.weight_scale"],
        zero_point=tensors.get(f"{layer}.weight_zero_point"),
        g_idx=tensors.get(f"{layer}.weight_g_idx"),
        inputs=found.inputs,
        bits=found.bits,
        group_size=found.group_size,
    )
