"""A toy system: a few knobs with a known optimum, a judge with seeded noise, and a composite of such toys."""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any, cast

from core.errors import InfraError
from core.measure.comparison import Comparison, Decision, Stage
from core.records import Digest, canonical_json, digest_bytes, digest_json
from core.search.contract import Candidate, Event, Evidence, Outcome, Problem, Proposal, Services, Trial, Verdict, View
from core.search.space import Choice, Condition, IntRange, Order, Rule, Space, Subset, Text

SPACE = Space(
    fields={
        "unroll": IntRange(low=0, high=8),
        "width": Choice(values=(1, 2, 4, 8)),
        "passes": Subset(items=("licm", "gvn", "sroa", "dse")),
        "order": Order(items=("a", "b", "c"), least=3),
    },
    requires=(
        Rule(
            when=(Condition(field="width", op="eq", value=8),),
            then=(Condition(field="unroll", op="le", value=4),),
            why="eight lanes leave few registers",
        ),
    ),
)
DEFAULT = Proposal(payload={"unroll": 0, "width": 1, "passes": [], "order": ["a", "b", "c"]})
BEST = Proposal(payload={"unroll": 4, "width": 8, "passes": ["licm", "gvn"], "order": ["b", "a", "c"]})
BEST_RATIO = 1.3 * 1.2 * 1.1 * 1.05


def true_ratio(payload: Mapping[str, Any]) -> float:
    """How much faster than the default a payload really is; `dse` makes the result wrong, `sroa` changes nothing."""
    ratio = 1.0 + 0.3 * (1 - abs(payload["unroll"] - 4) / 4)
    ratio *= {1: 1.0, 2: 0.9, 4: 1.1, 8: 1.2}[payload["width"]]
    ratio *= 1.0 + 0.05 * len({"licm", "gvn"} & set(payload["passes"]))
    return ratio * (1.05 if payload["order"].index("b") < payload["order"].index("a") else 1.0)


@dataclass(frozen=True)
class ToyProblem:
    name: str = "toy"
    flat: bool = False
    """Nothing is faster than the default: every decision `faster` is an error."""
    parts: Sequence["ToyProblem"] = ()
    system: str = "toy"
    target: str = "toy-1"
    space: Space = SPACE
    default: Proposal = DEFAULT

    @property
    def id(self) -> Digest:
        return digest_json([self.name, self.flat, [part.id for part in self.parts]])

    def describe(self, s: Services) -> Evidence:
        return Evidence(channels={"hint": "wide is good"}, missing={"profile": "a toy has none"})

    def join(self, winners: Mapping[Digest, Proposal]) -> Proposal:
        raise TypeError("a single toy has no parts to join")


@dataclass(frozen=True)
class Whole:
    """A composite of n toys: its payload holds the parts' payloads; `spoilers` break the whole, though right alone."""

    n: int = 6
    spoilers: frozenset[int] = frozenset()
    hidden_spoilers: frozenset[int] = frozenset()
    name: str = "whole"
    system: str = "toy"
    target: str = "toy-1"

    @property
    def parts(self) -> Sequence[ToyProblem]:
        return [ToyProblem(name=f"part{i}") for i in range(self.n)]

    @property
    def id(self) -> Digest:
        return digest_json([self.name, self.n])

    @property
    def space(self) -> Space:
        return Space(fields={f"part{i}": Text() for i in range(self.n)})

    @property
    def default(self) -> Proposal:
        return self.join({part.id: part.default for part in self.parts})

    def describe(self, s: Services) -> Evidence:
        return Evidence(channels={})

    def join(self, winners: Mapping[Digest, Proposal]) -> Proposal:
        return Proposal(payload={p.name: canonical_json(winners[p.id].payload).decode() for p in self.parts})


class ToyCompiler:
    """The artefact is the payload without what changes nothing, so that some proposals are the same candidate."""

    def __init__(self, on_build: Callable[[Proposal], None] = lambda x: None) -> None:
        self.on_build = on_build
        self.built = 0

    def materialize(self, p: Problem, x: Proposal, s: Services) -> Candidate | Verdict:
        self.on_build(x)
        self.built += 1
        if isinstance(p, Whole):
            parts = {name: json.loads(cast(str, text)) for name, text in x.payload.items()}
            return Candidate(
                problem=p.id, proposal=x.digest(), target=p.target, artefact=digest_json(parts),
                provenance={"parts": parts},
            )  # fmt: skip
        if x.payload["width"] == 2 and x.payload["unroll"] == 7:
            return Verdict(accepted=False, reason="compile_error", message="width 2 does not unroll 7 times")
        passes = cast(list[str], x.payload["passes"])
        artefact = canonical_json({**x.payload, "passes": [name for name in passes if name != "sroa"]})
        return Candidate(
            problem=p.id, proposal=x.digest(), target=p.target, artefact=digest_bytes(artefact),
            provenance={"payload": x.payload},
        )  # fmt: skip


@dataclass
class ToyJudge:
    """Noise is normal in the logarithm; decisions come from an interval at 1 - alpha."""

    noise: float = 0.01
    hidden_fault: Callable[[Mapping[str, Any]], bool] = lambda payload: False
    """Payloads that are wrong on the hidden inputs of a proof only."""
    flags: tuple[str, ...] = ()
    sleep_s: float = 0.0
    checked: list[tuple[Digest, Stage, int]] = field(default_factory=list)
    alphas: list[tuple[Stage, float]] = field(default_factory=list)

    @property
    def settings(self) -> Digest:
        return digest_json(["toy", self.noise])

    def check(self, p: Problem, c: Candidate, stage: Stage, seed: int, s: Services) -> Verdict:
        time.sleep(self.sleep_s)
        self.checked.append((c.key, stage, seed))
        if isinstance(p, Whole):
            return self._check_whole(p, c, stage)
        payload = cast(dict[str, Any], c.provenance["payload"])
        if "dse" in payload.get("passes", []) or (stage == "prove" and self.hidden_fault(payload)):
            return Verdict(accepted=False, reason="wrong_output", message="42 was expected, 41 was found", checks=3)
        return Verdict(accepted=True, checks=3)

    def _check_whole(self, p: Whole, c: Candidate, stage: Stage) -> Verdict:
        parts = cast(dict[str, Any], c.provenance["parts"])
        spoilers = p.spoilers | (p.hidden_spoilers if stage == "prove" else frozenset())
        wrong = [i for i in sorted(spoilers) if parts[f"part{i}"] != DEFAULT.payload]
        if wrong:
            return Verdict(accepted=False, reason="wrong_output", message=f"parts {wrong} disturb the others", checks=1)
        return Verdict(accepted=True, checks=1)

    def truth(self, p: Problem, c: Candidate) -> float:
        if isinstance(p, Whole):
            parts = cast(dict[str, Any], c.provenance["parts"])
            return math.exp(sum(math.log(true_ratio(x)) for x in parts.values()) / len(parts))
        return 1.0 if cast(Any, p).flat else true_ratio(cast(dict[str, Any], c.provenance["payload"]))

    def compare(
        self, p: Problem, base: Candidate, c: Candidate, stage: Stage, seed: int, s: Services, *, alpha: float
    ) -> Comparison:
        self.alphas.append((stage, alpha))
        rng = Random(digest_json([seed, c.key]))
        centre = math.log(self.truth(p, c) / self.truth(p, base)) + rng.gauss(0, self.noise)
        half = self.noise * _two_sided(alpha)
        low, high = math.exp(centre - half), math.exp(centre + half)
        decision: Decision = "faster" if low > 1 else "slower" if high < 1 else "undecided"
        return Comparison(
            baseline=base.key, candidate=c.key, stage=stage, seed=seed, ratio=math.exp(centre), low=low, high=high,
            level=1 - alpha, margin=0.01, decision=decision, rule="toy", pairs=10, clock="toy", modelled=True,
            samples=None, environment=digest_json("toy"), wall_s=0.0, flags=self.flags,
        )  # fmt: skip


def _two_sided(alpha: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(1 - alpha / 2)


class MemoryRun:
    """A run that is not written anywhere."""

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        self.outcome: Outcome | None = None
        self.lines: list[Trial] = []
        self.events: list[Event] = []
        self.views: dict[Digest, View] = {}

    def recorded(self, problem: Digest) -> dict[int, Trial]:
        return {trial.index: trial for trial in self.lines if trial.problem == problem}

    def append(self, trial: Trial) -> None:
        self.lines.append(trial)

    def view(self, problem: Digest) -> View | None:
        return self.views.get(problem)

    def describe(self, name: str, view: View) -> None:
        self.views[view.problem] = view

    def note(self, event: Event) -> None:
        self.events.append(event)

    def finish(self, outcome: Outcome) -> None:
        self.outcome = outcome


class Flaky:
    """Fails with an error of our own the first `times` calls of each proposal."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.calls: dict[Digest, int] = {}

    def __call__(self, x: Proposal) -> None:
        n = self.calls[x.digest()] = self.calls.get(x.digest(), 0) + 1
        if n <= self.times:
            raise InfraError("the toy machine is busy")


def services(llm: Any = None) -> Services:
    return cast(Services, SimpleNamespace(llm=llm, box=None, store=None, measure=None))


@dataclass
class Scripted:
    """Yields given batches, then ends; keeps the trials it was answered."""

    batches: list[Any]
    name: str = "scripted"
    answers: list[list[Trial]] = field(default_factory=list)

    def propose(self, view: View, s: Services) -> Any:
        for batch in self.batches:
            self.answers.append((yield batch))
