"""`make demo`: two shipped programs, three advisors, the same budget; everything on embedded defaults."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from core.console import console
from experiments.cli import Entry, run
from llvm_tuning.configs import AdvisorName, MeasureConfig, TuneConfig

if TYPE_CHECKING:
    from core.report.compare import Found

PROGRAMS = ("matmul_int8", "two_matmuls")
ADVISORS: tuple[AdvisorName, ...] = ("expert", "llm", "random")
BUDGET = 6
QUICK = MeasureConfig(screen_s=0.6, prove_s=3.0)
"""Short samples: the demo's gains are large. What is called faster errs no more often; small gains stay undecided."""


@click.command()
@click.option("--runs", default="runs", show_default=True, help="Directory that holds all runs.")
@click.option("--new", is_flag=True, help="Search again instead of showing the finished runs.")
def demo(runs: str, new: bool) -> None:
    """Tune the shipped programs with each advisor and compare what they found."""
    from core.report.compare import Found, remarks, write_comparison
    from core.report.page import sentence
    from llvm_tuning.cli import tune_and_report

    entries = []
    for program in PROGRAMS:
        for advisor in ADVISORS:
            console().rule(f"{program}, {advisor}, {BUDGET} evaluations")
            name = f"demo-{program}-{advisor}"
            config = TuneConfig(
                program=program, advisor=advisor, budget=BUDGET, runs=runs, name=name, new=new, measure=QUICK
            )
            tuned = tune_and_report(config)
            console().print(sentence(tuned.outcome))
            entries.append(
                Found(
                    problem=program,
                    advisor=advisor,
                    outcome=tuned.outcome,
                    setting=" ".join(tuned.flags),
                    run=tuned.run,
                )
            )
    page = write_comparison("Demo: LLVM options for two programs", entries, Path(runs) / "demo" / "index.html")
    _table(entries)
    for line in remarks(entries):
        console().print(line)
    console().print(f"Pictures and all numbers: {page}")
    console().print("The same command shows these runs again; `make demo NEW=1` searches afresh.")


def _table(entries: "list[Found]") -> None:
    from rich.table import Table

    from core.report.page import decision_text

    table = Table("program", "advisor", "proven against clang -O3", "kept flags", box=None, header_style="bold")
    for e in entries:
        proof = e.outcome.proof
        result = decision_text(proof) if proof is not None else f"-O3 kept: {e.outcome.fallback}"
        table.add_row(e.problem, e.advisor, result, e.setting)
    console().print(table)


def main() -> None:
    """Run the demo and exit with complab's codes."""
    table = {"demo": Entry(target="experiments.demo:demo", help="Compare three advisors on two programs.")}
    sys.exit(run(["demo", *sys.argv[1:]], table))


if __name__ == "__main__":
    main()
