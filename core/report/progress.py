"""Progress of a search on a terminal: a bar over the budget, and one line a finished trial."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from core.search.contract import Event


class SearchProgress:
    """Shows a search's events; a context manager.

    Args:
        console: where to write; without a terminal only the lines are written, no bar.
        evaluations: the budget.
    """

    def __init__(self, console: Console, evaluations: int) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("evaluations"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=evaluations)

    def show(self, event: Event) -> None:
        """Show one event."""
        self._bar.update(self._task, completed=event.spent.evaluations, description=event.name)
        again = " (from the record)" if event.resumed else ""
        number = "" if event.index is None else f" {event.index}"
        self._console.print(f"{event.name}: {event.kind}{number}: {event.message}{again}", markup=False)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
