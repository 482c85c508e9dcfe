"""A checkpoint opens with everything checked, and its layers come one at a time in one form."""

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from core.errors import BadInput
from tests.tpu_mlir.importers.checkpoints.tiny import (
    CONFIGS,
    linear_shapes,
    quantised_tensors,
    random_tensors,
    write_directory,
    write_gguf,
)
from tpu_mlir.importers.checkpoints.checkpoint import open_checkpoint
from tpu_mlir.importers.checkpoints.tokenizer_files import TokenizerFiles
from tpu_mlir.quantize.group_quantised import GroupQuantised

GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": False, "desc_act": False}
METHODS: dict[str, dict[str, Any]] = {
    "gptq": GPTQ,
    "gptq_act_order": {**GPTQ, "desc_act": True},
    "awq": {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm", "zero_point": True},
    "compressed_tensors": {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "config_groups": {
            "group_0": {
                "weights": {"num_bits": 4, "type": "int", "symmetric": False, "strategy": "group", "group_size": 32}
            }
        },
    },
}


@pytest.mark.parametrize("family", CONFIGS)
@pytest.mark.parametrize("shards", [1, 2])
def test_every_family_opens_with_every_tensor(tmp_path: Path, family: str, shards: int) -> None:
    raw = CONFIGS[family]
    tensors = random_tensors(raw)
    checkpoint = open_checkpoint(write_directory(tmp_path, raw, tensors, shards))
    assert checkpoint.config.family == family
    assert checkpoint.quantised is None
    assert checkpoint.findings == ()
    assert checkpoint.head == ("model.embed_tokens" if raw["tie_word_embeddings"] else "lm_head")
    for module in linear_shapes(raw):
        weight = checkpoint.linear(module)
        assert isinstance(weight, np.ndarray)
        assert np.array_equal(weight, tensors[f"{module}.weight"])
    bias = checkpoint.bias("model.layers.0.self_attn.q_proj")
    assert (bias is not None) is (family == "qwen2")
    assert checkpoint.bias("model.layers.0.self_attn.o_proj") is None


@pytest.mark.parametrize("method", METHODS)
def test_quantised_layers_come_in_canonical_form(tmp_path: Path, method: str) -> None:
    raw = {**CONFIGS["qwen2"], "quantization_config": METHODS[method]}
    tensors, exact = quantised_tensors(raw, method)
    checkpoint = open_checkpoint(write_directory(tmp_path, raw, tensors, shards=2))
    assert checkpoint.quantised is not None
    assert [f for f in checkpoint.findings if "all ones" not in f.message] == []
    for module, weight in exact.items():
        layer = checkpoint.linear(module)
        assert isinstance(layer, GroupQuantised)
        assert np.array_equal(layer.dequantise(), weight)
        assert (layer.permutation is not None) is (method == "gptq_act_order")
    assert isinstance(checkpoint.linear("lm_head"), np.ndarray)


def test_a_lying_config_is_reported_and_read_right(tmp_path: Path) -> None:
    raw = {**CONFIGS["llama"], "quantization_config": METHODS["awq"]}
    tensors, exact = quantised_tensors(raw, "compressed_tensors")
    checkpoint = open_checkpoint(write_directory(tmp_path, raw, tensors))
    assert "says packing awq_gemm, the tensors show compressed_tensors in 14 layers" in checkpoint.findings[0].message
    module = "model.layers.1.mlp.down_proj"
    layer = checkpoint.linear(module)
    assert isinstance(layer, GroupQuantised)
    assert np.array_equal(layer.dequantise(), exact[module])


def test_generation_defaults_and_tokenizer_files_are_found(tmp_path: Path) -> None:
    write_directory(tmp_path, CONFIGS["llama"], random_tensors(CONFIGS["llama"]))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, 7], "top_k": 40}))
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        (tmp_path / name).write_text("{}")
    checkpoint = open_checkpoint(tmp_path)
    assert checkpoint.generation.eos_token_ids == (2, 7)
    assert (checkpoint.generation.top_k, checkpoint.generation.bos_token_id) == (40, 1)
    assert isinstance(checkpoint.tokenizer, TokenizerFiles)
    assert checkpoint.tokenizer.fast == tmp_path / "tokenizer.json"
    assert checkpoint.tokenizer.chat_template == tmp_path / "chat_template.jinja"
    assert checkpoint.tokenizer.sentencepiece is None


def test_a_directory_with_one_gguf_opens_it(tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf", CONFIGS["qwen2"], random_tensors(CONFIGS["qwen2"], np.float32))
    assert open_checkpoint(tmp_path).container == "gguf"


NORM = "model.layers.1.input_layernorm.weight"
UP = "model.layers.0.mlp.up_proj.weight"
UP_BIAS, TABLE = "model.layers.0.mlp.up_proj.bias", "model.embed_tokens.weight"
FLOAT8 = ml_dtypes.float8_e4m3fn
DAMAGE: list[tuple[str, dict[str, Any], str]] = [
    ("missing", {NORM: None}, rf"has no tensor {NORM}"),
    ("shape", {UP: np.ones((64, 128))}, rf"^model\.safetensors: {UP} has shape \[64, 128\], expected \[128, 64\]"),
    ("type", {UP: np.ones((128, 64), np.int64)}, rf"^model\.safetensors: {UP} has type I64, expected a float type"),
    ("vocabulary", {TABLE: np.ones((95, 64))}, rf"{TABLE} has shape \[95, 64\], expected \[96, 64\]"),
    ("head", {"lm_head.weight": None}, r"has no tensor lm_head\.weight"),
    ("fp8", {UP: np.ones((128, 64), FLOAT8)}, "FP8 checkpoints are not supported"),
    ("bias", {UP_BIAS: np.ones(128)}, rf"{UP_BIAS} is a bias, but the configuration says there is none"),
]


@pytest.mark.parametrize(("what", "change", "message"), DAMAGE, ids=[what for what, _, _ in DAMAGE])
def test_tensors_that_do_not_fit_the_configuration_are_named(
    tmp_path: Path, what: str, change: dict[str, Any], message: str
) -> None:
    tensors = {**random_tensors(CONFIGS["llama"]), **change}
    write_directory(
        tmp_path, CONFIGS["llama"], {name: tensor for name, tensor in tensors.items() if tensor is not None}
    )
    with pytest.raises(BadInput, match=message):
        open_checkpoint(tmp_path)


def test_a_quantised_layer_of_another_shape_is_named(tmp_path: Path) -> None:
    raw = {**CONFIGS["llama"], "quantization_config": GPTQ}
    tensors, _ = quantised_tensors(raw, "gptq")
    for part in ("qweight", "qzeros", "scales", "g_idx"):
        tensors[f"model.layers.0.mlp.down_proj.{part}"] = tensors[f"model.layers.0.mlp.up_proj.{part}"]
    write_directory(tmp_path, raw, tensors)
    with pytest.raises(
        BadInput, match=r"down_proj is quantised for \[128, 64\] outputs and inputs, expected \[64, 128\]"
    ):
        open_checkpoint(tmp_path)


def test_a_layer_damaged_inside_is_named_with_its_checkpoint(tmp_path: Path) -> None:
    raw = {**CONFIGS["llama"], "quantization_config": GPTQ}
    tensors, _ = quantised_tensors(raw, "gptq")
    tensors["model.layers.0.mlp.up_proj.g_idx"] = np.zeros(64, np.int32)
    checkpoint = open_checkpoint(write_directory(tmp_path, raw, tensors))
    with pytest.raises(BadInput, match=rf"^{tmp_path}: model\.layers\.0\.mlp\.up_proj: g_idx puts 0 inputs"):
        checkpoint.linear("model.layers.0.mlp.up_proj")


def test_adapters_and_missing_paths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        open_checkpoint(tmp_path / "nowhere")
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(BadInput, match="is a LoRA adapter"):
        open_checkpoint(tmp_path)


def test_a_directory_without_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"config\.json is missing"):
        open_checkpoint(tmp_path)


def test_unused_tensors_are_no_obstacle(tmp_path: Path) -> None:
    tensors = random_tensors(CONFIGS["llama"])
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = np.ones(8, np.float32)
    tensors["model.layers.0.mlp.up_proj.bias"] = np.zeros(128, np.float32)
    assert open_checkpoint(write_directory(tmp_path, CONFIGS["llama"], tensors)).config.family == "llama"
