"""The packaged model answers in form; its process starts late, guards its door and never outlives us."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import httpx
import psutil
import pytest
from pydantic import BaseModel, Field

from core.errors import BadInput
from core.llm.adapters.local import Local
from core.llm.adapters.scripted import Scripted
from core.llm.adapters.weights import packaged_weights, sha256_of, weights_at
from core.llm.cassette import Cassette
from core.llm.client import Client
from core.llm.models import open_client
from core.llm.types import GenParams, Message, Request

QUESTION = [Message(role="user", content="A remark says: bar not inlined into main, cost=310. Which knob?")]
OPTIONS = ["inline-threshold=500", "unroll-threshold=0", "no change"]


class Advice(BaseModel):
    knob: Literal["inline-threshold", "unroll-threshold"]
    reason: str = Field(max_length=10)


def wait_until(true: Callable[[], bool], limit_s: float = 20.0) -> bool:
    end = time.monotonic() + limit_s
    while time.monotonic() < end and not true():
        time.sleep(0.05)
    return true()


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with open_client("local") as client:
        yield client


def test_a_structured_answer_fits_its_schema(local: Client) -> None:
    advice, response = local.structured(Advice, QUESTION)
    assert advice.knob in ("inline-threshold", "unroll-threshold")
    assert response.engine["adapter"] == "local"
    assert response.engine["cache_prompt"] is False
    assert response.usage.usd == 0


def test_scores_are_a_distribution_and_repeat_to_the_last_digit(local: Client) -> None:
    first = local.score(QUESTION, OPTIONS, orders=2)
    assert sum(first.probabilities) == pytest.approx(1)
    assert all(0 < p < 1 for p in first.probabilities)
    local.complete(Request(model=local.model, messages=(QUESTION[0],), params=GenParams(max_tokens=2)))  # in between
    assert local.score(QUESTION, OPTIONS, orders=2).probabilities == first.probabilities


def test_the_server_answers_nobody_without_its_key(local: Client) -> None:
    assert isinstance(local.adapter, Local)
    local.complete(Request(model=local.model, messages=(QUESTION[0],), params=GenParams(max_tokens=1)))
    server = local.adapter.server
    assert server is not None
    assert server.address.startswith("http://127.0.0.1:")
    answer = httpx.post(f"{server.address}/v1/chat/completions", json={"messages": []}, trust_env=False)
    assert answer.status_code == 401


def test_a_server_that_died_is_started_again(local: Client) -> None:
    assert isinstance(local.adapter, Local)
    request = Request(model=local.model, messages=(QUESTION[0],), params=GenParams(max_tokens=1))
    local.complete(request)
    assert local.adapter.server is not None
    first = local.adapter.server.pid
    os.kill(first, signal.SIGKILL)
    assert wait_until(lambda: gone(first))
    local.complete(request)
    assert local.adapter.server.pid != first


def test_it_survives_the_thread_that_started_it() -> None:
    with open_client("local") as client:
        request = Request(model=client.model, messages=(QUESTION[0],), params=GenParams(max_tokens=1))
        thread = threading.Thread(target=client.complete, args=(request,))
        thread.start()
        thread.join()
        assert isinstance(client.adapter, Local)
        assert client.adapter.server is not None
        pid = client.adapter.server.pid
        client.complete(request)
        assert client.adapter.server.pid == pid
    assert gone(pid)  # and close() ends it


_PARENT = """
import sys, time
from core.llm.models import open_client
from core.llm.types import GenParams, Message, Request
client = open_client("local")
messages = (Message(role="user", content="hi"),)
client.complete(Request(model=client.model, messages=messages, params=GenParams(max_tokens=1)))
print(client.adapter.server.pid, flush=True)
time.sleep(60)
"""


def test_it_dies_with_a_parent_that_is_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert not gone(pid)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert wait_until(lambda: gone(pid))


def test_nothing_is_started_before_the_first_call_nor_for_a_replay(tmp_path: Path) -> None:
    children = len(psutil.Process().children())
    with open_client("local") as client:
        assert isinstance(client.adapter, Local)
        assert client.adapter.server is None
    tape = tmp_path / "tape.jsonl"
    request = Request(model="local/smollm2-135m", messages=(QUESTION[0],))
    with Client(request.model, Scripted(["recorded"]), cassette=Cassette(tape, "record")) as client:
        client.complete(request)
    for mode in ("replay", "replay_or_record"):
        with open_client("local", cassette=tape, mode=mode) as client:  # type: ignore[arg-type]
            assert client.complete(request).text == "recorded"
            assert len(psutil.Process().children()) == children


def test_a_file_that_is_no_model_is_bad_input(tmp_path: Path) -> None:
    fake = tmp_path / "x.gguf"
    with pytest.raises(BadInput, match="cannot be read"):
        weights_at(fake)
    fake.write_bytes(b"PK\x03\x04")
    with pytest.raises(BadInput, match="not a GGUF file"):
        open_client(f"local/{fake}")
    fake.write_bytes(b"GGUF" + b"\0" * 100)
    request = Request(model="m", messages=(QUESTION[0],))
    with open_client(f"local/{fake}") as client, pytest.raises(BadInput, match="cannot serve it"):
        client.complete(request)


def test_the_name_of_a_file_in_exchange_keys_holds_no_path(tmp_path: Path) -> None:
    fake = tmp_path / "mine.gguf"
    fake.write_bytes(b"GGUF")
    with open_client(f"local/{fake}") as client:
        assert client.model == "local/mine.gguf"


def test_a_damaged_packaged_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert packaged_weights().path.is_file()
    monkeypatch.setattr("core.llm.adapters.weights._SHA256", "0" * 64)
    with pytest.raises(BadInput, match="sha256"):
        packaged_weights()


def test_a_missing_packaged_model_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.llm.adapters.weights._DISTRIBUTION", "no-such-model-package")
    with pytest.raises(BadInput, match=r"--no-deps -r requirements/model\.txt"):
        open_client("local")


def test_a_hash_is_remembered_until_the_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"one")
    first = sha256_of(file)
    monkeypatch.setattr("hashlib.file_digest", None)  # any further hashing would fail
    assert sha256_of(file) == first
    monkeypatch.undo()
    file.write_bytes(b"other")
    assert sha256_of(file) != first
