"""Repeats the proof of a finished run: built again, on this machine, now, with other seeds and other link layouts."""

import secrets
import tempfile
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from core.errors import BadInput
from core.measure.comparison import Comparison
from core.measure.service import Measure
from core.records import Json, Record
from core.runs.record import find_run
from core.runs.run import read_record
from core.runs.store import Store
from core.sandbox.service import open_sandbox
from core.search.contract import Candidate, Proposal, Verdict
from core.search.minimal import FILE, Minimal
from core.search.services import Doors
from llvm_tuning.baseline import establish
from llvm_tuning.compiler import LlvmCompiler
from llvm_tuning.configs import MeasureConfig, TuneConfig
from llvm_tuning.judge import LlvmJudge
from llvm_tuning.problem import make_problem
from llvm_tuning.toolchain.discover import discover
from llvm_tuning.tune import measure_settings, program_of


class Verified(Record):
    """What repeating a proof came to."""

    run: str
    claimed: Comparison
    verdict: Verdict
    """Whether the outputs are still equal, hidden inputs included."""
    again: Comparison | None
    """The comparison of now; None when the verdict rejects."""
    changed: tuple[str, ...]
    """What is not as it was when the run was made."""

    @property
    def holds(self) -> bool:
        """Whether the kept setting is right and proven faster once more."""
        return self.verdict.accepted and self.again is not None and self.again.decision == "faster"


def verify(name: str, root: Path) -> Verified:
    """Repeat the proof of a run's kept setting.

    Args:
        name: the run: a directory, or the start of its name.
        root: the directory of all runs.

    Raises:
        BadInput: there is no such finished run of the tuner, it kept -O3, or its program is gone.
    """
    recorded = find_run(root, name)
    outcome = recorded.outcome
    if recorded.info.system != "llvm" or outcome is None:
        raise BadInput(f"{recorded.directory} is no finished run of the LLVM tuner.", "`complab runs list` shows them.")
    kept = read_record(recorded.directory / FILE, Minimal)
    if outcome.proof is None or kept is None:
        raise BadInput(
            f"{recorded.directory} kept -O3: there is nothing to verify.", "Verify a run that kept a setting."
        )
    made: dict[str, Json] = yaml.safe_load((recorded.directory / "config.yaml").read_text(encoding="utf-8"))
    config = _configuration(made)
    box, tools = open_sandbox(), discover()
    problem = make_problem(program_of(config), tools, config.semantics)
    settings, seed = measure_settings(config), secrets.randbelow(1 << 30)
    changed = () if problem.id == made["problem"] else ("the program, its inputs or the compiler",)
    with tempfile.TemporaryDirectory(prefix="complab-verify-") as folder:
        store = Store(Path(folder))
        services = Doors(box=box, store=store, measure=Measure(box, store, settings), llm=None)
        judge = LlvmJudge(
            baseline=establish(box, problem, config.run_timeout_s),
            run_timeout_s=config.run_timeout_s,
            measure=settings,
            layout_seed=seed,
        )
        compiler = LlvmCompiler()
        base = compiler.materialize(problem, problem.default, services)
        candidate = compiler.materialize(problem, Proposal(payload=kept.payload), services)
        again: Comparison | Verdict | None = None
        if isinstance(candidate, Candidate) and isinstance(base, Candidate):
            if candidate.artefact != outcome.chosen.artefact and not changed:
                changed = ("the machine code of the same setting",)
            verdict = judge.check(problem, candidate, "prove", seed, services)
            if verdict.accepted:
                again = judge.compare(problem, base, candidate, "prove", seed, services, alpha=settings.alpha)
        else:
            rejected = candidate if isinstance(candidate, Verdict) else base
            assert isinstance(rejected, Verdict)
            verdict = rejected
    if isinstance(again, Verdict):
        verdict, again = again, None
    return Verified(run=str(recorded.directory), claimed=outcome.proof, verdict=verdict, again=again, changed=changed)


def _configuration(made: Mapping[str, Any]) -> TuneConfig:
    """Return a run's configuration as far as its `config.yaml` has it: all that decides how it is judged."""
    known = {field.name for field in fields(TuneConfig)} - {"model", "measure"}
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in made.items() if k in known}
    return TuneConfig(**values, measure=MeasureConfig(**made["measure"]))
