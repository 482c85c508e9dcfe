"""`complab bench NAME`: complab measured against its own bars."""

import pkgutil
from collections.abc import Callable, Mapping

import click

from core.bench import BenchReport, Figure
from core.console import console, write_json
from core.options import json_option
from experiments.exits import DONE, FAILED

Benchmark = Callable[..., BenchReport]
"""Called with the keyword `quick: bool`."""

BENCHMARKS: Mapping[str, str] = {
    "sandbox": "core.sandbox.bench:run",
    "measure": "core.measure.bench:run",
    "runs": "core.runs.bench:run",
}
"""Where each benchmark is: `module:attribute`."""


@click.command()
@click.argument("name", type=click.Choice(list(BENCHMARKS)))
@click.option("--quick", is_flag=True, help="Fewer trials: minutes instead of up to 45; its bars are wider.")
@json_option
@click.pass_context
def bench(ctx: click.Context, name: str, quick: bool, json_to: str | None) -> None:
    """Measure a part of complab against its bars; exit code 1 when one does not hold.

    Absolute figures are of this machine under its present load.
    """
    run: Benchmark = pkgutil.resolve_name(BENCHMARKS[name])
    report = run(quick=quick)
    if json_to is None:
        _print(report)
    else:
        write_json(report.model_dump(mode="json"), json_to)
    ctx.exit(exit_code(report))


def exit_code(report: BenchReport) -> int:
    """Return 1 when a bar does not hold or was not decided, else 0."""
    return DONE if all(figure.holds for figure in report.figures if figure.bar is not None) else FAILED


def _print(report: BenchReport) -> None:
    from rich.table import Table

    table = Table("figure", "value", "unit", "95% interval", "bar", "holds", title=f"bench {report.name}")
    for figure in report.figures:
        table.add_row(figure.name, f"{figure.value:.4g}", figure.unit, _interval(figure), figure.bar, _holds(figure))
    console().print(table)
    console().print("  ".join(f"{key}: {value}" for key, value in report.machine.items()), markup=False)


def _interval(figure: Figure) -> str:
    return "" if figure.ci is None else f"{figure.ci[0]:.4g} .. {figure.ci[1]:.4g}"


def _holds(figure: Figure) -> str:
    if figure.bar is None:
        return ""
    return {True: "yes", False: "[red]no[/red]", None: "[red]undecided[/red]"}[figure.holds]
