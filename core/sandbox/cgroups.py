"""One control group per run, of version 1 or 2: memory, processes and CPU of the whole tree, counted by the kernel."""

import itertools
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core.sandbox.policy import Limits

_PREFIX = "complab-"
_numbers = itertools.count()


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """Directories below which this process may create groups: controller -> directory (all the same in version 2)."""

    version: int
    memory: Path | None = None
    pids: Path | None = None
    cpu: Path | None = None

    @property
    def folders(self) -> tuple[Path, ...]:
        """The distinct directories."""
        return tuple(dict.fromkeys(p for p in (self.memory, self.pids, self.cpu) if p is not None))


@dataclass(frozen=True, kw_only=True, slots=True)
class Use:
    """What a group's processes used and which limits they hit."""

    cpu_s: float
    memory_killed: bool
    pids_refused: bool


class Group:
    """A group made for one run; `remove` it when the run is over."""

    def __init__(self, places: Places, limits: Limits) -> None:
        _sweep(places)
        self._places = places
        self._name = f"{_PREFIX}{os.getpid()}-{_start_ticks(os.getpid())}-{next(_numbers)}"
        self.folders = tuple(folder / self._name for folder in places.folders)
        try:
            for folder in self.folders:
                folder.mkdir()
            self._limit(limits)
        except OSError:
            self.remove()
            raise

    def _limit(self, limits: Limits) -> None:
        if self._places.memory is not None:
            folder = self._places.memory / self._name
            if self._places.version == 1:
                (folder / "memory.limit_in_bytes").write_text(str(limits.memory_bytes))
                swap = folder / "memory.memsw.limit_in_bytes"
            else:
                (folder / "memory.max").write_text(str(limits.memory_bytes))
                (folder / "memory.oom.group").write_text("1")
                swap = folder / "memory.swap.max"
            if swap.exists():
                swap.write_text(str(limits.memory_bytes) if self._places.version == 1 else "0")
        if self._places.pids is not None:
            (self._places.pids / self._name / "pids.max").write_text(str(limits.pids))

    @property
    def counts_memory(self) -> bool:
        """Whether the group limits memory."""
        return self._places.memory is not None

    @property
    def counts_tasks(self) -> bool:
        """Whether the group limits processes and threads."""
        return self._places.pids is not None

    @property
    def counts_cpu(self) -> bool:
        """Whether the group counts CPU time."""
        return self._places.cpu is not None

    def use(self) -> Use:
        """Read the counters."""
        memory, pids = self._places.memory, self._places.pids
        oom_file = "memory.oom_control" if self._places.version == 1 else "memory.events"
        return Use(
            cpu_s=self.cpu_s() or 0.0,
            memory_killed=memory is not None and _counter(memory / self._name / oom_file, "oom_kill") > 0,
            pids_refused=pids is not None and _counter(pids / self._name / "pids.events", "max") > 0,
        )

    def cpu_s(self) -> float | None:
        """Return the CPU seconds of all processes that were ever in the group, or None without that controller."""
        if self._places.cpu is None:
            return None
        folder = self._places.cpu / self._name
        if self._places.version == 1:
            return int((folder / "cpuacct.usage").read_text()) / 1e9
        return _counter(folder / "cpu.stat", "usage_usec") / 1e6

    def kill(self) -> None:
        """Kill every process of the group."""
        for folder in self.folders:
            _kill_all(folder)

    def remove(self) -> None:
        """Remove the group; one that stays busy is left to the next process's sweep."""
        for folder in self.folders:
            _remove(folder)


def find_places(proc_cgroup: str, root: Path = Path("/sys/fs/cgroup")) -> Places | None:
    """Find where this process may create groups, below or beside its own so that outer limits keep holding.

    Args:
        proc_cgroup: text of /proc/self/cgroup.
        root: where the hierarchies are mounted.

    Returns:
        None when no hierarchy with memory, pids or CPU accounting lets us create a group.
    """
    own = {
        name: path
        for _, names, path in (line.split(":", 2) for line in proc_cgroup.splitlines())
        for name in names.split(",")
    }
    found = {}
    for controller in ("memory", "pids", "cpuacct"):
        mount = next((m for m in root.glob(f"*{controller}*") if controller in m.name.split(",")), None)
        if mount is not None and controller in own:
            inner = mount / own[controller].lstrip("/")
            folder = inner if inner.is_dir() else mount  # in a container the path is that of the host
            if _can_create(folder, ""):
                found[controller] = folder
    if found:
        return Places(version=1, memory=found.get("memory"), pids=found.get("pids"), cpu=found.get("cpuacct"))
    if "" in own and (root / "cgroup.controllers").exists():
        # A group with processes cannot pass controllers on (except the root), so our own parent usually serves.
        inner = root / own[""].lstrip("/")
        for folder in (inner, *inner.parents):
            if not folder.is_relative_to(root):
                break
            if _can_create(folder, "memory pids"):
                return Places(version=2, memory=folder, pids=folder, cpu=folder)
    return None


def _can_create(folder: Path, controllers: str) -> bool:
    trial = folder / f"{_PREFIX}{os.getpid()}-{_start_ticks(os.getpid())}-trial{next(_numbers)}"
    try:
        trial.mkdir()
    except OSError:
        return False
    try:
        if not controllers:
            return True
        offered = (trial / "cgroup.controllers").read_text().split()
        return set(controllers.split()) <= set(offered)
    except OSError:
        return False
    finally:
        _remove(trial)


def _sweep(places: Places) -> None:
    """Remove groups whose maker is dead."""
    for folder in places.folders:
        for stale in _stale_groups(folder):
            _kill_all(stale)
            _remove(stale)


def _stale_groups(folder: Path) -> Iterator[Path]:
    for group in folder.glob(f"{_PREFIX}*-*-*"):
        pid, ticks = group.name.removeprefix(_PREFIX).split("-")[:2]
        if _start_ticks(int(pid)) != ticks:
            yield group


def _start_ticks(pid: int) -> str:
    """Return the start time of a process in clock ticks since boot, or "" when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _counter(path: Path, key: str) -> int:
    for line in path.read_text().splitlines():
        name, _, value = line.partition(" ")
        if name == key:
            return int(value)
    return 0


def _kill_all(folder: Path) -> None:
    try:
        pids = (folder / "cgroup.procs").read_text().split()
    except OSError:  # removed in between
        return
    for pid in pids:
        if pid == "0":  # one outside our pid namespace; kill(0) would mean our own process group
            continue
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            continue


def _remove(folder: Path) -> None:
    for wait_s in (0.0, 0.001, 0.005, 0.02, 0.1, 0.3, 1.0):
        time.sleep(wait_s)
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:  # busy: the last process is still being reaped
            continue
        return
