"""`complab tune` and `complab llvm`: the command line of the LLVM tuner."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from core.config import load
from core.console import console, notices, print_table, write_json
from core.options import config_options, json_option
from core.runs.cli import root_option
from llvm_tuning.configs import TuneConfig
from llvm_tuning.evidence.cli import evidence
from llvm_tuning.repair.cli import repair
from llvm_tuning.suite.cli import suite
from llvm_tuning.toolchain import cli as toolchain

if TYPE_CHECKING:
    from core.measure.comparison import Comparison
    from llvm_tuning.tune import Tuned


@click.command()
@config_options(TuneConfig)
@json_option
def tune(overrides: list[str], json_to: str | None) -> None:
    """Make a C or C++ program faster by LLVM options, with proof.

    PROGRAM is a C or C++ file, or the name of a shipped program (`complab llvm programs`). The baseline is clang -O3; a
    setting is kept only if the program's output stays equal byte for byte and it is proven faster on fresh samples.
    """
    tuned = tune_and_report(load("tune", overrides, TuneConfig))
    if json_to is not None:
        write_json(tuned.summary(), json_to)
    if json_to != "-":
        show(tuned)


def tune_and_report(config: TuneConfig) -> "Tuned":
    """Tune as configured, with progress on stderr, and write the run's HTML report."""
    from core.report.page import write_report
    from core.report.progress import SearchProgress
    from llvm_tuning.tune import launch_cost, run

    cost = launch_cost(config)
    if cost is not None:
        notices().print(cost)
    with SearchProgress(notices(), config.budget) as progress:
        tuned = run(config, progress.show)
    write_report(Path(tuned.run))
    return tuned


def launch(config: TuneConfig) -> None:
    """Tune as configured and show the result: what `python -m experiments.launch` runs."""
    show(tune_and_report(config))


@click.command("verify")
@click.argument("run")
@root_option
@click.option("--fail-on-regression", is_flag=True, help="End with 1 unless the setting is proven faster once more.")
@json_option
def verify_command(run: str, root: Path, fail_on_regression: bool, json_to: str | None) -> None:
    """Repeat the proof of a RUN on this machine, now: a fresh build, other seeds, other link layouts."""
    from llvm_tuning.verify import verify

    found = verify(run, root)
    if json_to is not None:
        write_json({**found.model_dump(mode="json"), "holds": found.holds}, json_to)
    if json_to != "-":
        for what in found.changed:
            console().print(f"changed since: {what}", markup=False)
        console().print(f"claimed {_interval(found.claimed)}", markup=False)
        now = f"{found.verdict.reason}: {found.verdict.message}" if found.again is None else _interval(found.again)
        console().print(f"now     {now}: {'holds' if found.holds else 'does not hold'}", markup=False)
    if fail_on_regression and not found.holds:
        raise SystemExit(1)


def _interval(c: "Comparison") -> str:
    return f"{c.ratio:.3f}x [{c.low:.3f}, {c.high:.3f}] at {c.level:.1%}"


def show(tuned: "Tuned") -> None:
    """Print what tuning came to: the decision, the command line to paste, where the report is."""
    from rich.table import Table

    from core.report.page import sentence

    table = Table(show_header=False, box=None)
    table.add_row("program", tuned.program)
    table.add_row("advisor", tuned.advisor)
    table.add_row("result", sentence(tuned.outcome))
    table.add_row("build it", tuned.command)
    table.add_row("evaluations", str(tuned.outcome.spent.evaluations))
    table.add_row("report", f"{tuned.run}/report/index.html")
    console().print(table)


@click.group()
def llvm() -> None:
    """Look at what the LLVM tuner works with."""


llvm.add_command(suite)
llvm.add_command(verify_command)
llvm.add_command(repair)
llvm.add_command(toolchain.tools)
llvm.add_command(toolchain.knobs)
llvm.add_command(toolchain.selftest)


@llvm.command()
@json_option
def programs(json_to: str | None) -> None:
    """List the shipped programs."""
    from llvm_tuning.program import shipped_programs

    listed = shipped_programs()
    if json_to is not None:
        write_json({"programs": [{"name": n, "about": about} for n, about in listed.items()]}, json_to)
        return
    print_table(("program", "about"), list(listed.items()))


llvm.add_command(evidence)
