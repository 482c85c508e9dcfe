"""Reading the ``quantization_config`` of a config.json: claims, to be compared with the tensors."""

from collections.abc import Mapping
from typing import Any, TypeVar

from tpu_mlir.quantize.formats import Declared, Packing, ZeroRule

Claim = TypeVar("Claim")
REFUSED_METHODS = {
    "fp8": "FP8",
    "fbgemm_fp8": "FP8",
    "finegrained_fp8": "FP8",
    "bitsandbytes": "bitsandbytes",
    "hqq": "HQQ",
    "aqlm": "AQLM",
    "quip": "QuIP#",
    "spqr": "SpQR",
    "vptq": "VPTQ",
    "eetq": "EETQ",
    "quanto": "Quanto",
    "torchao": "torchao",
    "mxfp4": "MXFP4",
    "higgs": "HIGGS",
    "bitnet": "BitNet",
}
SUPPORTED = "Supported are GPTQ, AWQ (gemm), AutoRound and compressed-tensors (pack-quantized), 4 or 8 bits."

# AutoRound's packings by name. The bare name and the gptqmodel one keep zero points as they are.
AUTO_ROUND: dict[str, tuple[Packing, ZeroRule]] = {
    "auto_round:auto_gptq": ("gptq", "minus_one"),
    "auto_round:gptq": ("gptq", "minus_one"),
    "auto_round:exllamav2": ("gptq", "minus_one"),
    "auto_round": ("gptq", "plain"),
    "auto_round:gptqmodel": ("gptq", "plain"),
    "auto_round:auto_awq": ("awq_gemm", "plain"),
    "auto_round:awq": ("awq_gemm", "plain"),
    "auto_round:llm_compressor": ("compressed_tensors", "plain"),
}


def read_declared(config: Mapping[str, Any]) -> Declared:
    """Return what a ``quantization_config`` claims; a value of the wrong type claims nothing."""
    method = str(config.get("quant_method", "")).lower()
    if method in ("compressed-tensors", "compressed_tensors"):
        return _compressed_tensors(method, config)
    packing: Packing | None = None
    rule: ZeroRule | None = None
    refused = REFUSED_METHODS.get(method)
    if method == "gptq":
        packing = "gptq"
        rule = "plain" if config.get("checkpoint_format") == "gptq_v2" else "minus_one"
    elif method == "awq":
        packing, rule = "awq_gemm", "plain"
        version = str(config.get("version", "gemm")).lower()
        refused = None if version == "gemm" else f"AWQ {version}"
    elif method in ("auto-round", "auto_round", "intel/auto-round"):
        named = str(config.get("packing_format") or config.get("backend") or "").replace("autoround", "auto_round")
        packing, rule = AUTO_ROUND.get(named, (None, None))
    symmetric = _claim(config, bool, "sym")
    with_zero_points = _claim(config, bool, "zero_point")
    if symmetric is None and with_zero_points is not None:
        symmetric = not with_zero_points
    return Declared(
        method=method,
        packing=packing,
        bits=_claim(config, int, "bits", "w_bit"),
        group_size=_claim(config, int, "group_size", "q_group_size"),
        symmetric=symmetric,
        act_order=_claim(config, bool, "desc_act"),
        zero_rule=rule,
        refused=refused,
    )


def _compressed_tensors(method: str, config: Mapping[str, Any]) -> Declared:
    groups = (_claim(config, dict, "config_groups") or {}).values()
    schemes = [_claim(group, dict, "weights") or {} for group in groups if isinstance(group, dict)]
    form = _claim(config, str, "format")
    refused = None if form in (None, "pack-quantized", "mixed-precision") else f"compressed-tensors {form}"
    if any(scheme.get("type") == "float" for scheme in schemes):
        refused = "FP8 or FP4 (compressed-tensors)"
    only = schemes[0] if len(schemes) == 1 else {}
    order = _claim(only, str, "actorder")
    return Declared(
        method=method,
        packing="compressed_tensors",
        bits=_claim(only, int, "num_bits"),
        group_size=-1 if only.get("strategy") in ("channel", "tensor") else _claim(only, int, "group_size"),
        symmetric=_claim(only, bool, "symmetric"),
        act_order=None if order is None else order == "group",
        zero_rule="plain",
        refused=refused,
    )


def _claim(config: Mapping[str, Any], kind: type[Claim], *names: str) -> Claim | None:
    """Return the first value of that very type: True is no integer here."""
    return next((config[name] for name in names if type(config.get(name)) is kind), None)
