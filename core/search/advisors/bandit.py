"""A bandit over groups of fields: spends proposals where changes have paid, and looks elsewhere now and then."""

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from core.records import Digest, Json, digest_json
from core.search.advisors.bases import gain
from core.search.contract import Proposal, Services, Trial, View
from core.search.space import Payload, Space


@dataclass(frozen=True, kw_only=True, slots=True)
class BanditAdvisor:
    """UCB1 over groups: each pull changes one or two fields of one group in the best setting so far.

    A pull pays how much the best setting was improved, as a share of the largest improvement seen.
    """

    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Group name -> fields. Fields in no group are a group of their own."""
    exploration: float = 0.5
    """Weight of the confidence term of UCB1; 0 never looks back at a group that did not pay."""
    name: str = "bandit"

    def propose(self, view: View, s: Services) -> Generator[list[Proposal], list[Trial], str | None]:
        """Yield changes of the best setting so far, until no group has a new one."""
        rng = Random(view.seed)
        arms = _arms(self.groups, view.space)
        pulls = dict.fromkeys(arms, 0)
        paid = dict.fromkeys(arms, 0.0)
        seen: set[Digest] = {digest_json(view.baseline.proposal.payload)}
        best = view.baseline
        while True:
            batch: list[tuple[str, Payload]] = []
            open_arms = set(arms)
            while len(batch) < view.batch and open_arms:
                arm = self._pull(sorted(open_arms), pulls, paid, rng)
                payload = _changed(view.space, best.proposal.payload, arms[arm], seen, rng)
                if payload is None:
                    open_arms.discard(arm)
                    continue
                seen.add(digest_json(payload))
                pulls[arm] += 1
                batch.append((arm, payload))
            if not batch:
                return "every change of the best setting was tried"
            trials = yield [Proposal(payload=p, rationale=f"a change in {a} of trial {best.index}") for a, p in batch]
            before = gain(best)
            for (arm, _), trial in zip(batch, trials, strict=False):  # a spent budget answers only a part
                paid[arm] += max(0.0, gain(trial) - before)
                best = max(best, trial, key=gain)

    def _pull(self, arms: Sequence[str], pulls: Mapping[str, int], paid: Mapping[str, float], rng: Random) -> str:
        """Return the arm of the highest upper confidence bound; ties are broken at random."""
        total = 1 + sum(pulls.values())
        largest = max(paid.values()) or 1.0

        def bound(arm: str) -> float:
            if pulls[arm] == 0:
                return math.inf
            mean = paid[arm] / largest / pulls[arm]
            return mean + self.exploration * math.sqrt(2 * math.log(total) / pulls[arm])

        return max(arms, key=lambda arm: (bound(arm), rng.random()))


def _arms(groups: Mapping[str, Sequence[str]], space: Space) -> dict[str, tuple[str, ...]]:
    """Return the groups without fields that the space lacks, and every other field as a group of its own."""
    arms = {name: tuple(f for f in fields if f in space.fields) for name, fields in groups.items()}
    grouped = {f for fields in arms.values() for f in fields}
    arms |= {name: (name,) for name in space.fields if name not in grouped}
    return {name: fields for name, fields in arms.items() if fields}


def _changed(
    space: Space, payload: Mapping[str, Json], fields: Sequence[str], seen: set[Digest], rng: Random
) -> Payload | None:
    """Return a new valid payload that differs in one of the fields, else in two; None when all were seen."""
    single = [other for name in fields for other in space.moves(payload, name)]
    rng.shuffle(single)
    for other in single:
        if digest_json(other) not in seen:
            return other
    for first in single:
        for name in fields:
            for other in space.moves(first, name):
                if digest_json(other) not in seen:
                    return other
    return None
