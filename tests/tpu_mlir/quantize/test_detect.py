"""The format is read off the tensors; a config that lies is reported; what is not supported is refused by name."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from core.errors import BadInput
from tests.tpu_mlir.quantize.packers import awq_layer, compressed_tensors_layer, gptq_layer, random_layer, under
from tpu_mlir.quantize.declared import read_declared
from tpu_mlir.quantize.detect import detect

GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": False, "desc_act": False}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm", "zero_point": True}


def gptq(version: int = 1, bits: int = 4, size: int = 32, symmetric: bool = False, act_order: bool = False) -> dict:
    codes, zeros, scales = random_layer(256, 64, bits, size, 1, symmetric)
    group_of = np.arange(256) // size
    if act_order:
        np.random.default_rng(0).shuffle(group_of)
    return under("model.layers.0.mlp.up_proj", gptq_layer(codes, zeros, scales, bits, version, group_of))


def awq() -> dict:
    return under("model.layers.0.mlp.up_proj", awq_layer(*random_layer(256, 64, 4, 32, 1)))


def messages(tensors: dict, config: dict[str, Any]) -> str:
    found = detect(tensors, read_declared(config))
    assert found is not None
    return " ".join(finding.message for finding in found.findings if "all ones" not in finding.message)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("act_order", [True, False])
def test_the_gptq_version_is_read_off_the_values(version: int, symmetric: bool, act_order: bool) -> None:
    found = detect(gptq(version, symmetric=symmetric, act_order=act_order), None)
    assert found is not None
    assert found.zero_rule == ("minus_one" if version == 1 else "plain")


def test_a_wrong_gptq_version_in_the_config_is_reported_and_the_values_win() -> None:
    for tensors_version, said in ((2, "gptq"), (1, "gptq_v2")):
        config = {**GPTQ, "checkpoint_format": said}
        found = detect(gptq(tensors_version), read_declared(config))
        assert found is not None
        assert found.zero_rule == ("minus_one" if tensors_version == 1 else "plain")
        assert f"the values show version {tensors_version}" in messages(gptq(tensors_version), config)


def test_unclear_values_leave_the_version_to_the_config() -> None:
    tensors = gptq(1)
    rng = np.random.default_rng(0)
    tensors["model.layers.0.mlp.up_proj.qweight"] = rng.integers(-(2**31), 2**31, (32, 64), dtype=np.int32)
    tensors["model.layers.0.mlp.up_proj.qzeros"] = rng.integers(-(2**31), 2**31, (8, 8), dtype=np.int32)
    for said, rule in (("gptq", "minus_one"), ("gptq_v2", "plain")):
        found = detect(tensors, read_declared({**GPTQ, "checkpoint_format": said}))
        assert found is not None
        assert found.zero_rule == rule
    silent = detect(tensors, None)
    assert silent is not None
    assert silent.zero_rule == "minus_one"
    assert "Neither config nor values" in silent.findings[0].message


def test_awq_by_name_gptq_by_tensors() -> None:
    assert "says packing awq_gemm, the tensors show gptq in 1 layers" in messages(gptq(), AWQ)


def test_awq_by_name_compressed_tensors_by_tensors_and_no_group_size() -> None:
    codes, _, scales = random_layer(256, 64, 4, 32, 1, symmetric=True)
    tensors = under("l", compressed_tensors_layer(codes.T, None, scales.T, 4))
    config = {"quant_method": "awq", "bits": 4}
    assert "says packing awq_gemm, the tensors show compressed_tensors" in messages(tensors, config)
    found = detect(tensors, read_declared(config))
    assert found is not None
    assert found.name == "compressed_tensors 4-bit group 32"


@pytest.mark.parametrize("packed", [True, False])
def test_symmetric_compressed_tensors_with_zero_points_written_out_are_symmetric(packed: bool) -> None:
    codes, zeros, scales = random_layer(64, 12, 4, 32, 1, symmetric=True)
    tensors = under("l", compressed_tensors_layer(codes.T, zeros.T, scales.T, 4, packed))
    found = detect(tensors, None)
    assert found is not None
    assert found.symmetric


def test_gptq_by_name_awq_by_tensors() -> None:
    assert "says packing gptq, the tensors show awq_gemm" in messages(awq(), GPTQ)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"bits": 8}, "says 8 bits, the tensors show 4 bits"),
        ({"group_size": 128}, "says group size 128, the tensors show 32 of 256"),
        ({"group_size": -1}, "says group size -1, the tensors show 32 of 256"),
        ({"sym": True}, "says symmetric, the tensors show zero points that differ"),
    ],
)
def test_other_lies_are_reported(change: dict[str, Any], said: str) -> None:
    assert said in messages(gptq(), {**GPTQ, **change})


def test_act_order_that_the_config_denies_is_reported() -> None:
    assert "says no act-order, the tensors show inputs out of group order" in messages(gptq(act_order=True), GPTQ)


def test_a_true_config_leaves_nothing_to_report() -> None:
    assert messages(gptq(), GPTQ) == ""
    assert messages(awq(), AWQ) == ""


@pytest.mark.parametrize(
    ("name", "packing"),
    [("auto_round:auto_gptq", "minus_one"), ("auto_round", "plain"), ("auto_round:gptqmodel", "plain")],
)
def test_auto_round_packings_of_gptq(name: str, packing: str) -> None:
    declared = read_declared(
        {"quant_method": "auto-round", "packing_format": name, "bits": 4, "group_size": 32, "sym": False}
    )
    assert declared.zero_rule == packing
    found = detect(gptq(1 if packing == "minus_one" else 2), declared)
    assert found is not None
    assert [f for f in found.findings if "all ones" not in f.message] == []


def test_auto_round_packing_of_awq() -> None:
    config = {
        "quant_method": "auto-round",
        "packing_format": "auto_round:auto_awq",
        "bits": 4,
        "group_size": 32,
        "sym": False,
    }
    assert messages(awq(), config) == ""


def test_layers_may_have_different_bits() -> None:
    tensors = {**gptq(), **under("l", gptq_layer(*random_layer(256, 64, 8, 64, 1), 8))}
    found = detect(tensors, None)
    assert found is not None
    assert {name: (layer.bits, layer.group_size) for name, layer in found.layers.items()} == {
        "model.layers.0.mlp.up_proj": (4, 32),
        "l": (8, 64),
    }


@pytest.mark.parametrize("bits", [2, 3])
def test_two_and_three_bits_are_refused_by_layer(bits: int) -> None:
    inputs, outputs = 128, 64
    tensors = {
        "a.b.qweight": np.zeros((inputs * bits // 32, outputs), np.int32),
        "a.b.qzeros": np.zeros((4, outputs * bits // 32), np.int32),
        "a.b.scales": np.ones((4, outputs), np.float16),
    }
    with pytest.raises(BadInput, match=rf"^a\.b: {bits}-bit weights are not supported"):
        detect(tensors, None)
    packed = {
        "a.b.weight_packed": np.zeros((outputs, inputs * bits // 32), np.int32),
        "a.b.weight_scale": np.ones((outputs, 4), np.float16),
        "a.b.weight_shape": np.array([outputs, inputs]),
    }
    with pytest.raises(BadInput, match=rf"^a\.b: {bits}-bit weights are not supported"):
        detect(packed, None)


@pytest.mark.parametrize("inputs", [1000, 960])
def test_a_group_size_that_does_not_divide_is_refused_by_layer(inputs: int) -> None:
    groups = -(-inputs // 128)
    tensors = {
        "model.layers.7.mlp.down_proj.qweight": np.zeros((inputs // 8, 64), np.int32),
        "model.layers.7.mlp.down_proj.qzeros": np.zeros((groups, 8), np.int32),
        "model.layers.7.mlp.down_proj.scales": np.ones((groups, 64), np.float16),
    }
    with pytest.raises(BadInput, match=rf"^model\.layers\.7\.mlp\.down_proj: (its )?{inputs} inputs"):
        detect(tensors, read_declared({**GPTQ, "group_size": 128}))


def test_groups_that_do_not_divide_are_refused_without_a_config_too() -> None:
    tensors = {
        "l.qweight": np.zeros((100, 8), np.int32),
        "l.qzeros": np.zeros((100, 8), np.int32),
        "l.scales": np.ones((7, 64), np.float16),
    }
    tensors["l.qzeros"] = np.zeros((7, 8), np.int32)
    with pytest.raises(BadInput, match=r"^l: its 100 inputs do not divide into the 7 groups"):
        detect(tensors, None)


FOREIGN = [
    ({"l.weight": np.zeros((8, 8), ml_dtypes.float8_e4m3fn)}, "FP8"),
    ({"l.weight": np.zeros((8, 8), np.float16), "l.weight_scale_inv": np.ones(1, np.float32)}, "FP8"),
    ({"l.weight": np.zeros((32, 1), np.uint8), "l.weight.absmax": np.ones(1, np.float32)}, "bitsandbytes"),
    ({"l.W_q": np.zeros((8, 8), np.uint8)}, "HQQ"),
    ({"l.weight": np.zeros((8, 8), np.int8), "l.weight_scale": np.ones(8, np.float32)}, "int8 and not packed"),
    ({"l.lora_A.weight": np.zeros((8, 8), np.float16)}, "LoRA"),
    (
        {
            "l.qweight": np.zeros((4, 128), np.int32),
            "l.qzeros": np.zeros((2, 8), np.int32),
            "l.scales": np.ones((2, 64), np.float16),
        },
        "Marlin",
    ),
]


@pytest.mark.parametrize(("tensors", "name"), FOREIGN, ids=[name for _, name in FOREIGN])
def test_other_formats_are_refused_by_name(tensors: dict[str, np.ndarray], name: str) -> None:
    with pytest.raises(BadInput, match=name) as refused:
        detect(tensors, None)
    assert refused.value.what.startswith("l")


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"quant_method": "fp8"}, "FP8"),
        ({"quant_method": "bitsandbytes"}, "bitsandbytes"),
        ({"quant_method": "awq", "version": "gemv"}, "gemv"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}}},
            },
            "FP8",
        ),
        ({"quant_method": "compressed-tensors", "format": "int-quantized"}, "int-quantized"),
    ],
)
def test_methods_that_are_not_supported_are_refused_by_name(config: dict[str, Any], name: str) -> None:
    with pytest.raises(BadInput, match=f"says .*{name}.*, but no tensor is in a format that is supported"):
        detect({"l.weight": np.zeros((8, 8), np.float16)}, read_declared(config))


def test_a_config_that_claims_fp8_of_gptq_tensors_is_reported_and_the_tensors_win() -> None:
    config = {"quant_method": "fp8", "bits": 8}
    assert "says FP8, the tensors show gptq 4-bit group 32" in messages(gptq(), config)


def test_a_missing_part_is_named() -> None:
    tensors = gptq()
    del tensors["model.layers.0.mlp.up_proj.scales"]
    with pytest.raises(BadInput, match=r"^model\.layers\.0\.mlp\.up_proj\.scales is missing"):
        detect(tensors, None)


def test_a_config_without_quantised_tensors_is_refused() -> None:
    with pytest.raises(BadInput, match="says quant_method 'gptq', but no tensor is in a format"):
        detect({"l.weight": np.zeros((8, 8), np.float16)}, read_declared(GPTQ))


def test_float_checkpoints_are_not_quantised() -> None:
    assert detect({"l.weight": np.zeros((8, 8), np.float16)}, None) is None


def test_odd_values_of_any_key_of_the_config_never_crash() -> None:
    group = {"weights": {"num_bits": 4, "type": "int", "symmetric": False, "strategy": "group", "group_size": 32}}
    tensors_config = {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"g": group}}
    round_config = {"quant_method": "auto-round", "packing_format": "auto_round", "bits": 4}
    odd = (None, "x", -1, 0, 1.5, True, [], [1], {}, {"weights": 3}, {"g": 3}, {"g": {"weights": "x"}}, float("nan"))
    tensors = gptq()
    for config in (GPTQ, AWQ, tensors_config, round_config):
        for key in (*config, "checkpoint_format", "format", "config_groups", "backend"):
            for value in odd:
                try:
                    detect(tensors, read_declared({**config, key: value}))
                except BadInput:
                    continue
