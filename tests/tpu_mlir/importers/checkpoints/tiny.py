"""Tiny checkpoints with random weights: names and shapes are written out here, apart from the code under test."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize
from safetensors.numpy import save_file

from tests.tpu_mlir.quantize.packers import awq_layer, compressed_tensors_layer, gptq_layer, random_layer, under

Tensors = dict[str, npt.NDArray[Any]]
BF16 = np.dtype(ml_dtypes.bfloat16)
HIDDEN, MIDDLE, HEADS, KV_HEADS, HEAD_DIM, VOCAB, LAYERS = 64, 128, 4, 2, 16, 96, 2
COMMON = {
    "hidden_size": HIDDEN,
    "intermediate_size": MIDDLE,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "num_hidden_layers": LAYERS,
    "vocab_size": VOCAB,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "eos_token_id": 2,
    "bos_token_id": 1,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {**COMMON, "model_type": "llama", "architectures": ["LlamaForCausalLM"], "rope_theta": 10000.0},
    "qwen2": {**COMMON, "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "rope_theta": 1000000.0},
    "qwen3": {
        **COMMON,
        "model_type": "qwen3",
        "architectures": ["Qwen3ForCausalLM"],
        "head_dim": 32,
        "tie_word_embeddings": True,
        "rope_theta": 1000000.0,
    },
    "minicpm": {
        **COMMON,
        "model_type": "minicpm",
        "architectures": ["MiniCPMForCausalLM"],
        "scale_emb": 12,
        "scale_depth": 1.4,
        "dim_model_base": 16,
        "tie_word_embeddings": True,
    },
}


def linear_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    q, kv = HEADS * config.get("head_dim", HEAD_DIM), KV_HEADS * config.get("head_dim", HEAD_DIM)
    one = {
        "self_attn.q_proj": (q, HIDDEN),
        "self_attn.k_proj": (kv, HIDDEN),
        "self_attn.v_proj": (kv, HIDDEN),
        "self_attn.o_proj": (HIDDEN, q),
        "mlp.gate_proj": (MIDDLE, HIDDEN),
        "mlp.up_proj": (MIDDLE, HIDDEN),
        "mlp.down_proj": (HIDDEN, MIDDLE),
    }
    return {f"model.layers.{i}.{name}": shape for i in range(LAYERS) for name, shape in one.items()}


def random_tensors(config: Mapping[str, Any], dtype: Any = BF16, seed: int = 0) -> Tensors:
    rng = np.random.default_rng(seed)
    family, head_dim = config["model_type"], config.get("head_dim", HEAD_DIM)
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (VOCAB, HIDDEN), "model.norm.weight": (HIDDEN,)}
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (VOCAB, HIDDEN)
    for name, shape in linear_shapes(config).items():
        shapes[f"{name}.weight"] = shape
        if family == "qwen2" and name[-6:] in ("q_proj", "k_proj", "v_proj"):
            shapes[f"{name}.bias"] = shape[:1]
    for layer in range(LAYERS):
        shapes[f"model.layers.{layer}.input_layernorm.weight"] = (HIDDEN,)
        shapes[f"model.layers.{layer}.post_attention_layernorm.weight"] = (HIDDEN,)
        if family == "qwen3":
            shapes[f"model.layers.{layer}.self_attn.q_norm.weight"] = (head_dim,)
            shapes[f"model.layers.{layer}.self_attn.k_norm.weight"] = (head_dim,)
    return {name: (rng.normal(size=shape) * 0.1).astype(dtype) for name, shape in shapes.items()}


def quantised_tensors(config: Mapping[str, Any], kind: str, group_size: int = 32) -> tuple[Tensors, Tensors]:
    """Tensors with quantised block linears, and the exact float32 weights [outputs, inputs] of those linears."""
    tensors, exact = random_tensors(config, np.float16), {}
    for seed, (name, (outputs, inputs)) in enumerate(linear_shapes(config).items()):
        del tensors[f"{name}.weight"]
        codes, zeros, scales = random_layer(inputs, outputs, 4, group_size, seed)
        group_of = np.arange(inputs) // group_size
        if kind == "gptq_act_order":
            np.random.default_rng(seed).shuffle(group_of)
        if kind.startswith("gptq"):
            parts = gptq_layer(codes, zeros, scales, 4, 1, group_of)
        elif kind == "awq":
            parts = awq_layer(codes, zeros, scales)
        else:
            parts = compressed_tensors_layer(codes.T, zeros.T, scales.T, 4)
        tensors.update(under(name, parts))
        exact[name] = ((codes.astype(np.float32) - zeros[group_of]) * scales[group_of].astype(np.float32)).T
    return tensors, exact


def write_directory(directory: Path, config: Mapping[str, Any], tensors: Tensors, shards: int = 1) -> Path:
    # The library writes arrays that are not contiguous in a wrong order, and does not say so.
    assert all(tensor.flags.c_contiguous for tensor in tensors.values())
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config))
    if shards == 1:
        save_file(tensors, directory / "model.safetensors")
        return directory
    weight_map = {name: f"model-{i % shards + 1:05}-of-{shards:05}.safetensors" for i, name in enumerate(tensors)}
    for shard in sorted(set(weight_map.values())):
        save_file({name: tensors[name] for name in tensors if weight_map[name] == shard}, directory / shard)
    index = {"metadata": {"total_size": sum(t.nbytes for t in tensors.values())}, "weight_map": weight_map}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    return directory


GGUF_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}


def gguf_name(name: str) -> str:
    stem, _, part = name.rpartition(".")
    if stem == "rope_freqs":
        return name
    if stem.startswith("model.layers."):
        _, _, layer, rest = stem.split(".", 3)
        return f"blk.{layer}.{GGUF_NAMES[rest]}.{part}"
    return f"{GGUF_NAMES[stem]}.{part}"


def interleaved(rows: npt.NDArray[Any], heads: int) -> npt.NDArray[Any]:
    """Row order of llama.cpp for q and k of Llama and MiniCPM, one row at a time."""
    size = len(rows) // heads
    pairs = [(head, pair, half) for head in range(heads) for pair in range(size // 2) for half in (0, 1)]
    order = [head * size + half * size // 2 + pair for head, pair, half in pairs]
    return rows[order]


def write_gguf(
    file: Path,
    config: Mapping[str, Any],
    tensors: Tensors,
    kinds: Mapping[str, GGMLQuantizationType] | None = None,
    extra: Mapping[str, float] | None = None,
) -> Path:
    """Write a GGUF file as llama.cpp would; ``kinds`` gives storage types of tensors by Hugging Face name."""
    family = config["model_type"]
    writer = GGUFWriter(file, family)
    writer.add_block_count(LAYERS)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(MIDDLE)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config.get("rope_theta", 10000.0))
    if "head_dim" in config:
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
    for key, value in (extra or {}).items():
        writer.add_float32(f"{family}.{key}", value)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([f"t{i}" for i in range(VOCAB)])
    writer.add_token_types([3, 3, 3] + [1] * (VOCAB - 3))
    writer.add_token_merges(["t 1", "t 2"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template("{{ messages }}")
    for name, tensor in tensors.items():
        values = tensor
        if family in ("llama", "minicpm") and ("q_proj" in name or "k_proj" in name):
            values = interleaved(tensor, HEADS if "q_proj" in name else KV_HEADS)
        kind = (kinds or {}).get(name)
        if kind is None:
            writer.add_tensor(gguf_name(name), values.astype(np.float32))
        else:
            writer.add_tensor(gguf_name(name), quantize(values.astype(np.float32), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file
