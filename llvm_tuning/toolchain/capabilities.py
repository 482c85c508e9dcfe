"""What the LLVM tools of this machine can do: a record that every run keeps, and `complab llvm tools` prints."""

from pathlib import Path

from core.machine.tools import version_of
from core.records import Json, Record
from llvm_tuning.toolchain.discover import BESIDE, TOOLS_HINT, Toolchain
from llvm_tuning.toolchain.knobs import available, drift
from llvm_tuning.toolchain.semantics import Semantics

FILE = "capabilities.json"
"""Its name in a run's directory."""

PURPOSE = {
    "opt": "pass pipelines of one's own",
    "llvm-mca": "static cycle estimates",
    "llvm-profdata": "instrumented profiles",
    "llvm-remarkutil": "counts of remarks",
    "llvm-objdump": "disassembly: instruction mix, and which functions differ in a self-test",
}
"""What is lost without a tool; the others are conveniences."""


class Capabilities(Record):
    """Compiler, linker, tools, routes and knobs of one toolchain."""

    compiler: str
    driver: str
    linker: str | None
    """None: the driver's own; layouts are then varied by padding alone."""
    tools: dict[str, str]
    """Tools that answered, by plain name, with the line in which each names its version."""
    missing: dict[str, str]
    """Tools that are not there, with what is lost."""
    routes: dict[str, str]
    """Ways from source to object: `ready`, or why not."""
    options: int
    """LLVM options that the compiler knows."""
    knobs: int
    """Knobs that may be set at the run's semantics."""
    missing_knobs: dict[str, str]
    drifted_knobs: dict[str, str]
    """Knobs whose default in this compiler is not the catalogue's."""

    def summary(self) -> dict[str, Json]:
        """Return what a run's summary quotes."""
        lost = sorted([*self.missing, *self.missing_knobs])
        return {"compiler": self.compiler, "routes": dict(self.routes), "knobs": self.knobs, "missing": list(lost)}


def capabilities(tools: Toolchain, semantics: Semantics = "exact") -> Capabilities:
    """Return what a toolchain can do; each of its tools is asked for its version.

    Args:
        tools: what was found.
        semantics: the most that a knob may do to results.
    """
    answers = {name: version_of(Path(path)) for name, path in tools.paths.items()}
    missing = {
        name: PURPOSE.get(name, "nothing that the tuner needs") if name not in answers else "it does not run"
        for name in BESIDE
        if answers.get(name) is None
    }
    knobs, missing_knobs = available(tools.options, semantics)
    return Capabilities(
        compiler=tools.version,
        driver=" ".join(tools.driver),
        linker=tools.linker,
        tools={name: line for name, line in answers.items() if line is not None},
        missing=missing,
        routes={
            "clang": "ready",
            "opt": "ready" if "opt" not in missing else f"there is no opt of its version. {TOOLS_HINT}",
        },
        options=len(tools.options),
        knobs=len(knobs),
        missing_knobs=missing_knobs,
        drifted_knobs=drift(tools.options),
    )
