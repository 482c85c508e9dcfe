"""Holds a running tree to its limits of CPU time, memory and tasks: by a control group's counters, else by a census."""

import os
import time

from core.sandbox.census import Census, Use
from core.sandbox.cgroups import Group
from core.sandbox.policy import Limits, Status

_SOONEST_S, _LATEST_S = 0.02, 0.2
"""How far apart two looks may be."""
_AGAIN_S = 0.005
"""When to look a second time before a tree is stopped: between vfork and exec two processes show the same memory."""
_COST = 10
"""A census may take one in so many parts of our time, as long as that does not delay the next beyond the latest."""
_SHARING = 8
"""A tree may seem to use this many times its limit, by memory that its processes share, before it is stopped unseen:
telling shared memory apart takes longer the more of it there is."""
_FILL_RATE = 4 << 30
"""Bytes per second and core at which a program can take memory, taken high."""


class Watch:
    """Looks at a tree whenever it could have reached a limit.

    Args:
        limits: what to hold it to.
        group: the control group that it is in, or None.
        census: counts what the group does not.
        tasks_bounded: the kernel refuses tasks above the limit.
    """

    def __init__(self, limits: Limits, group: Group | None, census: Census, *, tasks_bounded: bool) -> None:
        self._limits = limits
        self._group = group
        self._census = census
        self._memory_counted = group is not None and group.counts_memory
        self._tasks_counted = group is not None and group.counts_tasks
        self._tasks_bounded = tasks_bounded
        self._suspect = False
        self._cores = len(os.sched_getaffinity(0))
        self._before_s = self._cpu_s(None)
        self.used_s = 0.0
        """CPU seconds of the tree since the watch began, at the last look."""
        self.next_s = 0.0
        """When to look, by the monotonic clock."""
        self._plan(0, 0.0)

    def look(self) -> tuple[Status, str] | None:
        """Count, and return how the run shall end if a limit is passed."""
        start_s = time.thread_time()
        use = None if self._all_counted else self._census.take()
        self.used_s = max(self.used_s, self._cpu_s(use) - self._before_s)
        if self.used_s > self._limits.cpu_s:
            return "resource", f"cpu: the limit is {self._limits.cpu_s:g} s"
        if use is not None and not self._tasks_counted and use.tasks >= self._limits.pids:
            return "resource", f"pids: the limit is {self._limits.pids} processes and threads"
        if use is not None and self._has_too_much(use):
            if self._suspect:
                return "resource", f"memory: the limit is {self._limits.memory_bytes} bytes"
            self._suspect = True
            self.next_s = time.monotonic() + _AGAIN_S
            return None
        self._suspect = False
        self._plan(0 if use is None else use.memory_bytes, time.thread_time() - start_s)
        return None

    def count_cpu(self) -> None:
        """Bring `used_s` up to date."""
        self.used_s = max(self.used_s, self._cpu_s(None) - self._before_s)

    def total_cpu_s(self, reaped_s: float) -> float:
        """Return the CPU seconds of the ended tree.

        Args:
            reaped_s: what the kernel says of the processes that were waited for; used without a group that counts.
        """
        counted = self._group.cpu_s() if self._group is not None else None
        return max(self.used_s, reaped_s) if counted is None else counted - self._before_s

    @property
    def _all_counted(self) -> bool:
        return self._memory_counted and self._tasks_counted and self._group is not None and self._group.counts_cpu

    def _cpu_s(self, use: Use | None) -> float:
        counted = self._group.cpu_s() if self._group is not None else None
        if counted is None:
            counted = (use or self._census.take()).cpu_s
        return counted

    def _has_too_much(self, use: Use) -> bool:
        if self._memory_counted or use.memory_bytes <= self._limits.memory_bytes:
            return False
        if use.memory_bytes > _SHARING * self._limits.memory_bytes:
            return True
        return self._census.take(exact=True).memory_bytes > self._limits.memory_bytes

    def _plan(self, memory_bytes: int, took_s: float) -> None:
        """Set the time of the next look: when a limit could be reached, within what looking may cost."""
        waits_s = [(self._limits.cpu_s - self.used_s) / self._cores]
        if not self._memory_counted:
            left_bytes = self._limits.memory_bytes - memory_bytes
            waits_s += [_LATEST_S, left_bytes / (_FILL_RATE * self._cores)]
        if not self._tasks_counted:
            waits_s.append(_LATEST_S if self._tasks_bounded else 0.0)
        self.next_s = time.monotonic() + max(_SOONEST_S, min(_COST * took_s, _LATEST_S), min(waits_s))
