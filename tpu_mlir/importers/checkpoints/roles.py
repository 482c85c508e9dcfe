"""Which tensors a model has: names as Hugging Face writes them, and shapes from the configuration."""

from collections.abc import Iterator
from typing import Literal

from tpu_mlir.importers.checkpoints.model_config import ModelConfig

Role = Literal[
    "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
    "input_layernorm", "post_attention_layernorm", "q_norm", "k_norm",
]  # fmt: skip
EMBEDDING = "model.embed_tokens"
FINAL_NORM = "model.norm"
HEAD = "lm_head"
LINEAR_PATHS = {
    "q_proj": "self_attn.q_proj",
    "k_proj": "self_attn.k_proj",
    "v_proj": "self_attn.v_proj",
    "o_proj": "self_attn.o_proj",
    "gate_proj": "mlp.gate_proj",
    "up_proj": "mlp.up_proj",
    "down_proj": "mlp.down_proj",
}
NORM_PATHS = {
    "input_layernorm": "input_layernorm",
    "post_attention_layernorm": "post_attention_layernorm",
    "q_norm": "self_attn.q_norm",
    "k_norm": "self_attn.k_norm",
}


def module_name(layer: int, role: Role) -> str:
    """Return the Hugging Face name of a layer's module, such as ``model.layers.0.self_attn.q_proj``."""
    return f"model.layers.{layer}.{LINEAR_PATHS.get(role) or NORM_PATHS[role]}"


def linear_shapes(config: ModelConfig) -> dict[str, tuple[int, int]]:
    """Return outputs and inputs of every linear module inside the blocks, by name."""
    hidden, middle = config.hidden_size, config.intermediate_size
    shapes: dict[Role, tuple[int, int]] = {
        "q_proj": (config.q_size, hidden),
        "k_proj": (config.kv_size, hidden),
        "v_proj": (config.kv_size, hidden),
        "o_proj": (hidden, config.q_size),
        "gate_proj": (middle, hidden),
        "up_proj": (middle, hidden),
        "down_proj": (hidden, middle),
    }
    return {module_name(layer, role): shape for layer in range(config.layers) for role, shape in shapes.items()}


def vector_shapes(config: ModelConfig) -> Iterator[tuple[str, tuple[int]]]:
    """Yield norms and biases: tensor name and shape."""
    for name, (outputs, _) in linear_shapes(config).items():
        role = name.rsplit(".", 1)[1]
        if has_bias(config, role):
            yield f"{name}.bias", (outputs,)
    for layer in range(config.layers):
        yield f"{module_name(layer, 'input_layernorm')}.weight", (config.hidden_size,)
        yield f"{module_name(layer, 'post_attention_layernorm')}.weight", (config.hidden_size,)
        if config.qk_norm:
            yield f"{module_name(layer, 'q_norm')}.weight", (config.head_dim,)
            yield f"{module_name(layer, 'k_norm')}.weight", (config.head_dim,)
    yield f"{FINAL_NORM}.weight", (config.hidden_size,)


def has_bias(config: ModelConfig, role: str) -> bool:
    """Tell whether a linear role has a bias."""
    if role in ("q_proj", "k_proj", "v_proj"):
        return config.qkv_bias
    return config.output_bias if role == "o_proj" else config.mlp_bias
