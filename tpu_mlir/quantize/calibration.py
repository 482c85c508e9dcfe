"""Ranges of activations for int8, chosen from histograms by maximum, percentile, squared error or KL divergence."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from core.errors import BadInput
from core.records import Record
from tpu_mlir.quantize.histogram import HALF_BINS, Histogram, histogram_of, merge

Method = Literal["max", "percentile", "mse", "kl"]
LEVELS = 128
"""Magnitudes of an int8 code."""
CANDIDATES = 256
"""Thresholds tried by the methods that search."""


class ActivationRange(Record):
    """Values of an activation that int8 codes should cover; it always includes zero."""

    low: float
    high: float
    method: Method
    values: int
    """How many values it was chosen from."""


class Int8Parameters(Record):
    """value = (code - zero_point) * scale, codes from -128 to 127."""

    scale: float
    zero_point: int


class ActivationStatistics:
    """Histograms of a model's activations by name, filled one array at a time."""

    def __init__(self) -> None:
        self._histograms: dict[str, Histogram] = {}

    @property
    def histograms(self) -> Mapping[str, Histogram]:
        """What was seen so far."""
        return dict(self._histograms)

    def observe(self, name: str, values: npt.NDArray[Any]) -> None:
        """Count the values of an activation.

        Raises:
            BadInput: the array is empty, or has infinities or NaN; names the activation.
        """
        seen = histogram_of(name, values)
        self._histograms[name] = merge(self._histograms[name], seen) if name in self._histograms else seen

    def ranges(self, method: Method, percentile: float = 99.99) -> dict[str, ActivationRange]:
        """Return the chosen range of every activation."""
        return {name: choose_range(histogram, method, percentile) for name, histogram in self._histograms.items()}


def choose_range(histogram: Histogram, method: Method, percentile: float = 99.99) -> ActivationRange:
    """Return the range that int8 codes should cover.

    Args:
        histogram: of the activation.
        method: "max": all values. "percentile": all but the outermost magnitudes. "mse": the threshold on magnitudes
            with the least squared error of symmetric int8. "kl": the one whose 128 levels keep the distribution of
            magnitudes best (Kullback-Leibler divergence).
        percentile: percent of the values that "percentile" keeps.

    Raises:
        BadInput: the percentile is not in (0, 100].
    """
    largest = max(-histogram.low, histogram.high)
    if not 0 < percentile <= 100:
        raise BadInput(f"The percentile is {percentile}.", "It must be above 0 and at most 100.")
    if largest == 0 or method == "max":
        threshold = largest
    elif method == "percentile":
        threshold = _percentile_threshold(histogram, percentile)
    elif method == "mse":
        threshold = _mse_threshold(histogram)
    else:
        threshold = _kl_threshold(histogram)
    return ActivationRange(
        low=min(max(histogram.low, -threshold), 0.0),
        high=max(min(histogram.high, threshold), 0.0),
        method=method,
        values=histogram.total,
    )


def symmetric_int8(chosen: ActivationRange) -> Int8Parameters:
    """Return parameters with zero point 0, codes -127 to 127 covering the larger side."""
    largest = max(-chosen.low, chosen.high)
    return Int8Parameters(scale=largest / 127 if largest else 1.0, zero_point=0)


def asymmetric_int8(chosen: ActivationRange) -> Int8Parameters:
    """Return parameters whose 256 codes cover the range; zero is a code exactly."""
    span = chosen.high - chosen.low
    scale = span / 255 if span else 1.0
    return Int8Parameters(scale=scale, zero_point=int(np.clip(round(-128 - chosen.low / scale), -128, 127)))


def quantise_int8(values: npt.NDArray[Any], parameters: Int8Parameters) -> npt.NDArray[np.int8]:
    """Return the nearest codes, ties to even, saturating."""
    scaled = np.rint(values.astype(np.float64) / parameters.scale) + parameters.zero_point
    return np.asarray(np.clip(scaled, -128, 127), dtype=np.int8)


def dequantise_int8(codes: npt.NDArray[np.int8], parameters: Int8Parameters) -> npt.NDArray[np.float32]:
    """Return the values of codes."""
    return ((codes.astype(np.float64) - parameters.zero_point) * parameters.scale).astype(np.float32)


def _percentile_threshold(histogram: Histogram, percentile: float) -> float:
    kept = np.cumsum(histogram.magnitudes()) + histogram.zeros
    last = int(np.searchsorted(kept, histogram.total * percentile / 100))
    return min((last + 1) * histogram.width, max(-histogram.low, histogram.high))


def _candidate_bins(histogram: Histogram) -> npt.NDArray[np.int64]:
    used = int(np.ceil(max(-histogram.low, histogram.high) / histogram.width))
    return np.unique(np.linspace(min(LEVELS, used), min(used, HALF_BINS), CANDIDATES).astype(np.int64))


def _mse_threshold(histogram: Histogram) -> float:
    counts = histogram.magnitudes()
    centres = (np.arange(HALF_BINS) + 0.5) * histogram.width
    largest = max(-histogram.low, histogram.high)
    best, best_error = largest, np.inf
    for bins in _candidate_bins(histogram):
        threshold = min(float(bins) * histogram.width, largest)
        scale = threshold / (LEVELS - 1)
        error = centres - np.clip(np.rint(centres / scale), 0, LEVELS - 1) * scale
        # Values spread evenly over a bin: their own variance about the centre is the same for all thresholds.
        total = float(np.dot(counts, error * error))
        if total <= best_error:
            best, best_error = threshold, total
    return best


def _kl_threshold(histogram: Histogram) -> float:
    counts = histogram.magnitudes().astype(np.float64)
    largest = max(-histogram.low, histogram.high)
    best, best_divergence = largest, np.inf
    for bins in _candidate_bins(histogram):
        divergence = _divergence(counts, int(bins))
        if divergence <= best_divergence:
            best, best_divergence = min(float(bins) * histogram.width, largest), divergence
    return best


def _divergence(counts: npt.NDArray[np.float64], bins: int) -> float:
    """Return KL(clipped distribution || its 128-level version), both over the first bins."""
    kept = counts[:bins]
    clipped = kept.copy()
    clipped[-1] += counts[bins:].sum()
    level = np.arange(bins) * min(LEVELS, bins) // bins
    filled = kept > 0
    mass = np.bincount(level, weights=kept, minlength=LEVELS)
    places = np.bincount(level, weights=filled, minlength=LEVELS)
    spread = np.where(filled, mass[level] / np.maximum(places[level], 1), 0.0)
    if not spread.sum():
        return float("inf")
    p, q = clipped / clipped.sum(), spread / spread.sum()
    some = p > 0
    # A bin that only clipped values fill has no mass in q: a small floor keeps the divergence finite but large.
    return float(np.sum(p[some] * np.log(p[some] / np.maximum(q[some], 1e-12))))
