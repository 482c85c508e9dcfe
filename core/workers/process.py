"""Tasks in worker processes that can be killed for sure.

Why not a library: concurrent.futures cannot stop a running task at all, and pools that can (pebble) kill the worker but
not the compilers and programs that it started, which here are what hangs. So each worker leads its own session, is
killed with its whole process group, and has a pipe of its own, so that the death of one cannot block another.
"""

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import time
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from core.errors import BadInput
from core.workers.outcome import attempted
from core.workers.task import Attempt, Failure, Needs, Task

_START_S = 120.0
"""A worker that has not begun its task after so long (imports included) is broken."""


@dataclass(slots=True)
class _Worker:
    """A worker process, and the task that it has, if any."""

    process: BaseProcess
    pipe: Connection
    task: Task[object] | None = None
    sent: float = 0.0
    """Monotonic seconds when the task was sent."""
    begun: float | None = None
    """Monotonic seconds when the worker began it: imports do not count against the task's time."""

    @property
    def deadline(self) -> float:
        """When it is to be killed."""
        assert self.task is not None
        if self.begun is None:
            return self.sent + _START_S
        return float("inf") if self.task.timeout_s is None else self.begun + self.task.timeout_s


class ProcessBackend:
    """Runs tasks in worker processes on this machine; workers are reused until they are killed or die.

    Args:
        capacity: how many of each resource there are; the cpus of this machine unless said otherwise.
    """

    def __init__(self, capacity: Needs | None = None) -> None:
        self._capacity = dict(capacity or {"cpu": os.cpu_count() or 1})
        self._context = multiprocessing.get_context("forkserver")
        self._workers: list[_Worker] = []

    @property
    def capacity(self) -> Needs:
        """How many of each resource there are in all."""
        return self._capacity

    def start(self, task: Task[object]) -> None:
        """Send a task to an idle worker, or to a new one.

        Raises:
            BadInput: the task cannot be pickled.
        """
        try:
            message = pickle.dumps((task.key, pickle.dumps(task.call)))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise BadInput(
                f"Task {task.key!r} cannot be sent to a worker process: {error}.",
                "Use a function of a module, or a functools.partial of one.",
            ) from error
        worker = next((w for w in self._workers if w.task is None and w.process.is_alive()), None) or self._hire()
        worker.task, worker.sent, worker.begun = task, time.monotonic(), None
        with contextlib.suppress(BrokenPipeError):  # it died meanwhile: wait() finds that
            worker.pipe.send_bytes(message)

    def wait(self, timeout_s: float) -> list[Attempt[object]]:
        """Return the tries that ended since the last call, waiting for one at most so long; kill what is overdue."""
        busy = [worker for worker in self._workers if worker.task is not None]
        now = time.monotonic()
        patience = min([timeout_s, *(max(0.0, worker.deadline - now) for worker in busy)])
        ready = set(wait([worker.pipe for worker in busy], patience)) if busy else set()
        found = [self._look(worker, worker.pipe in ready) for worker in busy]
        return [attempt for attempt in found if attempt is not None]

    def close(self) -> None:
        """Kill all workers with all that they started; closing twice is harmless."""
        while self._workers:
            self._dismiss(self._workers[-1])

    def _hire(self) -> _Worker:
        mine, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs,), daemon=False, name="complab-worker")
        process.start()
        theirs.close()
        worker = _Worker(process, mine)
        self._workers.append(worker)
        return worker

    def _dismiss(self, worker: _Worker) -> int | None:
        """Kill a worker with its process group; return the exit code it had by then."""
        self._workers.remove(worker)
        worker.process.join(0.0)
        code = worker.process.exitcode
        assert worker.process.pid is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):  # gone, or killed before it led a group
            os.killpg(worker.process.pid, signal.SIGKILL)
        worker.process.kill()
        worker.process.join()
        worker.process.close()
        worker.pipe.close()
        return code

    def _look(self, worker: _Worker, ready: bool) -> Attempt[object] | None:
        """Return how a worker's task ended, if it did."""
        assert worker.task is not None
        key = worker.task.key
        if ready:
            try:
                answer = pickle.loads(worker.pipe.recv_bytes())
            except (EOFError, OSError, pickle.UnpicklingError):
                worker.process.join(1.0)
                code = self._dismiss(worker)
                how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
                return Attempt(key=key, failure=Failure(reason="infra_error", message=f"its worker died ({how})"))
            if answer is None:
                worker.begun = time.monotonic()
                return None
            assert isinstance(answer, Attempt)
            worker.task = None
            return answer
        now = time.monotonic()
        if now < worker.deadline:
            return None
        begun, limit = worker.begun, worker.task.timeout_s
        self._dismiss(worker)
        if begun is None:
            message = f"its worker did not begin within {_START_S:g} s"
            return Attempt(key=key, failure=Failure(reason="infra_error", message=message))
        message = f"killed after {now - begun:.1f} s of {limit:g} s"
        return Attempt(key=key, failure=Failure(reason="timeout", message=message), wall_s=now - begun)


def _work(pipe: Connection) -> None:
    """Be a worker: do tasks until the pipe or the parent is gone."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()
    while True:
        try:
            message = pipe.recv_bytes()
        except EOFError:
            return
        key, call = pickle.loads(message)
        loaded = attempted(key, partial(pickle.loads, call))  # imports the task's modules
        pipe.send_bytes(pickle.dumps(None))
        if loaded.value is not None:
            loaded = attempted(key, loaded.value)
        pipe.send_bytes(_pickled(loaded))


def _pickled(attempt: Attempt[Any]) -> bytes:
    """Return an attempt as it is sent back; a value that cannot be sent is the task's failure."""
    try:
        return pickle.dumps(attempt)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        failure = Failure(reason="crash", message=f"its value cannot be sent back: {error}")
        return pickle.dumps(Attempt(key=attempt.key, failure=failure))


def _follow_parent() -> None:
    """Die with the parent, and take along all that this worker started."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os.killpg(0, signal.SIGKILL)
