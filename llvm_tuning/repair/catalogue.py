"""The passes that a pipeline may name: what the installed opt's -O3 runs, and further optimizations that it knows."""

import functools
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from core.errors import InfraError
from llvm_tuning.repair.pipeline import Pipeline, parse_pipeline
from llvm_tuning.toolchain.discover import Toolchain
from llvm_tuning.toolchain.routes import default_pipeline

Level = Literal["module", "cgscc", "function", "loop"]
LEVELS: tuple[Level, ...] = ("module", "cgscc", "function", "loop")
"""From the outermost in: a pass of one level runs in a list of that level."""

CONTAINERS: Mapping[str, Level] = {
    "module": "module",
    "cgscc": "cgscc",
    "devirt": "cgscc",
    "function": "function",
    "loop": "loop",
    "loop-mssa": "loop",
}
"""Level of the list inside each container."""

BEYOND_O3 = frozenset(
    {
        *("adce", "attributor", "attributor-cgscc", "attributor-light", "bdce"),
        *("consthoist", "dce", "dfa-jump-threading", "flatten-cfg", "gvn-hoist"),
        *("gvn-sink", "irce", "jump-table-to-switch", "lcssa", "lnicm"),
        *("load-store-vectorizer", "loop-bound-split", "loop-data-prefetch", "loop-flatten", "loop-fusion"),
        *("loop-instsimplify", "loop-interchange", "loop-predication", "loop-reduce", "loop-simplify"),
        *("loop-unroll-and-jam", "loop-versioning", "loop-versioning-licm", "mergefunc", "mergeicmps"),
        *("module-inline", "nary-reassociate", "newgvn", "partial-inliner", "partially-inline-libcalls"),
        *("scalarizer", "separate-const-offset-from-gep", "sink", "slsr"),
    }
)
"""Optimizations that -O3 does not run (or not everywhere). None instruments or prints."""

NEEDS_MEMORY_SSA = frozenset({"licm", "lnicm"})
"""Loop passes that opt aborts on outside of `loop-mssa`."""

KEEPS_MEMORY_SSA = frozenset(
    {
        *NEEDS_MEMORY_SSA,
        *("indvars", "loop-deletion", "loop-idiom", "loop-instsimplify", "loop-rotate", "loop-simplifycfg"),
        "simple-loop-unswitch",
    }
)
"""Loop passes that may run in `loop-mssa`: opt aborts when another one changes a loop there."""

_SECTIONS: Mapping[str, Level] = {
    "Module passes": "module",
    "CGSCC passes": "cgscc",
    "Function passes": "function",
    "LoopNest passes": "loop",
    "Loop passes": "loop",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Signature:
    """One legal pass: the levels at which opt has it, and the parameters that it takes there."""

    levels: tuple[Level, ...]
    flags: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    """Parameters that take a number: `bonus-inst-threshold`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PassCatalogue:
    """All that a pipeline may be made of, apart from containers."""

    default: Pipeline
    """The -O3 pipeline, spelled out."""
    passes: Mapping[str, Signature]
    directives: frozenset[str]
    """The `require<...>` and `invalidate<...>` of -O3's pipeline."""

    @classmethod
    def of(cls, tools: Toolchain) -> "PassCatalogue":
        """Return the catalogue of the installed opt.

        Raises:
            ComplabError: there is no opt, or it does not list its passes.
        """
        default = parse_pipeline(default_pipeline(tools))
        names = ({item.name for _, item in default.walk()} | BEYOND_O3) - {"require", "invalidate"}
        heads = {item.head() for _, item in default.walk()}
        known = read_listing(_listing(tools.tool("opt")))
        return cls(
            default=default,
            passes={n: s for n, s in known.items() if n in names},
            directives=frozenset(h for h in heads if h.startswith(("require<", "invalidate<"))),
        )


def read_listing(text: str) -> dict[str, Signature]:
    """Return all passes that `opt --print-passes` lists, by name; analyses and machine passes are left out."""
    found: dict[str, Signature] = {}
    level: Level | None = None
    with_params = False
    for line in text.splitlines():
        if not line.startswith(" "):
            with_params = line.endswith(" with params:")
            level = _SECTIONS.get(line.removesuffix(":").removesuffix(" with params"))
            continue
        entry = re.fullmatch(r" +([\w-]+)(?:<(.*)>)?" if with_params else r" +([\w-]+)()", line)
        if level is None or entry is None:
            continue
        params = [p for p in (entry[2] or "").split(";") if p]
        numbers = frozenset(p.removesuffix("=N") for p in params if p.endswith("=N"))
        flags = frozenset(p for p in params if re.fullmatch(r"[\w-]+", p))
        before = found.get(entry[1])
        if before is None:
            found[entry[1]] = Signature(levels=(level,), flags=flags, numbers=numbers)
        else:
            levels = tuple(dict.fromkeys((*before.levels, level)))
            found[entry[1]] = Signature(levels=levels, flags=before.flags | flags, numbers=before.numbers | numbers)
    return found


@functools.cache
def _listing(opt: str) -> str:
    done = subprocess.run([opt, "--print-passes"], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0 or "Function passes:" not in done.stdout:
        raise InfraError(f"{opt} does not list its passes: {done.stderr[:300]}", "Reinstall LLVM.")
    return done.stdout
