"""One map over tasks: resources, retries, cancellation and progress, whatever the backend."""

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar, cast

from core.errors import BadInput
from core.workers.task import Backend, Ended, Needs, Progress, Task

T = TypeVar("T")

_LOOK_S = 0.1
"""How often a cancellation is looked for."""


def map_tasks(
    tasks: Iterable[Task[T]],
    backend: Backend,
    *,
    retries: int = 2,
    cancel: threading.Event | None = None,
    progress: Callable[[Progress], None] = lambda now: None,
) -> Iterator[Ended[T]]:
    """Run tasks and yield each as it ends. The order of ends depends on speed, so go by `key`.

    Tasks start in their order, except that one whose resources are taken lets later ones pass. Closing the iterator,
    or an exception in its consumer, kills what runs. The backend is closed at the end in any case.

    Args:
        tasks: what to do; keys differ.
        backend: where to do it.
        retries: further tries of a task that failed through no fault of its own.
        cancel: when set, running tasks are killed and the iteration ends; tasks without an end were cancelled.
        progress: told of every change.

    Yields:
        How each task ended. A failed task is a result, not an exception.

    Raises:
        BadInput: two tasks share a key, or a task needs a resource that the backend does not have.
    """
    waiting = list(tasks)
    try:
        _require(waiting, backend.capacity)
        yield from _run(waiting, backend, retries, cancel or threading.Event(), progress)
    finally:
        backend.close()


def _run(
    waiting: list[Task[T]],
    backend: Backend,
    retries: int,
    cancel: threading.Event,
    progress: Callable[[Progress], None],
) -> Iterator[Ended[T]]:
    total, ended, failed, retried = len(waiting), 0, 0, 0
    free = dict(backend.capacity)
    running: dict[str, Task[T]] = {}
    tries: dict[str, int] = {}
    while (waiting or running) and not cancel.is_set():
        for task in [*waiting]:
            if all(free.get(kind, 0) >= count for kind, count in task.needs.items()):
                backend.start(cast(Task[object], task))
                waiting.remove(task)
                running[task.key] = task
                tries[task.key] = tries.get(task.key, 0) + 1
                for kind, count in task.needs.items():
                    free[kind] -= count
        progress(Progress(total=total, running=len(running), ended=ended, failed=failed, retried=retried))
        for attempt in backend.wait(_LOOK_S):
            task = running.pop(attempt.key)
            for kind, count in task.needs.items():
                free[kind] += count
            failure = attempt.failure
            if failure is not None and failure.reason == "infra_error" and tries[task.key] <= retries:
                retried += 1
                waiting.insert(0, task)
                continue
            ended += 1
            failed += failure is not None
            yield Ended(
                key=task.key,
                value=cast("T | None", attempt.value),
                failure=failure,
                tries=tries[task.key],
                wall_s=attempt.wall_s,
            )
    progress(Progress(total=total, running=0, ended=ended, failed=failed, retried=retried))


def _require(tasks: list[Task[T]], capacity: Needs) -> None:
    """Refuse before anything starts what could never start."""
    seen: set[str] = set()
    for task in tasks:
        if task.key in seen:
            raise BadInput(f"Two tasks are named {task.key!r}.", "Results go by the key, so keys must differ.")
        seen.add(task.key)
        for kind, count in task.needs.items():
            if count > capacity.get(kind, 0):
                have = ", ".join(f"{n} {name}" for name, n in sorted(capacity.items())) or "none"
                raise BadInput(
                    f"Task {task.key!r} needs {count} {kind}; the workers have {have}.",
                    "Start workers of that kind, or choose another target.",
                )
