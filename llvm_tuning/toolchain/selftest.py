"""Does each route's unedited -O3 give `clang -O3`'s machine code? Said per program and function where it does not."""

import re
from collections.abc import Callable

from core.errors import ComplabError
from core.records import Json, Record
from core.sandbox.policy import Command, Sandbox
from llvm_tuning.program import Program
from llvm_tuning.toolchain.build import COMPILE, Built, compile_object, said
from llvm_tuning.toolchain.discover import Toolchain
from llvm_tuning.toolchain.routes import DEFAULT, codegen, default_pipeline, frontend_bitcode, optimize

Route = Callable[[Sandbox, Toolchain, Program, bytes], Built]
"""From the front end's bitcode to an object, unedited."""

_NAMED_FUNCTIONS = 8


class Agreement(Record):
    """One route's object beside that of `clang -O3`."""

    program: str
    route: str
    same: bool
    """Equal machine code."""
    functions: tuple[str, ...] = ()
    """Those whose code differs."""
    error: str = ""
    """Why there is no object, when there is none."""

    def __str__(self) -> str:
        if self.error:
            return f"failed: {self.error}"
        if self.same:
            return "same"
        more = len(self.functions) - _NAMED_FUNCTIONS
        named = ", ".join(self.functions[:_NAMED_FUNCTIONS]) + (f" and {more} more" if more > 0 else "")
        return f"differs in {named}" if self.functions else "differs in data"

    def summary(self) -> dict[str, Json]:
        """Return what `--json` prints."""
        return {
            "program": self.program,
            "route": self.route,
            "same": self.same,
            "functions": list(self.functions),
            "error": self.error,
        }


def _on_bitcode(box: Sandbox, tools: Toolchain, program: Program, bitcode: bytes) -> Built:
    return codegen(box, tools, program, bitcode, own_passes=True)


def _named(box: Sandbox, tools: Toolchain, program: Program, bitcode: bytes) -> Built:
    optimized = optimize(box, tools, bitcode, DEFAULT)
    return optimized if optimized.code is None else codegen(box, tools, program, optimized.code)


def _spelled_out(box: Sandbox, tools: Toolchain, program: Program, bitcode: bytes) -> Built:
    optimized = optimize(box, tools, bitcode, default_pipeline(tools))
    return optimized if optimized.code is None else codegen(box, tools, program, optimized.code)


ROUTES: dict[str, Route] = {
    "clang on bitcode": _on_bitcode,
    f"opt {DEFAULT}": _named,
    "opt, spelled out": _spelled_out,
}


def selftest(box: Sandbox, tools: Toolchain, program: Program, unit: bytes) -> tuple[Agreement, ...]:
    """Return how each route agrees with `clang -O3` on a program.

    Args:
        box: where the tools run.
        tools: the toolchain; it must have opt and llvm-objdump.
        program: whose flags are used.
        unit: its preprocessed translation unit.

    Raises:
        ComplabError: it does not compile at -O3, or a tool is missing.
    """
    base = compile_object(box, tools, program, unit, ())
    if base.code is None:
        raise ComplabError(f"{program.name} does not compile at -O3:\n{base.message}", "Mend it, or give --cflags.")
    bitcode = frontend_bitcode(box, tools, program, unit)
    return tuple(
        _agreement(box, tools, program.name, name, base.code, route(box, tools, program, bitcode))
        for name, route in ROUTES.items()
    )


def _agreement(box: Sandbox, tools: Toolchain, program: str, route: str, base: bytes, built: Built) -> Agreement:
    if built.code is None:
        return Agreement(program=program, route=route, same=False, error=built.message)
    if built.code == base:
        return Agreement(program=program, route=route, same=True)
    ours, theirs = (functions(box, tools, code) for code in (built.code, base))
    differing = tuple(name for name in dict.fromkeys([*theirs, *ours]) if ours.get(name) != theirs.get(name))
    return Agreement(program=program, route=route, same=False, functions=differing)


def functions(box: Sandbox, tools: Toolchain, code: bytes) -> dict[str, str]:
    """Return an object's functions with their instructions as text, free of addresses.

    Raises:
        ComplabError: there is no llvm-objdump, or it cannot read the object.
    """
    argv = (tools.tool("llvm-objdump"), "-d", "-r", "--no-show-raw-insn", "--no-leading-addr", "unit.o")
    result = box.run(Command(argv=argv, files={"unit.o": code}), COMPILE)
    if not result.ok or result.truncated:
        raise ComplabError(f"llvm-objdump does not read the object: {said(result)}", "Reinstall LLVM.")
    parts = re.split(r"^<(.+)>:$", result.stdout.decode(errors="replace"), flags=re.MULTILINE)
    texts = [re.sub(r"0x[0-9a-f]+ (?=<)", "", text).strip() for text in parts[2::2]]
    return dict(zip(parts[1::2], texts, strict=True))
