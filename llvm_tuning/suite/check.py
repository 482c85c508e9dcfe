"""Does a suite hold what it promises: its programs build, print what is recorded, and would notice a lost kernel?"""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from core.errors import BadInput
from core.records import Record, digest_bytes
from core.sandbox.policy import Command, Limits, Policy, Result, Sandbox
from llvm_tuning.suite.catalogue import INPUTS, InputName, Suite, SuiteProgram
from llvm_tuning.suite.mutation import emptied
from llvm_tuning.toolchain.build import tool_environment
from llvm_tuning.toolchain.discover import Toolchain

Run = Callable[[Command, float], Result]
"""Runs a command under a wall deadline in seconds: `confined(box)`; for the shipped programs `unconfined.run_own`."""

BUILD_S = 60.0
RUN_S = 20.0
MUTANT_S = 2.0
"""Deadlines. A mutant that runs on has lost what ended its loops, and that is a change that the check sees."""

LEVELS = ("-O0", "-O3")
MUTANT_LEVEL = "-O0"

Kind = Literal["build", "failed", "wrong_output", "unrecorded", "nondeterministic", "no_kernel", "mutant", "blind"]
"""What is wrong. unrecorded: an input has no digest; no_kernel: nothing to empty; mutant: an emptied program did not
build, so nothing was shown; blind: the output is the same without the kernel."""


class Finding(Record):
    """One thing that is wrong with a program of a suite."""

    program: str
    kind: Kind
    message: str


class Build(Record):
    """A linked program, or None and the compiler's words."""

    binary: bytes | None
    message: str = ""


def confined(box: Sandbox) -> Run:
    """Return the way to run a user's suite: compiler and programs inside the sandbox."""

    def run(command: Command, wall_s: float) -> Result:
        return box.run(command, Policy(limits=Limits(wall_s=wall_s, cpu_s=wall_s)))

    return run


def check(
    suite: Suite,
    tools: Toolchain,
    run: Run,
    *,
    programs: Sequence[SuiteProgram] | None = None,
    inputs: Sequence[InputName] = INPUTS,
) -> list[Finding]:
    """Return all that is wrong with the programs (all of the suite, unless told); an empty list is a sound suite.

    Args:
        suite: where the sources lie.
        tools: the compiler.
        run: the door through which compiler and programs run.
        programs: those to check.
        inputs: names of the inputs to run at -O0 and -O3; the mutation test takes the program's smallest one.
    """
    chosen = suite.programs if programs is None else programs
    return [finding for program in chosen for finding in check_program(suite, program, tools, run, inputs=inputs)]


def check_program(
    suite: Suite, program: SuiteProgram, tools: Toolchain, run: Run, *, inputs: Sequence[InputName] = INPUTS
) -> list[Finding]:
    """Return what is wrong with one program: first its outputs, and if they are right, its mutation test."""
    source = suite.source(program).read_text(encoding="utf-8")
    findings = list(_outputs(program, source, tools, run, inputs))
    return findings or list(check_mutants(program, source, tools, run))


def check_mutants(program: SuiteProgram, source: str, tools: Toolchain, run: Run) -> Iterator[Finding]:
    """Yield a finding for every kernel that can be emptied without a change of the output."""
    if not program.kernels:
        message = "names no kernels, so nothing shows that its output depends on its work; add `kernels: [function]`"
        yield Finding(program=program.name, kind="no_kernel", message=message)
        return
    whole = build(program, source, tools, run, MUTANT_LEVEL)
    if whole.binary is None:
        yield Finding(program=program.name, kind="build", message=f"{MUTANT_LEVEL}: {whole.message}")
        return
    smallest = program.inputs[0]
    right = execute(program, whole.binary, smallest, run)
    for kernel in program.kernels:
        try:
            mutant = build(program, emptied(source, kernel, program.language), tools, run, MUTANT_LEVEL)
        except BadInput as error:
            yield Finding(program=program.name, kind="mutant", message=str(error))
            continue
        if mutant.binary is None:
            message = f"does not build with an empty {kernel}, which shows nothing: {mutant.message}"
            yield Finding(program=program.name, kind="mutant", message=message)
            continue
        left = execute(program, mutant.binary, smallest, run, MUTANT_S)
        if left.ok and left.stdout == right.stdout:
            message = f"prints the same for {smallest} when {kernel} does nothing; feed its results into the output"
            yield Finding(program=program.name, kind="blind", message=message)


def build(program: SuiteProgram, source: str, tools: Toolchain, run: Run, level: str) -> Build:
    """Compile and link a program's source text at an optimisation level."""
    command = Command(
        argv=(*tools.compiler(program.language), level, "-w", program.filename, "-o", "program", *program.cflags),
        files={program.filename: source.encode()},
        readonly=tools.readonly,
        env=tool_environment(tools),
        outputs=("program",),
    )
    result = run(command, BUILD_S)
    binary = result.files.get("program") if result.ok else None
    return Build(binary=binary, message="" if binary is not None else _words(result))


def execute(program: SuiteProgram, binary: bytes, name: InputName, run: Run, wall_s: float = RUN_S) -> Result:
    """Run a built program on one of its inputs."""
    argv = ("./program", *program.arguments(name))
    return run(Command(argv=argv, files={"program": binary}, executables=("program",)), wall_s)


def _outputs(
    program: SuiteProgram, source: str, tools: Toolchain, run: Run, inputs: Sequence[InputName]
) -> Iterator[Finding]:
    for level in LEVELS:
        built = build(program, source, tools, run, level)
        if built.binary is None:
            yield Finding(program=program.name, kind="build", message=f"{level}: {built.message}")
            continue
        names = [name for name in program.inputs if name in inputs]
        for name in names:
            yield from _output(program, execute(program, built.binary, name, run), f"{name} at {level}", name)
        first, second = (execute(program, built.binary, program.inputs[0], run) for _ in range(2))
        if first.stdout != second.stdout:
            message = f"{program.inputs[0]} at {level}: two runs print different things"
            yield Finding(program=program.name, kind="nondeterministic", message=message)


def _output(program: SuiteProgram, result: Result, what: str, name: InputName) -> Iterator[Finding]:
    if not result.ok:
        yield Finding(program=program.name, kind="failed", message=f"{what}: {_words(result)}")
        return
    seen, wanted = digest_bytes(result.stdout), program.expected.get(name)
    if wanted is None:
        message = f"{what}: no digest is recorded; this run prints sha256 {seen}"
        yield Finding(program=program.name, kind="unrecorded", message=message)
    elif seen != wanted:
        message = f"{what}: prints sha256 {seen}, recorded is {wanted}; the output begins {result.stdout[:200]!r}"
        yield Finding(program=program.name, kind="wrong_output", message=message)


def _words(result: Result) -> str:
    """Return how a run ended, and what it said."""
    ended = {
        "exit": f"ended with exit code {result.exit_code}",
        "signal": f"was killed by signal {result.signal}",
        "timeout": f"did not end within {result.wall_s:.0f} s",
    }.get(result.status, f"ended with status {result.status!r}")
    said = result.stderr.decode(errors="replace").strip()[:1000]
    return f"{ended}: {said}" if said else ended
