"""Configuration: what a person writes arrives typed, or is refused in words."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf
from pydantic import Field

from core import config
from core.config import argument, choices, describe, load, option, override
from core.errors import BadInput, ComplabError


class Effort(Enum):
    LOW = "low"
    HIGH = "high"


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasureConfig:
    alpha: float = option(0.01, flag="--alpha", help="Error rate.")
    margin: float = option(0.01, help="Width of `same`.")


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleConfig:
    program: Path = argument(help="The C program.")
    cflags: str = option("", flag="--cflags", help="Flags.")
    args: tuple[str, ...] = option((), flag="--arg", help="Arguments.")
    advisor: Literal["expert", "llm", "random"] = option("expert", flag="--advisor", help="Who proposes.")
    budget: Annotated[int, Field(ge=1)] = option(24, flag="--budget", help="Distinct candidates.")
    max_usd: float | None = option(None, flag="--max-usd", help="Most dollars.")
    effort: Effort = option(Effort.LOW, help="How hard to try.")
    new: bool = option(False, flag="--new", help="Another run.")
    labels: dict[str, str] = option({}, help="Free words.")
    measure: MeasureConfig = option(MeasureConfig(), help="How sure to be.")


ROOT = """\
defaults:
  - _self_
  - job: ???
  - experiment: null
"""
JOB = """\
# @package _global_
defaults:
  - /schema/sample@_global_
  - /measure: full
  - _self_
"""
EXPERIMENT = """\
# @package _global_
defaults:
  - override /job: sample
"""


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("conf")
    files = {
        "config": ROOT,
        "job/sample": JOB,
        "measure/full": "margin: 0.02\n",
        "measure/quick": "margin: 0.1\n",
        "experiment/small": EXPERIMENT + "program: small.c\nbudget: 3\n",
        "experiment/typo": EXPERIMENT + "budgett: 3\n",
        "experiment/wrong": EXPERIMENT + "measure: {alpha: many}\n",
        "experiment/broken": EXPERIMENT + "budget: [3\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / f"{name}.yaml").write_text(text)
    return folder


def test_defaults_groups_and_overrides_compose_into_the_schema(conf: Path) -> None:
    loaded = load("sample", ["program=x.c", "measure=quick", "measure.alpha=0.05", "advisor=llm"], SampleConfig, conf)
    assert loaded == SampleConfig(program=Path("x.c"), advisor="llm", measure=MeasureConfig(alpha=0.05, margin=0.1))


def test_an_experiment_sets_values_and_the_command_line_wins_over_it(conf: Path) -> None:
    loaded = load("sample", ["budget=5", "experiment=small"], SampleConfig, conf)
    assert (loaded.program, loaded.budget) == (Path("small.c"), 5)


def test_a_mapping_takes_free_keys(conf: Path) -> None:
    assert load("sample", ["program=x", "+labels.paper=table1"], SampleConfig, conf).labels == {"paper": "table1"}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["program=x", "budgett=3"], ["'budgett'", "Near ones: budget"]),
        (["program=x", "measure.alph=1"], ["'measure.alph'", "measure.alpha"]),
        (["program=x", "alpha=1"], ["'alpha'", "measure.alpha"]),
        (["program=x", "+foo=1"], ["'foo'", "Allowed:", "budget"]),
        (["experimnt=small"], ["'experimnt'", "experiment"]),
        (["program=x", "budget=abc"], ["'budget'", "'abc'", "an integer"]),
        (["program=x", "budget=0"], ["'budget'", "0", "greater than or equal to 1"]),
        (["program=x", "advisor=expret"], ["'advisor'", "'expret'", "expert, llm, random"]),
        (["program=x", "effort=MIDDLE"], ["'effort'", "LOW, HIGH"]),
        (["program=x", "max_usd=lots"], ["'max_usd'", "'lots'", "a number or null"]),
        (["program=x", "new=maybe"], ["'new'", "'maybe'", "true or false"]),
        (["program=x", "args=3"], ["'args'", "a list"]),
        (["program=x", "measure=ful"], ["'ful'", "group 'measure'", "full"]),
        (["experiment=smal"], ["'smal'", "group 'experiment'", "small"]),
        (["experiment=typo"], ["typo.yaml", "'budgett'", "budget"]),
        (["experiment=wrong"], ["wrong.yaml", "'measure.alpha'", "'many'", "a number"]),
        (["experiment=broken"], ["broken.yaml"]),
        ([], ["'program'", "PROGRAM", "a path"]),
        (["program=x", "measure=null"], ["'measure'", "full, quick"]),
        (["program"], ["'program'", "key=value"]),
        (["program=[x"], ["'program=[x'", "Quote"]),
        (["program=x", "budget=1,2"], ["'budget=1,2'", "experiments.launch -m"]),
        (["program=${nowhere}"], ["'program'", "nowhere"]),
    ],
)
def test_bad_input_names_the_key_and_what_is_allowed(conf: Path, words: list[str], named: list[str]) -> None:
    with pytest.raises(BadInput) as refusal:
        load("sample", words, SampleConfig, conf)
    text = str(refusal.value)
    assert [word for word in named if word not in text] == [], text
    assert "\n" not in text
    assert "Hydra" not in text


def test_a_missing_conf_folder_says_where_complab_runs(tmp_path: Path) -> None:
    with pytest.raises(ComplabError, match=r"config\.yaml.*checkout"):
        load("sample", [], SampleConfig, tmp_path)


def test_the_checkouts_own_conf_folder_is_there() -> None:
    assert "tune" in choices("job", config.require_conf())


@given(st.text(), st.lists(st.text(), max_size=3))
def test_an_override_carries_any_text_unchanged(text: str, several: list[str]) -> None:
    parser = OverridesParser.create()
    for value in (text, several):
        parsed = parser.parse_override(override("key", value)).value()
        assert OmegaConf.to_container(OmegaConf.create({"key": parsed}), resolve=True) == {"key": value}


@given(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_an_override_carries_plain_values_with_their_type(value: object) -> None:
    parsed = OverridesParser.create().parse_override(override("key", value)).value()
    assert (parsed, type(parsed)) == (value, type(value))


def test_types_are_described_in_words() -> None:
    assert describe(int | None) == "an integer or null"
    assert describe(tuple[float, ...]) == "a list [a,b,...], each a number"
    assert describe(MeasureConfig) == "a group with the keys alpha, margin"
