"""Questions with a closed form are answered in that form, by one client from many threads."""

import itertools
import threading
import time
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from core.llm.adapters.scripted import Scripted
from core.llm.client import Client
from core.llm.errors import InvalidOutput
from core.llm.limiter import Limiter
from core.llm.types import Capabilities, GenParams, Message, Reply, Request, ResponseSpec, TemplateRef, TokenLogprob

QUESTION = (Message(role="user", content="Which?"),)


class Ranking(BaseModel):
    first: Literal["a", "b"]
    second: Literal["a", "b"]


def different(ranking: Ranking) -> None:
    if ranking.first == ranking.second:
        raise ValueError("first and second must differ")


def test_the_callers_own_check_is_told_to_the_model() -> None:
    adapter = Scripted(['{"first": "a", "second": "a"}', '{"first": "a", "second": "b"}'])
    ranking, _ = Client("m", adapter).structured(Ranking, QUESTION, check=different)
    assert ranking.second == "b"
    assert "must differ" in adapter.asked[1].messages[-1].content


def test_a_label_question_takes_one_token_and_re_asks_what_is_no_label() -> None:
    cut = Reply(text=" B", finish="length", prompt_tokens=5, completion_tokens=1)
    adapter = Scripted(["perhaps", cut])
    request = Request(
        model="m", messages=QUESTION, params=GenParams(max_tokens=1), response=ResponseSpec(labels=("A", "B"))
    )
    response = Client("m", adapter).complete(request)
    assert len(response.exchanges) == 2
    assert adapter.asked[1].params.max_tokens == 1


def test_free_text_may_end_at_its_length() -> None:
    cut = Reply(text="once upon", finish="length", prompt_tokens=5, completion_tokens=2)
    response = Client("m", Scripted([cut])).complete(Request(model="m", messages=QUESTION))
    assert (response.text, response.finish) == ("once upon", "length")


def test_re_asks_can_be_switched_off() -> None:
    adapter = Scripted(["no"])
    with pytest.raises(InvalidOutput, match="1 tries"):
        Client("m", adapter, max_reasks=0).structured(Ranking, QUESTION)
    assert len(adapter.asked) == 1


def test_a_long_bad_answer_is_quoted_only_in_part() -> None:
    adapter = Scripted(["x" * 100_000, '{"first": "a", "second": "b"}'])
    Client("m", adapter).structured(Ranking, QUESTION)
    assert sum(len(message.content) for message in adapter.asked[1].messages) < 3000


def test_samples_of_one_question_are_different_exchanges() -> None:
    client = Client("m", Scripted(lambda _: '{"first": "a", "second": "b"}'))
    keys = {client.structured(Ranking, QUESTION, sample=n)[1].exchanges for n in range(3)}
    assert len(keys) == 3


def test_the_template_is_provenance_of_the_request() -> None:
    adapter = Scripted(['{"first": "a", "second": "b"}'])
    reference = TemplateRef(id="p/q.j2", sha256="0" * 64)
    Client("m", adapter).structured(Ranking, QUESTION, templates=(reference,))
    assert adapter.asked[0].templates == (reference,)


def test_no_more_calls_are_under_way_than_the_limiter_allows() -> None:
    lock = threading.Lock()
    under_way: list[int] = [0]
    most: list[int] = [0]
    meet = threading.Event()

    def answer(_: Request) -> str:
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        meet.wait(0.02)
        with lock:
            under_way[0] -= 1
        return "x"

    client = Client("m", Scripted(answer), limiter=Limiter(concurrent=2))
    threads = [
        threading.Thread(target=client.complete, args=(Request(model="m", messages=QUESTION, sample=n),))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 2


def test_nothing_comes_between_the_calls_of_one_scoring_and_nobody_waits_for_ever() -> None:
    def answer(request: Request) -> Reply:
        time.sleep(0.005)
        shown = (TokenLogprob(token="A", logprob=-0.5), TokenLogprob(token="B", logprob=-1.0))
        return Reply(text="A", finish="stop", prompt_tokens=1, completion_tokens=1, top_logprobs=shown)

    adapter = Scripted(answer, capabilities=Capabilities(prefix_reuse=True))
    client = Client("m", adapter, limiter=Limiter(concurrent=1))
    work = [lambda n=n: client.score(QUESTION, ["x", f"y{n}"], orders=2) for n in range(5)]
    work += [lambda n=n: client.complete(Request(model="m", messages=QUESTION, sample=n)) for n in range(5)]
    threads = [threading.Thread(target=one, daemon=True) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert not any(thread.is_alive() for thread in threads)
    followers = [(before, this) for before, this in itertools.pairwise(adapter.asked) if this.after is not None]
    assert len(followers) == 5
    assert all(this.after == before.key for before, this in followers)


class Wordy(BaseModel):
    reason: str = Field(max_length=3000)


def test_the_tokens_asked_for_follow_from_the_schema() -> None:
    adapter = Scripted(['{"reason": "x"}', '{"first": "a", "second": "b"}'])
    client = Client("m", adapter)
    client.structured(Wordy, QUESTION)
    client.structured(Ranking, QUESTION)
    assert adapter.asked[0].params.max_tokens > 1000
    assert adapter.asked[1].params.max_tokens < 60
