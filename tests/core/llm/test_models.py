"""A model's name leads to the right adapter, or to an error that lists what is possible."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import BadInput
from core.llm.adapters.replay import Replay
from core.llm.errors import ReplayMiss
from core.llm.models import ModelName, open_client, parse_model, parse_price
from core.llm.types import Message, Request


@pytest.mark.parametrize(
    ("model", "api_base", "parsed"),
    [
        ("local", None, ModelName(kind="local", id="local/smollm2-135m", name="")),
        ("local/smollm2-135m", None, ModelName(kind="local", id="local/smollm2-135m", name="")),
        ("local//models/q.gguf", None, ModelName(kind="local", id="local/q.gguf", name="/models/q.gguf")),
        ("local/rel/q.gguf", None, ModelName(kind="local", id="local/q.gguf", name="rel/q.gguf")),
        ("scripted/a/b.json", None, ModelName(kind="scripted", id="scripted/b.json", name="a/b.json")),
        (
            "http://host:8000/v1/Qwen/Q-7B",
            None,
            ModelName(kind="http", id="http/Qwen/Q-7B", name="Qwen/Q-7B", api_base="http://host:8000/v1"),
        ),
        ("https://host/v1", None, ModelName(kind="http", id="http/host", name="", api_base="https://host/v1")),
        (
            "openai/q",
            "http://h/v1",
            ModelName(kind="http", id="openai/q", name="q", api_base="http://h/v1"),
        ),
        ("openai/q", None, ModelName(kind="litellm", id="openai/q", name="openai/q")),
        ("anthropic/c", None, ModelName(kind="litellm", id="anthropic/c", name="anthropic/c")),
    ],
)
def test_names_are_taken_apart(model: str, api_base: str | None, parsed: ModelName) -> None:
    assert parse_model(model, api_base) == parsed


@pytest.mark.parametrize("model", ["", "gpt", "local/gpt", "/x", "openai/", "a b/c", "http://", "scripted/"])
def test_what_is_no_model_is_bad_input_that_lists_what_is(model: str) -> None:
    with pytest.raises(BadInput, match="Possible are: `local`"):
        open_client(model)


def test_a_replay_needs_no_model_at_all(tmp_path: Path) -> None:
    tape = tmp_path / "t.jsonl"
    tape.touch()
    with open_client("some-provider/some-model", cassette=tape, mode="replay") as client:
        assert isinstance(client.adapter, Replay)
        with pytest.raises(ReplayMiss, match="empty"):
            client.complete(Request(model=client.model, messages=(Message(role="user", content="hi"),)))


def test_a_script_file_is_a_model(tmp_path: Path) -> None:
    script = tmp_path / "s.json"
    cut = {"text": "cut", "finish": "length", "prompt_tokens": 1, "completion_tokens": 1}
    script.write_text(json.dumps(["one", cut]))
    with open_client(f"scripted/{script}") as client:
        request = Request(model=client.model, messages=(Message(role="user", content="hi"),))
        assert client.model == "scripted/s.json"
        assert [client.complete(request).text, client.complete(request).finish] == ["one", "length"]


@pytest.mark.parametrize("content", ["{", "{}", "[1]", '[{"text": "no finish"}]'])
def test_a_bad_script_file_is_bad_input(content: str, tmp_path: Path) -> None:
    script = tmp_path / "s.json"
    script.write_text(content)
    with pytest.raises(BadInput, match="not a script"):
        open_client(f"scripted/{script}")
    with pytest.raises(BadInput, match="cannot be read"):
        open_client(f"scripted/{tmp_path}/none.json")


def test_prices_are_per_million_tokens() -> None:
    assert parse_price("0.15,0.6").usd(1_000_000, 1_000_000) == pytest.approx(0.75)
    for bad in ("", "1", "1,2,3", "a,b", "-1,2", "nan,1"):
        with pytest.raises(BadInput):
            parse_price(bad)


def test_the_package_is_light_until_a_model_is_used() -> None:
    code = (
        "import sys; import core.llm.models, core.llm.loop, core.llm.prompts, core.llm.cli;"
        "heavy = {'litellm', 'xllamacpp', 'httpx', 'openai', 'torch'} & sys.modules.keys();"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
