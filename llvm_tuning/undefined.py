"""Looks for undefined behaviour before tuning: on such a program no optimisation can be judged by its output."""

from core.errors import BadInput
from core.sandbox.policy import Command, Limits, Policy, Result, Sandbox
from core.search.contract import Verdict
from llvm_tuning.observe import MEMORY_BYTES, OUTPUT_BYTES, Observed, difference, observe
from llvm_tuning.program import Input, Program
from llvm_tuning.toolchain.build import COMPILE, UNIT, said, tool_environment
from llvm_tuning.toolchain.discover import Toolchain

SLOWER = 10
"""How many times longer than the -O3 build the unoptimised and the sanitised build may run."""

SANITIZERS = ("-O1", "-g1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined")
"""Only -O1: higher levels may optimise the undefined behaviour away before the sanitizers see it."""

_OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=0"}
_FOUND = ("runtime error: ", "ERROR: AddressSanitizer")
_REPORT_CHARS = 1500


def look_for_undefined(
    box: Sandbox, tools: Toolchain, program: Program, unit: bytes, given: Input, expected: Observed, timeout_s: float
) -> tuple[str, ...]:
    """Compare the -O3 build's run with an unoptimised one, and run the program under ASan and UBSan.

    Args:
        box: the sandbox that builds and runs.
        tools: the compiler of the -O3 build.
        program: the program.
        unit: its preprocessed text.
        given: the tuning input.
        expected: what the -O3 build showed on it.
        timeout_s: the time limit of the -O3 build; these builds get SLOWER times as much.

    Returns:
        Warnings: undefined behaviour that does not change the output, and checks that could not be made.

    Raises:
        BadInput: the sanitizers report undefined behaviour and -O0 shows something else than -O3.
    """
    if tools.system_cc is not None:
        return (f"undefined behaviour was not looked for: {tools.version} comes without sanitizers",)
    report, warnings = _sanitized(box, tools, program, unit, given, timeout_s)
    changed, unchecked = _unoptimised(box, tools, program, unit, given, expected, timeout_s)
    warnings += unchecked
    if report and changed:
        raise BadInput(
            f"{program.name} has undefined behaviour that changes its output from -O0 to -O3. {changed}\n{report}",
            "Mend what the sanitizers report; build with -fsanitize=address,undefined to see it.",
        )
    if report:
        warnings.append(f"undefined behaviour that does not change the output from -O0 to -O3: {report}")
    if changed:
        warnings.append(f"-O0 differs from -O3, and the sanitizers name no cause: {changed}")
    return tuple(warnings)


def parse_report(stderr: bytes) -> str:
    """Return the first report of ASan or UBSan in a program's standard error; empty when there is none."""
    lines = stderr.decode(errors="replace").splitlines()
    start = next((i for i, line in enumerate(lines) if any(mark in line for mark in _FOUND)), None)
    return "" if start is None else "\n".join(lines[start : start + 8])[:_REPORT_CHARS]


def _sanitized(
    box: Sandbox, tools: Toolchain, program: Program, unit: bytes, given: Input, timeout_s: float
) -> tuple[str, list[str]]:
    executable, why = _build(box, tools, program, unit, SANITIZERS)
    if executable is None:
        return "", [f"not checked by sanitizers (libclang-rt-22-dev has them): {why}"]
    command = Command(
        argv=("./program", *given.args),
        files={**given.files, "program": executable},
        executables=("program",),
        stdin=given.stdin,
        env=_OPTIONS,
    )
    result = box.run(command, _limits(timeout_s))
    report = parse_report(result.stderr)
    if report or result.ok:
        return report, []
    return "", [f"the sanitised build did not end well: {_ending(result)}"]


def _unoptimised(
    box: Sandbox, tools: Toolchain, program: Program, unit: bytes, given: Input, expected: Observed, timeout_s: float
) -> tuple[str, list[str]]:
    executable, why = _build(box, tools, program, unit, ("-O0",))
    if executable is None:
        return "", [f"-O0 was not compared: {why}"]
    seen = observe(box, program, executable, given, SLOWER * timeout_s)
    if isinstance(seen, Verdict):
        return ("", [f"-O0 was not compared: {seen.message}"]) if seen.reason == "timeout" else (seen.message, [])
    return difference(program, seen, expected) or "", []


def _build(
    box: Sandbox, tools: Toolchain, program: Program, unit: bytes, flags: tuple[str, ...]
) -> tuple[bytes | None, str]:
    """Return an executable, or why there is none. The flags come last of the user's: they decide."""
    link = tuple(f for f in program.cflags if f not in program.compile_flags)
    command = Command(
        argv=(
            *tools.compiler(program.language),
            "-w",
            *program.compile_flags,
            *flags,
            UNIT[program.language],
            *link,
            "-o",
            "program",
        ),
        files={UNIT[program.language]: unit},
        readonly=tools.readonly,
        outputs=("program",),
        env=tool_environment(tools),
    )
    result = box.run(command, COMPILE)
    return (result.files["program"], "") if result.ok and "program" in result.files else (None, said(result))


def _limits(timeout_s: float) -> Policy:
    limit = SLOWER * timeout_s
    return Policy(limits=Limits(wall_s=limit, cpu_s=2 * limit, memory_bytes=MEMORY_BYTES, output_bytes=OUTPUT_BYTES))


def _ending(result: Result) -> str:
    return result.detail or f"{result.status} {result.exit_code if result.signal is None else result.signal}"
