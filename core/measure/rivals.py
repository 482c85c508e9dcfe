"""The decision rules of other timers, to be judged on the same samples as ours."""

import numpy as np

from core.measure.comparison import Decision
from core.measure.samples import Floats


def mean_and_deviation(times: Floats) -> Decision:
    """Decide as readers of hyperfine's output do: another mean, and "mean +- standard deviation" do not overlap.

    Args:
        times: shape (samples, 2): baseline and candidate.
    """
    mean, deviation = times.mean(axis=0), times.std(axis=0, ddof=1)
    low, high = mean - deviation, mean + deviation
    if high[1] < low[0]:
        return "faster"
    return "slower" if high[0] < low[1] else "undecided"


def minimum(times: Floats, margin: float) -> Decision:
    """Decide by the shortest sample of each arm: another one by more than the margin.

    Args:
        times: shape (samples, 2): baseline and candidate.
        margin: ratio of the minima that is still called the same.
    """
    baseline, candidate = times.min(axis=0)
    gain = float(np.log(baseline / candidate))
    if abs(gain) <= np.log1p(margin):
        return "same"
    return "faster" if gain > 0 else "slower"
