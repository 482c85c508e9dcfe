"""Materializes settings: a compiled object file is the candidate."""

from dataclasses import dataclass, field

from core.records import Digest
from core.sandbox.policy import Sandbox
from core.search.contract import Candidate, Problem, Proposal, Reason, Services, Verdict
from llvm_tuning.problem import LlvmProblem
from llvm_tuning.toolchain.build import Built, compile_object
from llvm_tuning.toolchain.knobs import PIPELINE, driver_flags, exactness, flags, opt_flags
from llvm_tuning.toolchain.routes import codegen, frontend_bitcode, optimize


@dataclass(frozen=True, slots=True)
class LlvmCompiler:
    """Compiles the program under a proposal's options and, when it names one, its pass pipeline; in the sandbox."""

    _bitcode: dict[tuple[Digest, tuple[str, ...]], bytes] = field(default_factory=dict)
    """The front end's output per problem and driver options: the same for every pipeline."""

    def materialize(self, p: Problem, x: Proposal, s: Services) -> Candidate | Verdict:
        """Return the object file as a candidate; settings with the same machine code are the same candidate."""
        assert isinstance(p, LlvmProblem)
        pipeline = x.payload.get(PIPELINE)
        if pipeline is None:
            built = compile_object(s.box, p.tools, p.program, p.unit, flags(p.knobs, x.payload))
        else:
            built = self._staged(p, x, str(pipeline), s.box)
        if built.code is None:
            reason: Reason = "timeout" if built.timed_out else "compile_error"
            return Verdict(accepted=False, reason=reason, message=built.message)
        return Candidate(
            problem=p.id,
            proposal=x.digest(),
            target=p.target,
            artefact=s.store.put(built.code),
            provenance={
                "route": "clang" if pipeline is None else "opt",
                "flags": list(flags(p.knobs, x.payload)),
                "compiler": p.tools.version,
            },
            exactness=exactness(p.knobs, x.payload),
        )

    def _staged(self, p: LlvmProblem, x: Proposal, pipeline: str, box: Sandbox) -> Built:
        driver = driver_flags(p.knobs, x.payload)
        key = (p.id, driver)
        if key not in self._bitcode:
            self._bitcode[key] = frontend_bitcode(box, p.tools, p.program, p.unit, driver)
        optimized = optimize(box, p.tools, self._bitcode[key], pipeline, opt_flags(p.knobs, x.payload))
        if optimized.code is None:
            return optimized
        # Code generation gets all options: the target's cost hooks, which IR passes ask too, read some of theirs.
        return codegen(box, p.tools, p.program, optimized.code, flags(p.knobs, x.payload))
