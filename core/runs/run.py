"""One run: a directory that says what was asked, where, what happened and what was kept.

    <root>/<system>/<name>-<config8>[-<n>]/
      run.json config.yaml env.json lock aa.json outcome.json problems/<id>.json
      trials.jsonl exchanges.jsonl events.jsonl blobs/<aa>/<sha256> report/index.html

The same system, name, configuration and seed open the same directory and go on where it stopped.
"""

import json
import logging
import os
import platform
import re
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import filelock
import psutil
import yaml
from pydantic import ValidationError

from core.errors import BadInput, ComplabError
from core.files import make_directory, refusal, write_whole
from core.llm.redact import redact
from core.records import Digest, Json, Record, canonical_json, digest_json
from core.runs.journal import Journal
from core.runs.store import Store
from core.search.contract import Event, Outcome, Trial, View

SCHEMA = 1
"""Version of the layout and of the records in it. A run of another version is refused, never half understood."""

_LOG = logging.getLogger(__name__)

Status = Literal["running", "done", "failed", "interrupted"]


class Owner(Record):
    """The process that has, or had, the run open."""

    host: str
    pid: int
    started: float
    """The process's start in seconds since the epoch: a pid alone may be used again."""

    @classmethod
    def me(cls) -> Self:
        """Return this process."""
        return cls(host=platform.node(), pid=os.getpid(), started=psutil.Process().create_time())

    @property
    def lives(self) -> bool:
        """Whether that process still runs; one on another host counts as living."""
        if self.host != platform.node():
            return True
        try:
            return abs(psutil.Process(self.pid).create_time() - self.started) < 1.0
        except psutil.NoSuchProcess:
            return False


class RunInfo(Record):
    """`run.json`: identity and status of a run."""

    schema_version: int = SCHEMA
    system: str
    name: str
    identity: Digest
    """Digest of configuration and seed."""
    seed: int
    created: str
    """UTC, ISO 8601."""
    updated: str
    starts: int
    """How often the run was opened for writing."""
    owner: Owner
    status: Status
    message: str = ""
    """Why it failed."""

    @property
    def state(self) -> Status:
        """The status as of now: a run whose process is gone was interrupted."""
        return "interrupted" if self.status == "running" and not self.owner.lives else self.status


class Noted(Event):
    """A line of events.jsonl: an event with its time (UTC, ISO 8601)."""

    time: str


class Described(Record):
    """`problems/<id>.json`: a problem's name, and what the advisor saw of it."""

    name: str
    view: View


def now() -> str:
    """Return the time as runs record it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def read_info(directory: Path) -> RunInfo:
    """Return what `run.json` says.

    Raises:
        BadInput: the directory holds no run, or one that this version cannot read.
    """
    path = directory / "run.json"
    try:
        fields: Any = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise BadInput(
            f"{directory} is not a run: it has no run.json.", "`complab runs list` shows the runs."
        ) from None
    except OSError as error:
        raise refusal(error, path) from error
    except ValueError as error:
        raise BadInput(f"{path} is not JSON: {error}.", "Restore it from a copy, or start another run.") from error
    version = fields.get("schema_version") if isinstance(fields, dict) else None
    if version != SCHEMA:
        raise BadInput(
            f"{directory} has run schema {version!r}; this complab reads schema {SCHEMA}.",
            "Use the version of complab that wrote it, or start another run with --new.",
        )
    try:
        return RunInfo.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise BadInput(f"{path}: {where}: {first['msg']}.", "Restore it from a copy, or start another run.") from error


def find_directory(root: Path, system: str, name: str, identity: Digest, *, new: bool) -> Path:
    """Return the directory of the newest run with this identity, or of a fresh one when there is none or `new`."""
    stem = f"{re.sub(r'[^A-Za-z0-9._]+', '-', name).strip('-.')[:80] or 'run'}-{identity[:8]}"
    number = 1
    while (following := root / system / (stem if number == 1 else f"{stem}-{number}")).exists():
        number += 1
    if new or number == 1:
        return following
    return root / system / (stem if number == 2 else f"{stem}-{number - 1}")


class Run:
    """An open run: the only writer of its directory. Implements `core.search.contract.Run`; use as a context manager.

    Leaving the context normally marks it done (or interrupted, when there is no outcome), an error marks it failed,
    an interrupt marks it interrupted; in all cases the same command goes on from there. Bad input before the first
    trial leaves no run.

    Args:
        root: the directory of all runs.
        system: `llvm`, `passes`, `cuda`, `tpu`, ...: a lower-case word.
        name: what is being made faster, for people.
        config: the whole configuration, JSON values.
        seed: the root of all randomness; part of the identity.
        env: facts about machine and software, kept for each start.
        new: start another run even if one with this identity exists.

    Raises:
        BadInput: the directory cannot be written, holds another schema, or another identity.
        ComplabError: the run is open in another process, is damaged, or the disk is full.
    """

    def __init__(
        self,
        root: Path,
        system: str,
        name: str,
        config: Mapping[str, Json],
        *,
        seed: int,
        env: Mapping[str, Json] | None = None,
        new: bool = False,
    ) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", system):
            raise BadInput(f"{system!r} cannot name a system.", "Use a lower-case word.")
        identity = digest_json({"config": dict(config), "seed": seed})
        try:
            self.directory = find_directory(root, system, name, identity, new=new)
        except OSError as error:
            raise refusal(error, root) from error
        make_directory(self.directory / "problems")
        self._lock = self._acquire()
        try:
            self.info = self._begin(system, name, identity, seed, config, env or {})
            self.store = Store(self.directory / "blobs")
            self._trials = Journal(self.directory / "trials.jsonl", Trial)
            self._events = Journal(self.directory / "events.jsonl", Noted)
            self._by_problem: dict[Digest, dict[int, Trial]] = {}
            for trial in self._trials.records:
                self._by_problem.setdefault(trial.problem, {})[trial.index] = trial
            self._outcome = read_record(self.directory / "outcome.json", Outcome)
            for text in self.dropped:
                _LOG.warning(text)
        except BaseException:
            self._lock.release()
            raise

    def _acquire(self) -> filelock.FileLock:
        lock = filelock.FileLock(self.directory / "lock")
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            try:
                owner = read_info(self.directory).owner
                who = f"process {owner.pid} on {owner.host}"
            except BadInput:
                who = "another process"
            raise ComplabError(
                f"The run {self.directory} is open in {who}.", "Wait for it, or start another run with --new."
            ) from None
        except OSError as error:
            raise refusal(error, self.directory) from error
        return lock

    def _begin(
        self, system: str, name: str, identity: Digest, seed: int, config: Mapping[str, Json], env: Mapping[str, Json]
    ) -> RunInfo:
        path = self.directory / "run.json"
        created, starts, environments = now(), 0, []
        if path.exists():
            before = read_info(self.directory)
            if before.identity != identity:
                raise BadInput(
                    f"{self.directory} belongs to another configuration or seed ({before.identity[:16]}).",
                    "Start another run with --new.",
                )
            created, starts = before.created, before.starts
            environments = _read_environments(self.directory / "env.json")  # written before run.json
        else:
            config_text = yaml.safe_dump(json.loads(canonical_json(dict(config))), sort_keys=False)
            write_whole(self.directory / "config.yaml", config_text.encode())
        self.save("env.json", [*environments, {"time": now(), **env}])
        info = RunInfo(
            system=system,
            name=name,
            identity=identity,
            seed=seed,
            created=created,
            updated=now(),
            starts=starts + 1,
            owner=Owner.me(),
            status="running",
        )
        self._write_info(info)
        return info

    def _write_info(self, info: RunInfo) -> None:
        self.save("run.json", info.model_dump(mode="json"))
        self.info = info

    @property
    def seed(self) -> int:
        """The root of all randomness of the run."""
        return self.info.seed

    @property
    def outcome(self) -> Outcome | None:
        """What the run kept, when it is done."""
        return self._outcome

    @property
    def exchanges(self) -> Path:
        """The LLM cassette of the run."""
        return self.directory / "exchanges.jsonl"

    @property
    def dropped(self) -> tuple[str, ...]:
        """What the last interruption tore and this start dropped, a sentence each."""
        return tuple(text for text in (self._trials.dropped, self._events.dropped) if text is not None)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All finished trials, each once with its proof if it has one, in the order of their first lines."""
        return tuple(trial for trials in self._by_problem.values() for trial in trials.values())

    def recorded(self, problem: Digest) -> Mapping[int, Trial]:
        """Return a problem's finished trials by index."""
        return dict(self._by_problem.get(problem, {}))

    def append(self, trial: Trial) -> None:
        """Record a finished trial, or its proof: a later line replaces the earlier one of the same index.

        Raises:
            ValueError: the index is taken by another proposal, or its proof is recorded already.
            ComplabError: the disk refuses.
        """
        trials = self._by_problem.setdefault(trial.problem, {})
        earlier = trials.get(trial.index)
        final = earlier is not None and earlier.hidden is not None and earlier.hidden.reason != "infra_error"
        if earlier is not None and (earlier.key != trial.key or final):
            raise ValueError(f"trial {trial.index} of problem {trial.problem[:8]} is recorded already")
        self._trials.append(trial)
        trials[trial.index] = trial

    def view(self, problem: Digest) -> View | None:
        """Return what the advisor saw of a problem at the first start, if it was recorded.

        Raises:
            ComplabError: the file is damaged.
        """
        described = read_record(self.directory / "problems" / f"{problem}.json", Described)
        return None if described is None else described.view

    def describe(self, name: str, view: View) -> None:
        """Record what the advisor sees of a problem, in problems/<id>.json."""
        self.save(f"problems/{view.problem}.json", Described(name=name, view=view).model_dump(mode="json"))

    def note(self, event: Event) -> None:
        """Record a step in events.jsonl."""
        self._events.append(Noted(time=now(), **event.model_dump()))

    def finish(self, outcome: Outcome) -> None:
        """Record what the run kept, in outcome.json."""
        self._trials.flush()
        self.save("outcome.json", outcome.model_dump(mode="json"))
        self._outcome = outcome

    def save(self, name: str, value: Any) -> None:
        """Write one JSON file of the run (`aa.json`, ...), wholly or not at all."""
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        write_whole(self.directory / name, text.encode())

    def close(self, status: Status, message: str = "") -> None:
        """Flush, write the final status and let go of the directory; closing twice is harmless."""
        if not self._lock.is_locked:
            return
        try:
            self._trials.close()
            self._events.close()
            self._write_info(
                self.info.model_copy(update={"status": status, "message": message, "updated": now()}),
            )
        finally:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close("done" if self._outcome is not None else "interrupted")
        elif issubclass(kind, KeyboardInterrupt | GeneratorExit):
            self.close("interrupted")
        else:
            self.close("failed", redact(str(error)))
            if issubclass(kind, BadInput) and self.info.starts == 1 and not self.trials:
                shutil.rmtree(self.directory)  # nothing was run: no run to list


def _read_environments(path: Path) -> list[Any]:
    try:
        environments = json.loads(path.read_bytes())
    except OSError as error:
        raise refusal(error, path) from error
    except ValueError as error:
        raise BadInput(f"{path} is not JSON: {error}.", "Restore it from a copy, or start another run.") from error
    if not isinstance(environments, list):
        raise BadInput(f"{path} holds no list of starts.", "Restore it from a copy, or start another run.")
    return environments


R = TypeVar("R", bound=Record)


def read_record(path: Path, kind: type[R]) -> R | None:
    """Return the record in a JSON file of a run; None when there is no such file.

    Raises:
        ComplabError: the file is damaged.
    """
    try:
        return kind.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise refusal(error, path) from error
    except ValidationError as error:
        what = f"{path} is damaged: {error.errors()[0]['msg']}."
        raise ComplabError(what, "Remove it and repeat the command, or start another run with --new.") from error
