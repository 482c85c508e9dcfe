"""The -O3 build of a program and what its runs show: established before anything is tuned or recorded."""

from dataclasses import dataclass

from core.errors import BadInput
from core.records import Digest
from core.sandbox.policy import Sandbox
from core.search.contract import Verdict
from llvm_tuning.observe import Observed, difference, observe
from llvm_tuning.problem import LlvmProblem
from llvm_tuning.program import Input
from llvm_tuning.toolchain.build import compile_object
from llvm_tuning.toolchain.link import LinkFailed, link_layouts
from llvm_tuning.undefined import look_for_undefined


@dataclass(frozen=True, kw_only=True, slots=True)
class Baseline:
    """The reference of all comparisons."""

    code: bytes
    """The object file of plain -O3."""
    shown: dict[Digest, Observed]
    """What a run shows, by the digest of its input."""
    warnings: tuple[str, ...] = ()
    """Undefined behaviour that does not change the output, and checks for it that could not be made."""


def establish(box: Sandbox, problem: LlvmProblem, timeout_s: float) -> Baseline:
    """Build the program with plain -O3 and run it twice on every input.

    Raises:
        BadInput: it does not compile, link or end well, hangs, or does not repeat itself, or has undefined behaviour
            that changes its output; the compiler's message, the first difference or the sanitizers' report is shown.
    """
    program, tools = problem.program, problem.tools
    built = compile_object(box, tools, program, problem.unit, ())
    if built.code is None:
        raise BadInput(f"{program.path} does not compile:\n{built.message}", "Mend it, or give --cflags.")
    try:
        (executable,) = link_layouts(box, tools, program, built.code, first=0, count=1)
    except LinkFailed as error:
        raise BadInput(error.what, error.fix) from None
    shown: dict[Digest, Observed] = {}
    for given in (*program.inputs, *program.hidden):
        first, second = (_run(box, problem, executable, given, timeout_s) for _ in range(2))
        found = difference(program, first, second)
        if found is not None:
            raise BadInput(
                f"{program.name} does not repeat itself: two runs of the same -O3 build differ. {found}",
                "Make it print the same each time: no timings, addresses, dates or unseeded random numbers.",
            )
        shown[given.digest()] = first
    given = program.inputs[0]
    warnings = look_for_undefined(box, tools, program, problem.unit, given, shown[given.digest()], timeout_s)
    return Baseline(code=built.code, shown=shown, warnings=warnings)


def _run(box: Sandbox, problem: LlvmProblem, executable: bytes, given: Input, timeout_s: float) -> Observed:
    seen = observe(box, problem.program, executable, given, timeout_s)
    if isinstance(seen, Verdict):
        raise BadInput(
            f"{problem.program.name}, built with plain -O3, fails: {seen.message}",
            "It must end by itself with exit code 0: see --args, --stdin, --input and --timeout.",
        )
    return seen
