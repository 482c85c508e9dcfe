"""`complab llvm suite`: check that a suite of programs holds what it promises."""

from pathlib import Path

import click

from core.console import console, notices, write_json
from core.options import json_option


@click.group()
def suite() -> None:
    """Suites of programs to tune: a YAML file with the sources beside it."""


@suite.command()
@click.argument("programs", nargs=-1)
@click.option("--file", type=click.Path(path_type=Path), help="The suite's YAML file.  [default: the shipped suite]")
@json_option
def check(programs: tuple[str, ...], file: Path | None, json_to: str | None) -> None:
    """Build, run and mutate the PROGRAMS of a suite (all, unless named); everything runs in the sandbox.

    A program must build, print what is recorded at -O0 and -O3, repeat itself, and print something else when a
    kernel is emptied. Ends with 1 when one does not.
    """
    from rich.progress import track

    from core.sandbox.service import open_sandbox
    from llvm_tuning.suite.catalogue import SHIPPED, load_suite, select
    from llvm_tuning.suite.check import Finding, check_program, confined
    from llvm_tuning.toolchain.discover import discover

    loaded = load_suite(file or SHIPPED)
    chosen = select(loaded, names=programs) if programs else loaded.programs
    tools, run = discover(), confined(open_sandbox())
    findings: list[Finding] = []
    for program in track(chosen, "checking", console=notices(), transient=True):
        findings += check_program(loaded, program, tools, run)
    if json_to is not None:
        found = [finding.model_dump(mode="json") for finding in findings]
        write_json({"suite": str(loaded.path), "checked": [p.name for p in chosen], "findings": found}, json_to)
    else:
        for finding in findings:
            console().print(f"{finding.program}: {finding.kind}: {finding.message}", markup=False)
        wrong = len({finding.program for finding in findings})
        console().print(f"{len(chosen)} programs checked, {wrong} with findings.")
    if findings:
        raise SystemExit(1)
