"""`complab report`: the HTML report of a run."""

from pathlib import Path

import click

from core.console import console


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
def report(run: Path) -> None:
    """Write the HTML report of RUN, a directory of `complab runs list`, and say where it is."""
    from core.report.page import write_report

    console().print(str(write_report(run)), soft_wrap=True)
