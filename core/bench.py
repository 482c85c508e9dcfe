"""The one form in which a benchmark reports: figures with intervals, bars and whether they hold."""

from typing import Any

from core.records import Record


class Figure(Record):
    """One measured figure."""

    name: str
    value: float
    unit: str
    ci: tuple[float, float] | None = None
    """95% interval unless the name says otherwise."""
    bar: str | None = None
    """The bar as text, for example "<= 60"; None: reported, no bar."""
    holds: bool | None = None


class BenchReport(Record):
    """What `complab bench NAME --json` prints. Absolute figures are never test assertions."""

    name: str
    machine: dict[str, Any]
    """CPU model, cores, load at start, clock source, ...: all that the absolute figures depend on."""
    figures: tuple[Figure, ...]
