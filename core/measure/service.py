"""The one place that says whether a candidate is faster: plans, times, looks, decides."""

import io
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from core.errors import BadInput
from core.machine import cpu
from core.machine.environment import Environment, environment
from core.measure import flags, statistics
from core.measure.comparison import Comparison, Decision, Stage
from core.measure.machine_lock import default_lock_path, machine_lock
from core.measure.samples import Block, BlockPlan, Clock, SampleSource
from core.records import Digest, Record, canonical_json, digest_bytes
from core.sandbox.policy import Sandbox

MIN_BLOCKS = 5
"""Fewer blocks never decide: a win must hold over at least five fresh processes."""
_FEWEST_FOR_AN_INTERVAL = 2
_SAMPLE_S = 2e-3
"""Target length of a sample where the source can repeat calls: short enough to fit in a scheduler slice."""
_TRUSTED_CALIBRATION_S = 2e-4
_FIRST_REPEATS, _MOST_REPEATS = 64, 10_000_000
_CORE_LOOK_S = 0.1
_OVERRUN = 1.25
"""The plan is made from one warm-up; a machine that became slower must not overrun the cap by more than this."""
_LARGEST_LOG = 20.0
"""Ratios beyond e**20 are reported as e**20: an interval from two blocks may be astronomically wide."""


class StageSettings(Record):
    """Caps of one stage."""

    wall_s: float
    """Time for samples; the number of pairs follows from it and the length of one sample."""
    stretch_s: float
    """Time that may be spent instead when programs are so long that `first` blocks do not fit into `wall_s`."""
    first: int
    """Blocks at the first look."""
    last: int
    """Most blocks."""
    looks: int
    """Most looks at the data."""
    pairs: int
    """Most pairs in a block."""


class MeasureSettings(Record):
    """How candidates are measured."""

    alpha: float = 0.01
    """Error of one comparison, both directions together."""
    margin: float = 0.01
    """Ratios within 1 +- margin count as `same` once the interval lies there."""
    rho: float = 1.5
    """Shape of the error spending over looks; see docs/measurement.md for the simulation that chose it."""
    clock: Clock = "cpu"
    """The clock that decides; the others are recorded and compared with it."""
    pin: bool = True
    """Run both arms on one core, the quietest."""
    screen: StageSettings = StageSettings(wall_s=1.0, stretch_s=20.0, first=6, last=10, looks=3, pairs=15)
    prove: StageSettings = StageSettings(wall_s=6.5, stretch_s=120.0, first=8, last=20, looks=5, pairs=25)
    lock: Path | None = None
    """The machine-wide lock; None: the one that all users share."""
    lock_wait_s: float = 1800.0


class BlobStore(Protocol):
    """Where raw samples go."""

    def put(self, data: bytes) -> Digest:
        """Keep bytes and return their digest."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What a comparison will do, fixed before the first sample counts (so that stopping stays honest)."""

    looks: tuple[int, ...]
    pairs: int
    repeats: int
    decisive: bool
    """False: the arms are so long that too few blocks fit for any decision."""
    limit_s: float
    """No further look is begun when it would end after this time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What a comparison saw at its last look."""

    estimate: float
    interval: statistics.Interval
    decision: Decision
    blocks: tuple[Block, ...]
    cut: bool
    """The time cap ended it before the last planned look."""


class Measure:
    """Compares two arms by timing them in the sandbox.

    Args:
        box: the sandbox that the arms run in.
        store: keeps the raw samples; None: they are not kept.
        settings: error level, margin, caps, clock.
    """

    def __init__(self, box: Sandbox, store: BlobStore | None = None, settings: MeasureSettings | None = None) -> None:
        self.settings = settings or MeasureSettings()
        self._box = box
        self._store = store
        self._core_times = (time.monotonic(), cpu.core_times())

    def compare(
        self,
        source: SampleSource,
        *,
        baseline: Digest,
        candidate: Digest,
        stage: Stage,
        seed: int,
        alpha: float | None = None,
    ) -> Comparison:
        """Time both arms of a source until the rule decides or a cap is reached.

        Args:
            source: the two arms; arm 0 is the baseline.
            baseline: identity of the baseline, for the record.
            candidate: identity of the candidate, for the record.
            stage: whose caps count; the stage also separates the random draws.
            seed: of orders, environment sizes and the bootstrap.
            alpha: error level in place of the settings', for example corrected for several proofs.

        Raises:
            ArmFailed: an arm crashed, hung or gave another output while it was timed.
            InfraError: the sandbox, the runner or the machine-wide lock failed.
            BadInput: alpha is not between 0 and 1.
        """
        alpha = self.settings.alpha if alpha is None else alpha
        if not 0 < alpha < 1:
            raise BadInput(f"The error level alpha is {alpha}.", "It must lie between 0 and 1, for example 0.01.")
        caps = self.settings.screen if stage == "screen" else self.settings.prove
        draw = int(digest_bytes(canonical_json([stage, seed]))[:12], 16)
        around = environment()
        with machine_lock(self.settings.lock or default_lock_path(), self.settings.lock_wait_s):
            start = time.monotonic()
            core = self._quietest_core() if self.settings.pin else None
            plan = plan_comparison(self._sample_times(source, draw, core), caps, source)
            evidence = self._decide(source, plan, alpha=alpha, draw=draw, core=core)
            wall_s = time.monotonic() - start
        blocks = evidence.blocks
        raised = flags.raised(
            blocks,
            evidence.decision,
            self.settings.clock,
            margin=self.settings.margin,
            load_per_core=around.load_1min / around.cores,
            layouts=source.layouts,
        )
        low, high = (_ratio(end) for end in evidence.interval)
        return Comparison(
            baseline=baseline,
            candidate=candidate,
            stage=stage,
            seed=seed,
            ratio=_ratio(evidence.estimate),
            low=low,
            high=high,
            level=1 - alpha,
            margin=self.settings.margin,
            decision=evidence.decision,
            rule=_told(plan, evidence, self.settings.rho),
            pairs=sum(len(block.wall_s) for block in blocks),
            clock=self.settings.clock,
            modelled=False,
            samples=self._store.put(packed(blocks, source, around)) if self._store else None,
            environment=around.digest(),
            wall_s=wall_s,
            flags=raised,
        )

    def _quietest_core(self) -> int | None:
        """Return the core that was least busy since the last comparison (or over a moment now)."""
        at, before = self._core_times
        if time.monotonic() - at < _CORE_LOOK_S:
            time.sleep(_CORE_LOOK_S)
        after = cpu.core_times()
        self._core_times = (time.monotonic(), after)
        return cpu.quietest_core(before, after)

    def _sample_times(self, source: SampleSource, draw: int, core: int | None) -> tuple[float, int]:
        """Return the elapsed time of one sample and the calls in it, after a warm-up that is thrown away."""
        repeats = 1
        while True:
            trial = BlockPlan(index=0, seed=draw, pairs=1, repeats=repeats, core=core)
            (block,) = source.take(self._box, [trial])
            # On a busy machine the wall clock sees mostly the others, so the deciding clock tells how long a call is.
            length_s = float(block.times(self.settings.clock).min())
            if not source.repeatable or length_s >= _TRUSTED_CALIBRATION_S or repeats >= _MOST_REPEATS:
                break
            repeats *= _FIRST_REPEATS
        sample_s = float(block.wall_s.mean())
        if source.repeatable:
            wanted = max(1, min(_MOST_REPEATS, round(repeats * _SAMPLE_S / length_s)))
            sample_s, repeats = sample_s * wanted / repeats, wanted
        return sample_s, repeats

    def _decide(self, source: SampleSource, plan: Plan, *, alpha: float, draw: int, core: int | None) -> Evidence:
        """Take blocks look by look until the interval decides, the looks end or the time does."""
        rule = statistics.Rule(looks=plan.looks, alpha=alpha, margin=self.settings.margin, rho=self.settings.rho)
        start = time.monotonic()
        blocks: list[Block] = []
        decision: Decision = "undecided"
        interval, estimate, cut = (-_LARGEST_LOG, _LARGEST_LOG), 0.0, False
        for look in plan.looks:
            taken_s = time.monotonic() - start
            ahead_s = taken_s / len(blocks) * (look - len(blocks)) if blocks else 0.0
            if blocks and taken_s + ahead_s > plan.limit_s:
                cut = True
                break
            indices = range(len(blocks), look)
            blocks += source.take(
                self._box,
                [BlockPlan(index=i, seed=draw, pairs=plan.pairs, repeats=plan.repeats, core=core) for i in indices],
            )
            values = flags.estimates(blocks, self.settings.clock)
            estimate = float(statistics.center(values))
            interval, supported = rule.judge(values, draw)
            decision = supported if plan.decisive else "undecided"
            if decision != "undecided":
                break
        return Evidence(estimate=estimate, interval=interval, decision=decision, blocks=tuple(blocks), cut=cut)


def plan_comparison(sample: tuple[float, int], caps: StageSettings, source: SampleSource) -> Plan:
    """Return the looks and pairs that fit into a stage's caps.

    Args:
        sample: elapsed seconds of one sample, and the calls in it.
        caps: the stage's.
        source: for its number of link layouts. A block needs a link layout of its own, so these bound the blocks
            (unless there is only one, when the link layout is not varied at all; below MIN_BLOCKS some are used
            again, and the comparison is flagged `few_layouts`).
    """
    sample_s, repeats = sample
    pair_s = 2 * sample_s
    most = caps.last if source.layouts == 1 else max(MIN_BLOCKS, min(caps.last, source.layouts))
    affordable = int(caps.wall_s / pair_s)
    if affordable < caps.first:
        affordable = min(caps.first, int(caps.stretch_s / pair_s))
    decisive = affordable >= MIN_BLOCKS
    last = min(most, affordable) if decisive else _FEWEST_FOR_AN_INTERVAL
    pairs = max(1, min(caps.pairs, affordable // last))
    return Plan(
        looks=statistics.look_schedule(min(caps.first, last), last, caps.looks),
        pairs=pairs,
        repeats=repeats,
        decisive=decisive,
        limit_s=_OVERRUN * max(caps.wall_s, last * pairs * pair_s),
    )


def packed(blocks: tuple[Block, ...], source: SampleSource, around: Environment) -> bytes:
    """Return raw samples as an npz file: one array a quantity, first axis the pairs of all blocks in order."""
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        block=np.repeat([block.index for block in blocks], [len(block.wall_s) for block in blocks]),
        wall_s=np.concatenate([block.wall_s for block in blocks]),
        cpu_s=np.concatenate([block.cpu_s for block in blocks]),
        thread_s=np.concatenate([block.thread_s for block in blocks]),
        switches=np.concatenate([block.switches for block in blocks]),
        source=np.frombuffer(canonical_json(source.describe()), np.uint8),
        environment=np.frombuffer(canonical_json(around.model_dump(mode="json")), np.uint8),
    )
    return buffer.getvalue()


def _told(plan: Plan, evidence: Evidence, rho: float) -> str:
    """Return the rule in words, with what it used."""
    used = f"{len(evidence.blocks)} blocks of {plan.pairs} pairs x {plan.repeats}"
    cut = ", time cap" if evidence.cut else ""
    return f"t on trimmed block medians, looks {list(plan.looks)}, stopped at {used}, spending t**{rho:g}{cut}"


def _ratio(log_ratio: float) -> float:
    return math.exp(max(-_LARGEST_LOG, min(_LARGEST_LOG, log_ratio)))
