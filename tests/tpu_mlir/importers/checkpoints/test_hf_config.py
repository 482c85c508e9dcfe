"""A config.json of each family becomes the one configuration; what is not supported is refused by name."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from core.errors import BadInput
from tests.tpu_mlir.importers.checkpoints.tiny import CONFIGS
from tpu_mlir.importers.checkpoints.hf_config import parse_generation_config, parse_model_config
from tpu_mlir.importers.checkpoints.json_values import read_json


def parse(family: str, **changes: Any) -> Any:
    return parse_model_config({**CONFIGS[family], **changes}, "config.json")


def test_llama() -> None:
    config = parse("llama")
    assert (config.family, config.head_dim, config.q_size, config.kv_size) == ("llama", 16, 64, 32)
    assert (config.qkv_bias, config.output_bias, config.mlp_bias, config.qk_norm) == (False, False, False, False)
    assert config.rope.theta == 10000
    biased = parse("llama", attention_bias=True, mlp_bias=True)
    assert (biased.qkv_bias, biased.output_bias, biased.mlp_bias) == (True, True, True)


def test_qwen2_has_biases_on_q_k_and_v_alone() -> None:
    config = parse("qwen2", attention_bias=True)
    assert (config.qkv_bias, config.output_bias) == (True, False)


def test_qwen3_has_head_norms_and_its_own_head_dim() -> None:
    config = parse("qwen3")
    assert (config.qk_norm, config.head_dim, config.q_size, config.tied_embeddings) == (True, 32, 128, True)
    raw = {key: value for key, value in CONFIGS["qwen3"].items() if key != "head_dim"}
    assert parse_model_config(raw, "c").head_dim == 128


def test_minicpm_scales() -> None:
    config = parse("minicpm")
    assert config.embedding_scale == 12
    assert config.residual_scale == pytest.approx(1.4 / math.sqrt(2))
    assert config.logit_divisor == 64 / 16
    raw = {k: v for k, v in CONFIGS["minicpm"].items() if k not in ("scale_emb", "scale_depth", "dim_model_base")}
    plain = parse_model_config(raw, "c")
    assert (plain.embedding_scale, plain.residual_scale, plain.logit_divisor) == (1, pytest.approx(1), 1)


def test_key_value_heads_default_to_all_heads() -> None:
    assert parse("llama", num_key_value_heads=None).kv_heads == 4


def test_both_spellings_of_rope_scaling_mean_the_same() -> None:
    scaling = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    old = parse("llama", rope_theta=500000.0, rope_scaling={**scaling, "type": "llama3"})
    new = parse("llama", rope_theta=None, rope_parameters={**scaling, "rope_type": "llama3", "rope_theta": 500000.0})
    assert old.rope == new.rope
    assert (old.rope.kind, old.rope.factor, old.rope.original_max_positions) == ("llama3", 8, 64)


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        (
            "llama",
            {"model_type": "falcon", "architectures": ["FalconForCausalLM"]},
            "unknown family, model_type 'falcon'",
        ),
        ("llama", {"model_type": "minicpm3"}, "unknown family, model_type 'minicpm3'"),
        ("qwen2", {"model_type": "qwen2_moe"}, "mixture of experts .MoE, model_type 'qwen2_moe'"),
        ("minicpm", {"num_experts": 8}, "mixture of experts .MoE, num_experts = 8"),
        ("llama", {"hidden_size": "big"}, "hidden_size is 'big', expected a positive integer"),
        ("llama", {"vocab_size": None}, "vocab_size is None"),
        ("llama", {"hidden_size": 65}, "hidden_size 65 does not divide among 4 heads"),
        ("llama", {"num_key_value_heads": 3}, "4 attention heads do not divide among 3"),
        ("llama", {"head_dim": 15}, "head_dim 15 is odd"),
        ("llama", {"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        ("llama", {"rope_scaling": {"type": "su"}}, "rope type 'su' is not supported"),
        ("llama", {"rope_scaling": {"type": "linear"}}, "rope type 'linear' has no factor"),
        ("llama", {"rope_scaling": {"type": "linear", "factor": "x"}}, "factor is 'x'"),
        (
            "llama",
            {"rope_scaling": {"type": "longrope", "short_factor": [1.0]}},
            "longrope has 1 short factors, expected 8",
        ),
        ("llama", {"partial_rotary_factor": 0.5}, "partial RoPE is not supported"),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 64}, "sliding-window attention .window 64"),
        ("llama", {"rms_norm_eps": 0}, "rms_norm_eps is 0"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(family: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=rf"^config\.json: .*{message}"):
        parse(family, **changes)


def test_an_unused_sliding_window_is_no_obstacle() -> None:
    assert parse("qwen2", use_sliding_window=False, sliding_window=64).family == "qwen2"


def test_generation_defaults() -> None:
    parsed = parse_generation_config({"eos_token_id": [5, 7], "temperature": 0.7, "top_k": 20, "do_sample": True}, "g")
    assert (parsed.eos_token_ids, parsed.temperature, parsed.top_k, parsed.do_sample) == ((5, 7), 0.7, 20, True)
    assert parse_generation_config({"eos_token_id": 3, "temperature": None}, "g").eos_token_ids == (3,)
    zero = parse_generation_config({"temperature": 0, "do_sample": True, "pad_token_id": -1, "bos_token_id": [4]}, "g")
    assert (zero.do_sample, zero.temperature, zero.pad_token_id, zero.bos_token_id) == (False, 1.0, None, 4)
    with pytest.raises(BadInput, match=r"^g: top_p"):
        parse_generation_config({"top_p": "most"}, "g")


def test_files_that_are_no_json_objects_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    with pytest.raises(BadInput, match=r"config\.json is missing"):
        read_json(file)
    for text, message in (("{", "cannot be read as JSON"), (json.dumps([1]), "holds list")):
        file.write_text(text)
        with pytest.raises(BadInput, match=message):
            read_json(file)


ODD = (None, "x", "", -1, 0, 1.5, True, [], [1], ["x"], {}, {"a": 1}, float("nan"), float("inf"), 10**400)
SCALINGS = [
    {"rope_type": "linear", "factor": 2.0},
    {"rope_type": "dynamic", "factor": 2.0},
    {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 64, "low_freq_factor": 1.0},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "mscale": 1.0, "mscale_all_dim": 1.0},
    {"rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": [1.0] * 8, "factor": 4.0},
]


@pytest.mark.parametrize("family", CONFIGS)
def test_odd_values_of_any_key_are_refused_and_never_crash(family: str) -> None:
    keys = [
        *CONFIGS[family],
        "rope_scaling",
        "rope_parameters",
        "sliding_window",
        "layer_types",
        "head_dim",
        "mlp_bias",
    ]
    refused = 0
    for key in keys:
        for value in ODD:
            try:
                parse_model_config({**CONFIGS[family], key: value}, "c")
            except BadInput:
                refused += 1
    assert refused > 80


@pytest.mark.parametrize("scaling", SCALINGS, ids=lambda s: s["rope_type"])
def test_odd_values_of_any_scaling_key_are_refused_and_never_crash(scaling: dict[str, Any]) -> None:
    assert parse("llama", rope_scaling=scaling).rope.kind == scaling["rope_type"]
    for key in (*scaling, "attention_factor", "beta_fast", "rope_theta", "high_freq_factor", "truncate"):
        for value in ODD:
            try:
                parse("llama", rope_scaling={**scaling, key: value})
            except BadInput:
                continue


def test_odd_generation_values_are_refused_and_never_crash() -> None:
    for key in ("eos_token_id", "bos_token_id", "temperature", "top_k", "top_p", "repetition_penalty", "do_sample"):
        for value in ODD:
            try:
                parse_generation_config({key: value}, "g")
            except BadInput:
                continue
