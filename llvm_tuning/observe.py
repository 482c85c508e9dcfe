"""Runs a built program in the sandbox and compares what two builds of it show."""

from core.records import Record
from core.sandbox.policy import Command, Limits, Policy, Result, Sandbox
from core.search.contract import Verdict
from llvm_tuning.program import Input, Program

MEMORY_BYTES = 4 << 30
OUTPUT_BYTES = 16 << 20


class Observed(Record):
    """What one run of a program showed: all that must stay equal."""

    stdout: bytes
    stderr: bytes
    exit_code: int
    files: dict[str, bytes]


def observe(box: Sandbox, program: Program, executable: bytes, given: Input, timeout_s: float) -> Observed | Verdict:
    """Run an executable of the program once; a rejecting verdict when it crashes, hangs or needs too much."""
    command = Command(
        argv=("./program", *given.args),
        files={**given.files, "program": executable},
        executables=("program",),
        stdin=given.stdin,
        outputs=program.outputs,
    )
    # Twice the CPU time, so that a hang is always reported as the time-out that it is.
    limits = Limits(wall_s=timeout_s, cpu_s=2 * timeout_s, memory_bytes=MEMORY_BYTES, output_bytes=OUTPUT_BYTES)
    result = box.run(command, Policy(limits=limits))
    if result.status == "exit" and result.truncated:
        return Verdict(accepted=False, reason="resource", message=f"it printed more than {OUTPUT_BYTES >> 20} MiB.")
    if result.status == "exit" and result.exit_code == 0:
        return Observed(stdout=result.stdout, stderr=result.stderr, exit_code=0, files=result.files)
    return _rejected(result, timeout_s)


def _rejected(result: Result, timeout_s: float) -> Verdict:
    tail = result.stderr.decode(errors="replace").strip()[-500:]
    said = f" It printed: {tail}" if tail else ""
    match result.status:
        case "timeout":
            return Verdict(accepted=False, reason="timeout", message=f"it did not end within {timeout_s:g} s.{said}")
        case "resource":
            return Verdict(accepted=False, reason="resource", message=f"it hit a limit: {result.detail}.{said}")
        case "signal":
            return Verdict(accepted=False, reason="crash", message=f"it died of signal {result.signal}.{said}")
        case "tampered":
            return Verdict(accepted=False, reason="tampered", message=f"{result.detail}{said}")
    return Verdict(accepted=False, reason="crash", message=f"it ended with exit code {result.exit_code}.{said}")


def difference(program: Program, expected: Observed, seen: Observed) -> str | None:
    """Return the first difference between two observations, or None when all that is compared is equal."""
    streams = [("standard output", expected.stdout, seen.stdout)]
    if program.check_stderr:
        streams.append(("standard error", expected.stderr, seen.stderr))
    for name in program.outputs:
        if name not in expected.files or name not in seen.files:
            if (name in expected.files) != (name in seen.files):
                return f"only one of the builds wrote the file {name!r}."
            continue
        streams.append((f"the file {name!r}", expected.files[name], seen.files[name]))
    for what, before, after in streams:
        if before != after:
            return _first_line(what, before, after)
    return None


def _first_line(what: str, before: bytes, after: bytes) -> str:
    left, right = before.split(b"\n"), after.split(b"\n")
    for number, (a, b) in enumerate(zip(left, right, strict=False), start=1):
        if a != b:
            return f"Line {number} of {what}: {_shown(a)} became {_shown(b)}."
    return f"{what[0].upper()}{what[1:]} has {len(left)} lines in one and {len(right)} in the other."


def _shown(line: bytes) -> str:
    text = line.decode(errors="backslashreplace")
    return repr(text if len(text) <= 80 else f"{text[:80]}...")
