"""`complab llvm tools|knobs|selftest`: what the installed LLVM can do, and whether its routes agree."""

from collections import Counter

import click

from core.console import console, notices, print_table, write_json
from core.options import json_option


@click.command()
@json_option
def tools(json_to: str | None) -> None:
    """Show the LLVM tools of this machine and what is lost without the missing ones."""
    from llvm_tuning.toolchain.capabilities import capabilities
    from llvm_tuning.toolchain.discover import discover

    found = capabilities(discover())
    if json_to is not None:
        write_json(found.model_dump(mode="json"), json_to)
        return
    console().print(f"{found.compiler}: {found.driver}, linker {found.linker or 'the default'}")
    print_table(("tool", "version"), list(found.tools.items()))
    for name, why in found.missing.items():
        console().print(f"missing: {name}: {why}", markup=False)
    for name, state in found.routes.items():
        console().print(f"route {name}: {state}", markup=False)
    console().print(f"{found.options} options known, {found.knobs} of them knobs (`complab llvm knobs`)")


@click.command()
@json_option
def knobs(json_to: str | None) -> None:
    """List the options that may be set, checked against the installed compiler."""
    from llvm_tuning.toolchain.discover import discover
    from llvm_tuning.toolchain.knobs import available, drift

    installed = discover()
    there, missing = available(installed.options, "unsafe")
    drifted = drift(installed.options)
    if json_to is not None:
        found = [{**k.model_dump(mode="json"), "type": k.type} for k in there]
        write_json({"compiler": installed.version, "knobs": found, "missing": missing, "drift": drifted}, json_to)
        return
    console().print(f"Accepted by {installed.version} (more than `exact` only with --semantics):")
    print_table(
        ("knob", "group", "read by", "default", "values", "results"),
        [(k.name, k.group, k.stage, k.default or "", " ".join(k.values), k.semantics) for k in there],
    )
    console().print("--json says what each one does.")
    for name, why in missing.items():
        console().print(f"missing: {name}: {why}", markup=False)
    for name, why in drifted.items():
        console().print(f"default changed: {name}: {why}", markup=False)


@click.command()
@click.argument("names", metavar="[PROGRAM]...", nargs=-1)
@json_option
def selftest(names: tuple[str, ...], json_to: str | None) -> None:
    """Compare each route's unedited -O3 with clang -O3, machine code for machine code.

    PROGRAM is a C or C++ file or the name of a shipped program; without any, all shipped ones are compiled. A
    difference is no fault: it says on which programs a pipeline of one's own starts elsewhere than clang does. A route
    that gives no object is one.
    """
    from core.errors import ComplabError
    from core.sandbox.service import open_sandbox
    from llvm_tuning.program import load_program, shipped_programs
    from llvm_tuning.toolchain.build import preprocess
    from llvm_tuning.toolchain.discover import discover
    from llvm_tuning.toolchain.selftest import ROUTES, Agreement
    from llvm_tuning.toolchain.selftest import selftest as compare

    installed, box = discover(), open_sandbox()
    found: list[Agreement] = []
    for name in names or tuple(shipped_programs()):
        program = load_program(name)
        found += compare(box, installed, program, preprocess(installed, program))
        notices().print(f"{name}: {'; '.join(f'{a.route}: {a}' for a in found[-len(ROUTES) :])}", markup=False)
    same = Counter(a.route for a in found if a.same)
    count = len(found) // len(ROUTES)
    if json_to is not None:
        routes = [{"route": route, "same": same[route], "programs": count} for route in ROUTES]
        results = [a.summary() for a in found]
        write_json({"compiler": installed.version, "routes": routes, "results": results}, json_to)
    if json_to != "-":
        print_table(("route", "as clang -O3"), [(route, f"{same[route]} of {count}") for route in ROUTES])
    failed = [f"{a.program} by {a.route}" for a in found if a.error]
    if failed:
        raise ComplabError(f"No object: {', '.join(failed)}.", "The lines above say why.")
