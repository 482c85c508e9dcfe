"""The doors to the world as one value, and the narrower set of doors that an advisor gets."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.errors import ComplabError
from core.search.contract import Cost, Services

if TYPE_CHECKING:
    from core.llm.client import Client
    from core.measure.service import Measure
    from core.runs.store import Store
    from core.sandbox.policy import Sandbox


@dataclass(frozen=True, kw_only=True, slots=True)
class Doors:
    """All services of a session; implements `core.search.contract.Services`."""

    box: "Sandbox"
    store: "Store"
    measure: "Measure"
    llm: "Client | None" = None


@dataclass(frozen=True, slots=True)
class AdvisorDoors:
    """What an advisor may use: everything but the clock, because an evaluation is bought by yielding a proposal."""

    _whole: Services

    @property
    def llm(self) -> "Client | None":
        """The model, if there is one."""
        return self._whole.llm

    @property
    def box(self) -> "Sandbox":
        """The sandbox."""
        return self._whole.box

    @property
    def store(self) -> "Store":
        """The blobs."""
        return self._whole.store

    @property
    def measure(self) -> "Measure":
        """Refuse.

        Raises:
            ComplabError: always.
        """
        raise ComplabError("An advisor asked for the clock.", "Yield the proposal: the search measures and charges it.")


class Meter:
    """Reads what a model was used for since the last reading.

    Replayed calls count as what they would have cost, so that a resumed run reports the costs of an uninterrupted one.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._before = self._total()

    def _total(self) -> Cost:
        if self._services.llm is None:
            return Cost()
        usage = self._services.llm.budget.spending.would_have
        return Cost(llm_calls=usage.calls, tokens=usage.tokens, usd=usage.usd)

    def read(self) -> Cost:
        """Return the calls, tokens and dollars since the last reading; dollars are None once a price was unknown."""
        before, self._before = self._before, self._total()
        now = self._before
        return Cost(
            llm_calls=now.llm_calls - before.llm_calls,
            tokens=now.tokens - before.tokens,
            usd=None if now.usd is None or before.usd is None else now.usd - before.usd,
        )
