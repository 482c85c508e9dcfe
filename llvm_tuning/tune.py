"""The main job: tune one program, with everything recorded in a run."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

from core.console import notices
from core.errors import BadInput
from core.llm.client import Client
from core.llm.launch import open_model, worst_case
from core.machine.environment import environment
from core.measure.service import Measure, MeasureSettings
from core.records import Json, Record
from core.runs.run import Run, read_record
from core.sandbox.service import open_sandbox
from core.search.advisors.bandit import BanditAdvisor
from core.search.advisors.bayesian import BayesianAdvisor
from core.search.advisors.evolution import EvolutionAdvisor
from core.search.advisors.hybrid import HybridAdvisor
from core.search.advisors.random import RandomAdvisor
from core.search.contract import Advisor, Budget, Candidate, Outcome, Proposal, Services, Trial
from core.search.docket import Watch
from core.search.loop import Terms, search
from core.search.minimal import FILE, Minimal, minimise
from core.search.services import Doors
from llvm_tuning.advisors.expert import expert
from llvm_tuning.advisors.llm import LlmAdvisor, style_of
from llvm_tuning.baseline import establish
from llvm_tuning.compiler import LlvmCompiler
from llvm_tuning.configs import TuneConfig
from llvm_tuning.judge import LlvmJudge
from llvm_tuning.problem import LlvmProblem, make_problem
from llvm_tuning.program import Program, load_program
from llvm_tuning.toolchain import capabilities
from llvm_tuning.toolchain.discover import discover
from llvm_tuning.toolchain.knobs import PIPELINE, Knob, driver_flags, flags, opt_flags
from llvm_tuning.toolchain.routes import opt_arguments

CONTROL = "aa.json"
"""Where a run keeps its A/A controls."""
WARNINGS = "warnings.json"
"""Where a run keeps what is doubtful about its program: undefined behaviour that does not change the output."""
PROMPT_BYTES = 38_000
"""Longest prompt of the llm advisor, for the estimate before a paid launch."""
ANSWER_TOKENS = 4_000


class Tuned(Record):
    """What tuning a program came to."""

    program: str
    advisor: str
    outcome: Outcome
    flags: tuple[str, ...]
    """The proven compiler flags; none when -O3 was kept."""
    pipeline: str | None = None
    """The proven pass pipeline, when there is one."""
    command: str
    """The command line that builds the kept program."""
    run: str
    """The run's directory."""
    capabilities: dict[str, Json]
    """What the toolchain could do, in short; the run's capabilities.json has it all."""

    def summary(self) -> dict[str, Json]:
        """Return what `--json` prints."""
        proof = self.outcome.proof
        return {
            "program": self.program,
            "advisor": self.advisor,
            "ratio": proof.ratio if proof else 1.0,
            "ci_low": proof.low if proof else None,
            "ci_high": proof.high if proof else None,
            "decision": proof.decision if proof else "kept the baseline",
            "fallback": self.outcome.fallback,
            "evaluations": self.outcome.spent.evaluations,
            "flags": list(self.flags),
            "pipeline": self.pipeline,
            "command": self.command,
            "run": self.run,
            "capabilities": self.capabilities,
        }


def run(config: TuneConfig, watch: Watch) -> Tuned:
    """Tune a program as configured, or go on where the same configuration was interrupted.

    Args:
        config: what to tune and what may be spent.
        watch: told of every step.

    Raises:
        BadInput: the program, its inputs, a flag or the model cannot be used.
        ComplabError: a tool is missing, or the machine refuses.
    """
    if config.budget < 1 or config.batch < 1:
        raise BadInput("The budget and the batch must be at least 1.", "Give --budget N with N above 0.")
    chosen = config.measure
    if not 0 < chosen.alpha < 1 or chosen.margin < 0:
        raise BadInput(
            f"--alpha is {chosen.alpha} and --margin {chosen.margin}.",
            "Alpha lies between 0 and 1, for example 0.01; the margin is not negative.",
        )
    if min(chosen.screen_s, chosen.prove_s, config.run_timeout_s) <= 0:
        raise BadInput("measure.screen_s, measure.prove_s and --timeout are seconds.", "Give numbers above 0.")
    box = open_sandbox()
    problem = make_problem(program_of(config), discover(), config.semantics)
    able = capabilities.capabilities(problem.tools, config.semantics)
    settings = measure_settings(config)
    name = config.name or f"{problem.name}-{config.advisor}"
    baseline = establish(box, problem, config.run_timeout_s)
    for warning in baseline.warnings:
        notices().print(f"warning: {problem.name}: {warning}", markup=False)
    with Run(
        Path(config.runs),
        "llvm",
        name,
        _identity(config, problem),
        seed=config.seed,
        env=environment().model_dump(mode="json"),
        new=config.new,
    ) as record:
        client = open_model(config.model, record.exchanges) if config.advisor == "llm" else None
        try:
            services = Doors(box=box, store=record.store, measure=Measure(box, record.store, settings), llm=client)
            judge = LlvmJudge(baseline=baseline, run_timeout_s=config.run_timeout_s, measure=settings)
            record.save(capabilities.FILE, able.model_dump(mode="json"))
            record.save(WARNINGS, list(baseline.warnings))
            if not (record.directory / CONTROL).exists():
                record.save(CONTROL, judge.control(problem, services).model_dump(mode="json"))
            outcome = search(
                problem,
                _advisor(config, client, problem.knobs),
                LlvmCompiler(),
                judge,
                Budget(evaluations=config.budget),
                record,
                services,
                terms=Terms(batch=config.batch, alpha=config.measure.alpha),
                watch=watch,
            )
        finally:
            if client is not None:
                client.close()
        payload = _needed(problem, outcome, record, services)
        return Tuned(
            program=problem.name,
            advisor=config.advisor,
            outcome=outcome,
            flags=flags(problem.knobs, payload),
            pipeline=str(payload[PIPELINE]) if PIPELINE in payload else None,
            command=build_command(problem, payload),
            run=str(record.directory),
            capabilities=able.summary(),
        )


def program_of(config: TuneConfig) -> Program:
    """Return the program that a configuration names.

    Raises:
        BadInput: it, an input or a flag cannot be used.
    """
    return load_program(
        config.program,
        cflags=config.cflags,
        args=config.args,
        stdin=config.stdin,
        files=config.input,
        outputs=config.output,
        check_stderr=config.check_stderr,
    )


def measure_settings(config: TuneConfig) -> MeasureSettings:
    """Return how a configuration has candidates timed."""
    chosen, usual = config.measure, MeasureSettings()
    return MeasureSettings(
        alpha=chosen.alpha,
        margin=chosen.margin,
        screen=usual.screen.model_copy(update={"wall_s": chosen.screen_s}),
        prove=usual.prove.model_copy(update={"wall_s": chosen.prove_s}),
    )


def _identity(config: TuneConfig, problem: LlvmProblem) -> dict[str, Json]:
    """Return what makes two runs the same run: the problem's content and all that decides a result.

    It is also what `config.yaml` holds, so that a run can be repeated from its own files.
    """
    chosen: dict[str, Json] = {
        "problem": problem.id,
        "program": config.program,
        "cflags": config.cflags,
        "args": config.args,
        "stdin": config.stdin,
        "input": list(config.input),
        "output": list(config.output),
        "check_stderr": config.check_stderr,
        "semantics": config.semantics,
        "advisor": config.advisor,
        "budget": config.budget,
        "batch": config.batch,
        "run_timeout_s": config.run_timeout_s,
        "measure": asdict(config.measure),
    }
    if config.advisor == "llm":
        chosen |= {"model": config.model.name, "endpoint": _endpoint(config.model.api_base)}
    return chosen


def _endpoint(address: str | None) -> str | None:
    """Return an address without the user and password that may stand in it: a run's files hold no secrets."""
    if address is None:
        return None
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _advisor(config: TuneConfig, client: Client | None, knobs: tuple[Knob, ...]) -> Advisor:
    match config.advisor:
        case "expert":
            return expert()
        case "hybrid":
            return HybridAdvisor(opening=expert())
        case "bandit":
            groups: dict[str, list[str]] = {}
            for knob in knobs:
                groups.setdefault(knob.group, []).append(knob.name)
            return BanditAdvisor(groups=groups)
        case "bayesian":
            return BayesianAdvisor()
        case "random":
            return RandomAdvisor()
        case "evolution":
            return EvolutionAdvisor()
        case "llm":
            assert client is not None
            return LlmAdvisor(style_of(client))


def launch_cost(config: TuneConfig) -> str | None:
    """Return what the model of a launch may cost at most, in one sentence; None when nothing is paid.

    Raises:
        BadInput: the model is unknown, or costs money while --max-usd is 0.
    """
    if config.advisor != "llm":
        return None
    calls = -(-4 * config.budget // config.batch)
    return worst_case(config.model, calls=calls, prompt_bytes=PROMPT_BYTES, max_tokens=ANSWER_TOKENS)


def _proven(problem: LlvmProblem, outcome: Outcome, trials: tuple[Trial, ...]) -> Mapping[str, Json]:
    """Return the payload that was kept; the default's when -O3 was."""
    if outcome.trial is None:
        return problem.default.payload
    return next(t for t in trials if t.problem == problem.id and t.index == outcome.trial).proposal.payload


def _needed(problem: LlvmProblem, outcome: Outcome, record: Run, s: Services) -> Mapping[str, Json]:
    """Return the kept payload without the options whose absence gives the same machine code, and record it."""
    payload = _proven(problem, outcome, record.trials)
    if outcome.trial is None:
        return payload
    known = read_record(record.directory / FILE, Minimal)
    if known is None:
        compiler = LlvmCompiler()

        def same(fewer: dict[str, Json]) -> bool:
            made = compiler.materialize(problem, Proposal(payload=fewer), s)
            return isinstance(made, Candidate) and made.artefact == outcome.chosen.artefact

        known = minimise(payload, problem.default.payload, same)
        record.save(FILE, known.model_dump(mode="json"))
    return known.payload


def build_command(problem: LlvmProblem, payload: Mapping[str, Json]) -> str:
    """Return the command line that builds the program with these settings; three stages when there is a pipeline."""
    program, words = problem.program, flags(problem.knobs, payload)
    driver = (*problem.tools.compiler(program.language), "-O3", *program.cflags)
    if PIPELINE not in payload:
        return shlex.join([*driver, *words, str(program.path)])
    name, early = program.name, driver_flags(problem.knobs, payload)
    no_passes = ("-Xclang", "-disable-llvm-passes")
    passes = opt_arguments(str(payload[PIPELINE]), opt_flags(problem.knobs, payload))
    stages = (
        (*driver, *early, *no_passes, "-emit-llvm", "-c", str(program.path), "-o", f"{name}.bc"),
        (problem.tools.tool("opt"), *passes, f"{name}.bc", "-o", f"{name}.opt.bc"),
        (*driver, *words, *no_passes, f"{name}.opt.bc"),
    )
    return " && ".join(map(shlex.join, stages))
