"""Prepares `launch.py` for a child: its code and what it shall do, handed over in a memory file."""

import marshal
import math
import os
import re
import resource
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from core.sandbox import seccomp
from core.sandbox.layout import Layout
from core.sandbox.policy import Policy


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """What every backend gets to start one command."""

    argv: tuple[str, ...]
    """The program; empty when `modules` are given."""
    modules: tuple[str, ...]
    """Instead of a program: these modules of core.sandbox run in the launching interpreter itself (profile pure)."""
    env: Mapping[str, str]
    """The program's whole environment. It is set last and cannot steer the stages before."""
    layout: Layout
    outputs: tuple[str, ...]
    policy: Policy
    uid: int | None
    """The uid to drop to when we are root, else None."""
    memory_counted: bool
    """A control group counts memory; otherwise a limit of address space holds each process, and a census all."""
    channel_fd: int | None

    @property
    def kept_fds(self) -> tuple[int, ...]:
        """Descriptors besides 0, 1 and 2 that the program gets."""
        return () if self.channel_fd is None else (self.channel_fd,)


def memory_file(content: bytes) -> int:
    """Return a descriptor from which this content can be read."""
    fd = os.memfd_create("complab", os.MFD_CLOEXEC)
    left = memoryview(content)
    while left:
        left = left[os.write(fd, left) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def launcher(
    job: Job,
    *,
    cwd: str,
    landlock: tuple[tuple[str, bool], ...],
    landlock_required: bool,
    limit_tasks: bool = True,
    confine: bool = True,
    namespaces: Mapping[str, Any] | None = None,
    info_fd: int | None = None,
) -> tuple[tuple[str, ...], int]:
    """Return the command that confines itself and becomes the job's program, and the memory file that it inherits.

    Args:
        job: what to run.
        cwd: the working directory, as the child sees it.
        landlock: (path, writable) for everything that stays reachable.
        landlock_required: fail without Landlock, because no mount namespace stands behind it.
        limit_tasks: set RLIMIT_NPROC; wrong where the uid or user namespace is shared with other programs.
        confine: False only for the unsafe backend.
        namespaces: the file system to build in new namespaces; None: stay in the present ones.
        info_fd: where to write the pid of the namespaces' first process.
    """
    arch = seccomp.machine()
    number = seccomp.numbers(arch)
    tasks = job.policy.limits.pids
    door = None
    if confine and job.policy.profile == "pure" and not job.modules:
        door = seccomp.Door(path_address=_random_address(), env_address=_random_address())
    spec = {
        "argv": job.argv,
        "env": dict(job.env),
        "cwd": cwd,
        "uid": job.uid,
        "keep": job.kept_fds,
        "rlimits": rlimits(job) + ([(resource.RLIMIT_NPROC, tasks, tasks)] if limit_tasks else []),
        "confine": confine,
        "path": [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))],
        "landlock": landlock,
        "landlock_required": landlock_required,
        "layout": None if namespaces is None else dict(namespaces),
        "info_fd": info_fd,
        "filter": seccomp.assemble(job.policy.profile, arch=arch, door=door, memory_counted=job.memory_counted),
        "pid_mark": seccomp.PID_MARK,
        "door": None if door is None else (door.path_address, door.env_address),
        **{name: number[name] for name in ("execve", "pivot_root", "mount_setattr")},
    }
    codes = [_code(module) for module in ("launch", *job.modules)]
    fd = memory_file(marshal.dumps((codes, spec)))
    boot = (
        f"import marshal\nwith open({fd},'rb') as f: codes,spec=marshal.load(f)\n"
        "space={'SPEC':spec,'__name__':'__main__'}\nfor code in codes: exec(code,space)"
    )
    return (python(), "-I", "-S", "-B", "-c", boot), fd


@cache
def counts_by_namespace() -> bool:
    """Whether RLIMIT_NPROC counts in each user namespace apart; before Linux 5.14 it took in the user's other tasks."""
    major, minor = os.uname().release.split(".")[:2]
    return (int(major), int(re.sub(r"\D.*", "", minor))) >= (5, 14)


@cache
def python() -> str:
    """Return the path of this interpreter itself, not of a virtual environment's link to it."""
    return os.path.realpath(sys.executable)


def rlimits(job: Job) -> list[tuple[int, int, int]]:
    """Return the (kind, soft, hard) limits that the kernel enforces for each process."""
    limits = job.policy.limits
    cpu_s = math.ceil(limits.cpu_s)
    chosen = [(resource.RLIMIT_CPU, cpu_s, cpu_s + 1), (resource.RLIMIT_MEMLOCK, 65536, 65536)]
    same = {
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    if not job.memory_counted:
        same[resource.RLIMIT_AS] = limits.memory_bytes
    return chosen + [(kind, value, value) for kind, value in same.items()]


@cache
def _code(module: str) -> CodeType:
    path = Path(__file__).with_name(f"{module}.py")
    return compile(path.read_text(), f"<{module}>", "exec", dont_inherit=True, optimize=2)


def _random_address() -> int:
    """Return an address in the middle of the user's half, aligned for pointers, far from what mmap hands out."""
    return 0x1000_0000_0000 + (secrets.randbits(45) & ~0xF)
