"""The opt route: front end, a pass pipeline of one's own, code generation, with bitcode between the stages.

Unedited, the route gives `clang -O3`'s machine code; `complab llvm selftest` says where it does not.
"""

import functools
import re
import subprocess

from core.errors import InfraError
from core.sandbox.policy import Command, Result, Sandbox
from llvm_tuning.program import Program
from llvm_tuning.toolchain.build import BASE_FLAGS, COMPILE, UNIT, Built, said, tool_environment
from llvm_tuning.toolchain.discover import Toolchain

DEFAULT = "default<O3>"
"""The pipeline of -O3 by name; `default_pipeline` spells it out."""

LEVEL = (
    "-unroll-threshold=300",
    "-inline-threshold=250",
    "-inlinecold-threshold=45",
    "-locally-hot-callsite-threshold=525",
)
"""What -O3 sets in its passes that the text of a pipeline cannot say: `loop-unroll-full` and `inline` take no level.

Without it they fall back to the limits of -O2 (LLVM's LoopUnrollPass.cpp and InlineCost.cpp)."""

_NAMES_A_LEVEL = re.compile(r"(?:default|lto|lto-pre-link)<O")

MOST_TEXT = 64 << 10
"""Longest pipeline, in characters: half of what Linux lets one argument have; that of -O3 has under 5 thousand."""

_NO_PASSES = ("-Xclang", "-disable-llvm-passes")


class NoBitcode(InfraError):
    """The front end failed. It runs only once the baseline has compiled, so it must not, whatever was proposed."""


def frontend_bitcode(
    box: Sandbox, tools: Toolchain, program: Program, unit: bytes, words: tuple[str, ...] = ()
) -> bytes:
    """Return the unit as -O3's front end hands it to the optimizer: with all attributes, before the first pass.

    Args:
        box: where the compiler runs.
        tools: the toolchain.
        program: whose flags are used.
        unit: its preprocessed translation unit.
        words: further driver flags, such as `-mprefer-vector-width=256`.

    Raises:
        NoBitcode: with the compiler's message.
    """
    driver = (*tools.compiler(program.language), *BASE_FLAGS, *program.compile_flags, *words, *_NO_PASSES)
    command = Command(
        argv=(*driver, "-emit-llvm", "-c", UNIT[program.language], "-o", "unit.bc"),
        files={UNIT[program.language]: unit},
        readonly=tools.readonly,
        outputs=("unit.bc",),
        env=tool_environment(tools),
    )
    built = _built(box.run(command, COMPILE), "unit.bc")
    if built.code is None:
        raise NoBitcode(f"{program.name} gives no bitcode:\n{built.message}", "Check --cflags.")
    return built.code


def optimize(box: Sandbox, tools: Toolchain, bitcode: bytes, pipeline: str, options: tuple[str, ...] = ()) -> Built:
    """Run a pass pipeline over bitcode; the result is verified bitcode, or why there is none (it aborted, it hung).

    Args:
        box: where opt runs.
        tools: the toolchain; it must have `opt`.
        bitcode: the module.
        pipeline: what `opt -passes=` takes. Whoever wrote it, it can name passes only.
        options: LLVM options as opt takes them (`-name=value`).

    Raises:
        ComplabError: there is no opt.
    """
    if len(pipeline) > MOST_TEXT or not (pipeline.isascii() and pipeline.isprintable()):
        return Built(code=None, message=f"a pipeline is one line of at most {MOST_TEXT} ASCII characters")
    command = Command(
        argv=(tools.tool("opt"), *opt_arguments(pipeline, options), "unit.bc", "-o", "optimized.bc"),
        files={"unit.bc": bitcode},
        outputs=("optimized.bc",),
    )
    return _built(box.run(command, COMPILE), "optimized.bc")


def opt_arguments(pipeline: str, options: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return opt's arguments for a pipeline at -O3's limits, unless it names a level itself or an option sets one."""
    given = {option.partition("=")[0] for option in options}
    limits = () if _NAMES_A_LEVEL.search(pipeline) else (o for o in LEVEL if o.partition("=")[0] not in given)
    return (f"-passes={pipeline}", *limits, *options)


def codegen(
    box: Sandbox,
    tools: Toolchain,
    program: Program,
    bitcode: bytes,
    words: tuple[str, ...] = (),
    *,
    own_passes: bool = False,
) -> Built:
    """Generate the object of a module.

    Args:
        box: where the compiler runs.
        tools: the toolchain.
        program: whose flags are used.
        bitcode: the module; optimised, unless clang is to do that.
        words: further flags as clang takes them (`-mllvm`, `-name=value`).
        own_passes: run clang's own -O3 pipeline first.
    """
    passes = () if own_passes else _NO_PASSES
    driver = (*tools.compiler(program.language), *BASE_FLAGS, *program.compile_flags, *words, *passes)
    command = Command(
        argv=(*driver, "-x", "ir", "-c", "unit.bc", "-o", "unit.o"),
        files={"unit.bc": bitcode},
        readonly=tools.readonly,
        outputs=("unit.o",),
        env=tool_environment(tools),
    )
    return _built(box.run(command, COMPILE), "unit.o")


def default_pipeline(tools: Toolchain) -> str:
    """Return the installed opt's -O3 pipeline spelled out pass by pass, as `optimize` reads it.

    opt alone does not do the same with it: see `LEVEL`.

    Raises:
        ComplabError: there is no opt, or it does not print its pipeline.
    """
    return _printed(tools.tool("opt"))


@functools.cache
def _printed(opt: str) -> str:
    argv = [opt, f"-passes={DEFAULT}", "-print-pipeline-passes", "-disable-output", "/dev/null"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=COMPILE.limits.wall_s)
    text = done.stdout.strip()
    if done.returncode != 0 or not text:
        raise InfraError(f"{opt} does not print its pipeline: {done.stderr[:300]}", "Reinstall LLVM.")
    return text


def _built(result: Result, name: str) -> Built:
    code = result.files.get(name) if result.ok else None
    message = "" if code is not None else said(result)
    return Built(code=code, message=message, timed_out=result.status == "timeout")
