"""Tasks in the calling thread: no start-up, a debugger works, nothing runs beside."""

import time

from core.workers.outcome import attempted
from core.workers.task import Attempt, Failure, Needs, Task


class InlineBackend:
    """Runs each task when it starts.

    It cannot stop a task that hangs: one that took longer than its limit is reported as a timeout once it ends, so
    that the results are those of a process backend.

    Args:
        capacity: the resources that it pretends to have; one cpu unless said otherwise.
    """

    def __init__(self, capacity: Needs | None = None) -> None:
        self._capacity = dict(capacity or {"cpu": 1})
        self._ended: list[Attempt[object]] = []

    @property
    def capacity(self) -> Needs:
        """How many of each resource there are in all."""
        return self._capacity

    def start(self, task: Task[object]) -> None:
        """Run one try of a task to its end."""
        started = time.monotonic()
        attempt = attempted(task.key, task.call)
        wall_s = time.monotonic() - started
        if task.timeout_s is not None and wall_s > task.timeout_s:
            failure = Failure(reason="timeout", message=f"took {wall_s:.1f} s of {task.timeout_s:g} s")
            attempt = Attempt(key=task.key, failure=failure, wall_s=wall_s)
        self._ended.append(attempt)

    def wait(self, timeout_s: float) -> list[Attempt[object]]:
        """Return the tries that ended since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def close(self) -> None:
        """Do nothing: nothing runs between calls."""
