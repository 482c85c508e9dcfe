"""Judges a candidate: the same outputs byte for byte, then paired timing against the -O3 build."""

from dataclasses import dataclass, field

from core.errors import BadInput, InfraError
from core.measure.calibrate import Calibration, control, summarise
from core.measure.comparison import Comparison, Stage
from core.measure.processes import WholeProcesses
from core.measure.samples import ArmFailed
from core.measure.service import MeasureSettings
from core.records import Digest, digest_bytes, digest_json
from core.sandbox.policy import Limits
from core.search.contract import Candidate, Problem, Services, Verdict
from llvm_tuning.baseline import Baseline
from llvm_tuning.observe import MEMORY_BYTES, difference, observe
from llvm_tuning.problem import LlvmProblem
from llvm_tuning.toolchain.link import LAYOUT_SEED, Layouts, link_layouts

FIRST_LOOK = 6
"""Layouts that are linked before the timing begins; the others when a later look needs them."""

LAYOUTS: dict[Stage, int] = {"screen": 6, "prove": 20}
"""Link layouts of each arm by stage: the measurement gives each block one of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LlvmJudge:
    """Compares outputs and run times with those of the -O3 build of the same program."""

    baseline: Baseline
    run_timeout_s: float
    measure: MeasureSettings
    """How candidates are timed: part of a trial's key."""
    layout_seed: int = LAYOUT_SEED
    _linked: dict[Digest, Layouts] = field(default_factory=dict, repr=False)

    @property
    def settings(self) -> Digest:
        """Digest of all that decides a judgement besides problem, candidate and error rate."""
        timing = self.measure.model_dump(mode="json", exclude={"alpha", "lock", "lock_wait_s"})
        return digest_json({"run_timeout_s": self.run_timeout_s, "measure": timing, "layouts": dict(LAYOUTS)})

    def check(self, p: Problem, c: Candidate, stage: Stage, seed: int, s: Services) -> Verdict:
        """Run the candidate on the tuning inputs (at `prove` on the hidden ones too) and compare all that it shows."""
        assert isinstance(p, LlvmProblem)
        executable = self._layouts(p, s.store.get(c.artefact), s)[0]
        checks = 0
        for given in (*p.program.inputs, *(p.program.hidden if stage == "prove" else ())):
            seen = observe(s.box, p.program, executable, given, self.run_timeout_s)
            if isinstance(seen, Verdict):
                return seen
            found = difference(p.program, self.baseline.shown[given.digest()], seen)
            if found is not None:
                return Verdict(accepted=False, reason="wrong_output", message=found, checks=checks)
            checks += len(p.program.compared)
        return Verdict(accepted=True, checks=checks)

    def compare(
        self, p: Problem, base: Candidate, c: Candidate, stage: Stage, seed: int, s: Services, *, alpha: float
    ) -> Comparison | Verdict:
        """Time both builds; a candidate that misbehaves meanwhile is rejected."""
        assert isinstance(p, LlvmProblem)
        source = self._source(p, s.store.get(c.artefact), stage, s)
        try:
            return s.measure.compare(source, baseline=base.key, candidate=c.key, stage=stage, seed=seed, alpha=alpha)
        except ArmFailed as failure:
            if failure.arm == 0:
                raise InfraError(f"The baseline no longer behaves as it did: {failure}") from failure
            return Verdict(accepted=False, reason=failure.reason, message=str(failure))

    def control(self, p: LlvmProblem, s: Services) -> Calibration:
        """Compare the baseline with itself at `screen`: once the same executables, once other link layouts of it.

        Raises:
            BadInput: the program does not do the same in every run.
        """
        whole = self._source(p, self.baseline.code, "prove", s)
        key = digest_bytes(self.baseline.code)
        try:
            done = tuple(
                s.measure.compare(source, baseline=key, candidate=key, stage="screen", seed=seed)
                for seed, source in enumerate((self._source(p, self.baseline.code, "screen", s), control(whole)))
            )
        except ArmFailed as failure:
            raise BadInput(
                f"{p.name}, built with plain -O3, does not do the same in every run. {failure.what}",
                "Take times, addresses, process ids and unseeded randomness out of what it prints.",
            ) from failure
        return summarise(done, alpha=s.measure.settings.alpha)

    def _source(self, p: LlvmProblem, code: bytes, stage: Stage, s: Services) -> WholeProcesses:
        """Return the baseline and an object as arms; at `prove` on the hidden input where the program has one."""
        given = p.program.hidden[0] if stage == "prove" and p.program.hidden else p.program.inputs[0]
        for code_of_arm in (self.baseline.code, code):
            # Linked before the machine-wide lock is taken and the time for samples runs.
            self._layouts(p, code_of_arm, s)[FIRST_LOOK - 1]
        return WholeProcesses(
            baseline=self._layouts(p, self.baseline.code, s).first(LAYOUTS[stage]),
            candidate=self._layouts(p, code, s).first(LAYOUTS[stage]),
            args=given.args,
            stdin=given.stdin,
            files=given.files,
            expected=self.baseline.shown[given.digest()].stdout,
            timeout_s=self.run_timeout_s,
            limits=Limits(memory_bytes=MEMORY_BYTES),
        )

    def _layouts(self, p: LlvmProblem, code: bytes, s: Services) -> Layouts:
        """Return an object's executables; the baseline's and the latest candidate's are kept."""
        this, base = digest_bytes(code), digest_bytes(self.baseline.code)
        for other in self._linked.keys() - {this, base}:
            del self._linked[other]
        if this not in self._linked:

            def link(first: int, count: int) -> tuple[bytes, ...]:
                return link_layouts(s.box, p.tools, p.program, code, first=first, count=count, seed=self.layout_seed)

            self._linked[this] = Layouts(link, LAYOUTS["prove"])
        return self._linked[this]
