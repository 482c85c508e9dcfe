"""`complab llm check` reports in a form, ends with the right code, and never shows a traceback."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner, Result

from experiments.cli import run

if TYPE_CHECKING:
    from tests.core.llm.fake_server import FakeServer

ADVICE = '{"knob": "inline-threshold", "value": 500, "reason": "hot"}'
FINISH = '{"action": {"kind": "finish", "verdict": "keep"}}'


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def guarded_check(words: tuple[str, ...]) -> None:
    raise SystemExit(run(["llm", "check", *words]))


def check(*arguments: str) -> Result:
    result = CliRunner().invoke(guarded_check, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    return result


def well_behaved(server: "FakeServer", *, scoring: bool = True) -> None:
    for text in (ADVICE, ADVICE, ADVICE, FINISH):
        server.say(text)
    for _ in range(2 if scoring else 1):
        server.say("A", top=[{"token": t, "logprob": -1.5} for t in "ABCD"] if scoring else None)


def test_a_capable_model_passes_with_one_json_object(server: "FakeServer") -> None:
    well_behaved(server)
    result = check(server.url + "/m", "--json", "--price", "1,2")
    assert result.exit_code == 0
    assert "at most $" in result.stderr  # the estimate, before anything is spent
    report = json.loads(result.stdout)
    assert report["ok"]
    assert [item["ok"] for item in report["items"]] == [True, True, True]
    assert report["usage"] == {"calls": 6, "prompt_tokens": 60, "completion_tokens": 30, "usd": pytest.approx(120e-6)}


def test_a_model_without_logprobs_passes_but_is_told(server: "FakeServer") -> None:
    well_behaved(server, scoring=False)
    result = check(server.url + "/m")
    assert result.exit_code == 0
    assert "FAIL  scoring" in result.output
    assert "no first-token log-probabilities" in result.output


def test_a_model_that_cannot_answer_in_form_fails(server: "FakeServer") -> None:
    for _ in range(20):
        server.say("I am a poet.")
    result = check(server.url + "/m")
    assert result.exit_code == 1
    assert "FAIL  structured" in result.output


def test_a_wrong_key_is_said_in_one_paragraph(server: "FakeServer") -> None:
    server.fail(401, "invalid key")
    result = check(server.url + "/m")
    assert result.exit_code == 2
    assert "OPENAI_API_KEY" in result.stderr


def test_an_endpoint_that_is_down_is_said_in_one_paragraph(server: "FakeServer") -> None:
    server.close()
    result = check(server.url + "/m")
    assert result.exit_code == 1
    assert "Is the server running" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["https://example.org/v1/m"], ["local", "--price", "free"], ["scripted//none.json"]],
    ids=["unknown model", "unknown price", "bad price", "no file"],
)
def test_bad_input_ends_with_code_2(arguments: list[str]) -> None:
    result = check(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")


def test_a_dollar_limit_stops_the_check_before_it_is_passed(server: "FakeServer") -> None:
    well_behaved(server)
    result = check(server.url + "/m", "--price", "1000,1000", "--max-usd", "0.05")
    assert result.exit_code == 1
    assert "--max-usd" in result.stderr
    assert server.requests == []


def test_a_script_can_stand_in_for_a_model(tmp_path: Path) -> None:
    script = tmp_path / "s.json"
    script.write_text(json.dumps([ADVICE, ADVICE, ADVICE, FINISH, "A", "A"]))
    assert check(f"scripted/{script}").exit_code == 0
