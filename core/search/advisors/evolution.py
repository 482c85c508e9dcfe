"""Mutation, crossover and tournaments: the advisor without knowledge that learns from its trials."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from core.records import Digest, Json, digest_json
from core.search.advisors.bases import gain
from core.search.contract import Proposal, Services, Trial, View
from core.search.space import Payload, Space


@dataclass(frozen=True, kw_only=True, slots=True)
class EvolutionAdvisor:
    """Steady-state evolution: children of tournament winners replace nobody, the weak just stop winning."""

    population: int = 12
    """How many of the best trials may become parents."""
    tournament: int = 3
    """How many of them compete for each parenthood."""
    crossover: float = 0.5
    """Share of the children that have two parents."""
    fresh: float = 0.1
    """Share of the children that are new samples, so that the search can leave a corner."""
    name: str = "evolution"

    def propose(self, view: View, s: Services) -> Generator[list[Proposal], list[Trial], None]:
        """Yield generations without end: first samples and neighbours of the baseline, then children."""
        yield from self.evolve(view, [])

    def evolve(self, view: View, known: Sequence[Trial]) -> Generator[list[Proposal], list[Trial], None]:
        """Yield generations without end, from the baseline and trials that somebody else has proposed."""
        rng = Random(view.seed)
        seen: set[Digest] = {digest_json(trial.proposal.payload) for trial in (view.baseline, *known)}
        ranked = _ranked([view.baseline, *known])
        while True:
            batch = [self._child(view.space, ranked[: self.population], seen, rng) for _ in range(view.batch)]
            trials = yield [Proposal(payload=payload) for payload in batch]
            ranked = _ranked([*ranked, *trials])

    def _child(self, space: Space, parents: Sequence[Trial], seen: set[Digest], rng: Random) -> Payload:
        """Return a payload that was not proposed before, unless the space seems exhausted."""
        payload: Payload = {}
        for _ in range(20):
            if rng.random() < (self.fresh if len(parents) > 1 else 0.5):
                payload = space.sample(rng)
            else:
                payload = self._parent(parents, rng)
                if len(parents) > 1 and rng.random() < self.crossover:
                    payload = cross(space, payload, self._parent(parents, rng), rng)
                payload = space.vary(payload, rng)
            if (key := digest_json(payload)) not in seen:
                seen.add(key)
                break
        return payload

    def _parent(self, parents: Sequence[Trial], rng: Random) -> Payload:
        rivals = [rng.randrange(len(parents)) for _ in range(self.tournament)]
        return dict(parents[min(rivals)].proposal.payload)


def cross(space: Space, a: Mapping[str, Json], b: Mapping[str, Json], rng: Random) -> Payload:
    """Return a payload that takes each field from one of two; `a` when the mixture breaks a rule of the space."""
    child: Payload = {}
    for name in space.fields:
        source = a if rng.random() < 0.5 else b
        if name in source:
            child[name] = source[name]
    return dict(a) if space.errors(child) else child


def _ranked(trials: Sequence[Trial]) -> list[Trial]:
    """Return the accepted trials, the fastest first."""
    return sorted((t for t in trials if t.verdict.accepted), key=gain, reverse=True)
