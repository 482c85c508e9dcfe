"""What the code generator made of a program: instruction mix, spills and section sizes."""

import re
from collections import Counter

from core.records import Json
from llvm_tuning.evidence.remarks import Remark

MAX_OPCODES = 30
"""Cap of the mix: the most frequent opcodes first."""

MAX_FUNCTIONS = 20
"""Cap of the spills: the functions with the greatest cost first."""

_SECTION = re.compile(rb"^(\.\S+)\s+(\d+)\s+\d+$", re.MULTILINE)
_KEPT = (".text", ".rodata", ".data", ".bss", ".eh_frame")


def instruction_mix(remarks: list[Remark]) -> dict[str, int]:
    """Return LLVM opcode -> how often it was emitted, from the asm printer's remarks."""
    mix: Counter[str] = Counter()
    for r in remarks:
        if r.name == "InstructionMix":
            mix.update({k.removeprefix("INST_"): int(v) for k, v in r.args.items() if k.startswith("INST_")})
    return dict(sorted(mix.items(), key=lambda item: (-item[1], item[0]))[:MAX_OPCODES])


def spills(remarks: list[Remark]) -> list[Json]:
    """Return each function's spills, reloads and copies with the allocator's cost of them, dearest first."""
    found: list[tuple[float, str, dict[str, Json]]] = []
    for r in remarks:
        if r.compiler_pass != "regalloc" or r.name != "SpillReloadCopies":
            continue
        numbers: dict[str, Json] = {k: float(v) for k, v in r.args.items() if k.startswith(("Num", "Total"))}
        cost = sum(float(v) for k, v in r.args.items() if k.startswith("Total"))
        found.append((cost, r.function, {"function": r.function, **numbers}))
    return [entry for _, _, entry in sorted(found, key=lambda item: (-item[0], item[1]))[:MAX_FUNCTIONS]]


def parse_sizes(text: bytes) -> dict[str, int]:
    """Return section kind -> bytes, from `llvm-size -A`; `.text.f` counts as `.text`."""
    sizes: Counter[str] = Counter()
    for name, count in _SECTION.findall(text):
        for kept in _KEPT:
            if name.decode() == kept or name.decode().startswith(f"{kept}."):
                sizes[kept] += int(count)
    return dict(sizes)
