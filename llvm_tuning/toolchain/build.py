"""Builds a program with the compiler driver, inside the sandbox: preprocess once, compile per knob setting."""

import subprocess

from core.errors import BadInput
from core.records import Record
from core.sandbox.policy import Command, Limits, Policy, Result, Sandbox
from llvm_tuning.program import Program
from llvm_tuning.suite.catalogue import Language
from llvm_tuning.toolchain.discover import Toolchain

COMPILE = Policy(profile="toolchain", limits=Limits(wall_s=60.0, cpu_s=60.0))
"""Some settings make a compiler run for minutes; this bounds them."""

UNIT: dict[Language, str] = {"c": "unit.i", "c++": "unit.ii"}
"""File name of a preprocessed unit: its suffix says so to every driver (zig knows no `-x cpp-output`)."""

BASE_FLAGS = ("-O3", "-w")
"""The baseline's flags. No debug info: objects of equal machine code are then equal bytes, whatever their route."""

REMARK_FLAGS = ("-g1", "-fsave-optimization-record", "-foptimization-record-file=unit.opt.yaml")
"""-g1 (line tables) does not change code; remarks need it for source lines."""


class Built(Record):
    """An object file, or why there is none."""

    code: bytes | None
    remarks: bytes = b""
    """LLVM's optimization remarks as YAML, when they were asked for."""
    message: str = ""
    timed_out: bool = False


def preprocess(tools: Toolchain, program: Program) -> bytes:
    """Return the program's translation unit after preprocessing; nothing later reads the user's files.

    This alone runs outside the sandbox, with the user's own rights: it executes nothing of the program, and headers may
    lie where a confined process cannot look.

    Raises:
        BadInput: the file or a header cannot be read, or the preprocessor reports an error (its text is shown).
    """
    command = [*tools.compiler(program.language), "-E", *BASE_FLAGS, *program.compile_flags, str(program.path)]
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=COMPILE.limits.wall_s)
    except subprocess.TimeoutExpired:
        limit = f"{COMPILE.limits.wall_s:.0f} s"
        raise BadInput(f"{program.path} does not preprocess within {limit}.", "Give less to include.") from None
    if done.returncode != 0:
        told = done.stderr.decode(errors="replace").strip()[:2000]
        raise BadInput(f"{program.path} does not preprocess:\n{told}", "Mend it, or give --cflags.")
    return done.stdout


def compile_object(
    box: Sandbox, tools: Toolchain, program: Program, unit: bytes, knobs: tuple[str, ...], *, remarks: bool = False
) -> Built:
    """Compile the preprocessed unit with `clang -O3` and these knob flags."""
    extra = REMARK_FLAGS if remarks else ()
    command = Command(
        argv=(
            *tools.compiler(program.language),
            *BASE_FLAGS,
            *program.compile_flags,
            *knobs,
            *extra,
            "-c",
            UNIT[program.language],
            "-o",
            "unit.o",
        ),
        files={UNIT[program.language]: unit},
        readonly=tools.readonly,
        outputs=("unit.o", "unit.opt.yaml"),
        env=tool_environment(tools),
    )
    result = box.run(command, COMPILE)
    code = result.files.get("unit.o") if result.ok else None
    return Built(
        code=code,
        remarks=result.files.get("unit.opt.yaml", b""),
        message="" if code is not None else said(result),
        timed_out=result.status == "timeout",
    )


def intermediate(box: Sandbox, tools: Toolchain, program: Program, unit: bytes) -> bytes:
    """Return the baseline's optimised LLVM IR as text, for evidence only (empty if the driver gives none)."""
    driver = (*tools.compiler(program.language), *BASE_FLAGS, *program.compile_flags)
    command = Command(
        argv=(*driver, "-S", "-emit-llvm", UNIT[program.language], "-o", "unit.ll"),
        files={UNIT[program.language]: unit},
        readonly=tools.readonly,
        outputs=("unit.ll",),
        env=tool_environment(tools),
    )
    return box.run(command, COMPILE).files.get("unit.ll", b"")


def without_line_markers(unit: bytes) -> bytes:
    """Return the unit without `# LINE "FILE"` markers: the same program has the same bytes wherever it lies."""
    return b"\n".join(line for line in unit.split(b"\n") if not line.startswith(b"# "))


def tool_environment(tools: Toolchain) -> dict[str, str]:
    """Return the variables that the compiler driver needs inside the sandbox."""
    return {"ZIG_GLOBAL_CACHE_DIR": "zig", "ZIG_LOCAL_CACHE_DIR": "zig"} if tools.readonly else {}


def said(result: Result) -> str:
    """Return what the compiler said of its failure, shortened."""
    text = result.stderr.decode(errors="replace").strip()
    if result.status == "timeout":
        return f"the compiler did not end within {COMPILE.limits.wall_s:.0f} s\n{text[:1000]}".strip()
    return text[:2000] or f"the compiler ended with {result.status} {result.exit_code or result.signal}"
