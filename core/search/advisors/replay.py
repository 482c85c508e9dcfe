"""The proposals of a recorded run, once more: under another judge, on another machine, or to check a claim."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import groupby

from core.search.contract import Proposal, Services, Trial, View


@dataclass(frozen=True, slots=True)
class ReplayAdvisor:
    """Proposes what recorded trials proposed, in their batches; joins and baselines are the search's own."""

    trials: Sequence[Trial]
    name: str = "replay"

    def propose(self, view: View, s: Services) -> Generator[list[Proposal], list[Trial], None]:
        """Yield the recorded batches of the view's problem."""
        mine = sorted((t for t in self.trials if t.problem == view.problem and t.round > 0), key=lambda t: t.index)
        for _, batch in groupby(mine, key=lambda t: t.round):
            yield [trial.proposal for trial in batch]
