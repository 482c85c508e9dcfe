"""Flags: each is an alias of one override of the schema, and nothing else."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click
import pytest
from click.testing import CliRunner

from core.config import argument, option
from core.errors import BadInput
from core.options import config_options, json_option


@dataclass(frozen=True, kw_only=True, slots=True)
class InnerConfig:
    alpha: float = option(0.01, flag="--alpha", help="Error rate.")


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleConfig:
    program: Path = argument(help="The program.")
    reference: str | None = argument(None, help="Another one.")
    cflags: str = option("", flag="--cflags", help="Flags.")
    args: tuple[str, ...] = option((), flag="--arg", help="Arguments.")
    advisor: Literal["expert", "random"] = option("expert", flag="--advisor", help="Who proposes.")
    budget: int = option(24, flag="--budget", help="Distinct candidates.")
    max_usd: float | None = option(None, flag="--max-usd", help="Most dollars.")
    new: bool = option(False, flag="--new", help="Another run.")
    check: bool = option(True, flag="--check", help="Check it.")
    hidden: int = option(0, help="Only by key.")
    inner: InnerConfig = option(InnerConfig(), help="Inner.")


@click.command()
@config_options(SampleConfig)
@json_option
def sample(overrides: list[str], json_to: str | None) -> None:
    """Show what arrived."""
    click.echo("\n".join([*overrides, f"json {json_to}"]))


def arrived(*argv: str) -> list[str]:
    result = CliRunner().invoke(sample, list(argv))
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


def test_only_what_was_given_becomes_an_override() -> None:
    assert arrived() == ["json None"]
    assert arrived("--budget", "24") == ["budget=24", "json None"]


def test_every_kind_of_flag_is_an_override_of_its_key() -> None:
    flags = [
        "--cflags",
        "-O3 -DX=a,b",
        "--arg",
        "1",
        "--arg",
        "a b",
        "--advisor",
        "random",
        "--max-usd",
        "0.5",
        "--new",
    ]
    assert arrived(*flags, "--no-check", "--alpha", "0.1") == [
        "cflags='-O3 -DX=a,b'",
        "args=['1','a b']",
        "advisor='random'",
        "max_usd=0.5",
        "new=true",
        "check=false",
        "inner.alpha=0.1",
        "json None",
    ]


def test_bare_words_fill_positional_fields_and_key_words_come_last_so_that_they_win() -> None:
    assert arrived("hidden=3", "x.c", "--budget", "1", "y.c", "budget=2") == [
        "program='x.c'",
        "reference='y.c'",
        "budget=1",
        "hidden=3",
        "budget=2",
        "json None",
    ]


def test_a_path_with_an_equals_sign_is_a_path() -> None:
    assert arrived("./a=b.c", "~/c=d.c") == ["program='./a=b.c'", "reference='~/c=d.c'", "json None"]


def test_json_takes_a_path_or_means_stdout() -> None:
    assert arrived("x.c", "--json")[-1] == "json -"
    assert arrived("x.c", "--json", "out.json")[-1] == "json out.json"


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["--budget", "x"], "not a valid integer"),
        (["--advisor", "expret"], "'expert', 'random'"),
        (["a.c", "b.c", "c.c"], "'c.c'"),
        (["--hidden", "1"], "--hidden"),
    ],
)
def test_wrong_use_is_refused_with_exit_code_2(argv: list[str], named: str) -> None:
    result = CliRunner().invoke(sample, argv)
    assert result.exit_code == 2
    assert named in result.output


def test_help_shows_defaults_and_choices() -> None:
    text = CliRunner().invoke(sample, ["--help"]).output
    for shown in (
        "PROGRAM [REFERENCE] [KEY=VALUE]...",
        "[default: 24]",
        "[expert|random]",
        "[default: 0.01]",
        "--no-check",
    ):
        assert shown in text
    assert "--no-new" not in text


@pytest.mark.parametrize("name", ["missing/out.json", ".", "matmul_int8", "kernel.c"])
def test_a_json_path_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path, name: str) -> None:
    worked = []

    @click.command()
    @json_option
    def command(json_to: str | None) -> None:
        worked.append(json_to)

    with pytest.raises(BadInput, match="--json"):
        command.main(["--json", str(tmp_path / name)], standalone_mode=False)
    assert not worked
