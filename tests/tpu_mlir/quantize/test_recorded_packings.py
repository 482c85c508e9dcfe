"""Every recorded example of packed weights is detected and read exactly."""

import json
from pathlib import Path

import numpy as np
import pytest

from tpu_mlir.quantize.declared import read_declared
from tpu_mlir.quantize.decode import decode_layer
from tpu_mlir.quantize.detect import detect

FILE = Path(__file__).parent / "data" / "gptq_awq_packing.npz"
with np.load(FILE) as recorded:
    META = json.loads(str(recorded["meta_json"]))
    ARRAYS = {name: recorded[name] for name in recorded.files if name != "meta_json"}
STORED = ("qweight", "qzeros", "scales", "g_idx")


def tensors_of(example: str) -> dict[str, np.ndarray]:
    return {f"{example}.{part}": ARRAYS[f"{example}/{part}"] for part in STORED if f"{example}/{part}" in ARRAYS}


@pytest.mark.parametrize("example", META)
def test_codes_zero_points_and_values_equal_the_record(example: str) -> None:
    tensors, meta = tensors_of(example), META[example]
    found = detect(tensors, None)
    assert found is not None
    layer = found.layers[example]
    assert (layer.bits, layer.group_size, layer.inputs, layer.outputs) == (
        meta["bits"],
        meta["group_size"],
        meta["K"],
        meta["N"],
    )
    weight = decode_layer(tensors, layer, found.zero_rule)
    order = np.arange(meta["K"]) if weight.permutation is None else weight.permutation
    assert np.array_equal(weight.codes, ARRAYS[f"{example}/q"][order].T)
    assert np.array_equal(weight.zeros, ARRAYS[f"{example}/zero_point"].T)
    assert np.array_equal(weight.dequantise(), ARRAYS[f"{example}/dequant"].T)
    assert weight.symmetric is found.symmetric is meta["sym"]
    assert (weight.permutation is not None) is meta["desc_act"]


def config_of(meta: dict) -> dict:
    name = meta["format"]
    common = {"bits": meta["bits"], "group_size": meta["group_size"], "sym": meta["sym"]}
    if name.startswith("auto_round"):
        return {"quant_method": "auto-round", "packing_format": name, **common}
    if name.startswith("awq"):
        return {"quant_method": "awq", "version": "gemm", "zero_point": True, **common}
    return {"quant_method": "gptq", "checkpoint_format": name, "desc_act": meta["desc_act"], **common}


@pytest.mark.parametrize("example", META)
def test_an_honest_config_leaves_nothing_to_report(example: str) -> None:
    meta = META[example]
    found = detect(tensors_of(example), read_declared(config_of(meta)))
    assert found is not None
    assert [f for f in found.findings if "all ones" not in f.message] == []


def test_all_kinds_are_recorded() -> None:
    formats = {meta["format"] for meta in META.values()}
    assert {"gptq", "gptq_v2", "awq_gemm", "auto_round:auto_gptq"} <= formats
    assert any(meta["desc_act"] for meta in META.values())
    assert any(meta["bits"] == 8 for meta in META.values())
