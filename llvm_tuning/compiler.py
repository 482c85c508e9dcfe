"""Materializes knob settings: a compiled object file is the candidate."""

from core.search.contract import Candidate, Problem, Proposal, Reason, Services, Verdict
from llvm_tuning.problem import LlvmProblem
from llvm_tuning.toolchain.build import compile_object
from llvm_tuning.toolchain.knobs import flags


class LlvmCompiler:
    """Compiles the program under a proposal's options, inside the sandbox."""

    def materialize(self, p: Problem, x: Proposal, s: Services) -> Candidate | Verdict:
        """Return the object file as a candidate; settings with the same machine code are the same candidate."""
        assert isinstance(p, LlvmProblem)
        words = flags(p.knobs, x.payload)
        built = compile_object(s.box, p.tools, p.program, p.unit, words)
        if built.code is None:
            reason: Reason = "timeout" if built.timed_out else "compile_error"
            return Verdict(accepted=False, reason=reason, message=built.message)
        return Candidate(
            problem=p.id,
            proposal=x.digest(),
            target=p.target,
            artefact=s.store.put(built.code),
            provenance={"flags": list(words), "compiler": p.tools.version},
        )
