"""Reading the position embedding of a config.json."""

import math
from typing import Any, get_args

from core.errors import BadInput
from tpu_mlir.importers.checkpoints.json_values import Json, flag, integer, json_object, number, numbers
from tpu_mlir.importers.checkpoints.model_config import Rope, RopeKind


def parse_rope(raw: Json, source: str, max_positions: int) -> Rope:
    """Return the rotary position embedding that a config.json describes.

    Newer files keep all in rope_parameters, older ones spread it over rope_theta and rope_scaling.

    Args:
        raw: the parsed file.
        source: its name, for messages.
        max_positions: the model's greatest sequence length.

    Raises:
        BadInput: the kind is not supported, or a value is missing or makes no sense; names file and key.
    """
    scaling = json_object(raw, "rope_parameters", source) or json_object(raw, "rope_scaling", source)
    theta = number(scaling, "rope_theta", source, number(raw, "rope_theta", source, 10000.0))
    kind = scaling.get("rope_type") or scaling.get("type") or "default"
    if kind not in get_args(RopeKind):
        raise BadInput(
            f"{source}: rope type {kind!r} is not supported.", f"Supported: {', '.join(get_args(RopeKind))}."
        )
    partial = number(scaling, "partial_rotary_factor", source, number(raw, "partial_rotary_factor", source, 1.0))
    if partial != 1.0:
        raise BadInput(f"{source}: partial_rotary_factor is {partial}; partial RoPE is not supported.")
    key = "original_max_position_embeddings"
    original = integer(scaling, key, source, integer(raw, key, source, max_positions))
    if kind == "default":
        return Rope(theta=theta)
    if kind == "longrope":
        return _longrope(scaling, source, theta, max_positions, original)
    if scaling.get("factor") is None and original == max_positions:
        raise BadInput(f"{source}: rope type {kind!r} has no factor.")
    fields: dict[str, Any] = {
        "theta": theta,
        "kind": kind,
        "factor": number(scaling, "factor", source, max_positions / original),
    }
    if kind == "dynamic":
        # This kind scales against the model's own maximum, whatever else is written.
        fields["original_max_positions"] = max_positions
    if kind in ("llama3", "yarn"):
        fields["original_max_positions"] = original
    if kind == "llama3":
        low = number(scaling, "low_freq_factor", source, 1.0)
        high = number(scaling, "high_freq_factor", source, 4.0)
        if not low < high:
            raise BadInput(f"{source}: low_freq_factor {low} is not below high_freq_factor {high}.")
        fields |= {"low_frequency_factor": low, "high_frequency_factor": high}
    if kind == "yarn":
        fields["beta_fast"] = number(scaling, "beta_fast", source, 32.0)
        fields["beta_slow"] = number(scaling, "beta_slow", source, 1.0)
        fields["truncate"] = flag(scaling, "truncate", source, default=True)
        fields["attention_factor"] = _yarn_attention_factor(scaling, source, fields["factor"])
    return Rope(**fields)


def _longrope(scaling: Json, source: str, theta: float, max_positions: int, original: int) -> Rope:
    stretch = number(scaling, "factor", source, max_positions / original)
    factor = 1.0 if stretch <= 1 or original == 1 else math.sqrt(1 + math.log(stretch) / math.log(original))
    return Rope(
        theta=theta,
        kind="longrope",
        original_max_positions=original,
        attention_factor=number(scaling, "attention_factor", source, factor),
        short_factors=numbers(scaling, "short_factor", source),
        long_factors=numbers(scaling, "long_factor", source),
    )


def _yarn_attention_factor(scaling: Json, source: str, factor: float) -> float:
    def scale(multiplier: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * multiplier * math.log(factor) + 1.0

    if scaling.get("mscale") and scaling.get("mscale_all_dim"):
        both = number(scaling, "mscale", source, 1.0), number(scaling, "mscale_all_dim", source, 1.0)
        return number(scaling, "attention_factor", source, scale(both[0]) / scale(both[1]))
    return number(scaling, "attention_factor", source, scale(1.0))
