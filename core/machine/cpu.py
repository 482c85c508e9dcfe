"""Facts of the processors that the kernel shows: model, features, frequency control, load."""

import os
from dataclasses import dataclass
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_STAT = Path("/proc/stat")
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_TURBO_FILES = (
    (Path("/sys/devices/system/cpu/intel_pstate/no_turbo"), "0"),
    (Path("/sys/devices/system/cpu/cpufreq/boost"), "1"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class CoreTimes:
    """A core's accounting since start, in clock ticks."""

    busy: int
    total: int


def cpuinfo_field(text: str, name: str) -> str | None:
    """Return the first value of a field of /proc/cpuinfo's text, or None."""
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip() == name:
            return value.strip()
    return None


def cpu_model() -> str:
    """Return the processor's name as the kernel gives it; "unknown" where it does not."""
    return cpuinfo_field(_read(_CPUINFO), "model name") or "unknown"


def cpu_flags() -> tuple[str, ...]:
    """Return the sorted instruction-set flags; empty where the kernel shows none."""
    text = _read(_CPUINFO)
    return tuple(sorted((cpuinfo_field(text, "flags") or cpuinfo_field(text, "Features") or "").split()))


def hypervisor() -> bool:
    """Return whether the processor says that it runs under a hypervisor."""
    return "hypervisor" in cpu_flags()


def governor() -> str | None:
    """Return the frequency governor of the first core; None where it is not visible."""
    return _read(_GOVERNOR).strip() or None


def turbo() -> bool | None:
    """Return whether turbo is on; None where it is not visible."""
    for path, on in _TURBO_FILES:
        if text := _read(path).strip():
            return text == on
    return None


def allowed_cores() -> tuple[int, ...]:
    """Return the cores that this process may use."""
    return tuple(sorted(os.sched_getaffinity(0)))


def core_times() -> dict[int, CoreTimes]:
    """Return each core's busy and total time so far; the difference of two readings is its load between them."""
    times: dict[int, CoreTimes] = {}
    for line in _read(_STAT).splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu":
            # user nice system idle iowait irq softirq steal; guest time is inside user.
            ticks = [int(field) for field in fields[:8]]
            times[int(name[3:])] = CoreTimes(busy=sum(ticks) - ticks[3] - ticks[4], total=sum(ticks))
    return times


def quietest_core(before: dict[int, CoreTimes], after: dict[int, CoreTimes]) -> int | None:
    """Return the allowed core that was least busy between two readings; None when it is not known."""
    loads = {
        core: (after[core].busy - before[core].busy) / max(1, after[core].total - before[core].total)
        for core in allowed_cores()
        if core in before and core in after
    }
    # Interrupts prefer the first cores, so the last of equally quiet ones is taken.
    return min(loads, key=lambda core: (loads[core], -core)) if loads else None


def _read(path: Path) -> str:
    """Return a kernel file's text; a file that this kernel does not have reads as empty."""
    try:
        return path.read_text()
    except OSError:
        return ""
