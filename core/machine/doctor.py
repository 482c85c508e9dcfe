"""What `complab doctor` finds: one row a thing, with its state, what was found, and the command that helps."""

import importlib.metadata
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from core.machine import cpu, facts
from core.machine.tools import Tool, apt_command, find_llvm_tool, find_tool, package_version, pip_command
from core.records import Record

_NEEDED_BYTES = 2 << 30
_CPU_FEATURES = ("avx2", "fma", "avx512f", "amx_tile", "asimd", "sve")
_LLVM_TOOLS = {"clang": True, "opt": False, "llc": False, "ld.lld": False, "llvm-mca": False}
"""Programs of LLVM, and whether `make demo` cannot do without."""

State = Literal["ok", "missing", "unproven"]


class Row(Record):
    """One thing that complab uses."""

    group: str
    name: str
    state: State
    """`unproven`: it may be there, but this machine gave no way to show that it works."""
    found: str
    """What was found, in words; for `unproven` what was tried."""
    fix: str = ""
    """The command that installs it, or what to do; empty where nothing helps."""
    needed: bool = False
    """`make demo` cannot run without it."""


class Diagnosis(Record):
    """All rows. `make demo` can run when every needed row is ok."""

    rows: tuple[Row, ...]

    @property
    def lacking(self) -> tuple[Row, ...]:
        """The rows that keep `make demo` from running: what is needed, and missing or, of a guarantee, not proven."""
        return tuple(row for row in self.rows if row.needed and row.state != "ok")


def machine_rows(runs: Path, cache: Path) -> Iterable[Row]:
    """Yield the rows that need no other part of core than the machine.

    Args:
        runs: the directory in which runs are stored.
        cache: complab's cache.
    """
    yield from _system_rows()
    yield from _compiler_rows()
    yield _counter_row()
    yield from _gpu_rows()
    yield _package_row("ray", "workers", "ray", "tasks run in processes of this machine without it")
    yield _package_row("wandb", "tracking", "track", "runs are stored and reported here without it")
    yield _space_row("runs", runs)
    yield _space_row("cache", cache)


def _system_rows() -> Iterable[Row]:
    import psutil

    found = facts.system()
    support = (
        "fully supported" if found.full_support else "best effort: tested on Debian 12, Ubuntu 22.04 and 24.04, x86-64"
    )
    state: State = "ok" if found.full_support else "unproven"
    yield Row(group="machine", name="system", state=state, found=f"{found.name}; {support}")
    features = [name for name in _CPU_FEATURES if name in cpu.cpu_flags()]
    cores = len(cpu.allowed_cores())
    kind = "virtual" if cpu.hypervisor() else "no hypervisor seen"
    text = f"{cpu.cpu_model()}; {cores} cores usable; {' '.join(features) or 'no known vector extension'}; {kind}"
    yield Row(group="machine", name="processor", state="ok", found=text)
    memory = psutil.virtual_memory()
    enough = memory.available >= _NEEDED_BYTES
    yield Row(
        group="machine",
        name="memory",
        state="ok" if enough else "missing",
        found=f"{_gib(memory.available)} of {_gib(memory.total)} available",
        fix="" if enough else f"close programs until {_gib(_NEEDED_BYTES)} are available",
    )
    load = os.getloadavg()[0]
    quiet = load < cores
    yield Row(
        group="machine",
        name="load",
        state="ok" if quiet else "unproven",
        found=f"{load:.1f} on {cores} cores" + ("" if quiet else ": timing takes longer and decides less"),
        fix="" if quiet else "measure when the machine is quieter",
    )


def _compiler_rows() -> Iterable[Row]:
    zig = package_version("ziglang")
    for name, needed in _LLVM_TOOLS.items():
        tool = find_llvm_tool(name)
        yield _tool_row(name, tool, fix=apt_command("llvm"), needed=needed and zig is None)
    yield _tool_row("gcc", find_tool("gcc"), fix=apt_command("base"))
    yield _tool_row("g++", find_tool("g++", "clang++"), fix=apt_command("base"))
    yield Row(
        group="compilers",
        name="zig",
        state="ok" if zig else "missing",
        found=f"ziglang {zig}" if zig else "not installed: needed only where there is no clang",
        fix="" if zig else pip_command("compilers"),
    )


def _tool_row(name: str, tool: Tool | None, *, fix: str, needed: bool = False) -> Row:
    if tool is None:
        return Row(group="compilers", name=name, state="missing", found="not on PATH", fix=fix, needed=needed)
    return Row(group="compilers", name=name, state="ok", found=f"{tool.path}: {tool.version}", needed=needed)


def _counter_row() -> Row:
    outcome = facts.counters()
    texts: dict[str, tuple[State, str, str]] = {
        "ok": ("ok", "instructions can be counted", ""),
        "absent": (
            "missing",
            "this processor shows none to us, as most virtual machines; timing does not need them",
            "",
        ),
        "forbidden": ("unproven", "the kernel forbids them", "sudo sysctl kernel.perf_event_paranoid=2"),
        "unknown": ("unproven", "the kernel's answer is not one that we know", ""),
    }
    state, found, fix = texts[outcome]
    return Row(group="measurement", name="hardware counters", state=state, found=found, fix=fix)


def _gpu_rows() -> Iterable[Row]:
    found = facts.gpus()
    cpu_build = (
        "for PyTorch without a GPU choose the CPU build on pytorch.org first: the default one downloads gigabytes"
    )
    if not found:
        yield Row(group="gpu", name="GPU", state="missing", found="no NVIDIA driver answered")
    for gpu in found:
        text = f"{gpu.name}, compute capability {gpu.compute_capability}, driver {gpu.driver}, CUDA up to {gpu.cuda}"
        yield Row(group="gpu", name="GPU", state="ok", found=text)
    yield _nvrtc_row(found)
    yield from _torch_rows(fix=pip_command("torch") if found else f"{cpu_build}; then {pip_command('torch')}")


def _nvrtc_row(found: list[facts.Gpu]) -> Row:
    names = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu13", "nvidia-cuda-nvrtc-cu12")
    version = next((text for name in names if (text := package_version(name))), None)
    if version is None:
        return Row(group="gpu", name="NVRTC", state="missing", found="not installed", fix=pip_command("torch"))
    cuda = found[0].cuda if found else None
    if cuda is None:
        return Row(group="gpu", name="NVRTC", state="unproven", found=f"{version}; no driver to hold it against")
    fits = _numbers(version)[:1] <= _numbers(cuda)[:1]
    return Row(
        group="gpu",
        name="NVRTC",
        state="ok" if fits else "missing",
        found=f"{version}; the driver runs CUDA up to {cuda}",
        fix="" if fits else f"update the driver, or install an NVRTC of CUDA {cuda.partition('.')[0]}",
    )


def _torch_rows(fix: str) -> Iterable[Row]:
    torch, triton = package_version("torch"), package_version("triton")
    if torch is None:
        yield Row(group="gpu", name="torch", state="missing", found="not installed; nothing needs it yet", fix=fix)
        return
    yield Row(group="gpu", name="torch", state="ok", found=torch)
    wanted = facts.matching_triton(torch, importlib.metadata.requires("torch") or [])
    if wanted is None:
        text = f"triton {triton} beside torch {torch}: not a pair that we know"
        yield Row(group="gpu", name="triton", state="unproven", found=text)
        return
    fits = triton is not None and _numbers(triton)[: len(_numbers(wanted))] == _numbers(wanted)
    yield Row(
        group="gpu",
        name="triton",
        state="ok" if fits else "missing",
        found=f"{triton or 'not installed'}; torch {torch} goes with {wanted}",
        fix="" if fits else f".venv/bin/pip install 'triton=={wanted}{'' if wanted.count('.') > 1 else '.*'}'",
    )


def _package_row(distribution: str, group: str, extra: str, without: str) -> Row:
    version = package_version(distribution)
    found = version or f"not installed; {without}"
    fix = "" if version else pip_command(extra)
    return Row(group=group, name=distribution, state="ok" if version else "missing", found=found, fix=fix)


def _space_row(name: str, directory: Path) -> Row:
    room = facts.space(directory)
    enough = room.writable and room.free_bytes >= _NEEDED_BYTES
    advice = f"free {_gib(_NEEDED_BYTES)} there" if room.writable else "make it writable"
    return Row(
        group="space",
        name=name,
        state="ok" if enough else "missing",
        found=f"{directory}: {_gib(room.free_bytes)} free" + ("" if room.writable else ", not writable"),
        fix=""
        if enough
        else advice + (", or set COMPLAB_CACHE" if name == "cache" else ", or run from another directory"),
        needed=True,
    )


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split("+")[0].split(".") if part.isdigit()]


def _gib(count_bytes: int) -> str:
    return f"{count_bytes / (1 << 30):.1f} GiB"
