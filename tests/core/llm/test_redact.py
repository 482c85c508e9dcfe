"""No secret gets into a prompt, a file, a log or an error."""

from pathlib import Path

import pytest

from core.llm.adapters.scripted import Scripted
from core.llm.cassette import Cassette
from core.llm.client import Client
from core.llm.errors import EndpointError
from core.llm.redact import HIDDEN, redact, redact_json, secrets_of
from core.llm.types import Message, Request

SECRET = "opensesame-1234567890"


@pytest.mark.parametrize(
    "text",
    [
        "sk-abcdefghijklmnopqrstuvwx",
        "Authorization: Bearer abcdef.123456",
        "ghp_abcdefghijklmnopqrstuvwxyz012345",
        "hf_abcdefghijklmnopqrstuvwx",
        "AKIAABCDEFGHIJKLMNOP",
        "http://me:opensesame@localhost:8080/v1",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_what_has_the_shape_of_a_secret_is_hidden(text: str) -> None:
    hidden = redact(f"before {text} after")
    assert HIDDEN in hidden
    assert hidden.startswith("before ")
    assert hidden.endswith(" after")
    assert text not in hidden


def test_ordinary_compiler_text_is_left_alone() -> None:
    text = "opt -passes='default<O3>' -inline-threshold=500 sk-1 token=NAME skip-this-and-that-and-more"
    assert redact(text) == text


def test_short_values_of_secret_variables_do_not_blank_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "loop")
    assert redact("loop not vectorized") == "loop not vectorized"


def test_only_variables_that_are_named_like_secrets_count() -> None:
    environ = dict.fromkeys(("MY_API_KEY", "TOKEN", "db_password", "AWS_SECRET_ACCESS_KEY"), SECRET)
    assert secrets_of(environ) == {SECRET}
    assert secrets_of({"TOKENIZERS_CACHE": SECRET, "KEYBOARD": SECRET, "MONKEY": SECRET}) == set()


def test_json_is_redacted_in_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VENDOR_API_KEY", SECRET)
    assert redact_json({"a": [f"x {SECRET}", 1, None], SECRET: True}) == {"a": [f"x {HIDDEN}", 1, None], HIDDEN: True}


def test_nothing_leaves_with_a_secret_in_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("VENDOR_API_KEY", SECRET)
    path = tmp_path / "tape.jsonl"
    adapter = Scripted([f"you said {SECRET}", EndpointError(f"bad key {SECRET}", cause="auth")])
    with Client("m", adapter, cassette=Cassette(path, "record")) as client:
        question = Request(model="m", messages=(Message(role="user", content=f"my key is {SECRET}"),))
        assert SECRET not in client.complete(question).text
        with pytest.raises(EndpointError) as caught:
            client.complete(question.model_copy(update={"sample": 1}))
    assert SECRET not in str(caught.value)
    assert SECRET not in path.read_text()
    assert SECRET not in caplog.text
    assert all(SECRET not in message.content for request in adapter.asked for message in request.messages)
