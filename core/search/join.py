"""Composite problems: the parts' winners as one whole, and which parts to give up when the whole fails."""

from collections.abc import Mapping

from core.records import Digest
from core.search.contract import Proposal, Trial
from core.search.docket import Docket


def settle(docket: Docket, winners: Mapping[Digest, Proposal], alpha: float) -> list[Trial]:
    """Judge and prove the join of all winners; while it fails, bisect the parts back to their default.

    k parts that spoil a join of n are found with about k log2(n) joins, which are free to the advisor. The first
    proof is made at alpha / 2, the next at alpha / 4, and so on: together they err with at most alpha.

    Args:
        docket: the composite's trials, its baseline judged.
        winners: proposals by part, of the parts that have one.
        alpha: error rate of the whole decision.

    Returns:
        The joins that went to the proof, as they stand after it.
    """
    problem = docket.problem
    defaults = {part.id: part.default for part in problem.parts}
    proven: dict[int, Trial] = {}

    def stands(kept: tuple[Digest, ...]) -> bool:
        """Judge a join: it stands when it is correct, also on hidden inputs, and nowhere slower."""
        whole = problem.join({**defaults, **{key: winners[key] for key in kept}})
        trial = docket.judge(whole, round_=0, advisor="join", charged=None)
        if not trial.verdict.accepted or trial.screen is None or trial.screen.decision == "slower":
            return False
        index = trial.index if trial.duplicate_of is None else trial.duplicate_of
        if index not in proven:
            proven[index] = docket.prove(index, alpha / 2 ** (len(proven) + 1))
        hidden, proof = proven[index].hidden, proven[index].proof
        return hidden is not None and hidden.accepted and proof is not None and proof.decision != "slower"

    def extend(kept: tuple[Digest, ...], group: tuple[Digest, ...]) -> tuple[Digest, ...]:
        """Return `kept` with as much of `group` as stands."""
        if stands(kept + group):
            return kept + group
        if len(group) == 1:
            return kept
        half = len(group) // 2
        return extend(extend(kept, group[:half]), group[half:])

    docket.tell("joining", f"the winners of {len(winners)} of {len(problem.parts)} parts")
    extend((), tuple(part.id for part in problem.parts if part.id in winners))
    return list(proven.values())
