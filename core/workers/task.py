"""What is to be done, by what resources, and how it ended."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Needs = Mapping[str, int]
"""How many of each resource: `cpu`, `gpu`, `emulated_tpu`, ... Kinds are names; a backend has a count of each."""

Why = Literal["timeout", "crash", "infra_error"]
"""Why a task failed: over its time, an exception, or no fault of its own (an InfraError, a dead worker).

Only `infra_error` is retried.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Task(Generic[T_co]):
    """One thing to do."""

    key: str
    """Names it in results and messages; unique within one map."""
    call: Callable[[], T_co]
    """For process backends picklable: a module's function, or a functools.partial of one. May run more than once."""
    needs: Needs = field(default_factory=lambda: {"cpu": 1})
    timeout_s: float | None = None
    """Wall time after which it is killed; None: never."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """Why a task gave no value."""

    reason: Why
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt(Generic[T]):
    """How one try of a task ended: with a value, or with a failure."""

    key: str
    value: T | None = None
    failure: Failure | None = None
    wall_s: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended(Generic[T]):
    """How a task ended after all its tries."""

    key: str
    value: T | None
    failure: Failure | None
    tries: int
    wall_s: float
    """Of the last try."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """How far a map is."""

    total: int
    running: int
    ended: int
    failed: int
    retried: int


class Backend(Protocol):
    """Where tasks run. It starts what it is given at once; waiting for resources is the map's business."""

    @property
    def capacity(self) -> Needs:
        """How many of each resource there are in all."""
        ...

    def start(self, task: Task[object]) -> None:
        """Start one try of a task.

        Raises:
            ComplabError: the task cannot be sent to where it would run.
        """
        ...

    def wait(self, timeout_s: float) -> list[Attempt[object]]:
        """Return the tries that ended since the last call, waiting for one at most so long."""
        ...

    def close(self) -> None:
        """Kill what still runs, with all that it started, and free everything; closing twice is harmless."""
        ...
