"""The architecture of a model from the metadata of its GGUF file."""

import math

from pydantic import ValidationError

from core.errors import BadInput
from tpu_mlir.importers.checkpoints.gguf_file import Metadata
from tpu_mlir.importers.checkpoints.hf_config import FAMILIES, SUPPORTED
from tpu_mlir.importers.checkpoints.json_values import first_problem, integer, number
from tpu_mlir.importers.checkpoints.model_config import GenerationConfig, ModelConfig, Rope
from tpu_mlir.importers.checkpoints.weights import Weights


def parse_gguf_config(metadata: Metadata, weights: Weights, source: str) -> ModelConfig:
    """Return the architecture that GGUF metadata describes; biases and tied embeddings are read off the tensor names.

    Args:
        metadata: keys and values of the file.
        weights: its tensors, of which only names and shapes are used (and the small table of RoPE factors).
        source: the file's name, for messages.

    Raises:
        BadInput: the architecture is not supported, or a key is missing; names file and key.
    """
    architecture = str(metadata.get("general.architecture"))
    if architecture not in FAMILIES:
        kind = "a mixture of experts (MoE)" if "moe" in architecture else "an unknown family"
        raise BadInput(f"{source}: architecture {architecture!r} is {kind}.", SUPPORTED)
    family = FAMILIES[architecture]

    def count(name: str, default: int | None = None) -> int:
        return integer(metadata, f"{architecture}.{name}", source, default)

    def value(name: str, default: float) -> float:
        return number(metadata, f"{architecture}.{name}", source, default)

    if count("expert_count", 1) > 1:
        raise BadInput(f"{source}: a mixture of experts (MoE, {count('expert_count')}) is not supported.", SUPPORTED)
    heads, hidden, layers = count("attention.head_count"), count("embedding_length"), count("block_count")
    scales = {}
    if family == "minicpm":
        # Files from before these keys existed are of the first release, whose values llama.cpp assumes too.
        scales["embedding_scale"] = value("embedding_scale", 12.0)
        scales["residual_scale"] = value("residual_scale", 1.4 / math.sqrt(layers))
        scales["logit_divisor"] = value("logit_scale", hidden / 256)
    first = "model.layers.0"
    head_dim = count("attention.key_length", max(hidden // heads, 1))
    max_positions = count("context_length")
    embedding = weights.info("model.embed_tokens.weight").shape
    try:
        return ModelConfig(
            family=family,
            hidden_size=hidden,
            intermediate_size=count("feed_forward_length"),
            layers=layers,
            heads=heads,
            kv_heads=count("attention.head_count_kv", heads),
            head_dim=head_dim,
            vocab_size=embedding[0] if embedding else 0,
            max_positions=max_positions,
            norm_eps=_shortest(value("attention.layer_norm_rms_epsilon", 1e-6)),
            rope=_rope(metadata, f"{architecture}.rope", weights, head_dim, max_positions, source),
            tied_embeddings="lm_head.weight" not in weights,
            qkv_bias=f"{first}.self_attn.q_proj.bias" in weights,
            output_bias=f"{first}.self_attn.o_proj.bias" in weights,
            mlp_bias=f"{first}.mlp.gate_proj.bias" in weights,
            qk_norm=f"{first}.self_attn.q_norm.weight" in weights,
            weight_type="float32",
            **scales,
        )
    except ValidationError as error:
        raise BadInput(f"{source}: {first_problem(error)}.") from error


def parse_gguf_generation(metadata: Metadata, source: str) -> GenerationConfig:
    """Return the special tokens; GGUF files have no sampling defaults.

    Raises:
        BadInput: one of them is no token id; names file and key.
    """

    def token(name: str) -> int | None:
        key = f"tokenizer.ggml.{name}_token_id"
        return None if metadata.get(key) is None else integer(metadata, key, source, least=0)

    stops = [token(name) for name in ("eos", "eot", "eom")]
    return GenerationConfig(
        eos_token_ids=tuple(dict.fromkeys(stop for stop in stops if stop is not None)),
        bos_token_id=token("bos"),
        pad_token_id=token("padding"),
    )


def _rope(metadata: Metadata, prefix: str, weights: Weights, head_dim: int, max_positions: int, source: str) -> Rope:
    theta = number(metadata, f"{prefix}.freq_base", source, 10000.0)
    turned = integer(metadata, f"{prefix}.dimension_count", source, head_dim)
    if turned != head_dim:
        raise BadInput(f"{source}: RoPE turns {turned} of {head_dim} dimensions.", "Partial RoPE is not supported.")
    original = integer(metadata, f"{prefix}.scaling.original_context_length", source, max_positions)
    kind = metadata.get(f"{prefix}.scaling.type", "none")
    if "rope_freqs.weight" in weights:
        # One divisor a pair, whatever scheme made them (llama3): the same for short and long texts.
        divisors = _factors(weights, "rope_freqs.weight")
        return Rope(
            theta=theta, kind="longrope", original_max_positions=original, short_factors=divisors, long_factors=divisors
        )
    if "rope_factors_long.weight" in weights:
        return Rope(
            theta=theta,
            kind="longrope",
            original_max_positions=original,
            attention_factor=number(metadata, f"{prefix}.scaling.attn_factor", source, 1.0),
            short_factors=_factors(weights, "rope_factors_short.weight"),
            long_factors=_factors(weights, "rope_factors_long.weight"),
        )
    factor = number(metadata, f"{prefix}.scaling.factor", source, 1.0)
    if kind == "linear":
        return Rope(theta=theta, kind="linear", factor=factor)
    if kind == "yarn":
        attention = 1.0 if factor <= 1 else 0.1 * math.log(factor) + 1.0
        return Rope(
            theta=theta, kind="yarn", factor=factor, original_max_positions=original, attention_factor=attention
        )
    if kind != "none":
        raise BadInput(f"{source}: RoPE scaling {kind!r} is not supported.", "Known: linear, yarn, llama3, longrope.")
    return Rope(theta=theta)


def _factors(weights: Weights, name: str) -> tuple[float, ...]:
    return tuple(float(factor) for factor in weights[name].reshape(-1))


def _shortest(value: float) -> float:
    """Return the decimal that was meant by a value that went through float32: 1e-05, not 9.999999747378752e-06."""
    return float(f"{value:.7g}")
