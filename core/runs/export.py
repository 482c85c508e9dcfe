"""Trials as flat tables for pandas, DuckDB and spreadsheets."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from core.errors import BadInput
from core.files import write_whole
from core.search.contract import Trial

_COMPARISON = ("ratio", "low", "high", "level", "decision", "pairs", "clock", "modelled")

Row = dict[str, Any]


def row(trial: Trial) -> Row:
    """Return a trial as one flat row; what it does not have is None."""
    flat: Row = {
        "problem": trial.problem,
        "trial": trial.index,
        "round": trial.round,
        "advisor": trial.advisor,
        "candidate": None if trial.candidate is None else trial.candidate.key,
        "duplicate_of": trial.duplicate_of,
        "accepted": trial.verdict.accepted,
        "reason": trial.verdict.reason,
        "message": trial.verdict.message,
        "checks": trial.verdict.checks,
        "exactness": None if trial.candidate is None else trial.candidate.exactness,
    }
    for name, comparison in (("screen", trial.screen), ("proof", trial.proof)):
        flat |= {f"{name}_{key}": getattr(comparison, key, None) for key in _COMPARISON}
    flat["hidden_accepted"] = None if trial.hidden is None else trial.hidden.accepted
    flat["hidden_reason"] = None if trial.hidden is None else trial.hidden.reason
    flat |= {f"cost_{key}": value for key, value in trial.cost.model_dump().items()}
    flat["payload"] = json.dumps(trial.proposal.payload, sort_keys=True)
    flat["rationale"] = trial.proposal.rationale
    return flat


def _csv(rows: Sequence[Row]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _json(rows: Sequence[Row]) -> bytes:
    return (json.dumps(list(rows), indent=1) + "\n").encode()


def _parquet(rows: Sequence[Row]) -> bytes:
    try:
        import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]
        import pyarrow.parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise BadInput(
            "Parquet needs the package pyarrow, which is not installed.", "`pip install pyarrow`, or use --format csv."
        ) from None
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), sink)
    return bytes(sink.getvalue().to_pybytes())


FORMATS: dict[str, Callable[[Sequence[Row]], bytes]] = {"csv": _csv, "json": _json, "parquet": _parquet}


def export(trials: Sequence[Trial], form: str, path: Path) -> None:
    """Write trials as a table, one row a trial, wholly or not at all.

    Args:
        trials: at least one.
        form: a key of FORMATS.
        path: the file.

    Raises:
        BadInput: the format needs a package that is missing, or the directory cannot be written.
    """
    write_whole(path, FORMATS[form]([row(trial) for trial in trials]))
