"""`complab llvm repair`: makes a pass pipeline legal for the installed opt and says what that took."""

from typing import TextIO

import click

from core.console import notices, write_json
from core.options import json_option


@click.command()
@click.argument("text", type=click.File("r", errors="replace"), default="-")
@json_option
def repair(text: TextIO, json_to: str | None) -> None:
    """Read a pass pipeline from the file TEXT (default: stdin) and print the nearest one that opt runs.

    What was dropped or changed goes to stderr. Exit code 1: nothing of it was usable.
    """
    from core.errors import ComplabError
    from core.sandbox.service import open_sandbox
    from llvm_tuning.repair.preflight import repair_for
    from llvm_tuning.toolchain.discover import discover

    done = repair_for(open_sandbox(), discover(), text.read().strip())
    if not done.pipeline.items:
        why = "; ".join(f"{d.item}: {d.why}" for d in done.dropped[:5])
        raise ComplabError(
            f"Nothing of this is a legal pipeline: {why or 'it is empty'}.", "`opt --print-passes` lists the passes."
        )
    if json_to is not None:
        dropped, changed = ([r.model_dump() for r in records] for records in (done.dropped, done.changed))
        write_json({"pipeline": done.pipeline.text(), "dropped": dropped, "changed": changed}, json_to)
        return
    for d in done.dropped:
        notices().print(f"dropped {d.item}: {d.why}", markup=False)
    for c in done.changed:
        notices().print(f"changed {c.item} to {c.became}: {c.why}", markup=False)
    click.echo(done.pipeline.text())
