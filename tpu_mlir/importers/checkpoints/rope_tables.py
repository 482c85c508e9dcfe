"""Precomputed cos and sin tables of rotary position embeddings."""

import math

import numpy as np
import numpy.typing as npt

from tpu_mlir.importers.checkpoints.model_config import ModelConfig, Rope

Floats = npt.NDArray[np.float64]


def rope_tables(config: ModelConfig, positions: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return cos and sin tables [positions, head_dim], both halves of a row equal (the halves layout of Hugging Face).

    Scalings that depend on the sequence length (dynamic, longrope) take it to be ``positions``, the longest that the
    compiled model can hold: rows do not change while a text grows.

    Args:
        config: the model.
        positions: rows, the greatest sequence length.
    """
    frequencies = inverse_frequencies(config.rope, config.head_dim, positions)
    angles = np.arange(positions, dtype=np.float64)[:, None] * frequencies
    both = np.concatenate([angles, angles], axis=1)
    factor = config.rope.attention_factor
    return (np.cos(both) * factor).astype(np.float32), (np.sin(both) * factor).astype(np.float32)


def inverse_frequencies(rope: Rope, head_dim: int, positions: int) -> Floats:
    """Return radians a position for each of the head_dim / 2 pairs.

    Sources: "YaRN" (arXiv 2309.00071), "LongRoPE" (arXiv 2402.13753), the Llama 3.1 release for llama3; linear and
    dynamic as Hugging Face models define them.
    """
    exponents = np.arange(0, head_dim, 2, dtype=np.float64) / head_dim
    plain: Floats = 1.0 / rope.theta**exponents
    if rope.kind == "linear":
        return np.asarray(plain / rope.factor)
    if rope.kind == "dynamic":
        length = max(positions, rope.original_max_positions)
        stretch = rope.factor * length / rope.original_max_positions - (rope.factor - 1)
        return np.asarray(1.0 / (rope.theta * stretch ** (head_dim / (head_dim - 2))) ** exponents)
    if rope.kind == "llama3":
        return _llama3(rope, plain)
    if rope.kind == "yarn":
        return _yarn(rope, plain, head_dim)
    if rope.kind == "longrope":
        factors = rope.long_factors if positions > rope.original_max_positions else rope.short_factors
        return np.asarray(plain / np.asarray(factors))
    return plain


def _llama3(rope: Rope, plain: Floats) -> Floats:
    turns = rope.original_max_positions * plain / (2 * math.pi)
    low, high = rope.low_frequency_factor, rope.high_frequency_factor
    keep = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return np.asarray((1 - keep) * plain / rope.factor + keep * plain)


def _yarn(rope: Rope, plain: Floats, head_dim: int) -> Floats:
    def pair_that_turns(times: float) -> float:
        ratio = rope.original_max_positions / (times * 2 * math.pi)
        return head_dim * math.log(ratio) / (2 * math.log(rope.theta))

    low, high = pair_that_turns(rope.beta_fast), pair_that_turns(rope.beta_slow)
    if rope.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    if low == high:
        high += 0.001
    ramp = np.clip((np.arange(head_dim // 2) - low) / (high - low), 0.0, 1.0)
    return np.asarray(ramp * plain / rope.factor + (1 - ramp) * plain)
