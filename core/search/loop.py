"""The loop: describe, propose, materialize, judge, keep or fall back."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from core.errors import ComplabError
from core.search.acceptance import rank, split, why_none, won
from core.search.contract import (
    Advisor,
    Budget,
    Compiler,
    Cost,
    Event,
    Judge,
    Outcome,
    Problem,
    Proposal,
    Run,
    Services,
    Trial,
    View,
)
from core.search.docket import Docket, Terms, Watch, derive_seed
from core.search.join import settle
from core.search.services import AdvisorDoors, Meter

__all__ = ["Terms", "Watch", "search"]

Dialogue = Generator[list[Proposal], list[Trial], str | None]


def _unwatched(event: Event) -> None:
    """Show nothing."""


def search(
    p: Problem,
    a: Advisor,
    c: Compiler,
    j: Judge,
    budget: Budget,
    run: Run,
    s: Services,
    *,
    terms: Terms | None = None,
    watch: Watch = _unwatched,
) -> Outcome:
    """Search for a candidate that is proven faster than the baseline, or keep the baseline and say why.

    The same call on the same run goes on where an earlier one was interrupted; on a finished run it returns what was
    kept. An interrupt leaves the run so that this works.

    Args:
        p: what is to be made faster; a composite's parts are searched first and share the budget.
        a: who proposes.
        c: makes candidates of proposals.
        j: checks and compares candidates.
        budget: what may be spent.
        run: where everything is recorded.
        s: the doors to the world.
        terms: batch size, error rate, number of finalists, retries.
        watch: told of every step, in order, by the calling thread.

    Returns:
        The proven candidate with the best proven ratio, or candidate 0 with the reason in `fallback`.

    Raises:
        ComplabError: the baseline is rejected, the advisor fails, or the record holds other proposals.
        InfraError: our own fault, again and again.
    """
    if run.outcome is not None:
        return run.outcome
    session = _Session(a, c, j, run, s, terms or Terms(), watch)
    outcome = session.solve(p, budget).outcome
    run.finish(outcome)
    return outcome


@dataclass(frozen=True, slots=True)
class _Solved:
    """What came of one problem, with the proposal that a composite joins."""

    outcome: Outcome
    proposal: Proposal


@dataclass(frozen=True, slots=True)
class _Session:
    """What stays the same over the parts of a problem."""

    advisor: Advisor
    compiler: Compiler
    judge: Judge
    run: Run
    services: Services
    terms: Terms
    watch: Watch

    def solve(self, problem: Problem, budget: Budget) -> _Solved:
        """Search one problem: its parts first when it has any."""
        docket = Docket(problem, self.compiler, self.judge, self.run, self.services, self.terms, self.watch)
        docket.open()
        if problem.parts:
            return self._compose(docket, budget)
        late = self._consult(docket, budget)
        share = self.terms.alpha / self.terms.finalists
        proven = [docket.prove(t.index, share) for t in rank(docket.trials)[: self.terms.finalists]]
        return _conclude(docket, proven, spent=docket.spent + late, free=docket.free)

    def _compose(self, docket: Docket, budget: Budget) -> _Solved:
        """Search the parts, join their winners and judge the whole; parts that spoil it go back to their default."""
        parts = docket.problem.parts
        shares = zip(parts, split(budget, len(parts)), strict=True)
        solved = [(part, self.solve(part, share)) for part, share in shares if share is not None]
        spent = sum((x.outcome.spent for _, x in solved), Cost())
        free = sum((x.outcome.free for _, x in solved), Cost())
        winners = {part.id: x.proposal for part, x in solved if x.outcome.trial is not None}
        if not winners:
            why = "; ".join(f"{part.name}: {x.outcome.fallback}" for part, x in solved)
            return _fall_back(docket, f"no part was proven faster ({why})", spent=spent, free=free + docket.free)
        proven = settle(docket, winners, self.terms.alpha)
        return _conclude(docket, proven, spent=spent, free=free + docket.free)

    def _consult(self, docket: Docket, budget: Budget) -> Cost:
        """Ask the advisor for batches until it or the budget is at its end; return LLM costs that no trial bears."""
        meter = Meter(self.services)
        dialogue = self._dialogue(docket, budget)
        answer: list[Trial] | None = None
        number = 0
        while budget.left(docket.spent):
            batch = self._next_batch(dialogue, answer, docket)
            if not batch:
                break
            number += 1
            charged = meter.read()
            answer = []
            for given in batch:
                if not budget.left(docket.spent):
                    break
                trial = docket.judge(given, round_=number, advisor=self.advisor.name, charged=charged)
                answer.append(trial.as_screened())
                charged = Cost()
        try:
            dialogue.close()
        except RuntimeError as error:  # it yielded again instead of ending
            docket.tell("advisor", f"{self.advisor.name} did not end when asked to: {error}")
        return meter.read()

    def _dialogue(self, docket: Docket, budget: Budget) -> Dialogue:
        """Describe the problem, as it was described at the first start, and begin the advisor's coroutine."""
        problem = docket.problem
        earlier = self.run.view(problem.id)
        view = View(
            problem=problem.id,
            evidence=docket.patiently(lambda: problem.describe(self.services)) if earlier is None else earlier.evidence,
            space=problem.space,
            baseline=docket.trials[0].as_screened(),
            seed=derive_seed(self.run.seed, "advise", problem.id),
            batch=self.terms.batch,
            budget=budget,
        )
        if earlier is None:
            self.run.describe(problem.name, view)
        missing = ", ".join(f"{name} ({why})" for name, why in view.evidence.missing.items())
        docket.tell("described", f"missing: {missing or 'nothing'}", resumed=earlier is not None)
        return self.advisor.propose(view.model_copy(deep=True), AdvisorDoors(self.services))

    def _next_batch(self, dialogue: Dialogue, answer: list[Trial] | None, docket: Docket) -> list[Proposal]:
        """Return the advisor's next batch; empty when it is done."""
        try:
            batch = next(dialogue) if answer is None else dialogue.send(answer)
        except StopIteration as end:
            if end.value is not None:
                docket.ended_early = f"{self.advisor.name} ended early: {end.value}"
                docket.tell("advisor", docket.ended_early)
            return []
        except ComplabError:
            raise
        except Exception as error:
            raise ComplabError(
                f"Advisor {self.advisor.name} failed on {docket.problem.name}: {type(error).__name__}: {error}",
                "What was judged so far is kept; the same command goes on from there.",
            ) from error
        if not isinstance(batch, list):
            raise ComplabError(
                f"Advisor {self.advisor.name} gave a {type(batch).__name__} where a list of proposals belongs.",
                "An advisor yields list[Proposal].",
            )
        return batch


def _conclude(docket: Docket, proven: Sequence[Trial], *, spent: Cost, free: Cost) -> _Solved:
    """Keep the best proven trial, or the baseline."""
    winners = [(proof.ratio, trial) for trial in proven if (proof := won(trial)) is not None]
    if not winners:
        return _fall_back(docket, why_none(docket.trials, proven), spent=spent, free=free)
    ratio, best = max(winners, key=lambda pair: pair[0])
    assert best.candidate is not None
    docket.tell("outcome", f"trial {best.index} is kept: {ratio:.3f}x proven", index=best.index)
    outcome = Outcome(chosen=best.candidate, trial=best.index, fallback=None, proof=best.proof, spent=spent, free=free)
    return _Solved(outcome, best.proposal)


def _fall_back(docket: Docket, why: str, *, spent: Cost, free: Cost) -> _Solved:
    """Keep the baseline and say why."""
    why = "; ".join(filter(None, (why, docket.ended_early)))
    docket.tell("outcome", f"the baseline is kept: {why}", index=0)
    outcome = Outcome(chosen=docket.baseline, trial=None, fallback=why, proof=None, spent=spent, free=free)
    return _Solved(outcome, docket.problem.default)
