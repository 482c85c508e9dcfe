"""The statistics of paired comparisons: pure functions over log ratios, no clock, no I/O.

A block is one replication: its estimate is the median log ratio (baseline / candidate) of its pairs. Blocks have fresh
layouts, so their scatter holds the luck of layouts as well as the noise of the clock; whatever is said about the
candidate is said from the block estimates alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import special

from core.measure.comparison import Decision

Floats = NDArray[np.float64]
Interval = tuple[float, float]

_GRID_POINTS = 801
_BOOTSTRAP_RESAMPLES = 2000
_TRIMMED_SHARE = 0.1
_USED_ALPHA = 0.85
"""Share of alpha that is given to the looks: intervals of trimmed means are a little too short (see `simulate`)."""


def block_estimate(times: Floats) -> float:
    """Return the median log ratio (baseline / candidate) of one block.

    Args:
        times: positive times, shape (pairs, 2): baseline and candidate.
    """
    return float(np.median(np.log(times[:, 0]) - np.log(times[:, 1])))


def spent(alpha: float, fraction: float, rho: float) -> float:
    """Return the two-sided error that may be spent when `fraction` of the blocks are seen.

    The power family alpha * fraction**rho (Kim and DeMets 1987): a small rho spends early, rho = 3 is close to
    O'Brien and Fleming.
    """
    return float(alpha * min(1.0, fraction) ** rho)


@lru_cache(maxsize=256)
def nominal_levels(looks: tuple[int, ...], alpha: float, rho: float) -> tuple[float, ...]:
    """Return the two-sided significance level to use at each look, so that all looks together err with `alpha`.

    The boundaries are those of a Brownian motion seen at the looks (recursive integration as in Armitage, McPherson
    and Rowe 1969, spending as in Lan and DeMets 1983); their levels are then used with the t distribution (the
    significance-level approach, Jennison and Turnbull 2000, section 4.4).

    Args:
        looks: block counts, rising; the last is the largest possible.
        alpha: error of the whole procedure, both directions together.
        rho: shape of the spending function.
    """
    if not looks or any(b <= a for a, b in pairwise(looks)):
        raise ValueError(f"looks must rise: {looks}")
    times = [n / looks[-1] for n in looks]
    levels: list[float] = []
    points, density, before, used = np.zeros(1), np.ones(1), 0.0, 0.0
    for time in times:
        sd = float(np.sqrt(time - before))
        want = spent(alpha, time, rho) - used
        bound = _exit_bound(points, density, sd, want)
        levels.append(float(2 * special.ndtr(-bound / np.sqrt(time))))
        grid, step = np.linspace(-bound, bound, _GRID_POINTS, retstep=True)
        kernel = np.exp(-0.5 * ((grid[:, None] - points[None, :]) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
        weights = np.full(_GRID_POINTS, float(step))
        weights[[0, -1]] /= 2
        points, density = grid, (kernel @ density) * weights
        before, used = time, used + want
    return tuple(levels)


def _exit_bound(points: Floats, density: Floats, sd: float, want: float) -> float:
    """Return b such that a step of size N(0, sd) from the weighted points leaves [-b, b] with probability `want`."""

    def leaves(bound: float) -> float:
        both = special.ndtr((-bound - points) / sd) + special.ndtr((points - bound) / sd)
        return float(both @ density)

    low, high = 0.0, 20.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if leaves(middle) > want else (low, middle)
    return (low + high) / 2


def center(values: Floats) -> Floats:
    """Return the trimmed mean along the last axis: a tenth of the blocks is left out at either end.

    A burst of other work on the machine can spoil a whole block, and one such block would blind a plain mean.
    """
    cut = int(_TRIMMED_SHARE * values.shape[-1])
    ordered = np.sort(values, axis=-1)
    return np.asarray(ordered[..., cut : values.shape[-1] - cut].mean(axis=-1))


def t_interval(values: Floats, level: float) -> Interval:
    """Return the two-sided interval of the trimmed mean at significance `level` (for example 0.01).

    The standard error comes from the winsorised values (Tukey and McLaughlin 1963); below ten values nothing is
    trimmed, and this is the t interval of the mean. Needs two values.
    """
    n = len(values)
    cut = int(_TRIMMED_SHARE * n)
    kept = n - 2 * cut
    ordered = np.sort(values)
    winsorised = np.clip(values, ordered[cut], ordered[n - 1 - cut])
    error = float(np.std(winsorised, ddof=1)) * float(np.sqrt(n)) / kept
    half = float(special.stdtrit(kept - 1, 1 - level / 2)) * error
    middle = float(center(values))
    return middle - half, middle + half


def bootstrap_interval(values: Floats, level: float, seed: int) -> Interval:
    """Return the percentile interval of the trimmed mean when blocks are drawn again with replacement.

    Values are sorted first and both signs are drawn, so that neither the order of the blocks nor swapping the arms
    changes anything but the sign.
    """
    rows = _trimmed_draws(len(values), seed)
    ends = np.array([level / 2, 1 - level / 2])
    up = np.quantile(np.sort(values)[rows].mean(axis=1), ends)
    down = -np.quantile(np.sort(-values)[rows].mean(axis=1), ends)
    return float(min(up[0], down[1])), float(max(up[1], down[0]))


@lru_cache(maxsize=64)
def _trimmed_draws(n: int, seed: int) -> NDArray[np.int64]:
    """Return indices into sorted values: each row a sample with replacement, its trimmed ends left out."""
    cut = int(_TRIMMED_SHARE * n)
    rows = np.random.default_rng(seed).integers(0, n, size=(_BOOTSTRAP_RESAMPLES, n))
    return np.sort(rows, axis=1)[:, cut : n - cut]


def repeated_interval(values: Floats, nominal: float, alpha: float, seed: int) -> Interval:
    """Return the interval that a look decides by: the t interval at the look's level, widened to the bootstrap's.

    Args:
        values: block estimates.
        nominal: the look's significance level from `nominal_levels`; at most `alpha`.
        alpha: error of the whole procedure; the bootstrap's level.
        seed: of the bootstrap.
    """
    low, high = t_interval(values, nominal)
    boot_low, boot_high = bootstrap_interval(values, alpha, seed)
    return min(low, boot_low), max(high, boot_high)


def decide(interval: Interval, margin: float) -> Decision:
    """Return the decision that an interval of the log ratio supports.

    Args:
        interval: of log(baseline / candidate).
        margin: `same` means that the ratio lies inside [1 / (1 + margin), 1 + margin].
    """
    low, high = interval
    if low > 0:
        return "faster"
    if high < 0:
        return "slower"
    edge = float(np.log1p(margin))
    return "same" if -edge <= low and high <= edge else "undecided"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A group-sequential rule: at which block counts to look, and what each look may say."""

    looks: tuple[int, ...]
    alpha: float
    """Error of all looks together, both directions."""
    margin: float
    """See `decide`."""
    rho: float
    """See `spent`."""

    def judge(self, values: Floats, seed: int) -> tuple[Interval, Decision]:
        """Return the interval and the decision at the look that has as many blocks as there are values.

        Args:
            values: block estimates.
            seed: of the bootstrap.
        """
        levels = nominal_levels(self.looks, _USED_ALPHA * self.alpha, self.rho)
        nominal = levels[self.looks.index(len(values))]
        interval = repeated_interval(values, nominal, self.alpha, seed)
        return interval, decide(interval, self.margin)


def look_schedule(first: int, last: int, count: int) -> tuple[int, ...]:
    """Return at most `count` rising block counts from `first` to `last`, about equally far apart in ratio."""
    if last <= first or count == 1:
        return (last,)
    return tuple(sorted({round(float(n)) for n in np.geomspace(first, last, count)}))


def sign_disagreement(values: Sequence[float]) -> float:
    """Return the share of blocks whose sign differs from the mean's."""
    array = np.asarray(values, dtype=float)
    return float(np.mean(np.sign(array) == -np.sign(array.mean())))
