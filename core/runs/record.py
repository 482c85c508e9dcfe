"""Reading runs without opening them: nothing is locked, repaired or changed."""

from dataclasses import dataclass
from pathlib import Path

from core.errors import BadInput, ComplabError
from core.runs.journal import load
from core.runs.run import RunInfo, read_info, read_record
from core.search.contract import Outcome, Trial


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """A run as it lies on disk."""

    directory: Path
    info: RunInfo
    trials: tuple[Trial, ...]
    """Each once, with its proof if it has one, in the order of their first lines."""
    outcome: Outcome | None
    dropped: str | None
    """One sentence on a torn last line, which is left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """All runs under a root."""

    runs: tuple[Recorded, ...]
    """The newest last."""
    unreadable: tuple[str, ...]
    """One message for each run that cannot be read."""


def read_run(directory: Path) -> Recorded:
    """Return a run.

    Raises:
        BadInput: the directory holds no run, or one of another version.
        ComplabError: the run is damaged; the message names file and line.
    """
    info = read_info(directory)
    loaded = load(directory / "trials.jsonl", Trial)
    trials = {(trial.problem, trial.index): trial for trial in loaded.records}
    outcome = read_record(directory / "outcome.json", Outcome)
    return Recorded(
        directory=directory, info=info, trials=tuple(trials.values()), outcome=outcome, dropped=loaded.dropped
    )


def list_runs(root: Path) -> Listing:
    """Return all runs under a root, by the time they were created; a missing root has none."""
    found, unreadable = [], []
    for path in sorted(root.glob("*/*/run.json")):
        try:
            found.append(read_run(path.parent))
        except ComplabError as error:
            unreadable.append(str(error))
    return Listing(runs=tuple(sorted(found, key=lambda run: run.info.created)), unreadable=tuple(unreadable))


def find_run(root: Path, name: str) -> Recorded:
    """Return the run that a person means: a directory, or the start of a directory's name under `root`.

    Raises:
        BadInput: none or several runs match; the message lists them.
        ComplabError: the run is damaged.
    """
    if (Path(name) / "run.json").is_file():
        return read_run(Path(name))
    known = [path.parent for path in sorted(root.glob("*/*/run.json"))]
    matching = [d for d in known if d.name.startswith(name) or f"{d.parent.name}/{d.name}".startswith(name)]
    exact = [d for d in matching if name in (d.name, f"{d.parent.name}/{d.name}")]
    if len(exact or matching) == 1:
        return read_run((exact or matching)[0])
    if matching:
        names = ", ".join(d.name for d in matching[:8])
        raise BadInput(f"{name!r} means {len(matching)} runs: {names}.", "Give more of the name.")
    names = ", ".join(d.name for d in known[-8:]) or "none"
    raise BadInput(f"There is no run {name!r} in {root}.", f"Known: {names}.")
