"""`complab runs`: what was run, what came of it, and the trials as a table for other tools."""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from core.console import write_json
from core.errors import BadInput
from core.options import json_option
from core.runs.export import FORMATS, export
from core.runs.record import Recorded, find_run, list_runs

if TYPE_CHECKING:
    from rich.console import Console

ROOT = Path("runs")

root_option = click.option(
    "--root", type=click.Path(path_type=Path), default=ROOT, show_default=True, help="The directory of all runs."
)


@click.group()
def runs() -> None:
    """List, show and export what was run."""


@runs.command("list")
@root_option
@json_option
def list_command(root: Path, json_to: str | None) -> None:
    """List all runs, the newest last."""
    found = list_runs(root)
    if json_to is not None:
        write_json({"runs": [summary(run) for run in found.runs], "unreadable": found.unreadable}, json_to)
        return
    if found.runs:
        from rich.table import Table

        table = Table("run", "status", "started", "trials", "result", box=None)
        for run in found.runs:
            row = summary(run)
            table.add_row(
                f"{run.info.system}/{run.directory.name}",
                str(row["status"]),
                run.info.created[:19],
                str(row["trials"]),
                _result(run),
            )
        _console().print(table)
    elif not found.unreadable:
        click.echo(f"No runs in {root}.")
    for message in found.unreadable:
        click.echo(f"left out: {message}", err=True)


@runs.command("show")
@root_option
@json_option
@click.argument("run")
def show_command(root: Path, run: str, json_to: str | None) -> None:
    """Show one RUN: a directory, or the start of a name in the list."""
    recorded = find_run(root, run)
    if json_to is not None:
        trials = [trial.model_dump(mode="json") for trial in recorded.trials]
        outcome = None if recorded.outcome is None else recorded.outcome.model_dump(mode="json")
        write_json({**summary(recorded), "outcome": outcome, "trials": trials}, json_to)
        return
    from rich.table import Table

    console = _console()
    info = recorded.info
    console.print(f"{info.system} / {info.name}  ({info.state}, seed {info.seed}, {info.starts} starts)", markup=False)
    if recorded.dropped is not None:
        console.print(recorded.dropped, markup=False)
    table = Table("trial", "advisor", "verdict", "screen", "proof", "proposal", box=None)
    for t in recorded.trials:
        verdict = f"same as {t.duplicate_of}" if t.duplicate_of is not None else t.verdict.reason or "accepted"
        if t.hidden is not None and not t.hidden.accepted:
            verdict = f"{t.hidden.reason} (hidden inputs)"
        cells = [f"{c.ratio:.3f}x {c.decision}" if c is not None else "" for c in (t.screen, t.proof)]
        payload = json.dumps(t.proposal.payload)
        row = [str(t.index), t.advisor, verdict, *cells, payload if len(payload) <= 60 else payload[:57] + "..."]
        table.add_row(*(_printable(cell) for cell in row))
    console.print(table)
    console.print(_result(recorded), markup=False)


@runs.command("export")
@root_option
@click.option("--format", "form", type=click.Choice(sorted(FORMATS)), default="csv", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The file to write.")
@click.argument("run")
def export_command(root: Path, form: str, out: Path, run: str) -> None:
    """Write the trials of one RUN as a table, one row a trial."""
    recorded = find_run(root, run)
    if not recorded.trials:
        raise BadInput(f"{recorded.directory} has no finished trials.", "Export a run that has some.")
    export(recorded.trials, form, out)
    click.echo(f"{len(recorded.trials)} trials written to {out}")


def summary(run: Recorded) -> dict[str, object]:
    """Return the facts of a run that a list shows."""
    outcome = run.outcome
    return {
        "run": str(run.directory),
        "system": run.info.system,
        "name": run.info.name,
        "status": run.info.state,
        "message": run.info.message,
        "created": run.info.created,
        "seed": run.info.seed,
        "trials": len(run.trials),
        "rejected": dict(Counter(t.verdict.reason for t in run.trials if t.verdict.reason is not None)),
        "ratio": outcome.proof.ratio if outcome is not None and outcome.proof is not None else None,
        "fallback": outcome.fallback if outcome is not None else None,
    }


def _result(run: Recorded) -> str:
    outcome = run.outcome
    if outcome is None:
        return _printable(run.info.message) or "not finished: the same command goes on"
    if outcome.proof is None:
        return _printable(f"baseline kept: {outcome.fallback}")
    return f"{outcome.proof.ratio:.3f}x [{outcome.proof.low:.3f}, {outcome.proof.high:.3f}] (trial {outcome.trial})"


def _console() -> "Console":
    """Return the console for people; a pipe or file gets wide lines, so that names stay whole."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=200)


def _printable(text: str) -> str:
    """Return text without the control characters that could steer a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
