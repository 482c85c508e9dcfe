"""Error rate, coverage and power of the decision rule on seeded synthetic noise.

`python -m core.measure.simulate [TRIALS]` prints the table of docs/measurement.md.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.measure import statistics
from core.measure.comparison import Decision
from core.measure.service import MeasureSettings, StageSettings

Noise = Literal["normal", "student", "contaminated", "two_speeds"]
NOISES: tuple[Noise, ...] = ("normal", "student", "contaminated", "two_speeds")
_PAIRS = 4
_PAIR_SD, _LAYOUT_SD = 0.02, 0.01


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """What became of simulated comparisons."""

    faster: float
    slower: float
    same: float
    covered: float
    """Share of final intervals that hold the true log ratio."""
    blocks: float
    """Mean blocks used."""


def noisy_blocks(rng: np.random.Generator, shape: tuple[int, int], effect: float, noise: Noise) -> statistics.Floats:
    """Return block estimates: medians of 4 noisy pairs plus the luck of each arm's layout.

    Args:
        rng: source of randomness.
        shape: (trials, blocks).
        effect: true log ratio.
        noise: of the pairs: `normal`; `student` with 2 degrees of freedom; `contaminated`, where something else hits
            a sixth of the pairs 15 times harder; `two_speeds`, where each link of either arm is fast or 5% slower.
    """
    pairs = (*shape, _PAIRS)
    error = _PAIR_SD * (rng.standard_t(2, pairs) if noise == "student" else rng.standard_normal(pairs))
    if noise == "contaminated":
        error *= np.where(rng.random(pairs) < 1 / 6, 15, 1)
    if noise == "two_speeds":
        luck = rng.choice([0.0, 0.05], size=(*shape, 2))
    else:
        luck = rng.normal(0, _LAYOUT_SD / np.sqrt(2), (*shape, 2))
    return np.asarray(np.median(error, axis=2) + luck[..., 0] - luck[..., 1] + effect, dtype=np.float64)


def sequential(blocks: statistics.Floats, rule: statistics.Rule) -> tuple[Decision, statistics.Interval, int]:
    """Apply the rule look by look, as `Measure` does; return decision, final interval and blocks used."""
    for look in rule.looks:
        interval, decision = rule.judge(blocks[:look], seed=look)
        if decision != "undecided":
            break
    return decision, interval, look


def rates(trials: int, effect: float, noise: Noise, rule: statistics.Rule, seed: int) -> Rates:
    """Simulate comparisons and count what was decided."""
    data = noisy_blocks(np.random.default_rng(seed), (trials, rule.looks[-1]), effect, noise)
    found = [sequential(blocks, rule) for blocks in data]

    def share(decision: Decision) -> float:
        return sum(one == decision for one, _, _ in found) / trials

    return Rates(
        faster=share("faster"),
        slower=share("slower"),
        same=share("same"),
        covered=sum(low <= effect <= high for _, (low, high), _ in found) / trials,
        blocks=sum(used for _, _, used in found) / trials,
    )


def stage_rule(caps: StageSettings, settings: MeasureSettings) -> statistics.Rule:
    """Return the rule of a stage when time allows all its blocks."""
    looks = statistics.look_schedule(caps.first, caps.last, caps.looks)
    return statistics.Rule(looks=looks, alpha=settings.alpha, margin=settings.margin, rho=settings.rho)


def table(trials: int) -> Iterator[str]:
    """Yield the lines of a Markdown table over stages, noises and effects."""
    settings = MeasureSettings()
    yield f"{trials} trials a row, alpha = {settings.alpha:g}, margin = {settings.margin:g}, {_PAIRS} pairs a block"
    yield ""
    yield "| stage | noise | true gain | faster | slower | same | interval holds the truth | blocks |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for stage, caps in (("screen", settings.screen), ("prove", settings.prove)):
        rule = stage_rule(caps, settings)
        for noise in NOISES:
            for gain in (0.0, 0.03, 0.1):
                r = rates(trials, float(np.log1p(gain)), noise, rule, seed=1)
                shares = " | ".join(f"{share:.1%}" for share in (r.faster, r.slower, r.same, r.covered))
                yield f"| {stage} | {noise} | {gain:.0%} | {shares} | {r.blocks:.1f} |"


if __name__ == "__main__":
    for line in table(int(sys.argv[1]) if len(sys.argv) > 1 else 2000):
        print(line, flush=True)
