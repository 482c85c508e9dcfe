"""Knowledge first, search after: an advisor that knows something opens, evolution goes on from what it found."""

from collections.abc import Generator
from dataclasses import dataclass, field

from core.search.advisors.evolution import EvolutionAdvisor
from core.search.contract import Advisor, Proposal, Services, Trial, View


@dataclass(frozen=True, kw_only=True, slots=True)
class HybridAdvisor:
    """Lets one advisor spend a share of the budget, then evolves all that was tried."""

    opening: Advisor
    """The advisor that knows something: rules, or a model."""
    search: EvolutionAdvisor = field(default_factory=EvolutionAdvisor)
    share: float = 0.5
    """Share of the evaluations after which the opening is over; it may end by itself earlier."""
    name: str = "hybrid"

    def propose(self, view: View, s: Services) -> Generator[list[Proposal], list[Trial], None]:
        """Yield the opening's batches, then generations."""
        trials: list[Trial] = []
        opening = self.opening.propose(view, s)
        spent, limit = 0, self.share * view.budget.evaluations
        try:
            batch = next(opening)
            while batch and spent < limit:
                answer = yield batch
                trials += answer
                spent += sum(trial.cost.evaluations for trial in answer)
                batch = opening.send(answer)
        except StopIteration:
            pass  # it has nothing more to say: the rest of the budget is the search's
        finally:
            opening.close()
        yield from self.search.evolve(view, trials)
