"""A histogram of activations that grows with its data and never depends on the order of the data."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.errors import BadInput

HALF_BINS = 4096
"""Bins on each side of zero. At least half of them lie below the largest magnitude, since the limit is a power of
two."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Histogram:
    """Counts of non-zero values in equal bins over [-limit, limit].

    The limit is the least power of two above all magnitudes seen. Doubling it merges bins in pairs, which
    loses nothing but resolution: the histogram of a stream equals that of all its data at once.
    """

    counts: npt.NDArray[np.int64]
    """2 * HALF_BINS counts, the first for values near -limit."""
    limit: float
    low: float
    """Least value seen, zeros included."""
    high: float
    zeros: int
    """Exact zeros, which every quantisation represents exactly; they are in no bin."""

    @property
    def total(self) -> int:
        """Values seen."""
        return int(self.counts.sum()) + self.zeros

    @property
    def width(self) -> float:
        """Width of a bin."""
        return self.limit / HALF_BINS

    def magnitudes(self) -> npt.NDArray[np.int64]:
        """Return counts by magnitude: HALF_BINS bins over [0, limit]."""
        return self.counts[HALF_BINS:] + self.counts[:HALF_BINS][::-1]


def histogram_of(name: str, values: npt.NDArray[np.generic]) -> Histogram:
    """Return the histogram of one array.

    Args:
        name: the tensor, for messages.
        values: at least one number.

    Raises:
        BadInput: the array is empty, or has infinities or NaN; names the tensor.
    """
    flat = np.asarray(values, dtype=np.float64).reshape(-1)
    if not flat.size or not np.isfinite(flat).all():
        raise BadInput(
            f"Activation {name} is empty, or has infinities or NaN.", "Calibrate with inputs that the model can handle."
        )
    low, high = float(flat.min()), float(flat.max())
    limit = _limit(max(-low, high))
    used = flat[flat != 0]
    # floor keeps a value in the same bin, or its merged pair, for every power-of-two limit.
    bins = np.floor(used * (HALF_BINS / limit)).astype(np.int64) + HALF_BINS
    counts = np.bincount(np.clip(bins, 0, 2 * HALF_BINS - 1), minlength=2 * HALF_BINS)
    return Histogram(counts=counts.astype(np.int64), limit=limit, low=low, high=high, zeros=flat.size - used.size)


def merge(a: Histogram, b: Histogram) -> Histogram:
    """Return the histogram of the data of both."""
    limit = max(a.limit, b.limit)
    return Histogram(
        counts=_widened(a, limit) + _widened(b, limit),
        limit=limit,
        low=min(a.low, b.low),
        high=max(a.high, b.high),
        zeros=a.zeros + b.zeros,
    )


def _limit(magnitude: float) -> float:
    if magnitude == 0:
        return 2.0**-126
    _, exponent = np.frexp(magnitude)
    # The mantissa is below 1, so the power of two is above the magnitude, and no value falls on the last edge.
    return float(np.ldexp(1.0, int(max(exponent, -126))))


def _widened(histogram: Histogram, limit: float) -> npt.NDArray[np.int64]:
    factor = int(min(limit / histogram.limit, HALF_BINS))
    if factor == 1:
        return histogram.counts
    merged = histogram.counts.reshape(-1, factor).sum(axis=1)
    half = HALF_BINS // factor
    counts = np.zeros_like(histogram.counts)
    counts[HALF_BINS - half : HALF_BINS + half] = merged
    return counts
