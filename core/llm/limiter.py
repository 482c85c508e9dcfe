"""How many calls may be under way at once and per minute."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Limiter:
    """Bounds concurrency and rate of the calls to one endpoint. Thread-safe.

    Args:
        concurrent: calls under way at once.
        per_minute: calls begun within any 60 s; None is unlimited.
        clock: seconds, monotonic.
        sleep: waits.
    """

    def __init__(
        self,
        concurrent: int = 4,
        per_minute: int | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._places = threading.BoundedSemaphore(concurrent)
        self._per_minute = per_minute
        self._begun: deque[float] = deque()
        self._lock = threading.Lock()
        self._clock = clock
        self._sleep = sleep

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold one place while a call is under way."""
        with self._places:
            self._await_rate()
            yield

    def _await_rate(self) -> None:
        while self._per_minute is not None:
            with self._lock:
                now = self._clock()
                while self._begun and now - self._begun[0] >= 60.0:
                    self._begun.popleft()
                if len(self._begun) < self._per_minute:
                    self._begun.append(now)
                    return
                wait = 60.0 - (now - self._begun[0])
            self._sleep(wait)
