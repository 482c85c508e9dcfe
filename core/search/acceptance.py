"""What is kept, and why not: pure functions over trials. Only a proof counts; screening decides who is tried."""

from collections import Counter
from collections.abc import Sequence

from core.search.contract import Budget, Comparison, Trial


def rank(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials worth a proof, the most promising first.

    Those are the distinct, accepted candidates whose screening leaves them a chance: faster, or undecided with a ratio
    above 1. They are ordered by the lower end of the interval, so that a lucky wide one doesn't push out a sure one.
    """
    hopeful = [
        t
        for t in trials
        if t.index > 0
        and t.duplicate_of is None
        and t.verdict.accepted
        and t.screen is not None
        and (t.screen.decision == "faster" or (t.screen.decision == "undecided" and t.screen.ratio > 1))
    ]
    return sorted(hopeful, key=lambda t: (-_screen(t).low, -_screen(t).ratio, t.index))


def _screen(trial: Trial) -> Comparison:
    assert trial.screen is not None
    return trial.screen


def won(trial: Trial) -> Comparison | None:
    """Return the proof of a trial that is correct on hidden inputs and decided faster beyond suspicion, or None."""
    proof = trial.proof
    if trial.hidden is None or not trial.hidden.accepted or proof is None:
        return None
    return proof if proof.decision == "faster" and "suspect" not in proof.flags else None


def why_none(trials: Sequence[Trial], proven: Sequence[Trial]) -> str:
    """Return why nothing was kept, with the numbers.

    Args:
        trials: all trials, the baseline first.
        proven: those that went to the proof, as they stand after it.
    """
    if not proven:
        outcomes = Counter(_screened(t) for t in trials[1:])
        if not outcomes:
            return "nothing was proposed"
        return "no candidate was screened as faster: " + ", ".join(f"{n} {what}" for what, n in outcomes.most_common())
    return "no candidate was proven faster: " + "; ".join(f"trial {t.index} {_proven(t)}" for t in proven)


def _screened(trial: Trial) -> str:
    if trial.duplicate_of is not None:
        return "duplicate"
    if trial.verdict.reason is not None:
        return trial.verdict.reason
    return trial.screen.decision if trial.screen is not None else "accepted"


def _proven(trial: Trial) -> str:
    if trial.hidden is not None and not trial.hidden.accepted:
        where = "met an error of our own" if trial.hidden.reason == "infra_error" else "failed on hidden inputs"
        return f"{where} ({trial.hidden.reason}: {trial.hidden.message})"
    proof = trial.proof
    if proof is None:
        return "was not compared"
    suspect = ", but suspect," if "suspect" in proof.flags else ""
    return f"was {proof.decision}{suspect} at {proof.ratio:.3f}x [{proof.low:.3f}, {proof.high:.3f}]"


def split(budget: Budget, parts: int) -> list[Budget | None]:
    """Return the budget in near equal shares; None for a part that gets nothing because there are too many."""
    shares: list[Budget | None] = []
    for i in range(parts):
        evaluations = budget.evaluations // parts + (i < budget.evaluations % parts)
        proposals = budget.most_proposals // parts + (i < budget.most_proposals % parts)
        wall_s = None if budget.wall_s is None else budget.wall_s / parts
        spends = evaluations > 0 and proposals > 0
        shares.append(Budget(evaluations=evaluations, proposals=proposals, wall_s=wall_s) if spends else None)
    return shares
