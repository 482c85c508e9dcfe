"""LLVM's own analyses of the optimised IR: properties of each function, its loops, its block frequencies."""

import re
from dataclasses import dataclass, field

PASSES = "function(print<func-properties>,print<loops>,print<block-freq>,print<scalar-evolution>)"
"""The printers, in the order that the parser expects: properties open a function's part."""

_FUNCTION = re.compile(r"^Printing analysis results of CFA for function '(.*)':$")
_PROPERTY = re.compile(r"^(\w+): (\d+)$")
_LOOP = re.compile(r"^ *Loop at depth (\d+) containing: (.*)$")
_HEADER = re.compile(r"%([^,<]+)(?:<[a-z]+>)*<header>")
_FREQUENCY = re.compile(r"^ - (.*): float = ([\d.e+]+), int = ")
_TRIPS = re.compile(r"^Loop %(.+): backedge-taken count is (.*)$")
_CONSTANT = re.compile(r"^i\d+ (\d+)$")


@dataclass(kw_only=True, slots=True)
class Loop:
    """A natural loop."""

    header: str
    depth: int
    """1 is an outermost loop."""
    innermost: bool
    trips: int | str | None = None
    """Iterations an entry: a number, scalar evolution's expression of the count, or None where it cannot tell."""


@dataclass(kw_only=True, slots=True)
class Function:
    """What the analyses say of one function."""

    name: str
    properties: dict[str, int] = field(default_factory=dict)
    loops: list[Loop] = field(default_factory=list)
    frequencies: dict[str, float] = field(default_factory=dict)
    """Block -> estimated executions an entry of the function, from static branch heuristics."""

    @property
    def weight(self) -> float:
        """Estimated work of a call: the sum of its block frequencies times its mean block size."""
        blocks = max(1, self.properties.get("BasicBlockCount", 1))
        size = self.properties.get("TotalInstructionCount", 0) / blocks
        return sum(self.frequencies.values()) * size


def parse_analyses(text: bytes) -> list[Function]:
    """Return the functions of the output of `opt -passes=PASSES`, heaviest first."""
    functions: list[Function] = []
    for line in text.decode(errors="replace").splitlines():
        if found := _FUNCTION.match(line):
            functions.append(Function(name=found[1]))
        elif functions:
            _read_line(functions[-1], line)
    return sorted(functions, key=lambda f: (-f.weight, f.name))


def _read_line(function: Function, line: str) -> None:
    if found := _PROPERTY.match(line):
        function.properties[found[1]] = int(found[2])
    elif found := _LOOP.match(line):
        depth = int(found[1])
        header = _HEADER.search(found[2])
        if function.loops and function.loops[-1].depth < depth:
            function.loops[-1].innermost = False
        function.loops.append(Loop(header=header[1] if header else "?", depth=depth, innermost=True))
    elif found := _FREQUENCY.match(line):
        name = found[1] or f"unnamed{len(function.frequencies)}"
        function.frequencies[name] = float(found[2])
    elif found := _TRIPS.match(line):
        for loop in function.loops:
            if loop.header == found[1]:
                constant = _CONSTANT.match(found[2])
                loop.trips = int(constant[1]) + 1 if constant else f"1 + {found[2][:80]}"
