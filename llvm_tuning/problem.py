"""The tuning problem: one program on one target, with the knob space around plain -O3."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.records import Digest, digest_json
from core.sandbox.policy import Sandbox
from core.search.contract import Evidence, Problem, Proposal, Services
from core.search.space import Space
from llvm_tuning.evidence.collect import collect
from llvm_tuning.program import Program
from llvm_tuning.toolchain.build import preprocess, without_line_markers
from llvm_tuning.toolchain.discover import Toolchain
from llvm_tuning.toolchain.knobs import Knob, available, space
from llvm_tuning.toolchain.selftest import selftest
from llvm_tuning.toolchain.semantics import Semantics


@dataclass(frozen=True, kw_only=True, slots=True)
class LlvmProblem:
    """A program to be made faster by LLVM options; the baseline is the -O3 build."""

    program: Program
    tools: Toolchain
    unit: bytes
    """The preprocessed translation unit: the only text that is ever compiled."""
    knobs: tuple[Knob, ...]
    missing_knobs: Mapping[str, str]
    id: Digest
    system: str = "llvm"
    target: str = "x86_64"
    parts: Sequence[Problem] = ()

    @property
    def name(self) -> str:
        """The program's name."""
        return self.program.name

    @property
    def space(self) -> Space:
        """The knobs that the installed compiler accepts, and a pass pipeline where there is opt."""
        return space(self.knobs, pipeline="opt" in self.tools.paths)

    @property
    def default(self) -> Proposal:
        """Plain -O3."""
        return Proposal(payload={}, rationale="the compiler's own -O3")

    def describe(self, s: Services) -> Evidence:
        """Return the evidence."""
        return self.evidence(s.box)

    def evidence(self, box: Sandbox) -> Evidence:
        """Return what the compiler says of the -O3 build, and what each knob means."""
        seen = collect(box, self.tools, self.program, self.unit)
        missing = {f"knob {name}": why for name, why in self.missing_knobs.items()}
        channels = {**seen.channels, "knobs": {k.name: k.about for k in self.knobs}}
        if {"opt", "llvm-objdump"} <= self.tools.paths.keys():
            # A pipeline of one's own starts from these: where they differ from clang -O3, so does its first step.
            channels["routes"] = {a.route: str(a) for a in selftest(box, self.tools, self.program, self.unit)}
        else:
            missing["routes"] = f"there is no opt or no llvm-objdump of {self.tools.version}'s version"
        return Evidence(channels=channels, missing={**missing, **seen.missing})

    def join(self, winners: Mapping[Digest, Proposal]) -> Proposal:
        """Refuse: one translation unit has no parts."""
        raise TypeError("a single program has no parts to join")


def make_problem(program: Program, tools: Toolchain, semantics: Semantics = "exact") -> LlvmProblem:
    """Preprocess the program and return its problem.

    Args:
        program: what is to be made faster.
        tools: the toolchain.
        semantics: the most that an option may do to results.

    Raises:
        BadInput: the program does not preprocess.
    """
    unit = preprocess(tools, program)
    knobs, missing = available(tools.options, semantics)
    parts = program.model_dump(mode="json", include={"cflags", "outputs", "check_stderr"})
    identity = digest_json(
        {
            **parts,
            "unit": without_line_markers(unit).decode(errors="replace"),
            "inputs": [i.digest() for i in (*program.inputs, *program.hidden)],
            "compiler": tools.version,
            "target": "x86_64",
        }
    )
    return LlvmProblem(program=program, tools=tools, unit=unit, knobs=knobs, missing_knobs=missing, id=identity)
