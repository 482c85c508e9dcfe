"""Hierarchical budgets: reserve the worst case before a call, commit what it really took afterwards."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from core.llm.errors import BudgetExceeded
from core.llm.types import Usage
from core.records import Record


class Allowance(Record):
    """Limits of a budget; None is unlimited."""

    usd: float | None = None
    tokens: int | None = None
    calls: int | None = None
    wall_s: float | None = None


class Spending(Record):
    """Where a budget stands."""

    spent: Usage = Usage()
    """Live calls."""
    replayed: Usage = Usage()
    """What the replayed calls would have cost."""
    wall_s: float = 0.0
    """Time since the budget was opened."""

    @property
    def would_have(self) -> Usage:
        """Cost of the same work without any cassette: what tables of costs quote."""
        return self.spent + self.replayed


@dataclass(slots=True, eq=False)
class Reservation:
    """An amount held back in a budget and all its ancestors until it is committed or refunded."""

    budget: "Budget"
    amount: Usage
    open: bool = field(default=True)

    def commit(self, real: Usage) -> None:
        """Replace the held amount by the real one (which may be larger: what was used was used)."""
        self.budget._settle(self, real)

    def refund(self) -> None:
        """Give the held amount back: nothing was used. After a commit this does nothing."""
        if self.open:
            self.budget._settle(self, Usage())


class Budget:
    """A limit on spending with children whose spending counts here too. Thread-safe.

    Args:
        allowance: the limits.
        name: shown in errors.
        parent: the budget above, whose limits hold as well.
        charge_replays: count replayed calls as spent. A resumed run sets this, so that its dollars are those of the
            whole run and its decisions those of an uninterrupted one; otherwise replays cost nothing.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        allowance: Allowance | None = None,
        *,
        name: str = "budget",
        parent: "Budget | None" = None,
        charge_replays: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.allowance = allowance or Allowance()
        self.name = name
        self.parent = parent
        self.charge_replays = charge_replays
        self._clock: Callable[[], float] = clock if parent is None else parent._clock
        self._lock: threading.Lock = threading.Lock() if parent is None else parent._lock  # one lock for a whole tree
        self._start = self._clock()
        self._spent = Usage()
        self._replayed = Usage()
        self._open: list[Reservation] = []

    def child(self, name: str, allowance: Allowance | None = None) -> "Budget":
        """Return a budget below this one."""
        return Budget(allowance, name=name, parent=self, charge_replays=self.charge_replays)

    @property
    def spending(self) -> Spending:
        """What was spent so far, held amounts left out."""
        with self._lock:
            return Spending(spent=self._spent, replayed=self._replayed, wall_s=self._clock() - self._start)

    def reserve(self, worst: Usage) -> Reservation:
        """Hold back the worst case of a call here and in every ancestor, or in none.

        Raises:
            BudgetExceeded: with it a limit could be passed; the message names budget, limit and amounts.
        """
        with self._lock:
            for budget in self._line():
                budget._require(worst)
            reservation = Reservation(self, worst)
            for budget in self._line():
                budget._open.append(reservation)
        return reservation

    def replay(self, cost: Usage) -> None:
        """Count a replayed call: as spent when replays are charged, else only as what it would have cost."""
        with self._lock:
            for budget in self._line():
                if budget.charge_replays:
                    budget._spent = budget._spent + cost
                else:
                    budget._replayed = budget._replayed + cost

    def _line(self) -> "list[Budget]":
        line: list[Budget] = []
        budget: Budget | None = self
        while budget is not None:
            line.append(budget)
            budget = budget.parent
        return line

    def _require(self, worst: Usage) -> None:
        used = sum((held.amount for held in self._open), self._spent)
        limits: list[tuple[str, float | None, float, float]] = [
            ("calls", self.allowance.calls, used.calls, worst.calls),
            ("tokens", self.allowance.tokens, used.tokens, worst.tokens),
            ("wall_s", self.allowance.wall_s, self._clock() - self._start, 0.0),
        ]
        if self.allowance.usd is not None:
            if used.usd is None or worst.usd is None:
                raise BudgetExceeded(
                    f"{self.name}: the limit of ${self.allowance.usd:g} cannot be kept with a model of unknown price.",
                    "Give the price, or drop the dollar limit and limit tokens.",
                )
            limits.append(("usd", self.allowance.usd, used.usd, worst.usd))
        for what, limit, now, more in limits:
            if limit is not None and now + more > limit * (1 + 1e-12):
                raise BudgetExceeded(
                    f"{self.name}: the next call needs up to {more:g} {what}, {now:g} of {limit:g} are used or held.",
                    f"Raise the limit of {what}, or ask less.",
                )

    def _settle(self, reservation: Reservation, real: Usage) -> None:
        with self._lock:
            if not reservation.open:
                raise ValueError("a reservation is settled once")
            reservation.open = False
            for budget in self._line():
                budget._open = [held for held in budget._open if held is not reservation]
                budget._spent = budget._spent + real
