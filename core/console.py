"""The one place where complab writes for people: rich on a terminal, plain text everywhere else."""

import functools
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.files import write_whole

if TYPE_CHECKING:
    from rich.console import Console

_PLAIN_WIDTH = 120
"""Columns where there is no terminal to ask; COLUMNS overrides it."""


@functools.cache
def console() -> "Console":
    """Return the console on stdout: results."""
    return _console(stderr=False)


@functools.cache
def notices() -> "Console":
    """Return the console on stderr: progress, warnings and errors, so that stdout stays a result."""
    return _console(stderr=True)


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table without a frame on stdout."""
    from rich.table import Table
    from rich.text import Text

    table = Table(*header, box=None, header_style="bold")
    for row in rows:
        table.add_row(*map(Text, row))
    console().print(table)


def write_json(value: Any, to: str) -> None:
    """Write one JSON object, whole or not at all.

    Args:
        value: JSON data.
        to: a file's path, or `-` for stdout.

    Raises:
        ComplabError: the file cannot be written.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if to == "-":
        sys.stdout.write(text)
        return
    write_whole(Path(to), text.encode(), durable=False)


def paragraph(text: str) -> None:
    """Write one paragraph to stderr, without rich: an error must reach people even when rich cannot load."""
    sys.stderr.write(text.strip() + "\n")
    sys.stderr.flush()


def _console(*, stderr: bool) -> "Console":
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty():
        return Console(stderr=stderr, highlight=False)
    width = int(os.environ.get("COLUMNS") or _PLAIN_WIDTH)
    return Console(stderr=stderr, highlight=False, no_color=True, width=width)
