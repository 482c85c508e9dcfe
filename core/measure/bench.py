"""`complab bench measure`: how often are comparisons wrong on this machine, and how small a gain do they find?

A/A trials compare a program with itself: half of them the same files, half of them the same objects under other link
layouts. A/B trials compare a program with one that does the same loop 3% less often. What hyperfine's and min-of-N's
rules would have said of the very same samples is reported beside.
"""

import io
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Literal

import numpy as np

from core.bench import BenchReport, Figure
from core.machine.environment import environment
from core.measure import rivals
from core.measure.calibrate import rate
from core.measure.comparison import Comparison, Decision
from core.measure.processes import WholeProcesses
from core.measure.samples import BlockPlan, Floats
from core.measure.service import Measure
from core.native.build import build
from core.native.layout import link_layouts
from core.records import Digest, digest_bytes, digest_json
from core.sandbox.policy import Sandbox

Kind = Literal["aa_files", "aa_layouts", "ab"]

_PROGRAM = Path(__file__).with_name("bench_program.c")
_FLAGS = ("-O2", "-ffunction-sections")
_EXPECTED = b"done\n"
_SHORT_PARTS, _LONG_PARTS = 100, 103
_GAIN = _LONG_PARTS / _SHORT_PARTS - 1
"""A/B arms do exactly 103 and 100 parts of the same work."""
_PILOT_ROUNDS = 100
_LAYOUTS = 20
"""Layouts of each arm in one trial: as many as blocks, so that none is used twice."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """How much a bench does, and what it must reach."""

    aa_trials: int
    ab_trials: int
    aa_s: tuple[float, ...]
    """Lengths of the programs in A/A trials."""
    kernels: tuple[int, ...]
    """Which of bench_program.c's."""
    pool: int
    """Layouts linked for each program; a trial draws from them."""
    limit_s: float
    most_wrong: int
    least_found: float
    most_median_s: float = 8.0


FULL = Size(
    aa_trials=200,
    ab_trials=60,
    aa_s=(0.02, 0.01, 0.003),
    kernels=(0, 1, 2, 3),
    pool=60,
    limit_s=44 * 60,
    most_wrong=6,
    least_found=0.9,
)
QUICK = Size(
    aa_trials=32,
    ab_trials=12,
    aa_s=(0.02, 0.003),
    kernels=(1, 3),
    pool=40,
    limit_s=285,
    most_wrong=3,
    least_found=0.75,
)
_AB_S = 0.02


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One comparison, and what the rival rules say of its samples."""

    kind: Kind
    found: Comparison
    rival: dict[str, Decision]


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """A bench program of a certain length, linked under many layouts; `shorter` does 3% fewer rounds."""

    layouts: tuple[Path, ...]
    shorter: tuple[Path, ...] = ()


class _LastBlob:
    """Keeps the samples of the last comparison only."""

    def __init__(self) -> None:
        self.data = b""

    def put(self, data: bytes) -> Digest:
        self.data = data
        return digest_bytes(data)

    def times(self, clock: str) -> Floats:
        with np.load(io.BytesIO(self.data), allow_pickle=False) as arrays:
            return np.asarray(arrays[f"{clock}_s"])


@dataclass(kw_only=True, slots=True)
class _Bench:
    box: Sandbox
    size: Size
    blob: _LastBlob = field(default_factory=_LastBlob)
    trials: list[Trial] = field(default_factory=list)
    complete: bool = False

    def run(self, advance: Callable[[str], None]) -> None:
        """Do all trials, A/A and A/B mixed, until they are done or the time is up."""
        deadline = time.monotonic() + self.size.limit_s
        measure = Measure(self.box, self.blob)
        pools: dict[tuple[int, float, bool], Program] = {}
        for index, (kind, kernel, wanted_s) in enumerate(schedule(self.size)):
            if time.monotonic() > deadline:
                return
            key = (kernel, wanted_s, kind == "ab")
            if key not in pools:
                advance(f"linking kernel {kernel} for {wanted_s * 1e3:g} ms")
                pools[key] = self._program(kernel, wanted_s, shorter=kind == "ab")
            self.trials.append(self._trial(measure, kind, pools[key], index))
            wrong = sum(is_wrong(t) for t in self.trials)
            advance(f"{len(self.trials)} trials, {wrong} wrong decisions")
        self.complete = True

    def _program(self, kernel: int, wanted_s: float, *, shorter: bool) -> Program:
        """Build a program that takes about `wanted_s` on this machine."""
        rounds = _PILOT_ROUNDS
        while True:
            path = build(_PROGRAM, (*_FLAGS, f"-DKERNEL={kernel}", f"-DROUNDS={rounds}"), "exe")
            source = WholeProcesses(baseline=(path,), candidate=(path,), expected=_EXPECTED)
            (block,) = source.take(self.box, [BlockPlan(index=0, seed=rounds, pairs=3)])
            took_s = float(np.median(block.cpu_s))
            if took_s > wanted_s / 4:
                break
            rounds *= 4
        # To two digits, so that the next bench on this machine finds most links in the cache.
        part = max(1, int(float(f"{rounds * wanted_s / took_s / _LONG_PARTS:.2g}")))
        return Program(
            layouts=self._linked(kernel, part * _LONG_PARTS),
            shorter=self._linked(kernel, part * _SHORT_PARTS) if shorter else (),
        )

    def _linked(self, kernel: int, rounds: int) -> tuple[Path, ...]:
        flags = (*_FLAGS, f"-DKERNEL={kernel}", f"-DROUNDS={rounds}")
        return tuple(link_layouts([build(_PROGRAM, flags, "object")], count=self.size.pool, seed=kernel))

    def _trial(self, measure: Measure, kind: Kind, program: Program, index: int) -> Trial:
        rng = np.random.default_rng([index, 77])
        order = rng.permutation(len(program.layouts))
        mine, others = order[:_LAYOUTS], order[_LAYOUTS : 2 * _LAYOUTS]
        baseline = tuple(program.layouts[i] for i in mine)
        candidate = {
            "aa_files": baseline,
            "aa_layouts": tuple(program.layouts[i] for i in others),
            # The same padding and order for both arms, as callers are told to do: luck that is shared cancels out.
            "ab": tuple(program.shorter[i] for i in mine) if program.shorter else (),
        }[kind]
        source = WholeProcesses(baseline=baseline, candidate=candidate, expected=_EXPECTED)
        found = measure.compare(
            source,
            baseline=digest_json([str(path) for path in baseline]),
            candidate=digest_json([str(path) for path in candidate]),
            stage="prove",
            seed=index,
        )
        margin = measure.settings.margin
        wall, cpu = self.blob.times("wall"), self.blob.times("cpu")
        rival: dict[str, Decision] = {
            "hyperfine_wall": rivals.mean_and_deviation(wall),
            "hyperfine_cpu": rivals.mean_and_deviation(cpu),
            "minimum_wall": rivals.minimum(wall, margin),
            "minimum_cpu": rivals.minimum(cpu, margin),
        }
        return Trial(kind=kind, found=found, rival=rival)


def schedule(size: Size) -> list[tuple[Kind, int, float]]:
    """Return kind, kernel and length of every trial, mixed so that a cut bench still holds some of each."""
    kinds: tuple[Kind, Kind] = ("aa_files", "aa_layouts")
    varied = [(s, kernel, kind) for s in size.aa_s for kernel in size.kernels for kind in kinds]
    aa: list[tuple[Kind, int, float]] = [(kind, kernel, s) for s, kernel, kind in islice(cycle(varied), size.aa_trials)]
    ab: list[tuple[Kind, int, float]] = [("ab", k, _AB_S) for k in islice(cycle(size.kernels), size.ab_trials)]
    places = [(i / len(part), n, trial) for n, part in enumerate((aa, ab)) for i, trial in enumerate(part)]
    return [trial for _, _, trial in sorted(places, key=lambda place: place[:2])]


def is_wrong(trial: Trial) -> bool:
    """Return whether our decision contradicts what is known of the arms by construction."""
    wrong = ("slower",) if trial.kind == "ab" else ("faster", "slower")
    return trial.found.decision in wrong


def figures(trials: list[Trial], size: Size, *, complete: bool) -> tuple[Figure, ...]:
    """Turn trials into figures; of an incomplete bench no bar is said to hold."""
    aa = [trial for trial in trials if trial.kind != "ab"]
    ab = [trial for trial in trials if trial.kind == "ab"]
    found: list[Figure] = []

    def add(name: str, value: float, unit: str, ci: tuple[float, float] | None, bar: str | None, met: bool) -> None:
        holds = None if bar is None or not complete else met
        found.append(Figure(name=name, value=value, unit=unit, ci=ci, bar=bar, holds=holds))

    def share(name: str, hits: int, of: int, bar: str | None = None, met: bool = True) -> None:
        if of:
            r = rate(hits, of)
            add(name, r.share, "share", r.interval, bar, met)

    wrong = sum(map(is_wrong, aa))
    for name, part, wanted in (("aa_trials", aa, size.aa_trials), ("ab_trials", ab, size.ab_trials)):
        found.append(Figure(name=name, value=len(part), unit="trials", bar=f">= {wanted}", holds=len(part) >= wanted))
    add("aa_wrong_decisions", wrong, "decisions", None, f"<= {size.most_wrong}", wrong <= size.most_wrong)
    share("aa_wrong_rate", wrong, len(aa))
    for kind in ("aa_files", "aa_layouts"):
        part = [trial for trial in aa if trial.kind == kind]
        share(f"{kind}_wrong_rate", sum(map(is_wrong, part)), len(part))
    share("aa_same_rate", sum(t.found.decision == "same" for t in aa), len(aa))
    hits = sum(t.found.decision == "faster" for t in ab)
    if ab:
        share("ab_found_rate", hits, len(ab), f">= {size.least_found:g}", hits >= size.least_found * len(ab))
        share("ab_wrong_rate", sum(map(is_wrong, ab)), len(ab))
        share("ab_interval_holds_truth", sum(t.found.low <= 1 + _GAIN <= t.found.high for t in ab), len(ab))
        add("ab_median_ratio", float(np.median([t.found.ratio for t in ab])), "ratio", None, None, True)
        median_s = float(np.median([t.found.wall_s for t in ab]))
        add("ab_median_time", median_s, "s", None, f"< {size.most_median_s:g}", median_s < size.most_median_s)
    if aa:
        add("aa_median_time", float(np.median([t.found.wall_s for t in aa])), "s", None, None, True)
    for name in trials[0].rival if trials else ():
        share(f"{name}_aa_wrong_rate", sum(t.rival[name] in ("faster", "slower") for t in aa), len(aa))
        share(f"{name}_ab_found_rate", sum(t.rival[name] == "faster" for t in ab), len(ab))
    for flag in sorted({flag for trial in trials for flag in trial.found.flags}):
        share(f"flagged_{flag}", sum(flag in trial.found.flags for trial in trials), len(trials))
    return tuple(found)


def run(*, quick: bool, box: Sandbox | None = None) -> BenchReport:
    """Run the bench and report; Ctrl-C ends it early with what it has, marked partial.

    Args:
        quick: fewer trials with wider bars, at most 5 minutes; the full one takes at most 45.
        box: the sandbox; None: the strongest of this machine.
    """
    from core.sandbox.service import open_sandbox

    size = QUICK if quick else FULL
    before = environment()
    bench = _Bench(box=box or open_sandbox(), size=size)
    start = time.monotonic()
    with _progress(size.aa_trials + size.ab_trials) as advance:
        try:
            bench.run(advance)
        except KeyboardInterrupt:
            advance("interrupted")
    return BenchReport(
        name="measure",
        machine={
            **before.model_dump(mode="json"),
            "clock": "cpu",
            "quick": quick,
            "partial": not bench.complete,
            "wall_s": round(time.monotonic() - start, 1),
        },
        figures=figures(bench.trials, size, complete=bench.complete),
    )


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """Show a bar on standard error; yields a function that takes a text with the number of trials in front."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("bench measure", total=total)

        def advance(text: str) -> None:
            progress.update(task, description=text, advance=1 if "trials" in text else 0)

        yield advance
