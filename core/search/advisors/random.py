"""Uniform sampling: the advisor that every other one has to beat at the same budget."""

from collections.abc import Generator
from random import Random

from core.search.contract import Proposal, Services, Trial, View


class RandomAdvisor:
    """Samples the space, batch after batch, for as long as it is asked."""

    name = "random"

    def propose(self, view: View, s: Services) -> Generator[list[Proposal], list[Trial], None]:
        """Yield batches of independent samples."""
        rng = Random(view.seed)
        while True:
            yield [Proposal(payload=view.space.sample(rng)) for _ in range(view.batch)]
