"""`complab doctor`: what this machine has, lacks and could not prove."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from core.cache import cache_dir
from core.console import console, write_json
from core.errors import ComplabError
from core.machine.doctor import Diagnosis, Row, State, machine_rows
from core.machine.tools import package_version, pip_command
from core.options import json_option

if TYPE_CHECKING:
    from core.sandbox.policy import Guarantee
    from core.sandbox.probe import ProbeReport, Trial

_STYLES = {"ok": "green", "missing": "red", "unproven": "yellow"}


@click.command()
@json_option
@click.pass_context
def doctor(ctx: click.Context, json_to: str | None) -> None:
    """Say what this machine has, lacks and could not prove, and what installs it.

    Exit code 1 when `make demo` cannot run here.
    """
    diagnosis = examine()
    if json_to is None:
        _print(diagnosis)
    else:
        ready = not diagnosis.lacking
        write_json({"demo_ready": ready, **diagnosis.model_dump(mode="json")}, json_to)
    ctx.exit(1 if diagnosis.lacking else 0)


def examine() -> Diagnosis:
    """Look at everything. The sandbox's guarantees are tried here and now, which takes seconds."""
    return Diagnosis(rows=(*machine_rows(Path("runs"), cache_dir()), *_sandbox_rows(), *_model_rows()))


def _sandbox_rows() -> Iterable[Row]:
    from core.sandbox.probe import probe

    return guarantee_rows(probe())


def guarantee_rows(reports: Mapping[str, "ProbeReport"]) -> Iterable[Row]:
    """Yield a row for each backend of the sandbox, and for each guarantee under the backend that proves the most.

    Programs of the toolchain profile are what tuning runs, so its guarantees are the ones that count.
    """
    from core.sandbox.policy import Guarantee

    tried = {name: report.profiles["toolchain"] for name, report in reports.items() if "toolchain" in report.profiles}
    for name, profile in tried.items():
        whole = profile.guarantees == frozenset(Guarantee)
        found = profile.problem or f"proves {len(profile.guarantees)} of {len(Guarantee)} guarantees"
        state: State = "ok" if whole else "missing" if profile.problem else "unproven"
        yield Row(group="sandbox", name=name, state=state, found=found, fix="" if whole else reports[name].hint)
    best = max(tried, key=lambda name: len(tried[name].guarantees))
    for guarantee in Guarantee:
        trials = [trial for trial in tried[best].trials if trial.guarantee == guarantee]
        yield _guarantee_row(guarantee, best, trials, fix=reports[best].hint)


def _guarantee_row(guarantee: "Guarantee", backend: str, trials: Sequence["Trial"], fix: str) -> Row:
    escaped = [trial for trial in trials if not trial.held]
    telling = [trial for trial in trials if trial.control]
    state: State
    if escaped:
        state, found = "missing", f"{backend} does not hold it: {escaped[0].what}: {escaped[0].inside}"
    elif telling:
        plural = "s" if len(telling) > 1 else ""
        state, found = "ok", f"{backend} stopped {len(telling)} attempt{plural} that would have succeeded"
    else:
        state, found = "unproven", f"no attempt under {backend} could have failed, so none proves it"
    lacking = state != "ok"
    return Row(group="sandbox", name=guarantee.value, state=state, found=found, fix=fix if lacking else "", needed=True)


def _model_rows() -> Iterable[Row]:
    from core.llm.adapters.weights import packaged_weights

    version = package_version("xllamacpp")
    yield Row(
        group="language models",
        name="xllamacpp",
        state="ok" if version else "missing",
        found=version or "not installed: local models cannot run",
        fix="" if version else pip_command("local"),
        needed=True,
    )
    try:
        weights = packaged_weights()
    except ComplabError as error:
        yield Row(
            group="language models", name="local model", state="missing", found=error.what, fix=error.fix, needed=True
        )
    else:
        found = f"{weights.path}: sha256 {weights.sha256[:12]}... is right"
        yield Row(group="language models", name="local model", state="ok", found=found, needed=True)
    litellm = package_version("litellm")
    yield Row(
        group="language models",
        name="litellm",
        state="ok" if litellm else "missing",
        found=litellm or "not installed: hosted models need it, local ones and the demo do not",
        fix="" if litellm else pip_command("llm"),
    )


def _print(diagnosis: Diagnosis) -> None:
    from rich.text import Text

    out = console()
    for group, rows in groupby(diagnosis.rows, key=lambda row: row.group):
        out.print(Text(group, style="bold"))
        for row in rows:
            line = Text.assemble("  ", (f"{row.state:<10}", _STYLES[row.state]), f"{row.name:<18}", row.found)
            out.print(line, soft_wrap=True)  # not broken, so that what is there can be copied
            if row.fix:
                out.print(Text(f"{'':<30}-> {row.fix}"), soft_wrap=True)
    unproven = [row.name for row in diagnosis.rows if row.state == "unproven"]
    if unproven:
        out.print(f"Could not be proven on this machine: {', '.join(unproven)}.", markup=False)
    if diagnosis.lacking:
        out.print(f"`make demo` cannot run: it needs {', '.join(row.name for row in diagnosis.lacking)}.", markup=False)
    else:
        out.print("All that `make demo` needs is here.")
