"""What /proc says of a confined tree, where no control group counts for us: its CPU time, tasks and memory."""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_INODE_BYTES = 1024
"""What the kernel keeps for one file of a tmpfs besides its content."""
_WALKS = 4
"""How often a census is begun anew at most, when processes end while it is taken."""
_COUNTED = re.compile(rb"^(Threads|RssAnon|VmPTE|VmSwap):\s+(\d+)", re.MULTILINE)
_SHARED_OUT = re.compile(rb"^(Pss|Pss_Anon|SwapPss):\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Use:
    """What a tree uses at one moment; the CPU time since it started."""

    cpu_s: float
    tasks: int
    memory_bytes: int


class Census:
    """Counts a tree's processes.

    Page cache of files on disk is not counted, for the kernel takes it back. Shared memory and other memory that no
    process shows is not counted either: `seccomp.assemble` forbids it where a census is all there is.

    Args:
        proc_fd: a /proc; it is closed by `close`.
        members: lists the tree's processes as that /proc numbers them.
        scratch_fd: the scratch tmpfs of the tree, or None when it is no file system of its own.
    """

    def __init__(self, proc_fd: int, members: Callable[[], Iterable[str]], scratch_fd: int | None) -> None:
        self._proc_fd = proc_fd
        self._members = members
        self._scratch_fd = scratch_fd
        self._own_ticks: dict[tuple[str, bytes], int] = {}
        self._departed_ticks = 0

    def close(self) -> None:
        """Close the /proc."""
        os.close(self._proc_fd)

    def take(self, *, exact: bool = False) -> Use:
        """Count now.

        Args:
            exact: share pages that several processes map out among them, which walks their page tables; otherwise
                each process counts as if it had its pages alone, so that the sum is an upper bound.
        """
        most = Use(cpu_s=0.0, tasks=0, memory_bytes=0)
        for _ in range(_WALKS):
            use, whole = self._walk(exact)
            most = Use(
                cpu_s=max(use.cpu_s, most.cpu_s),
                tasks=max(use.tasks, most.tasks),
                memory_bytes=max(use.memory_bytes, most.memory_bytes),
            )
            if whole:
                break
        return most

    def _walk(self, exact: bool) -> tuple[Use, bool]:
        """Count once; False when a process ended meanwhile, whose heir may have been missed."""
        ticks = tasks = memory_bytes = 0
        own_ticks = {}
        whole = True
        for pid in self._members():
            stat = self._read(f"{pid}/stat").rpartition(b")")[2].split()
            threads, used_bytes = self._process(pid, exact)
            if not stat or not threads:
                whole = False
                continue
            own_ticks[pid, stat[19]] = int(stat[11]) + int(stat[12])
            ticks += sum(map(int, stat[11:15]))
            tasks += threads
            memory_bytes += used_bytes
        self._departed_ticks += sum(self._own_ticks[key] for key in self._own_ticks.keys() - own_ticks.keys())
        self._own_ticks = own_ticks
        # The dead count in their parent's time, unless it never waited for them: then what was last seen of them does.
        ticks = max(ticks, sum(own_ticks.values()) + self._departed_ticks)
        cpu_s = ticks / os.sysconf("SC_CLK_TCK")
        return Use(cpu_s=cpu_s, tasks=tasks, memory_bytes=memory_bytes + self._scratch()), whole

    def _process(self, pid: str, exact: bool) -> tuple[int, int]:
        """Return the threads and the memory in bytes of one process; (0, 0) when it is gone."""
        fields = _kilobytes(_COUNTED, self._read(f"{pid}/status"))
        threads = fields.get(b"Threads", 0)
        if threads > 1 and b"RssAnon" not in fields:  # its first thread has ended, and only the others show the memory
            for thread in self._list(f"{pid}/task"):
                fields = _kilobytes(_COUNTED, self._read(f"{pid}/task/{thread}/status"))
                if b"RssAnon" in fields:
                    pid = f"{pid}/task/{thread}"
                    break
        used = fields.get(b"RssAnon", 0) + fields.get(b"VmSwap", 0)
        if exact and (shares := _kilobytes(_SHARED_OUT, self._read(f"{pid}/smaps_rollup"))):
            used = shares.get(b"Pss_Anon", shares.get(b"Pss", 0)) + shares.get(b"SwapPss", 0)
        return threads, (used + fields.get(b"VmPTE", 0)) << 10

    def _scratch(self) -> int:
        if self._scratch_fd is None:
            return 0
        state = os.fstatvfs(self._scratch_fd)
        inodes = state.f_files - state.f_ffree
        return (state.f_blocks - state.f_bfree) * state.f_frsize + inodes * _INODE_BYTES

    def _read(self, path: str) -> bytes:
        """Return a file of /proc; empty when its process is gone or does not let us look."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc_fd)
        except OSError:
            return b""
        try:
            return os.read(fd, 1 << 14)
        except OSError:
            return b""
        finally:
            os.close(fd)

    def _list(self, path: str) -> list[str]:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._proc_fd)
        except OSError:  # gone
            return []
        try:
            return os.listdir(fd)
        finally:
            os.close(fd)


def census_of_namespace(proc_fd: int, scratch_fd: int) -> Census:
    """Count all processes of the pid namespace that a /proc belongs to.

    The kernel lists them in the order of their numbers, so a process that forks and ends in a hurry is not missed.
    """
    return Census(proc_fd, lambda: [name for name in os.listdir(proc_fd) if name.isdigit()], scratch_fd)


def census_of_family(pid: int) -> Census:
    """Count a process of ours and its descendants, where it has no namespace of its own."""
    return Census(os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), lambda: _family(str(pid)), None)


def _family(pid: str) -> list[str]:
    found = [pid]
    for member in found:  # grows while it is walked
        try:
            for thread in os.listdir(f"/proc/{member}/task"):
                with open(f"/proc/{member}/task/{thread}/children") as children:
                    found += children.read().split()
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def _kilobytes(pattern: re.Pattern[bytes], text: bytes) -> dict[bytes, int]:
    return {name: int(value) for name, value in pattern.findall(text)}
