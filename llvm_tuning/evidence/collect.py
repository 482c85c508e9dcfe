"""Gathers all evidence of a program's -O3 build in the sandbox, and names the channels that are missing."""

from core.records import Json
from core.sandbox.policy import Command, Limits, Policy, Sandbox
from core.search.contract import Evidence
from llvm_tuning.evidence.analyses import PASSES, Function, parse_analyses
from llvm_tuning.evidence.features import ir_features
from llvm_tuning.evidence.hardware import hardware
from llvm_tuning.evidence.machine_code import instruction_mix, parse_sizes, spills
from llvm_tuning.evidence.passes import parse_passes
from llvm_tuning.evidence.remarks import parse_remarks, summarize
from llvm_tuning.program import Program
from llvm_tuning.toolchain.build import compile_object, intermediate, said
from llvm_tuning.toolchain.discover import Toolchain
from llvm_tuning.toolchain.routes import NoBitcode, frontend_bitcode

MAX_FUNCTIONS = 12
"""Cap of the functions that are told of, heaviest first."""

MAX_LOOPS = 24
"""Cap of the loops, those of the heaviest functions first."""

MAX_BLOCKS = 6
"""Cap of the blocks of one function in the frequencies, hottest first."""

_LOOK = Policy(profile="toolchain", limits=Limits(wall_s=20.0, cpu_s=20.0, output_bytes=48 << 20))
"""An analysis that takes longer, or prints more, is a missing channel, not a wait."""


class _Missing(Exception):
    """A producer has nothing to show; its text is the reason."""


def collect(box: Sandbox, tools: Toolchain, program: Program, unit: bytes) -> Evidence:
    """Return the channels remarks, mix, spills, size, features, functions, loops, frequencies, passes and hardware."""
    channels: dict[str, Json] = {"hardware": hardware()}
    missing: dict[str, str] = {}
    built = compile_object(box, tools, program, unit, (), remarks=True)
    if built.remarks:
        remarks = parse_remarks(built.remarks)
        channels["remarks"] = summarize(remarks)
        channels["mix"] = dict(instruction_mix(remarks))
        channels["spills"] = spills(remarks)
    else:
        missing |= dict.fromkeys(("remarks", "mix", "spills"), f"{tools.version} wrote no optimization record")
    try:
        if built.code is None:
            raise _Missing(built.message)
        text = _look(box, tools, "llvm-size", ("-A", "unit.o"), {"unit.o": built.code})
        channels["size"] = dict(parse_sizes(text))
    except _Missing as reason:
        missing["size"] = str(reason)
    ir = intermediate(box, tools, program, unit)
    if ir:
        channels["features"] = dict(ir_features(ir))
    else:
        missing["features"] = f"{tools.version} gave no LLVM IR"
    try:
        # Blocks keep their names, which the frequencies are told by.
        given = {"unit.bc": frontend_bitcode(box, tools, program, unit, ("-fno-discard-value-names",))}
    except NoBitcode as reason:
        missing |= dict.fromkeys(("functions", "loops", "frequencies", "passes"), str(reason))
        return Evidence(channels=channels, missing=missing)
    try:
        analyses = (f"-passes=default<O3>,{PASSES}", "-disable-output", "unit.bc")
        channels |= _told(parse_analyses(_look(box, tools, "opt", analyses, given)))
    except _Missing as reason:
        missing |= dict.fromkeys(("functions", "loops", "frequencies"), str(reason))
    try:
        changes = ("-passes=default<O3>", "-print-changed", "-disable-output", "unit.bc")
        passes: dict[str, Json] = {
            name: dict(count) for name, count in parse_passes(_look(box, tools, "opt", changes, given)).items()
        }
        channels["passes"] = passes
    except _Missing as reason:
        missing["passes"] = str(reason)
    return Evidence(channels=channels, missing=missing)


def _told(functions: list[Function]) -> dict[str, Json]:
    """Return the channels of the heaviest functions."""
    top = functions[:MAX_FUNCTIONS]
    loops: list[Json] = [
        {"function": f.name, "header": x.header, "depth": x.depth, "innermost": x.innermost, "trips": x.trips}
        for f in top
        for x in f.loops
    ]
    frequencies: dict[str, Json] = {
        f.name: dict(sorted(f.frequencies.items(), key=lambda item: -item[1])[:MAX_BLOCKS]) for f in top
    }
    return {
        "functions": [{"function": f.name, "weight": round(f.weight, 1), **f.properties} for f in top],
        "loops": loops[:MAX_LOOPS],
        "frequencies": frequencies,
    }


def _look(box: Sandbox, tools: Toolchain, name: str, arguments: tuple[str, ...], files: dict[str, bytes]) -> bytes:
    """Return what an LLVM tool of the compiler's own version prints."""
    if name not in tools.paths:
        raise _Missing(f"there is no {name} of {tools.version}'s version")
    result = box.run(Command(argv=(tools.paths[name], *arguments), files=files), _LOOK)
    if not result.ok or result.truncated:
        why = f"it printed more than {_LOOK.limits.output_bytes >> 20} MiB" if result.truncated else said(result)
        raise _Missing(f"{name}: {result.detail or why}")
    return result.stdout + result.stderr
