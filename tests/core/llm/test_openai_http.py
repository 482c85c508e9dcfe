"""A misbehaving OpenAI-compatible server never gets more than a typed error out of the client."""

import json
import time
from typing import TYPE_CHECKING, Literal

import pytest
from pydantic import BaseModel, Field

from core.errors import BadInput
from core.llm.adapters.openai_http import OpenAIHttp, retry_after_s
from core.llm.client import Client
from core.llm.errors import EndpointError, InvalidOutput, NoLogprobs
from core.llm.models import open_client
from core.llm.retry import RetryPolicy
from core.llm.types import Capabilities, Message, Price, Request

if TYPE_CHECKING:
    from tests.core.llm.fake_server import FakeServer

QUESTION = [Message(role="user", content="Which knob?")]


class Advice(BaseModel):
    knob: Literal["inline", "unroll"]
    reason: str = Field(max_length=40)


GOOD = '{"knob": "inline", "reason": "hot call"}'


def client_of(server: "FakeServer", waits: list[float] | None = None, **retry: float) -> Client:
    policy = RetryPolicy(**{"attempts": 3, "attempt_s": 5, "total_s": 20, **retry})
    return open_client(server.url + "/fake", retry=policy, sleep=(waits if waits is not None else []).append)


def test_a_plain_answer_comes_through_with_its_usage(server: "FakeServer") -> None:
    server.say("hello")
    with client_of(server) as client:
        response = client.complete(Request(model=client.model, messages=tuple(QUESTION)))
    assert (response.text, response.usage.prompt_tokens, response.usage.completion_tokens) == ("hello", 10, 5)
    assert server.requests[0]["model"] == "fake"


def test_429_waits_as_long_as_the_server_asks_and_then_succeeds(server: "FakeServer") -> None:
    waits: list[float] = []
    server.fail(429, headers={"Retry-After": "7"})
    server.say("at last")
    with client_of(server, waits) as client:
        assert client.complete(Request(model=client.model, messages=tuple(QUESTION))).text == "at last"
    assert waits == [7.0]


def test_a_retry_after_beyond_the_deadline_is_not_waited_for(server: "FakeServer") -> None:
    waits: list[float] = []
    server.fail(429, headers={"Retry-After": "3600"})
    with client_of(server, waits) as client, pytest.raises(EndpointError) as caught:
        client.complete(Request(model=client.model, messages=tuple(QUESTION)))
    assert caught.value.cause == "rate_limit"
    assert caught.value.retry_after_s == 3600
    assert waits == []


@pytest.mark.parametrize("misbehave", ["500", "half", "no json", "no completion", "error in 200"])
def test_a_passing_fault_is_tried_again(server: "FakeServer", misbehave: str) -> None:
    match misbehave:
        case "500":
            server.fail(500)
        case "half":
            server.half_a_body()
        case "no json":
            server.raw(b"<html>proxy error</html>")
        case "no completion":
            server.raw(b'{"choices": [{"text": 3}]}')
        case "error in 200":
            server.raw(b'{"error": "backend restarting"}')
    server.say("fine")
    with client_of(server) as client:
        assert client.complete(Request(model=client.model, messages=tuple(QUESTION))).text == "fine"
    assert len(server.requests) == 2


@pytest.mark.parametrize(("status", "exit_code"), [(400, 1), (401, 2), (403, 2), (404, 2), (422, 1)])
def test_a_lasting_fault_is_not_tried_again(server: "FakeServer", status: int, exit_code: int) -> None:
    server.fail(status)
    with client_of(server) as client, pytest.raises(EndpointError) as caught:
        client.complete(Request(model=client.model, messages=tuple(QUESTION)))
    assert len(server.requests) == 1
    assert caught.value.status == status
    assert caught.value.exit_code == exit_code


def test_a_context_overflow_is_named_and_not_tried_again(server: "FakeServer") -> None:
    server.fail(400, "the request exceeds the available context size")
    with client_of(server) as client, pytest.raises(EndpointError, match="Shorten") as caught:
        client.complete(Request(model=client.model, messages=tuple(QUESTION)))
    assert caught.value.cause == "context_length"


def test_failures_end_after_the_allowed_attempts_and_say_so(server: "FakeServer") -> None:
    for _ in range(5):
        server.fail(503)
    with client_of(server) as client, pytest.raises(EndpointError, match="Tried 3 times"):
        client.complete(Request(model=client.model, messages=tuple(QUESTION)))
    assert len(server.requests) == 3


def test_a_hanging_server_is_a_timeout(server: "FakeServer") -> None:
    server.hang()
    start = time.monotonic()
    with client_of(server, attempts=1, attempt_s=0.3) as client, pytest.raises(EndpointError) as caught:
        client.complete(Request(model=client.model, messages=tuple(QUESTION)))
    assert caught.value.cause == "timeout"
    assert time.monotonic() - start < 10


def test_a_server_that_drips_bytes_is_a_timeout(server: "FakeServer") -> None:
    server.drip(0.05)  # each byte comes well within the read timeout; the whole would take 15 s
    start = time.monotonic()
    with client_of(server, attempts=1, attempt_s=0.5) as client, pytest.raises(EndpointError) as caught:
        client.complete(Request(model=client.model, messages=tuple(QUESTION)))
    assert caught.value.cause == "timeout"
    assert time.monotonic() - start < 10


def test_a_refused_connection_names_the_address(server: "FakeServer") -> None:
    server.close()
    with client_of(server) as client, pytest.raises(EndpointError, match="cannot be reached") as caught:
        client.complete(Request(model=client.model, messages=tuple(QUESTION)))
    assert caught.value.cause == "connection"
    assert server.url in str(caught.value)


def test_prose_around_json_is_tolerated(server: "FakeServer") -> None:
    server.say(f"Sure! Here is the answer:\n```json\n{GOOD}\n```\nHope this helps.")
    with client_of(server) as client:
        advice, _ = client.structured(Advice, QUESTION)
    assert advice.knob == "inline"


@pytest.mark.parametrize(
    "bad", ["I would inline it.", '{"knob": "inline"', '{"knob": "-load=evil.so", "reason": ""}', f"{GOOD} or {GOOD}"]
)
def test_an_invalid_answer_is_asked_again_with_the_reason(server: "FakeServer", bad: str) -> None:
    server.say(bad)
    server.say(GOOD)
    with client_of(server) as client:
        advice, response = client.structured(Advice, QUESTION)
    assert advice.knob == "inline"
    assert len(response.exchanges) == len(set(response.exchanges)) == 2
    assert response.usage.calls == 2
    again = server.requests[1]["messages"]
    assert again[-2] == {"role": "assistant", "content": bad}
    assert "not valid" in again[-1]["content"]


def test_answers_that_stay_invalid_end_in_a_typed_error_with_all_keys(server: "FakeServer") -> None:
    for _ in range(3):
        server.say('{"knob": 5}')
    with client_of(server) as client, pytest.raises(InvalidOutput) as caught:
        client.structured(Advice, QUESTION)
    assert len(caught.value.exchanges) == 3
    assert caught.value.text == '{"knob": 5}'


def test_a_cut_answer_is_asked_again_with_twice_the_tokens(server: "FakeServer") -> None:
    server.say(GOOD, finish="length")  # even though it parses: it was cut
    server.say(GOOD)
    with client_of(server) as client:
        client.structured(Advice, QUESTION)
    first, second = server.requests
    assert second["max_tokens"] == 2 * first["max_tokens"]
    assert second["messages"] == first["messages"]


def test_the_schema_on_the_wire_is_closed_and_bounded(server: "FakeServer") -> None:
    server.say(GOOD)
    with client_of(server) as client:
        client.structured(Advice, QUESTION)
    schema = server.requests[0]["response_format"]["json_schema"]["schema"]
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["knob", "reason"]
    assert schema["properties"]["reason"]["maxLength"] == 40


def test_an_endpoint_without_logprobs_is_refused_rather_than_scored_at_chance(server: "FakeServer") -> None:
    server.say("A")
    with client_of(server) as client, pytest.raises(NoLogprobs):
        client.score(QUESTION, ["one", "two"])


def test_an_endpoint_that_refuses_the_request_for_logprobs_is_named_so(server: "FakeServer") -> None:
    server.fail(400, "logprobs are not supported")
    with client_of(server) as client, pytest.raises(NoLogprobs, match="refuses"):
        client.score(QUESTION, ["one", "two"])


def test_an_endpoint_that_takes_no_schema_gets_it_in_words(server: "FakeServer") -> None:
    server.say(GOOD)
    adapter = OpenAIHttp(server.url, "fake", capabilities=Capabilities(json_schema=False))
    with Client("http/fake", adapter) as client:
        client.structured(Advice, QUESTION)
    assert "response_format" not in server.requests[0]
    assert '"enum":["inline","unroll"]' in server.requests[0]["messages"][-1]["content"]


def test_scoring_reads_the_labels_of_every_order(server: "FakeServer") -> None:
    server.say("B", top=[{"token": " B", "logprob": -0.1}, {"token": "A", "logprob": -2.5}])
    server.say("A", top=[{"token": "A", "logprob": -0.2}, {"token": "B", "logprob": -2.0}])
    with client_of(server) as client:
        scores = client.score(QUESTION, ["one", "two"], orders=2, seed=3)
    listed = [r["messages"][-1]["content"] for r in server.requests]
    favourite = "one" if "B. one" in listed[0] else "two"
    assert scores.options[scores.ranking[0]] == favourite
    assert abs(sum(scores.probabilities) - 1) < 1e-9
    assert scores.agreement == 1.0
    assert all(r["logprobs"] and r["max_tokens"] == 1 for r in server.requests)


def test_an_unnamed_model_is_the_first_that_the_endpoint_lists(server: "FakeServer") -> None:
    server.say("hello")
    with open_client(server.url) as client:
        client.complete(Request(model=client.model, messages=tuple(QUESTION)))
    assert server.requests[0]["model"] == "first-listed"


def test_the_key_is_sent_but_never_shown(server: "FakeServer") -> None:
    secret = "correct-horse-battery-staple"
    server.fail(401, f"bad key {secret}")
    adapter = OpenAIHttp(server.url, "fake", api_key=secret)
    with Client("http/fake", adapter) as client, pytest.raises(EndpointError) as caught:
        client.complete(Request(model=client.model, messages=tuple(QUESTION)))
    assert server.keys == [f"Bearer {secret}"]
    assert secret not in str(caught.value)
    assert caught.value.exit_code == BadInput.exit_code


def test_a_remote_price_is_unknown_and_a_given_one_is_used(server: "FakeServer") -> None:
    assert OpenAIHttp("https://example.org/v1", "m").price is None
    server.say("hello")
    price = Price(prompt=1e-6, completion=2e-6, source="given")
    with open_client(server.url + "/fake", price=price) as client:
        response = client.complete(Request(model=client.model, messages=tuple(QUESTION)))
    assert response.usage.usd == pytest.approx(10e-6 + 10e-6)


def test_a_body_without_usage_is_counted_from_bytes(server: "FakeServer") -> None:
    body = json.loads(server.completion("four"))
    del body["usage"]
    server.raw(json.dumps(body).encode())
    with client_of(server) as client:
        response = client.complete(Request(model=client.model, messages=tuple(QUESTION)))
    assert response.usage.prompt_tokens > 0
    assert response.engine["usage"] == "estimated from bytes"


@pytest.mark.parametrize("url", ["ftp://host/v1", "http:///v1", "http://user:pw@host/v1", "host/v1"])
def test_an_address_that_is_none_is_bad_input(url: str) -> None:
    with pytest.raises(BadInput):
        OpenAIHttp(url)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, 50.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], wait: float | None) -> None:
    assert retry_after_s(headers, now_s=10.0) == wait
