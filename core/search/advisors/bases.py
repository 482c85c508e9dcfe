"""Bases of the advisors that know something: rules written by experts, and models that are asked."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

from core.llm.errors import BudgetExceeded, InvalidOutput
from core.records import Json, digest_json
from core.search.contract import Evidence, Proposal, Services, Trial, View
from core.search.space import Payload, Space


@dataclass(frozen=True, slots=True)
class ExpertRule:
    """One piece of expert advice."""

    when: Callable[[Evidence], bool]
    """Whether the evidence calls for it."""
    propose: Callable[[Evidence], Mapping[str, Json]]
    """The fields to set; the others stay as they are."""
    reason: str
    """Why, as a person reads it beside the proposal."""


@dataclass(frozen=True, slots=True)
class ExpertAdvisor:
    """Applies rules: each alone, all together, those that helped together, then small steps from the best.

    Rules come in the order of their expected worth. The steps at the end spend what is left of the budget.
    """

    rules: Sequence[ExpertRule]
    name: str = "expert"

    def propose(self, view: View, s: Services) -> Generator[list[Proposal], list[Trial], None]:
        """Yield the advice in batches."""
        default = view.baseline.proposal.payload
        advice = [(rule.propose(view.evidence), rule.reason) for rule in self.rules if rule.when(view.evidence)]
        first = [merged(view.space, default, advice), *(merged(view.space, default, [one]) for one in advice)]
        best, trials = view.baseline, list[Trial]()
        for batch in batches(distinct(first, default), view.batch):
            trials += yield batch
        by_payload = {digest_json(t.proposal.payload): t for t in trials}
        worth = []
        for one in advice:
            trial = by_payload.get(digest_json(merged(view.space, default, [one]).payload))
            if trial is not None and helped(trial):
                worth.append((gain(trial), one))
        worth.sort(key=lambda pair: -pair[0])
        helpful = [one for _, one in worth]
        joined = [merged(view.space, default, helpful[:k]) for k in range(len(helpful), 1, -1)]
        for batch in batches(distinct(joined, default, known=trials), view.batch):
            trials += yield batch
        while True:
            best = max([best, *(t for t in trials if t.verdict.accepted)], key=gain)
            steps = [
                Proposal(payload=payload, rationale=f"one step from trial {best.index}")
                for payload in view.space.neighbours(best.proposal.payload)
            ]
            steps = distinct(steps, default, known=trials)
            if not steps:
                return
            trials += yield steps[: view.batch]


class ModelAdvisor(ABC):
    """Asks a model in rounds. All state is local to one dialogue, so that a restart repeats it exactly."""

    name = "llm"
    patience: int = 3
    """Rounds in a row without a new accepted candidate after which the model is asked no more."""

    @abstractmethod
    def ask(self, view: View, trials: Sequence[Trial], s: Services) -> list[Proposal]:
        """Return the next proposals, given all trials so far; [] ends the dialogue.

        Each proposal names the exchanges that led to it. Use no clock and no randomness but that of `view.seed`.
        """

    def propose(self, view: View, s: Services) -> Generator[list[Proposal], list[Trial], str | None]:
        """Yield the model's proposals, round by round; a spent budget or a mute model ends them with the reason."""
        trials: list[Trial] = []
        idle = 0
        while idle < self.patience:
            try:
                batch = self.ask(view, tuple(trials), s)
            except (BudgetExceeded, InvalidOutput) as error:
                return str(error)
            if not batch:
                return None
            answer = yield batch
            idle = 0 if any(t.verdict.accepted and t.duplicate_of is None for t in answer) else idle + 1
            trials += answer
        return f"{idle} rounds in a row gave nothing new"


def gain(trial: Trial) -> float:
    """Return the screened ratio; 1 for the baseline, 0 for a rejected candidate."""
    if not trial.verdict.accepted:
        return 0.0
    return 1.0 if trial.screen is None else trial.screen.ratio


def helped(trial: Trial) -> bool:
    """Return whether screening leaves the hope that a trial is faster."""
    return gain(trial) > 1 and trial.screen is not None and trial.screen.decision in ("faster", "undecided")


def merged(space: Space, default: Mapping[str, Json], advice: Sequence[tuple[Mapping[str, Json], str]]) -> Proposal:
    """Return the default with the advice applied in order.

    Left out is advice that would make it invalid, or that sets a field which earlier (better) advice has set.
    """
    payload: Payload = dict(default)
    taken: set[str] = set()
    reasons = []
    for fields, reason in advice:
        candidate = {**payload, **fields}
        if taken.isdisjoint(fields) and not space.errors(candidate):
            taken |= fields.keys()
            payload = space.canonical(candidate)
            reasons.append(reason)
    return Proposal(payload=payload, rationale="; ".join(reasons))


def distinct(proposals: Sequence[Proposal], default: Mapping[str, Json], known: Sequence[Trial] = ()) -> list[Proposal]:
    """Return the proposals without repeats, the default, and what was tried already."""
    seen = {digest_json(dict(default)), *(digest_json(t.proposal.payload) for t in known)}
    fresh = []
    for proposal in proposals:
        if (key := digest_json(proposal.payload)) not in seen:
            seen.add(key)
            fresh.append(proposal)
    return fresh


def batches(proposals: Sequence[Proposal], size: int) -> list[list[Proposal]]:
    """Return the proposals in batches of at most `size`."""
    return [list(proposals[i : i + size]) for i in range(0, len(proposals), size)]
