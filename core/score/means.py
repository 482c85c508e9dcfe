"""Means of speedups that say how sure they are, and shares of fast ones."""

import math
from collections.abc import Sequence

import numpy as np

from core.records import Record


class Interval(Record):
    """A geometric mean with its bootstrap confidence interval."""

    mean: float
    low: float
    high: float
    level: float
    count: int


def geomean(values: Sequence[float]) -> float:
    """Return the geometric mean.

    Raises:
        ValueError: there are no values, or one is not positive and finite.
    """
    return math.exp(math.fsum(_logs(values)) / len(values))


def capped_geomean(values: Sequence[float], cap: float) -> float:
    """Return the geometric mean with each value above `cap` taken as `cap`, so that one outlier cannot carry it.

    Raises:
        ValueError: there are no values, one is not positive and finite, or the cap is not positive.
    """
    if not cap > 0:
        raise ValueError(f"the cap must be positive, not {cap}")
    return geomean([min(value, cap) for value in values])


def geomean_ci(values: Sequence[float], *, seed: int, level: float = 0.95, resamples: int = 10_000) -> Interval:
    """Return the geometric mean with the percentile bootstrap interval of its logarithm (Efron 1979).

    Args:
        values: one speedup a program; programs are what is resampled.
        seed: of the resampling: the same values and seed give the same interval.
        level: confidence, in (0, 1).
        resamples: how many.

    Raises:
        ValueError: there are no values, one is not positive and finite, or the level is no share.
    """
    if not 0 < level < 1:
        raise ValueError(f"the level must lie in (0, 1), not {level}")
    logs = np.asarray(_logs(values))
    draws = np.random.default_rng(seed).integers(0, len(logs), size=(resamples, len(logs)))
    low, high = np.quantile(logs[draws].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    mean = geomean(values)
    return Interval(
        mean=mean, low=min(mean, math.exp(low)), high=max(mean, math.exp(high)), level=level, count=len(values)
    )


def fast_p(speedups: Sequence[float | None], p: float) -> float:
    """Return the share of tasks that are correct and more than p times as fast as the baseline (KernelBench).

    Args:
        speedups: one a task; None for a task without a correct solution, which counts as not fast.
        p: the speedup to exceed.

    Raises:
        ValueError: there are no tasks.
    """
    if not speedups:
        raise ValueError("a share needs at least one task")
    return sum(s is not None and s > p for s in speedups) / len(speedups)


def _logs(values: Sequence[float]) -> list[float]:
    if not values:
        raise ValueError("a mean needs at least one value")
    bad = [value for value in values if not (value > 0 and math.isfinite(value))]
    if bad:
        raise ValueError(f"speedups must be positive and finite, not {bad[0]}")
    return [math.log(value) for value in values]
