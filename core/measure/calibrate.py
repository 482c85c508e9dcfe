"""A/A controls: what this machine's noise makes of a comparison in which nothing differs."""

import dataclasses
from dataclasses import dataclass

import numpy as np

from core.errors import BadInput
from core.measure.comparison import Comparison, Stage
from core.measure.processes import WholeProcesses
from core.measure.samples import SampleSource
from core.measure.service import Measure
from core.records import Digest, Record, digest_json

_LEVEL = 0.95


class Calibration(Record):
    """Outcome of A/A controls; every run keeps one as aa.json."""

    stage: Stage
    controls: int
    wrong: int
    """Controls decided faster or slower, although nothing differed."""
    wrong_rate: tuple[float, float]
    """95% interval (Clopper-Pearson) of the rate of wrong decisions."""
    same: int
    spread: float
    """Root mean square of log(ratio), whose true value is 0, over the controls."""
    half_width: float
    """Median half width of log(ratio)'s interval: what could be resolved."""
    alpha: float
    flags: dict[str, int]
    """How many controls raised each flag."""
    environment: Digest
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """A share with its 95% Clopper-Pearson interval."""

    share: float
    interval: tuple[float, float]


def rate(hits: int, trials: int) -> Rate:
    """Return the share of hits with its interval; `trials` must be at least 1."""
    from scipy import stats

    found = stats.binomtest(hits, trials).proportion_ci(confidence_level=_LEVEL, method="exact")
    return Rate(share=hits / trials, interval=(float(found.low), float(found.high)))


def control(source: WholeProcesses) -> WholeProcesses:
    """Return a source whose arms are both the baseline, under different link layouts when there are enough of them.

    Layouts are split between the arms, not shared: sharing would make the luck of layouts cancel out.
    """
    half = len(source.baseline) // 2
    arms = (source.baseline[:half], source.baseline[half : 2 * half]) if half else (source.baseline, source.baseline)
    return dataclasses.replace(source, baseline=arms[0], candidate=arms[1])


def calibrate(measure: Measure, source: SampleSource, *, controls: int, stage: Stage, seed: int) -> Calibration:
    """Run A/A controls and summarise them.

    Args:
        measure: measures as it would in earnest.
        source: both of whose arms are the same program (see `control`).
        controls: how many.
        stage: whose caps count.
        seed: of the controls' own seeds.

    Raises:
        BadInput: no controls were asked for.
    """
    if controls < 1:
        raise BadInput(f"{controls} A/A controls were asked for.", "At least one is needed.")
    identity = digest_json(source.describe())
    done = tuple(
        measure.compare(source, baseline=identity, candidate=identity, stage=stage, seed=seed + index)
        for index in range(controls)
    )
    return summarise(done, alpha=measure.settings.alpha)


def summarise(done: tuple[Comparison, ...], *, alpha: float) -> Calibration:
    """Summarise comparisons that were A/A controls; all of one stage and one machine."""
    wrong = sum(one.decision in ("faster", "slower") for one in done)
    logs = np.log([one.ratio for one in done])
    return Calibration(
        stage=done[0].stage,
        controls=len(done),
        wrong=wrong,
        wrong_rate=rate(wrong, len(done)).interval,
        same=sum(one.decision == "same" for one in done),
        spread=float(np.sqrt(np.mean(logs**2))),
        half_width=float(np.median([np.log(one.high / one.low) / 2 for one in done])),
        alpha=alpha,
        flags={name: sum(name in one.flags for one in done) for name in sorted({f for one in done for f in one.flags})},
        environment=done[0].environment,
        comparisons=done,
    )
