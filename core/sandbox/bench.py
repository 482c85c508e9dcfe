"""What the sandbox costs: a cold candidate through the whole policy, beside the same program without a sandbox."""

import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from core.bench import BenchReport, Figure
from core.records import Record
from core.sandbox.call import call
from core.sandbox.launcher import python
from core.sandbox.policy import Command, Policy
from core.sandbox.probe import probe
from core.sandbox.service import Box

_BAR_MS = 60.0
_SOURCE = "def add(a, b):\n    return {'total': a + b}\n"
_PROGRAM = b"int main(void) { return 0; }\n"


class _Total(Record):
    total: int


def run(*, quick: bool) -> BenchReport:
    """Time cold candidates: each in a fresh confined tree under the full policy, nothing warm but the page cache.

    Args:
        quick: few repetitions (some seconds) instead of many (a minute).
    """
    rounds = 15 if quick else 100
    reports = probe()
    load = os.getloadavg()[0]
    figures: list[Figure] = []
    for backend in ("bubblewrap", "namespaces", "kernel"):
        covered = {name: r.guarantees >= Policy().required for name, r in reports[backend].profiles.items()}
        cases = _cases(Box(backend=backend), toolchain=covered.get("toolchain", False), pure=covered.get("pure", False))
        for name, once in cases.items():
            figures += _figures(f"{backend}.{name}", [_timed_ms(once) for _ in range(rounds)], barred=True)
    for name, once in _bare_cases().items():
        figures += _figures(f"no_sandbox.{name}", [_timed_ms(once) for _ in range(rounds)], barred=False)
    return BenchReport(name="sandbox", machine=_machine(load), figures=tuple(figures))


def _cases(box: Box, *, toolchain: bool, pure: bool) -> dict[str, Callable[[], object]]:
    """Return what to time: those cases whose profile covers the full policy with this backend."""
    cases: dict[str, Callable[[], object]] = {}
    if toolchain:
        policy = Policy()
        build = Command(argv=("cc", "-xc", "-", "-o", "p"), stdin=_PROGRAM, outputs=("p",))
        native = Command(argv=("./p",), files=box.run(build, policy).files, executables=("p",))
        cases["true"] = lambda: box.run(Command(argv=("/bin/true",)), policy)
        cases["native"] = lambda: box.run(native, policy)
    if pure:
        cases["python"] = lambda: call(_SOURCE, "add", [1, 2], {}, _Total, Policy(profile="pure"), box=box)
    return cases


def _bare_cases() -> dict[str, Callable[[], object]]:
    """Return the same starts without a sandbox, the floor under the others in the same run."""
    return {
        "true": lambda: subprocess.run(("/bin/true",), check=True),
        "python": lambda: subprocess.run((python(), "-I", "-S", "-c", "pass"), check=True),
    }


def _timed_ms(once: Callable[[], object]) -> float:
    start_s = time.perf_counter()
    once()
    return (time.perf_counter() - start_s) * 1e3


def _figures(name: str, samples: list[float], *, barred: bool) -> list[Figure]:
    median = statistics.median(samples)
    ordered = sorted(samples)
    # The interval of the median by order statistics: binomial with p = 1/2, normal approximation.
    reach = 0.98 * len(ordered) ** 0.5
    low = ordered[max(0, int(len(ordered) / 2 - reach))]
    high = ordered[min(len(ordered) - 1, int(len(ordered) / 2 + reach))]
    return [
        Figure(
            name=f"{name}.median",
            value=median,
            unit="ms",
            ci=(low, high),
            bar=f"<= {_BAR_MS:g}" if barred else None,
            holds=median <= _BAR_MS if barred else None,
        ),
        Figure(name=f"{name}.p90", value=ordered[int(0.9 * (len(ordered) - 1))], unit="ms"),
    ]


def _machine(load: float) -> dict[str, object]:
    models = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
              if line.startswith(("model name", "CPU part"))]  # fmt: skip
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "load_at_start": load,
        "kernel": platform.release(),
        "uid": os.geteuid(),
        "clock": time.get_clock_info("perf_counter").implementation,
    }
