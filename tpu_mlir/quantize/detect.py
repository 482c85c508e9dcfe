"""Telling how a checkpoint is quantised from its tensors; what its config claims is only compared."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from core.errors import BadInput
from tpu_mlir.quantize.compressed_tensors import read_zeros
from tpu_mlir.quantize.declared import SUPPORTED
from tpu_mlir.quantize.findings import Finding
from tpu_mlir.quantize.formats import Declared, LayerFormat, QuantisedFormat, ZeroRule
from tpu_mlir.quantize.gptq import stored_zeros
from tpu_mlir.quantize.group_quantised import group_count
from tpu_mlir.quantize.zero_rule import decide_zero_rule

Tensors = Mapping[str, npt.NDArray[Any]]
"""Tensor names to arrays; arrays should be memory mapped, only shapes and small parts are read here."""

FOREIGN_SUFFIXES = {
    ".weight.absmax": "bitsandbytes",
    ".weight.quant_map": "bitsandbytes",
    ".SCB": "bitsandbytes int8",
    ".W_q": "HQQ",
    ".codebooks": "AQLM",
    ".weight_global_scale": "NVFP4",
    ".weight_scale_inv": "FP8 with block scales",
    ".lora_A.weight": "LoRA",
}


def refuse_foreign(tensors: Tensors) -> None:
    """Refuse formats that are not supported, by name.

    Raises:
        BadInput: names the tensor and its format.
    """
    for name in tensors:
        for suffix, method in FOREIGN_SUFFIXES.items():
            if name.endswith(suffix):
                raise BadInput(f"{name}: {method} checkpoints are not supported.", SUPPORTED)
        if tensors[name].dtype.name.startswith("float8"):
            raise BadInput(f"{name} is {tensors[name].dtype.name}: FP8 checkpoints are not supported.", SUPPORTED)
        if name.endswith(".weight") and tensors[name].dtype == np.int8:
            raise BadInput(f"{name} is int8 and not packed: int-quantized checkpoints are not supported.", SUPPORTED)


def detect(tensors: Tensors, declared: Declared | None) -> QuantisedFormat | None:
    """Return how the checkpoint's linear layers are quantised, or None when none is.

    Shapes tell packing, bits and group size of every layer, values tell the rule for zero points.

    Args:
        tensors: all tensors of the checkpoint.
        declared: what its config claims, None when it claims nothing.

    Raises:
        BadInput: a layer's packing or bits are not supported, a tensor is missing, or shapes do not fit; names the
            layer.
    """
    refuse_foreign(tensors)
    layers: dict[str, LayerFormat] = {}
    for name in tensors:
        if name.endswith(".qweight"):
            layer = name.removesuffix(".qweight")
            layers[layer] = _words_along_inputs_or_outputs(layer, tensors)
        elif name.endswith(".weight_packed"):
            layer = name.removesuffix(".weight_packed")
            layers[layer] = _pack_quantised(layer, tensors)
    if not layers:
        if declared is not None:
            claim = declared.refused or f"quant_method {declared.method!r}"
            raise BadInput(f"The config says {claim}, but no tensor is in a format that is supported.", SUPPORTED)
        return None
    if declared is not None and declared.group_size is not None and declared.group_size > 0:
        for layer_format in layers.values():
            if -(-layer_format.inputs // declared.group_size) == layer_format.inputs // layer_format.group_size:
                group_count(layer_format.layer, layer_format.inputs, declared.group_size)
    gptq = [layer for layer in layers.values() if layer.packing == "gptq"]
    rule: ZeroRule = "plain"
    findings: list[Finding] = []
    if gptq:
        rule, about_rule = decide_zero_rule(gptq, tensors, declared.zero_rule if declared else None)
        findings += about_rule
    symmetric = all(_symmetric(layer, tensors, rule) for layer in layers.values())
    found = QuantisedFormat(layers=layers, zero_rule=rule, symmetric=symmetric)
    if declared is not None:
        findings += _contradictions(declared, found, tensors)
    return found.model_copy(update={"findings": tuple(findings)})


def _words_along_inputs_or_outputs(layer: str, tensors: Tensors) -> LayerFormat:
    qweight = _part(layer, "qweight", tensors)
    qzeros, scales = _part(layer, "qzeros", tensors), _part(layer, "scales", tensors)
    for name, part in (("qweight", qweight), ("qzeros", qzeros)):
        if part.dtype != np.int32 or part.ndim != 2:
            raise BadInput(f"{layer}.{name} is {part.dtype} {part.shape}, expected a matrix of int32.", SUPPORTED)
    shapes = f"qweight {qweight.shape}, qzeros {qzeros.shape}, scales {scales.shape}"
    if scales.ndim != 2 or not scales.size or scales.shape[0] != qzeros.shape[0]:
        raise BadInput(f"{layer}: its packing is not known ({shapes}).", SUPPORTED)
    groups, outputs = scales.shape
    if qweight.shape[1] == outputs:  # words hold inputs: GPTQ
        bits = _bits(layer, qzeros.shape[1] * 32, outputs, shapes)
        inputs = qweight.shape[0] * 32 // bits
        packing = "gptq"
    elif qweight.shape[1] == qzeros.shape[1]:  # words hold outputs: AWQ
        bits = _bits(layer, qweight.shape[1] * 32, outputs, shapes)
        if bits != 4:
            raise BadInput(f"{layer}: {bits}-bit AWQ is not supported.", "AWQ gemm has 4 bits.")
        inputs = qweight.shape[0]
        packing = "awq_gemm"
    else:
        raise BadInput(f"{layer}: its packing is not known ({shapes}); AWQ gemv, Marlin?", SUPPORTED)
    _check_g_idx(f"{layer}.g_idx", inputs, tensors)
    return _layer_format(layer, packing, bits, inputs, outputs, groups)


def _pack_quantised(layer: str, tensors: Tensors) -> LayerFormat:
    packed, scale = _part(layer, "weight_packed", tensors), _part(layer, "weight_scale", tensors)
    if packed.dtype != np.int32 or packed.ndim != 2:
        raise BadInput(
            f"{layer}.weight_packed is {packed.dtype} {packed.shape}, expected a matrix of int32.", SUPPORTED
        )
    shape = [int(n) for n in _part(layer, "weight_shape", tensors).reshape(-1)]
    if len(shape) != 2 or shape[0] != packed.shape[0]:
        raise BadInput(f"{layer}: weight_shape says {shape}, but weight_packed has shape {packed.shape}.")
    outputs, inputs = shape
    if scale.size != 1 and (scale.ndim != 2 or scale.shape[0] != outputs):
        raise BadInput(f"{layer}.weight_scale has shape {scale.shape}, expected ({outputs}, groups) or one value.")
    fitting = [bits for bits in range(1, 9) if -(-inputs * bits // 32) == packed.shape[1]]
    shapes = f"weight_packed {packed.shape}, weight_shape {shape}"
    if not fitting:
        raise BadInput(f"{layer}: no width of 1 to 8 bits fits {shapes}.", "The checkpoint is damaged.")
    usable = [bits for bits in fitting if bits in (4, 8)]
    bits = usable[0] if usable else _bits(layer, fitting[0], 1, shapes)
    groups = 1 if scale.size == 1 else scale.shape[1]
    _check_g_idx(f"{layer}.weight_g_idx", inputs, tensors)
    return _layer_format(layer, "compressed_tensors", bits, inputs, outputs, groups)


def _check_g_idx(name: str, inputs: int, tensors: Tensors) -> None:
    if name not in tensors:
        return
    g_idx = tensors[name]
    if g_idx.size and (g_idx.shape != (inputs,) or g_idx.dtype.kind != "i"):
        raise BadInput(f"{name} is {g_idx.dtype} {g_idx.shape}, expected {inputs} integers.", "It is damaged.")


def _layer_format(layer: str, packing: Any, bits: int, inputs: int, outputs: int, groups: int) -> LayerFormat:
    if groups < 1 or inputs % groups:
        raise BadInput(
            f"{layer}: its {inputs} inputs do not divide into the {groups} groups that have scales.",
            "Quantise again with a group size that divides the inputs.",
        )
    size = inputs // groups
    if groups > 1 and size % 8:
        raise BadInput(
            f"{layer}: {inputs} inputs over {groups} groups make groups of {size}, which no quantiser writes.",
            "Its group size does not divide its inputs: quantise again with one that does.",
        )
    return LayerFormat(layer=layer, packing=packing, bits=bits, group_size=size, inputs=inputs, outputs=outputs)


def _bits(layer: str, stored_bits: int, values: int, shapes: str) -> int:
    bits, rest = divmod(stored_bits, values)
    if rest or not 1 <= bits <= 8:
        raise BadInput(f"{layer}: its packing is not known ({shapes}).", SUPPORTED)
    if bits not in (4, 8):
        raise BadInput(f"{layer}: {bits}-bit weights are not supported.", "Quantise again with 4 or 8 bits.")
    return bits


def _part(layer: str, name: str, tensors: Tensors) -> npt.NDArray[Any]:
    full = f"{layer}.{name}"
    if full not in tensors:
        raise BadInput(
            f"{full} is missing, but the layer has other quantised tensors.", "The checkpoint is incomplete."
        )
    return tensors[full]


def _symmetric(layer: LayerFormat, tensors: Tensors, rule: ZeroRule) -> bool:
    middle = 1 << (layer.bits - 1)
    if layer.packing == "compressed_tensors":
        zero_point = tensors.get(f"{layer.layer}.weight_zero_point")
        shape = (layer.outputs, layer.inputs // layer.group_size)
        return bool((read_zeros(layer.layer, zero_point, shape, layer.bits) == middle).all())
    stored = stored_zeros(_part(layer.layer, "qzeros", tensors), layer.bits)
    expected = middle - 1 if layer.packing == "gptq" and rule == "minus_one" else middle
    return bool((stored == expected).all())


def _contradictions(declared: Declared, found: QuantisedFormat, tensors: Tensors) -> list[Finding]:
    findings = []

    def contradict(subject: str, said: object, really: object) -> None:
        claim = f"The config (quant_method {declared.method!r}) says {said}"
        message = f"{claim}, the tensors show {really}: the tensors are used."
        findings.append(Finding(subject=subject, message=message))

    if declared.refused is not None:
        contradict("quantization_config", declared.refused, found.name)
    if declared.packing is not None:
        others = [layer for layer in found.layers.values() if layer.packing != declared.packing]
        if others:
            contradict(others[0].layer, f"packing {declared.packing}", f"{others[0].packing} in {len(others)} layers")
    if declared.bits is not None:
        others = [layer for layer in found.layers.values() if layer.bits != declared.bits]
        if others:
            contradict(others[0].layer, f"{declared.bits} bits", f"{others[0].bits} bits in {len(others)} layers")
    if declared.group_size is not None:
        others = [
            layer
            for layer in found.layers.values()
            if layer.group_size != (layer.inputs if declared.group_size == -1 else declared.group_size)
        ]
        if others:
            contradict(
                others[0].layer,
                f"group size {declared.group_size}",
                f"{others[0].group_size} of {others[0].inputs} inputs in {len(others)} layers",
            )
    if declared.symmetric and not found.symmetric:
        contradict("zero points", "symmetric", "zero points that differ from the middle")
    if declared.act_order is False:
        moved = [layer for layer in found.layers.values() if _moved(layer, tensors)]
        if moved:
            contradict(moved[0].layer, "no act-order", f"inputs out of group order (g_idx) in {len(moved)} layers")
    return findings


def _moved(layer: LayerFormat, tensors: Tensors) -> bool:
    for name in (f"{layer.layer}.g_idx", f"{layer.layer}.weight_g_idx"):
        if name in tensors:
            return bool((np.diff(tensors[name]) < 0).any())
    return False
