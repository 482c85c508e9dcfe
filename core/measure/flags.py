"""Warnings about a comparison, found in its own samples. Each is explained in docs/measurement.md."""

from collections.abc import Sequence

import numpy as np

from core.measure import statistics
from core.measure.comparison import Decision
from core.measure.samples import Block, Clock

SHORT_SAMPLE_S = 1e-3
"""Below this, clock granularity and start-up are a visible part of a sample."""
_DISAGREEMENT_LEVEL = 0.01
_DISAGREEING_SHARE = 0.1
_WAITING_SHARE = 0.25
_EXCESS = 1.5
_MEDIAN_STEP, _SD_OF_MEDIAN = 0.9539, 1.2533
"""For normal noise of deviation 1: median absolute difference of two values; deviation of a median by a mean's."""


def raised(
    blocks: Sequence[Block], decision: Decision, clock: Clock, *, margin: float, load_per_core: float, layouts: int
) -> tuple[str, ...]:
    """Return the flags that the samples raise, sorted.

    Args:
        blocks: all blocks of the comparison.
        decision: what was decided by `clock`.
        clock: the clock that decided.
        margin: relative difference that matters.
        load_per_core: load average at the start, by the number of usable cores.
        layouts: link layouts of the source; with fewer than blocks some were used twice.
    """
    conditions = {
        "suspect": _suspect(blocks, decision, clock, margin),
        "layout_dependent": _layout_dependent(blocks, decision, clock),
        "loaded_machine": load_per_core > 1 or _waiting_share(blocks) > _WAITING_SHARE,
        "short_samples": _median_s(blocks, clock) < SHORT_SAMPLE_S,
        "few_layouts": layouts < len(blocks),
    }
    return tuple(sorted(name for name, holds in conditions.items() if holds))


def estimates(blocks: Sequence[Block], clock: Clock) -> statistics.Floats:
    """Return the block estimates (median log ratios) by one clock."""
    return np.array([statistics.block_estimate(block.times(clock)) for block in blocks])


def _suspect(blocks: Sequence[Block], decision: Decision, clock: Clock, margin: float) -> bool:
    """Whether another clock contradicts a decision: work may have been moved to where the deciding clock is blind."""
    if any(block.extra_threads for block in blocks):
        return True
    if decision not in ("faster", "slower") or len(blocks) < 2:
        return False
    sign = 1.0 if decision == "faster" else -1.0
    decided = sign * estimates(blocks, clock)
    others = (
        sign * estimates(blocks, "wall" if clock == "cpu" else "cpu"),
        sign * np.array([statistics.block_estimate(block.thread_s) for block in blocks]),
    )
    for other in others:
        gap = decided - other
        if not np.any(gap):
            continue
        low, _ = statistics.t_interval(gap, _DISAGREEMENT_LEVEL)
        if low > 0 and gap.mean() > max(float(np.log1p(margin)), float(decided.mean()) / 2):
            return True
    return False


def _layout_dependent(blocks: Sequence[Block], decision: Decision, clock: Clock) -> bool:
    """Whether blocks contradict the decision, and scatter more than the noise of their pairs explains."""
    if decision not in ("faster", "slower"):
        return False
    values = estimates(blocks, clock)
    if statistics.sign_disagreement(list(values)) < _DISAGREEING_SHARE:
        return False
    pairs = len(blocks[0].wall_s)
    if pairs < 2:  # nothing tells noise from layout
        return False
    times = [np.log(block.times(clock)) for block in blocks]
    steps = np.concatenate([np.diff(t[:, 0] - t[:, 1]) for t in times])
    pair_sd = float(np.median(np.abs(steps))) / _MEDIAN_STEP
    return float(np.std(values, ddof=1)) > _EXCESS * _SD_OF_MEDIAN * pair_sd / float(np.sqrt(pairs))


def _waiting_share(blocks: Sequence[Block]) -> float:
    """Return the share of elapsed time in which the arms were not running."""
    wall = sum(float(block.wall_s.sum()) for block in blocks)
    cpu = sum(float(block.cpu_s.sum()) for block in blocks)
    return max(0.0, 1 - cpu / wall)


def _median_s(blocks: Sequence[Block], clock: Clock) -> float:
    return float(np.median(np.concatenate([block.times(clock).ravel() for block in blocks])))
