"""`complab llvm evidence`: what an advisor is told of a program, as tables or JSON."""

import json
from collections.abc import Mapping

import click

from core.console import console, write_json
from core.errors import BadInput
from core.options import json_option
from core.records import Json


@click.command()
@click.argument("program")
@click.option("--cflags", default="", help="Extra compiler flags, quoted as one string.")
@click.option("--channel", default=None, help="Show this channel only.")
@json_option
def evidence(program: str, cflags: str, channel: str | None, json_to: str | None) -> None:
    """Show what an advisor is told of PROGRAM: what LLVM says of its -O3 build, channel by channel."""
    from core.sandbox.service import open_sandbox
    from llvm_tuning.problem import make_problem
    from llvm_tuning.program import load_program
    from llvm_tuning.toolchain.discover import discover

    problem = make_problem(load_program(program, cflags=cflags), discover())
    seen = problem.evidence(open_sandbox())
    channels = {name: content for name, content in seen.channels.items() if channel in (None, name)}
    missing = {name: why for name, why in seen.missing.items() if channel in (None, name)}
    if not channels and not missing:
        raise BadInput(f"There is no channel {channel!r}.", f"Choose of {', '.join(sorted(seen.channels))}.")
    if json_to is not None:
        write_json({"channels": channels, "missing": missing}, json_to)
    if json_to == "-":
        return
    for name, content in channels.items():
        _show(name, content)
    for name, why in missing.items():
        console().print(f"missing: {name}: {why}", markup=False)


def _show(name: str, content: Json) -> None:
    from rich.table import Table
    from rich.text import Text

    header, rows = tabulate(content)
    table = Table(*header, title=name, title_justify="left", box=None, header_style="bold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)


def tabulate(content: Json) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return a channel as header and rows: a list of maps by their keys, a map of maps by name and keys."""
    if isinstance(content, Mapping):
        records = [{"name": k, **(v if isinstance(v, Mapping) else {"value": v})} for k, v in content.items()]
    elif isinstance(content, list):
        records = [dict(v) if isinstance(v, Mapping) else {"value": v} for v in content]
    else:
        records = [{"value": content}]
    header = tuple(dict.fromkeys(key for record in records for key in record))
    return header, [tuple(_cell(record.get(key)) for key in header) for record in records]


def _cell(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)
