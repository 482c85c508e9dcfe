"""The `complab` command: a table of commands, each loaded only when it is called."""

import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from experiments.exits import DONE, guarded


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A command that is not loaded yet."""

    target: str
    """Where it is: `module:attribute`."""
    help: str
    """Its line in `complab --help`."""


COMMANDS: Mapping[str, Entry] = {
    "tune": Entry(target="llvm_tuning.cli:tune", help="Make a C program faster by LLVM options, with proof."),
    "llvm": Entry(target="llvm_tuning.cli:llvm", help="Look at what LLVM says and does: evidence, knobs, toolchain."),
    "llm": Entry(target="core.llm.cli:llm", help="Check and try language models."),
    "tpu": Entry(target="tpu_mlir.cli:tpu", help="Language models on an emulated TPU: programs, passes, checks."),
    "bench": Entry(target="experiments.bench:bench", help="Measure complab itself against its bars."),
    "runs": Entry(target="core.runs.cli:runs", help="List, show and export runs."),
    "report": Entry(target="core.report.cli:report", help="Write the HTML report of a run."),
    "doctor": Entry(target="core.machine.cli:doctor", help="Say what this machine has, lacks and could not prove."),
}


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is called, never to list it."""

    def __init__(self, entries: Mapping[str, Entry], **settings: Any) -> None:
        super().__init__(**settings)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the table's order."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None when the table has no such name."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.target.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of a command line; an unknown one is an error that names the near ones."""
        if args[0] not in self.entries and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], self.entries, n=3) or list(self.entries)
            ctx.fail(f"There is no command '{args[0]}'. Near ones: {', '.join(near)}.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with the help that the table holds."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.entries.items()])


def _print_version(ctx: click.Context, param: click.Parameter, asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        click.echo(f"complab {version('complab')}")
        ctx.exit()


def command_line(entries: Mapping[str, Entry] = COMMANDS) -> LazyGroup:
    """Return the root command over a table of commands."""
    version = click.Option(["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_print_version)
    return LazyGroup(
        entries,
        name="complab",
        params=[version],
        help="The LLM Compiler Lab: language models advise compilers; nothing counts until it is proven.",
        epilog="Exit codes: 0 done (also when the baseline was kept), 1 failed, 2 bad input, 130 interrupted.",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )


def run(argv: Sequence[str], entries: Mapping[str, Entry] = COMMANDS) -> int:
    """Run one command line and return its exit code; a command ends early with `click.Context.exit(code)`."""

    def invoke() -> int:
        root = command_line(entries)
        try:
            with root.make_context("complab", list(argv)) as ctx:
                root.invoke(ctx)
        except click.exceptions.Exit as end:
            return end.exit_code
        except click.Abort:
            raise KeyboardInterrupt from None
        except click.ClickException as error:
            error.show()
            return error.exit_code
        return DONE

    return guarded(invoke)


def main() -> None:
    """Run the console script `complab`."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
