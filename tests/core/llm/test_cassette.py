"""What was asked once can be asked again without a model, and nothing else can."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from core.errors import BadInput
from core.llm.adapters.scripted import Scripted
from core.llm.budget import Allowance, Budget
from core.llm.cassette import Cassette, export_chat, first_difference, line_of
from core.llm.client import Client
from core.llm.errors import EndpointError, ReplayMiss
from core.llm.models import open_client
from core.llm.types import Exchange, GenParams, Message, Reply, Request, ResponseSpec, TemplateRef


def ask(text: str, **fields: Any) -> Request:
    return Request(model="scripted/x", messages=(Message(role="user", content=text),), **fields)


def played(path: Path, mode: Any, script: Any, **options: Any) -> Client:
    return Client("scripted/x", Scripted(script), cassette=Cassette(path, mode), **options)


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    path = tmp_path / "tape.jsonl"
    with played(path, "record", lambda request: f"answer to {request.messages[0].content}") as client:
        client.complete(ask("one"))
        client.complete(ask("two"))
    return path


def test_a_replay_gives_the_same_answers_and_calls_nothing(tape: Path) -> None:
    with open_client("local", cassette=tape, mode="replay") as client, pytest.raises(ReplayMiss, match="`model`"):
        client.complete(ask("one").model_copy(update={"model": client.model}))
    with open_client("scripted/x", cassette=tape, mode="replay") as client:
        response = client.complete(ask("one"))
    assert response.text == "answer to one"
    assert response.replayed


def test_a_miss_shows_the_nearest_request_and_where_it_differs(tape: Path) -> None:
    with open_client("scripted/x", cassette=tape, mode="replay") as client, pytest.raises(ReplayMiss) as caught:
        client.complete(ask("two!"))
    assert ask("two").key[:12] in str(caught.value)
    assert "`messages[0].content`" in str(caught.value)
    assert '"two!"' in str(caught.value)
    assert '"two"' in str(caught.value)


def test_a_miss_that_differs_in_a_parameter_names_it(tape: Path) -> None:
    with open_client("scripted/x", cassette=tape, mode="replay") as client, pytest.raises(ReplayMiss, match="seed"):
        client.complete(ask("two", params=GenParams(seed=7)))


def test_a_long_difference_is_shown_where_the_texts_part() -> None:
    field, one, other = first_difference(ask("x" * 5000 + "left" + "y" * 5000), ask("x" * 5000 + "right"))
    assert field == "messages[0].content"
    assert "left" in one
    assert "right" in other
    assert len(one) < 100


def test_replay_or_record_calls_only_for_what_is_missing(tape: Path) -> None:
    script = Scripted(["new"])
    with Client("scripted/x", script, cassette=Cassette(tape, "replay_or_record")) as client:
        assert client.complete(ask("one")).replayed
        assert client.complete(ask("three")).text == "new"
        assert client.complete(ask("three")).replayed
    assert [r.messages[0].content for r in script.asked] == ["three"]
    assert len(tape.read_bytes().splitlines()) == 3


def test_refresh_asks_everything_again_and_keeps_only_what_was_asked(tape: Path) -> None:
    with played(tape, "refresh", ["fresh"]) as client:
        client.complete(ask("two"))
    assert [e.reply.text for e in Cassette(tape, "replay")] == ["fresh"]


def test_a_refresh_that_is_interrupted_leaves_the_old_file(tape: Path) -> None:
    before = tape.read_bytes()
    client = played(tape, "refresh", ["fresh"])
    client.complete(ask("two"))  # never closed
    assert tape.read_bytes() == before


def test_equal_exchanges_are_equal_bytes_and_survive_a_round_trip(tape: Path) -> None:
    lines = tape.read_bytes().splitlines(keepends=True)
    assert [line_of(Exchange.model_validate_json(line)) for line in lines] == lines
    assert all(json.loads(line)["request"]["messages"] for line in lines)


def test_a_torn_last_line_is_dropped_and_said(tape: Path, caplog: pytest.LogCaptureFixture) -> None:
    whole = tape.read_bytes()
    tape.write_bytes(whole + whole[:50])
    cassette = Cassette(tape, "replay_or_record")
    assert len(cassette) == 2
    assert cassette.dropped == whole[:50].decode()
    assert "torn" in caplog.text
    with Client("scripted/x", Scripted(["three"]), cassette=cassette) as client:
        client.complete(ask("three"))
    assert len(Cassette(tape, "replay")) == 3  # the new line did not join the torn one


def test_a_replay_never_changes_the_file(tape: Path) -> None:
    torn = tape.read_bytes() + b'{"key'
    tape.write_bytes(torn)
    Cassette(tape, "replay").close()
    assert tape.read_bytes() == torn


def test_an_edited_request_is_refused(tape: Path) -> None:
    tape.write_bytes(tape.read_bytes().replace(b'"content":"one"', b'"content":"0ne"'))
    with pytest.raises(BadInput, match=r":1: the request was edited"):
        Cassette(tape, "replay")


def test_a_line_that_is_no_exchange_is_named(tape: Path) -> None:
    tape.write_bytes(b'{"a": 1}\n' + tape.read_bytes())
    with pytest.raises(BadInput, match=":1: not an exchange"):
        Cassette(tape, "replay")


def test_a_missing_cassette_is_bad_input_only_in_replay(tmp_path: Path) -> None:
    assert len(Cassette(tmp_path / "none.jsonl", "record")) == 0
    with pytest.raises(BadInput, match="no such cassette"):
        Cassette(tmp_path / "none.jsonl", "replay")


def test_failures_are_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with played(path, "record", [EndpointError("no", cause="bad_request")]) as client, pytest.raises(EndpointError):
        client.complete(ask("one"))
    assert not path.exists()


def test_the_key_covers_what_shapes_the_answer_and_nothing_else() -> None:
    base = ask("one")
    other = [
        ask("two"),
        base.model_copy(update={"model": "other"}),
        ask("one", params=GenParams(temperature=0.5)),
        ask("one", params=GenParams(max_tokens=1)),
        ask("one", response=ResponseSpec(labels=("A",))),
        ask("one", sample=1),
        ask("one", after="0" * 64),
    ]
    assert len({base.key, *(request.key for request in other)}) == len(other) + 1
    assert ask("one", templates=(TemplateRef(id="t", sha256="0" * 64),)).key == base.key


def test_one_question_from_many_threads_has_one_recorded_answer(tmp_path: Path) -> None:
    count = iter(range(100))
    path = tmp_path / "t.jsonl"
    barrier = threading.Barrier(8)
    answers: list[str] = []

    def run(client: Client) -> None:
        barrier.wait()
        answers.append(client.complete(ask("same")).text)

    with played(path, "replay_or_record", lambda _: f"answer {next(count)}") as client:
        threads = [threading.Thread(target=run, args=(client,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(answers)) == 1
    assert len(path.read_bytes().splitlines()) == 1


def test_replays_cost_nothing_but_say_what_they_would_have_cost(tape: Path) -> None:
    budget = Budget(Allowance(calls=0))
    with played(tape, "replay", [], budget=budget) as client:
        client.complete(ask("one"))
    assert budget.spending.spent.calls == 0
    assert budget.spending.would_have.calls == 1
    assert budget.spending.would_have.tokens > 0


def test_a_resumed_run_may_charge_its_replays(tape: Path) -> None:
    budget = Budget(Allowance(calls=3), charge_replays=True)
    with played(tape, "replay_or_record", [], budget=budget) as client:
        client.complete(ask("one"))
    assert budget.spending.spent.calls == 1


def test_a_cassette_exports_as_chat_training_data(tape: Path, tmp_path: Path) -> None:
    cassette = Cassette(tape, "replay_or_record")
    cassette.record(ask("cut"), Reply(text="no", finish="length", prompt_tokens=1, completion_tokens=1))
    out = tmp_path / "chat.jsonl"
    assert export_chat(cassette, out) == 2
    first = json.loads(out.read_text().splitlines()[0])
    assert first == {
        "messages": [{"role": "user", "content": "one"}, {"role": "assistant", "content": "answer to one"}]
    }


def test_a_full_disk_leaves_no_half_line_behind(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, write = tape.read_bytes(), os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda descriptor, line: write(descriptor, line[:20]))
        with played(tape, "replay_or_record", ["three"]) as client, pytest.raises(OSError, match="No space left"):
            client.complete(ask("three"))
    assert tape.read_bytes() == before
