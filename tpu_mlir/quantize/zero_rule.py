"""Telling GPTQ versions 1 and 2 apart by values: they differ only in whether a zero point is stored less one."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tpu_mlir.quantize.bit_packing import unpack_words
from tpu_mlir.quantize.findings import Finding
from tpu_mlir.quantize.formats import LayerFormat, ZeroRule
from tpu_mlir.quantize.gptq import stored_zeros

SAMPLED_LAYERS = 8
SAMPLED_WORDS = 64
"""Rows of words of a layer that are looked at: some hundred inputs."""
VERSION = {
    "minus_one": "version 1 (zero points stored less one)",
    "plain": "version 2 (zero points stored as they are)",
}


def decide_zero_rule(
    layers: Sequence[LayerFormat], tensors: Mapping[str, npt.NDArray[Any]], declared: ZeroRule | None
) -> tuple[ZeroRule, list[Finding]]:
    """Return the rule for zero points and what to tell the user.

    Symmetric layers show it outright: all their zero points are the middle of the range, or one less. In asymmetric
    ones, weights average about zero, so that codes average about the real zero point: the mean of code minus stored
    zero point is about 0 for version 2 and about 1 for version 1. Only a clear mean decides; otherwise the config
    does, and without one version 1, by far the more common.

    Args:
        layers: the GPTQ layers.
        tensors: the checkpoint's tensors.
        declared: the rule that the config claims.
    """
    every = len(layers) // SAMPLED_LAYERS + 1
    shown = _shown(layers[::every], tensors)
    rule: ZeroRule = shown or declared or "minus_one"
    findings = []
    if shown is not None and declared is not None and shown != declared:
        findings.append(
            Finding(
                subject="zero points",
                message=(
                    f"The config says GPTQ {VERSION[declared]}, the values show {VERSION[shown]}: the values are used."
                ),
            )
        )
    if shown is None and declared is None:
        findings.append(
            Finding(
                subject="zero points",
                message=f"Neither config nor values tell the GPTQ version: {VERSION[rule]} is used.",
            )
        )
    if rule == "minus_one":
        findings += _wrapped(layers, tensors)
    return rule, findings


def _shown(layers: Sequence[LayerFormat], tensors: Mapping[str, npt.NDArray[Any]]) -> ZeroRule | None:
    means: list[npt.NDArray[np.float64]] = []
    for layer in layers:
        stored = stored_zeros(tensors[f"{layer.layer}.qzeros"], layer.bits)
        middle = 1 << (layer.bits - 1)
        if (stored == middle - 1).all():
            return "minus_one"
        if (stored == middle).all():
            return "plain"
        words = tensors[f"{layer.layer}.qweight"][:SAMPLED_WORDS]
        codes = unpack_words(np.ascontiguousarray(words), layer.bits, axis=0)
        group_of = np.arange(len(codes)) // layer.group_size
        g_idx = tensors.get(f"{layer.layer}.g_idx")
        if g_idx is not None and g_idx.size:
            group_of = np.clip(g_idx[: len(codes)], 0, len(stored) - 1)
        zeros = stored[group_of]
        # A zero point at an end of the range belongs to one-sided weights, which don't average zero.
        inner = (zeros > 0) & (zeros < (1 << layer.bits) - 2)
        differences = np.where(inner, codes.astype(np.float64) - zeros, 0.0)
        used = inner.sum(axis=0)
        means.append(differences.sum(axis=0)[used > 0] / used[used > 0])
    columns = np.concatenate(means)
    if columns.size < 2:
        return None
    mean, error = float(columns.mean()), float(columns.std(ddof=1) / np.sqrt(columns.size))
    if abs(mean - 0.5) < 4 * error or not -0.5 < mean < 1.5:
        return None
    return "minus_one" if mean > 0.5 else "plain"


def _wrapped(layers: Sequence[LayerFormat], tensors: Mapping[str, npt.NDArray[Any]]) -> list[Finding]:
    count, first = 0, None
    for layer in layers:
        ones = int((stored_zeros(tensors[f"{layer.layer}.qzeros"], layer.bits) == (1 << layer.bits) - 1).sum())
        count += ones
        first = first or (layer.layer if ones else None)
    if first is None:
        return []
    return [
        Finding(
            subject=first,
            message=(
                f"{count} zero points are stored as all ones, on which readers of GPTQ version 1 disagree: taken as 0."
            ),
        )
    ]
