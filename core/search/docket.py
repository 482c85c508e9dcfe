"""The cases of one problem: each proposal is admitted, materialized, checked, screened and recorded, in order."""

import json
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from pydantic import Field, ValidationError

from core.errors import ComplabError, InfraError
from core.records import Digest, Json, Record, canonical_json, digest_json
from core.search.contract import (
    Candidate,
    Comparison,
    Compiler,
    Cost,
    Event,
    EventKind,
    Judge,
    Problem,
    Proposal,
    Run,
    Services,
    Stage,
    Trial,
    Verdict,
)

T = TypeVar("T")
Watch = Callable[[Event], None]

_PAYLOAD_BYTES = 1 << 20
_RATIONALE_CHARACTERS = 20_000
_MESSAGE_CHARACTERS = 2_000


class Terms(Record):
    """The terms of a search that are the same for every advisor."""

    batch: int = Field(default=4, ge=1)
    """Proposals that an advisor is asked for at once; it may give fewer or more."""
    alpha: float = Field(default=0.01, gt=0, lt=1)
    """Error rate of the whole decision: that something not faster is kept."""
    finalists: int = Field(default=3, ge=1)
    """How many screened candidates go to the proof, each at alpha / finalists."""
    retries: int = Field(default=2, ge=0)
    """Further tries after an error of our own."""
    broken: int = Field(default=3, ge=1)
    """So many trials in a row that end in errors of our own stop the search."""


def derive_seed(root: int, *labels: str) -> int:
    """Return a seed below 2**31 that depends on a root and labels; a `prove` seed never equals a `screen` seed."""
    bits = int(digest_json([root, *labels])[:15], 16)
    return (bits % (1 << 30)) * 2 + ("prove" in labels)


def admit(problem: Problem, given: object) -> tuple[Proposal, tuple[str, ...]]:
    """Return a clean copy of what an advisor gave and all that is wrong with it; nothing is trusted, not even types."""
    if not isinstance(given, Proposal):
        return Proposal(payload={}), (f"a {type(given).__name__} was given instead of a proposal",)
    try:
        rationale = str(given.rationale)[:_RATIONALE_CHARACTERS].encode(errors="replace").decode()
        text = canonical_json({"payload": given.payload, "rationale": rationale, "exchanges": list(given.exchanges)})
        if len(text) > _PAYLOAD_BYTES:
            return Proposal(payload={}), (f"the payload has {len(text)} bytes; {_PAYLOAD_BYTES} are allowed",)
        proposal = Proposal.model_validate(json.loads(text))
    except (AttributeError, TypeError, ValueError, RecursionError, ValidationError) as error:
        return Proposal(payload={}), (f"the payload is not JSON: {type(error).__name__}: {str(error)[:200]}",)
    errors = problem.space.errors(proposal.payload)
    if not errors:
        proposal = proposal.model_copy(update={"payload": problem.space.canonical(proposal.payload)})
    return proposal, errors


def first_difference(recorded: Json, now: Json, path: str = "payload") -> str:
    """Return where two JSON values first differ, in words."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        for name in sorted(recorded.keys() | now.keys()):
            if name not in now:
                return f"{path}.{name} was {recorded[name]!r} and is missing now"
            if name not in recorded:
                return f"{path}.{name} was missing and is {now[name]!r} now"
            if recorded[name] != now[name]:
                return first_difference(recorded[name], now[name], f"{path}.{name}")
    if isinstance(recorded, list) and isinstance(now, list):
        for i, (a, b) in enumerate(zip(recorded, now, strict=False)):
            if a != b:
                return first_difference(a, b, f"{path}[{i}]")
        return f"{path} had {len(recorded)} items and has {len(now)} now"
    return f"{path} was {recorded!r:.200} and is {now!r:.200} now"


class Docket:
    """All trials of one problem in one run.

    Trials that an earlier start recorded are answered from the record; the proposals must be the same.

    Args:
        problem: what is to be made faster.
        compiler: makes candidates.
        judge: checks and compares them.
        run: where trials are recorded.
        services: the doors to the world.
        terms: the terms of the search.
        watch: told of every step.
    """

    def __init__(
        self,
        problem: Problem,
        compiler: Compiler,
        judge: Judge,
        run: Run,
        services: Services,
        terms: Terms,
        watch: Watch,
    ) -> None:
        self.problem = problem
        self.trials: list[Trial] = []
        self._compiler = compiler
        self._judge = judge
        self._run = run
        self._services = services
        self._terms = terms
        self._watch = watch
        self._recorded = _settled(run.recorded(problem.id))
        self._by_payload: dict[Digest, int] = {}
        self._by_candidate: dict[Digest, int] = {}
        self.ended_early: str | None = None
        """Why the advisor stopped before its time, if it did."""
        self._infra_errors = 0
        self.spent = Cost()
        """What the advisor was charged so far."""

    @property
    def free(self) -> Cost:
        """What baseline, proofs and joins took so far."""
        return sum((trial.free for trial in self.trials), Cost())

    @property
    def baseline(self) -> Candidate:
        """Candidate 0."""
        candidate = self.trials[0].candidate
        assert candidate is not None  # open() let nothing else through
        return candidate

    def tell(self, kind: EventKind, message: str = "", *, index: int | None = None, resumed: bool = False) -> None:
        """Record a step and show it."""
        event = Event(
            kind=kind,
            problem=self.problem.id,
            name=self.problem.name,
            index=index,
            message=message,
            spent=self.spent,
            resumed=resumed,
        )
        if not resumed:
            self._run.note(event)
        self._watch(event)

    def open(self) -> Trial:
        """Judge the baseline like every candidate.

        Raises:
            ComplabError: it is rejected, so there is nothing to compare with; nothing is recorded then.
            InfraError: our own fault, again and again.
        """
        trial = self._answer(self.problem.default, round_=0, advisor="baseline", charged=None)
        if not trial.verdict.accepted:
            failure = InfraError if trial.verdict.reason == "infra_error" else ComplabError
            raise failure(
                f"The baseline of {self.problem.name} was rejected ({trial.verdict.reason}): {trial.verdict.message}",
                "Candidates are compared with it, so it must compile, run and be correct as it is.",
            )
        return trial

    def judge(self, given: object, *, round_: int, advisor: str, charged: Cost | None) -> Trial:
        """Judge one proposal and record its trial.

        Args:
            given: the proposal, untrusted.
            round_: number of the batch it came in.
            advisor: who proposed it.
            charged: LLM cost that it bears besides its own; None: the trial is free (a join).

        Raises:
            ComplabError: the record holds another proposal at this place.
            InfraError: several trials in a row met errors of our own.
        """
        trial = self._answer(given, round_=round_, advisor=advisor, charged=charged)
        self._infra_errors = self._infra_errors + 1 if trial.verdict.reason == "infra_error" else 0
        if self._infra_errors >= self._terms.broken:
            raise InfraError(
                f"{self._infra_errors} trials in a row failed through no fault of theirs: {trial.verdict.message}",
                "Repair the machine or the tool named here; the same command goes on from here.",
            )
        return trial

    def prove(self, index: int, alpha: float) -> Trial:
        """Check a screened trial on hidden inputs and compare it afresh, at its share of the error rate."""
        trial, resumed = self.trials[index], True
        earlier = self._recorded.get(index)
        if earlier is not None and earlier.hidden is not None and earlier.hidden.reason != "infra_error":
            trial = earlier
        else:
            assert trial.candidate is not None
            self.tell("proving", index=index)
            resumed, started = False, time.perf_counter()
            hidden, proof = self._examine(trial.candidate, "prove", alpha)
            free = trial.free + Cost(evaluations=1, wall_s=time.perf_counter() - started)
            trial = trial.model_copy(update={"hidden": hidden, "proof": proof, "free": free})
            self._run.append(trial)
        self.trials[index] = trial
        self.tell("proof", _summary(trial), index=index, resumed=resumed)
        return trial

    def _answer(self, given: object, *, round_: int, advisor: str, charged: Cost | None) -> Trial:
        index = len(self.trials)
        proposal, errors = admit(self.problem, given)
        key = digest_json(
            [self.problem.id, self.problem.target, self._judge.settings, self._run.seed, proposal.payload]
        )
        trial = self._recorded.get(index)
        resumed = trial is not None
        if trial is None:
            started = time.perf_counter()
            candidate, twin, verdict, screen = self._try(proposal, errors)
            own = Cost(
                proposals=1,
                evaluations=int(candidate is not None and twin is None and verdict.reason != "infra_error"),
                wall_s=time.perf_counter() - started,
            )
            trial = Trial(
                problem=self.problem.id,
                index=index,
                round=round_,
                key=key,
                advisor=advisor,
                proposal=proposal,
                candidate=candidate,
                duplicate_of=twin,
                verdict=verdict,
                screen=screen,
                cost=Cost() if charged is None else own + charged,
                free=own.model_copy(update={"proposals": 0}) if charged is None else Cost(),
            )
            if index > 0 or verdict.accepted:
                self._run.append(trial)
        elif trial.key != key:
            recorded, now = trial.proposal.payload, proposal.payload
            difference = "the judge's settings differ" if recorded == now else first_difference(recorded, now)
            raise ComplabError(
                f"Trial {index} of {self.problem.name} was recorded for another proposal or judge: {difference}.",
                "The advisor, its model or the judge changed since: start another run with --new.",
            )
        self.trials.append(trial)
        self.spent += trial.cost
        if trial.verdict.reason not in ("invalid", "infra_error"):  # those say nothing about the candidate
            self._by_payload.setdefault(digest_json(proposal.payload), index)
            if trial.candidate is not None:
                self._by_candidate.setdefault(trial.candidate.key, index)
        self.tell("trial", _summary(trial), index=index, resumed=resumed)
        return trial

    def _try(
        self, proposal: Proposal, errors: tuple[str, ...]
    ) -> tuple[Candidate | None, int | None, Verdict, Comparison | None]:
        if errors:
            message = "; ".join(errors)[:_MESSAGE_CHARACTERS]
            return None, None, Verdict(accepted=False, reason="invalid", message=message), None
        twin = self._by_payload.get(digest_json(proposal.payload))
        if twin is not None:
            earlier = self.trials[twin]
            first = twin if earlier.duplicate_of is None else earlier.duplicate_of
            return earlier.candidate, first, earlier.verdict, earlier.screen
        try:
            made = self.patiently(lambda: self._compiler.materialize(self.problem, proposal, self._services))
        except InfraError as error:
            return None, None, Verdict(accepted=False, reason="infra_error", message=str(error)), None
        if isinstance(made, Verdict):
            if made.accepted:
                raise TypeError("a compiler returned an accepting verdict instead of a candidate")
            return None, None, made, None
        if (made.problem, made.target) != (self.problem.id, self.problem.target):
            raise ValueError(f"the compiler made a candidate of another problem or target than {self.problem.name}")
        twin = self._by_candidate.get(made.key)
        if twin is not None:
            return made, twin, self.trials[twin].verdict, self.trials[twin].screen
        verdict, screen = self._examine(made, "screen", self._terms.alpha)
        return made, None, verdict, screen

    def _examine(self, candidate: Candidate, stage: Stage, alpha: float) -> tuple[Verdict, Comparison | None]:
        """Check a candidate and, when it is accepted and not the baseline itself, compare it."""
        problem, services, judge = self.problem, self._services, self._judge
        seed = derive_seed(self._run.seed, stage, problem.id)
        try:
            verdict = self.patiently(lambda: judge.check(problem, candidate, stage, seed, services))
            if not verdict.accepted or not self.trials:
                return verdict, None
            comparison = self.patiently(
                lambda: judge.compare(problem, self.baseline, candidate, stage, seed, services, alpha=alpha)
            )
        except InfraError as error:
            return Verdict(accepted=False, reason="infra_error", message=str(error)), None
        if isinstance(comparison, Verdict):
            if comparison.accepted:
                raise TypeError("a judge returned an accepting verdict instead of a comparison")
            return comparison, None
        if (comparison.stage, comparison.seed) != (stage, seed) or comparison.level < 1 - alpha - 1e-9:
            raise ValueError(
                f"the judge of {problem.name} was asked for stage {stage}, seed {seed}, level {1 - alpha} and gave "
                f"stage {comparison.stage}, seed {comparison.seed}, level {comparison.level}"
            )
        return verdict, comparison

    def patiently(self, step: Callable[[], T]) -> T:
        """Do a step, again after an error of our own.

        Raises:
            InfraError: it failed each time.
        """
        for left in range(self._terms.retries, -1, -1):
            try:
                return step()
            except InfraError as error:
                if left == 0:
                    raise
                self.tell("retry", f"{error} ({left} tries left)", index=len(self.trials))
        raise AssertionError("unreachable")


def _settled(recorded: Mapping[int, Trial]) -> dict[int, Trial]:
    """Return the recorded trials without those at the end that met an error of our own: they are tried again.

    One that later trials follow stays: the advisor has seen it.
    """
    kept = dict(recorded)
    for index in sorted(recorded, reverse=True):
        if recorded[index].verdict.reason != "infra_error":
            break
        del kept[index]
    return kept


def _summary(trial: Trial) -> str:
    """Return a trial in a few words."""
    verdict = trial.verdict if trial.hidden is None else trial.hidden
    comparison = trial.screen if trial.hidden is None else trial.proof
    if trial.duplicate_of is not None:
        return f"the same as trial {trial.duplicate_of}"
    if not verdict.accepted:
        return f"{verdict.reason}: {verdict.message}"
    if comparison is None:
        return "accepted"
    return f"{comparison.decision}: {comparison.ratio:.3f}x [{comparison.low:.3f}, {comparison.high:.3f}]"
