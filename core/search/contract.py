"""The contract of the search loop: records, and the protocols that each system implements."""

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, Self

from pydantic import Field, model_validator

from core.measure.comparison import Comparison, Decision, Stage
from core.records import Digest, Json, Record, digest_json
from core.search.space import Space

if TYPE_CHECKING:
    from core.llm.client import Client
    from core.measure.service import Measure
    from core.runs.store import Store
    from core.sandbox.policy import Sandbox

__all__ = ["Comparison", "Decision", "Stage"]

Reason = Literal[
    "invalid",
    "unsupported",
    "compile_error",
    "crash",
    "timeout",
    "wrong_output",
    "nondeterministic",
    "tampered",
    "resource",
    "infra_error",
]
"""Why a candidate was rejected. Only `infra_error` is retried."""

Exactness = Literal["exact", "reordered", "reduced_precision", "quantised"]


class Evidence(Record):
    """Facts about a problem that an advisor may see: JSON by channel; missing channels are named with the reason."""

    channels: dict[str, Json]
    missing: dict[str, str] = Field(default_factory=dict)


class Proposal(Record):
    """An advisor's answer: data within a space, never code that runs outside the sandbox."""

    payload: dict[str, Json]
    rationale: str = ""
    exchanges: tuple[Digest, ...] = ()
    """Keys of the LLM exchanges that led to it."""


class Candidate(Record):
    """A materialized proposal: what runs. `digest()` over problem, target and artefact is its identity."""

    problem: Digest
    proposal: Digest
    target: str
    artefact: Digest
    blobs: dict[str, Digest] = Field(default_factory=dict)
    provenance: dict[str, Json] = Field(default_factory=dict)
    exactness: Exactness = "exact"

    @property
    def key(self) -> Digest:
        """Identity of what runs: two proposals with the same key are the same candidate."""
        return digest_json([self.problem, self.target, self.artefact])


class Verdict(Record):
    """Correctness of a candidate. Zero executed checks is never accepted."""

    accepted: bool
    reason: Reason | None = None
    message: str = ""
    checks: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _supported(self) -> Self:
        if self.accepted and (self.reason is not None or self.checks == 0):
            raise ValueError("an accepting verdict has executed checks and no reason")
        if not self.accepted and self.reason is None:
            raise ValueError("a rejecting verdict has a reason")
        return self


class Cost(Record):
    """What a trial or a search has spent."""

    proposals: int = 0
    evaluations: int = 0
    wall_s: float = 0.0
    llm_calls: int = 0
    tokens: int = 0
    usd: float | None = 0.0
    """None: a price was unknown."""

    def __add__(self, other: "Cost") -> "Cost":
        """Return the sum; an unknown price makes the sum unknown."""
        return Cost(
            proposals=self.proposals + other.proposals,
            evaluations=self.evaluations + other.evaluations,
            wall_s=self.wall_s + other.wall_s,
            llm_calls=self.llm_calls + other.llm_calls,
            tokens=self.tokens + other.tokens,
            usd=None if self.usd is None or other.usd is None else self.usd + other.usd,
        )


class Budget(Record):
    """What a search may spend. One evaluation is one distinct artefact checked."""

    evaluations: int = Field(ge=1)
    proposals: int | None = Field(default=None, ge=1)
    """Cap of proposals; None means four times the evaluations."""
    wall_s: float | None = Field(default=None, gt=0)

    @property
    def most_proposals(self) -> int:
        """The cap of proposals."""
        return 4 * self.evaluations if self.proposals is None else self.proposals

    def left(self, spent: Cost) -> bool:
        """Return whether another proposal may be judged."""
        return (
            spent.evaluations < self.evaluations
            and spent.proposals < self.most_proposals
            and (self.wall_s is None or spent.wall_s < self.wall_s)
        )


class Trial(Record):
    """Proposal, candidate, verdict, comparisons and cost: one line of a run, a second one once its proof was tried."""

    problem: Digest
    index: int
    """Counts from 0, the baseline, within its problem."""
    round: int
    key: Digest
    """Digest of all that decides the trial: problem, target, judge settings, seed and payload."""
    advisor: str
    proposal: Proposal
    candidate: Candidate | None
    duplicate_of: int | None
    verdict: Verdict
    screen: Comparison | None
    hidden: Verdict | None = None
    """The verdict on the hidden inputs of the proof; None: no proof was tried."""
    proof: Comparison | None = None
    cost: Cost
    """Charged to the advisor."""
    free: Cost = Cost()
    """Spent on the baseline, a proof or a join: free to every advisor, and reported."""

    def as_screened(self) -> "Trial":
        """Return a copy of its own as it stood before the proof: what an advisor may see."""
        return self.model_copy(update={"hidden": None, "proof": None, "free": Cost()}, deep=True)


class View(Record):
    """All that an advisor sees of a problem."""

    problem: Digest
    evidence: Evidence
    space: Space
    baseline: Trial
    seed: int
    batch: int
    budget: Budget


class Outcome(Record):
    """What a search kept: a proven candidate, or candidate 0 with the reason."""

    chosen: Candidate
    trial: int | None
    """Index of the chosen trial within its problem; None: candidate 0 stays."""
    fallback: str | None
    """Why candidate 0 stays; None when something was proven faster."""
    proof: Comparison | None
    spent: Cost
    """Charged to the advisor, over all parts."""
    free: Cost = Cost()
    """Baselines, proofs and joins, over all parts."""


class Services(Protocol):
    """The only doors to the world."""

    @property
    def llm(self) -> "Client | None": ...
    @property
    def box(self) -> "Sandbox": ...
    @property
    def store(self) -> "Store": ...
    @property
    def measure(self) -> "Measure": ...


class Problem(Protocol):
    """What is to be made faster."""

    @property
    def id(self) -> Digest: ...
    @property
    def name(self) -> str: ...
    @property
    def system(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def space(self) -> Space: ...
    @property
    def default(self) -> Proposal: ...
    @property
    def parts(self) -> "Sequence[Problem]": ...

    def describe(self, s: Services) -> Evidence:
        """Return the facts that an advisor may see."""
        ...

    def join(self, winners: Mapping[Digest, Proposal]) -> Proposal:
        """Composite only: one proposal made of the parts' winners; it is judged again as a whole."""
        ...


class Compiler(Protocol):
    """Turns proposals into candidates by the compiler's own means."""

    def materialize(self, p: Problem, x: Proposal, s: Services) -> Candidate | Verdict:
        """Return what runs, or a rejecting verdict when the proposal is at fault.

        Raises:
            InfraError: our own fault only.
        """
        ...


class Judge(Protocol):
    """Checks a candidate for correctness and measures it against the baseline."""

    @property
    def settings(self) -> Digest: ...

    def check(self, p: Problem, c: Candidate, stage: Stage, seed: int, s: Services) -> Verdict:
        """Return whether the candidate is correct."""
        ...

    def compare(
        self, p: Problem, base: Candidate, c: Candidate, stage: Stage, seed: int, s: Services, *, alpha: float
    ) -> Comparison | Verdict:
        """Return the paired comparison of an accepted candidate against the baseline, at error rate `alpha`.

        A candidate that misbehaves while it is timed gets a rejecting verdict instead.

        The search hands in `alpha` because it alone knows how many comparisons one decision rests on. The comparison's
        `level` must be at least 1 - alpha, its stage and seed those asked for: the search refuses any other.
        """
        ...


class Advisor(Protocol):
    """Proposes. A coroutine: yields a batch of proposals, receives their trials in order; uses no clock."""

    @property
    def name(self) -> str: ...

    def propose(self, view: View, s: Services) -> Generator[list[Proposal], list[Trial], str | None]:
        """Yield batches of proposals until done; return why, when something cut it short (a budget, a mute model)."""
        ...


EventKind = Literal["described", "trial", "retry", "proving", "proof", "joining", "advisor", "outcome"]
"""`retry`: a step is repeated after an error of our own. `advisor`: it ended early or misbehaved."""


class Event(Record):
    """One step of a search, for progress displays and for events.jsonl."""

    kind: EventKind
    problem: Digest
    name: str
    """The problem's name."""
    index: int | None = None
    """The trial that it is about."""
    message: str = ""
    spent: Cost = Cost()
    resumed: bool = False
    """Answered from the record of an earlier start, not judged now."""


class Run(Protocol):
    """Where a search writes what happened, and finds what happened before it was interrupted."""

    @property
    def seed(self) -> int:
        """The root of all randomness of the run."""
        ...

    @property
    def outcome(self) -> Outcome | None:
        """What the run kept, when it is done."""
        ...

    def recorded(self, problem: Digest) -> Mapping[int, Trial]:
        """Return a problem's finished trials by index."""
        ...

    def append(self, trial: Trial) -> None:
        """Record a finished trial, or its proof: a later line replaces the earlier one of the same index."""
        ...

    def view(self, problem: Digest) -> View | None:
        """Return what the advisor saw of a problem at the first start, if it was recorded."""
        ...

    def describe(self, name: str, view: View) -> None:
        """Record what the advisor sees of a problem."""
        ...

    def note(self, event: Event) -> None:
        """Record a step."""
        ...

    def finish(self, outcome: Outcome) -> None:
        """Record what the run kept."""
        ...
