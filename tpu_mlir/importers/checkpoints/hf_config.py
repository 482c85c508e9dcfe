"""Reading config.json and generation_config.json of a Hugging Face directory."""

import math
from typing import Any

from pydantic import ValidationError

from core.errors import BadInput
from tpu_mlir.importers.checkpoints.json_values import Json, first_problem, flag, integer, number
from tpu_mlir.importers.checkpoints.model_config import Family, GenerationConfig, ModelConfig
from tpu_mlir.importers.checkpoints.rope_config import parse_rope

FAMILIES: dict[str, Family] = {"llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "minicpm": "minicpm"}
SUPPORTED = "Supported families: Llama, Qwen2 and Qwen2.5, Qwen3 and MiniCPM (dense, text only)."
EXPERT_KEYS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")


def parse_model_config(raw: Json, source: str) -> ModelConfig:
    """Return the architecture that a config.json describes.

    Args:
        raw: the parsed file.
        source: its name, for messages.

    Raises:
        BadInput: the family is not supported, the model has experts or sliding-window attention, or a value is missing
            or makes no sense; names file, key and value.
    """
    family = _family(raw, source)
    heads = integer(raw, "num_attention_heads", source)
    hidden = integer(raw, "hidden_size", source)
    layers = integer(raw, "num_hidden_layers", source)
    max_positions = integer(raw, "max_position_embeddings", source)
    activation = raw.get("hidden_act", "silu")
    if activation != "silu":
        raise BadInput(f"{source}: hidden_act is {activation!r}.", "Only silu is supported.")
    _refuse_sliding_window(raw, source, max_positions)
    attention_bias = flag(raw, "attention_bias", source) and family != "qwen2"
    scales: dict[str, float] = {}
    if family == "minicpm":
        scales["embedding_scale"] = number(raw, "scale_emb", source, 1.0)
        # The authors' models add scale_depth / sqrt(layers) of each half of a block.
        scales["residual_scale"] = number(raw, "scale_depth", source, math.sqrt(layers)) / math.sqrt(layers)
        scales["logit_divisor"] = hidden / number(raw, "dim_model_base", source, hidden)
    try:
        return ModelConfig(
            family=family,
            hidden_size=hidden,
            intermediate_size=integer(raw, "intermediate_size", source),
            layers=layers,
            heads=heads,
            kv_heads=integer(raw, "num_key_value_heads", source, heads),
            head_dim=_head_dim(raw, source, family, hidden, heads),
            vocab_size=integer(raw, "vocab_size", source),
            max_positions=max_positions,
            norm_eps=number(raw, "rms_norm_eps", source, 1e-6),
            rope=parse_rope(raw, source, max_positions),
            # MiniCPM's own configuration class ties unless told otherwise, the others don't.
            tied_embeddings=flag(raw, "tie_word_embeddings", source, default=family == "minicpm"),
            qkv_bias=attention_bias or family == "qwen2",
            output_bias=attention_bias,
            mlp_bias=flag(raw, "mlp_bias", source) and family == "llama",
            qk_norm=family == "qwen3",
            weight_type=str(raw.get("torch_dtype") or raw.get("dtype") or "bfloat16"),
            **scales,
        )
    except ValidationError as error:
        raise BadInput(f"{source}: {first_problem(error)}.", "The configuration is damaged or not known.") from error


def parse_generation_config(raw: Json, source: str) -> GenerationConfig:
    """Return sampling defaults and stop tokens from generation_config.json merged over config.json.

    Raises:
        BadInput: a value has the wrong type; names file and key.
    """
    eos = raw.get("eos_token_id")
    stops = eos if isinstance(eos, list) else [eos]
    greedy = raw.get("temperature") == 0
    return GenerationConfig(
        eos_token_ids=tuple(
            integer({"eos_token_id": stop}, "eos_token_id", source, least=0) for stop in stops if stop is not None
        ),
        bos_token_id=_token(raw, "bos_token_id", source),
        pad_token_id=_token(raw, "pad_token_id", source),
        do_sample=flag(raw, "do_sample", source) and not greedy,
        temperature=1.0 if greedy else number(raw, "temperature", source, 1.0),
        top_k=integer(raw, "top_k", source, default=0, least=0),
        top_p=number(raw, "top_p", source, 1.0),
        repetition_penalty=number(raw, "repetition_penalty", source, 1.0),
    )


def _family(raw: Json, source: str) -> Family:
    model_type = str(raw.get("model_type", ""))
    experts = [key for key in EXPERT_KEYS if isinstance(raw.get(key), int) and raw[key] > 1]
    if "moe" in model_type or experts:
        detail = f"{experts[0]} = {raw[experts[0]]}" if experts else f"model_type {model_type!r}"
        raise BadInput(f"{source}: a mixture of experts (MoE, {detail}) is not supported.", SUPPORTED)
    if model_type not in FAMILIES:
        named: Any = raw.get("architectures")
        architectures = ", ".join(map(str, named)) if isinstance(named, list) else "none named"
        raise BadInput(
            f"{source}: unknown family, model_type {model_type!r} (architectures: {architectures}).", SUPPORTED
        )
    return FAMILIES[model_type]


def _head_dim(raw: Json, source: str, family: Family, hidden: int, heads: int) -> int:
    if family == "qwen3":
        return integer(raw, "head_dim", source, 128)
    if raw.get("head_dim") is None and hidden % heads:
        raise BadInput(
            f"{source}: hidden_size {hidden} does not divide among {heads} heads, and head_dim is not given."
        )
    return integer(raw, "head_dim", source, hidden // heads)


def _refuse_sliding_window(raw: Json, source: str, max_positions: int) -> None:
    window, kinds = raw.get("sliding_window"), raw.get("layer_types")
    windowed = isinstance(kinds, list) and "sliding_attention" in kinds
    used = flag(raw, "use_sliding_window", source) or windowed
    if used and isinstance(window, int) and window < max_positions:
        raise BadInput(f"{source}: sliding-window attention (window {window}) is not supported.", SUPPORTED)


def _token(raw: Json, key: str, source: str) -> int | None:
    value = raw.get(key)
    # Some files list several; texts begin with the first.
    only = value[0] if isinstance(value, list) and value else value
    # Early Llama files write -1 for "none".
    return None if only is None or only == -1 else integer({key: only}, key, source, least=0)
