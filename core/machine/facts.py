"""Facts of this machine that `complab doctor` reports: system, hardware counters, graphics processor, space."""

import ctypes
import errno
import os
import platform
import re
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_FULL_SUPPORT = frozenset({("debian", "12"), ("ubuntu", "22.04"), ("ubuntu", "24.04")})
_NVIDIA_SMI_TIMEOUT_S = 30
_SYS_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
_PERF_TYPE_HARDWARE, _PERF_COUNT_HW_INSTRUCTIONS = 0, 1
_PERF_ATTR_BYTES = 64  # PERF_ATTR_SIZE_VER0: the kernel accepts every published size
_EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 1 << 5, 1 << 6
_TRITON_OF_TORCH = {"2.13": "3.7", "2.14": "3.8"}
"""The matching pairs that were tested. A GPU build of torch names its own; a CPU build names none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """The operating system and processor kind."""

    name: str
    full_support: bool
    """One of the platforms that complab is tested for; elsewhere it does what it can."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    """A GPU as its driver describes it."""

    name: str
    driver: str
    compute_capability: str
    cuda: str | None
    """The newest CUDA version that the driver runs; None when it does not say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Space:
    """Room where a directory is, or would be made."""

    free_bytes: int
    writable: bool


def system() -> System:
    """Return the operating system."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    name = release.get("PRETTY_NAME", platform.system())
    known = (release.get("ID"), release.get("VERSION_ID")) in _FULL_SUPPORT
    return System(name=f"{name}, {platform.machine()}", full_support=known and platform.machine() == "x86_64")


def counters() -> Literal["ok", "absent", "forbidden", "unknown"]:
    """Try to count instructions with the processor's own counters, and return what came of it.

    `absent`: the processor shows none, as in most virtual machines. `forbidden`: the kernel allows it to others only.
    """
    number = _SYS_PERF_EVENT_OPEN.get(platform.machine())
    if number is None:
        return "unknown"
    # perf_event_attr: type, size, config, sample_period, sample_type, read_format, flags, wakeup, bp_type, config1.
    flags = _EXCLUDE_KERNEL | _EXCLUDE_HYPERVISOR
    attributes = struct.pack(
        "IIQQQQQIIQ", _PERF_TYPE_HARDWARE, _PERF_ATTR_BYTES, _PERF_COUNT_HW_INSTRUCTIONS, 0, 0, 0, flags, 0, 0, 0
    )
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(number, ctypes.c_char_p(attributes), 0, -1, -1, 0)
    if descriptor >= 0:
        os.close(descriptor)
        return "ok"
    code = ctypes.get_errno()
    if code in (errno.EACCES, errno.EPERM):
        return "forbidden"
    return "absent" if code in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV) else "unknown"


def gpus() -> list[Gpu]:
    """Return the NVIDIA GPUs that the driver's own program lists; empty without driver or GPU."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"]
    listing, banner = _output(query), _output(["nvidia-smi"])
    cuda = re.search(r"CUDA Version:\s*([\d.]+)", banner)
    rows = [[cell.strip() for cell in line.split(",")] for line in listing.splitlines()]
    return [
        Gpu(name=row[0], driver=row[1], compute_capability=row[2], cuda=cuda[1] if cuda else None)
        for row in rows
        if len(row) == 3
    ]


def matching_triton(torch_version: str, torch_requires: list[str]) -> str | None:
    """Return the version prefix of triton that belongs to a torch, from what torch declares or the tested pairs."""
    for requirement in torch_requires:
        if pinned := re.match(r"triton\s*==\s*([\w.]+)", requirement):
            return pinned[1]
    return _TRITON_OF_TORCH.get(".".join(torch_version.split(".")[:2]))


def space(directory: Path) -> Space:
    """Return the room for a directory that exists or would be made."""
    place = directory.absolute()
    while not place.exists():
        place = place.parent
    return Space(free_bytes=shutil.disk_usage(place).free, writable=os.access(place, os.W_OK))


def _output(argv: list[str]) -> str:
    """Return what a program prints; nothing when it is not there, hangs or fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_NVIDIA_SMI_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
