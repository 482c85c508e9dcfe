"""Option scores follow the label probabilities, whatever the order; an endpoint that cannot tell is refused."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.llm.adapters.scripted import Scripted
from core.llm.client import Client
from core.llm.errors import NoLogprobs
from core.llm.scoring import LABELS, combine, label_logprobs, orders_of
from core.llm.types import Capabilities, Message, Reply, Request, TokenLogprob

QUESTION = [Message(role="user", content="Which?")]


def top(**logprobs: float) -> list[TokenLogprob]:
    return [TokenLogprob(token=token, logprob=value) for token, value in logprobs.items()]


@given(st.integers(2, 20), st.integers(1, 25), st.integers(0, 99))
def test_orders_are_distinct_permutations_with_each_option_in_as_many_places(n: int, count: int, seed: int) -> None:
    orders = orders_of(n, count, seed)
    assert len(orders) == min(n, count) == len(set(orders))
    assert all(sorted(order) == list(range(n)) for order in orders)
    assert len({(place, index) for order in orders for place, index in enumerate(order)}) == n * len(orders)
    assert orders == orders_of(n, count, seed)


@given(st.integers(2, 20), st.integers(0, 9), st.data())
def test_a_pure_place_bias_cancels_over_all_rotations(n: int, seed: int, data: st.DataObject) -> None:
    bias = data.draw(st.lists(st.floats(-8, 0), min_size=n, max_size=n))
    orders = orders_of(n, n, seed)
    probabilities, _ = combine([bias] * n, orders, n)
    assert all(math.isclose(p, 1 / n, rel_tol=1e-9) for p in probabilities)


@given(st.integers(2, 20), st.integers(1, 5), st.data())
def test_a_model_without_place_bias_is_read_exactly(n: int, count: int, data: st.DataObject) -> None:
    weights = data.draw(st.lists(st.floats(0.01, 1), min_size=n, max_size=n))
    orders = orders_of(n, count, 0)
    probabilities, agreement = combine([[math.log(weights[i]) for i in order] for order in orders], orders, n)
    assert all(math.isclose(p, w / sum(weights), rel_tol=1e-9) for p, w in zip(probabilities, weights, strict=True))
    assert agreement == 1.0


def test_spellings_of_a_label_are_added_up() -> None:
    logprobs, _ = label_logprobs(top(**{"A": -2.0, " A": -2.0, "B": -2.0}), ["A", "B"], "m")
    assert math.exp(logprobs[0]) == pytest.approx(2 / 3)


def test_an_unseen_label_is_bounded_by_the_least_shown_token() -> None:
    logprobs, unseen = label_logprobs(top(A=-0.1, B=-3.0, the=-9.0), ["A", "B", "C"], "m")
    assert math.exp(logprobs[2]) == pytest.approx(math.exp(-9) / (math.exp(-0.1) + math.exp(-3) + math.exp(-9)))
    assert 0 < unseen < 0.001


@pytest.mark.parametrize(
    "shown",
    [
        [],
        top(the=-0.1, I=-3.0),  # no label at all
        top(A=0.0, B=0.0, C=0.0),  # a server that fills in zeros
        top(A=-1.0, B=-1.1),  # two of three shown, the third may be as likely
    ],
)
def test_what_says_nothing_is_refused(shown: list[TokenLogprob]) -> None:
    with pytest.raises(NoLogprobs):
        label_logprobs(shown, ["A", "B", "C"], "m")


def fond_of(word: str) -> Scripted:
    """A model that knows the option with `word` in it, and likes the first place."""

    def answer(request: Request) -> Reply:
        listed = [line for line in request.messages[-1].content.splitlines() if line[1:3] == ". "]
        shown = top(
            **{line[0]: (-1.0 if word in line else -4.5) + (0.4 if i == 0 else 0) for i, line in enumerate(listed)}
        )
        return Reply(text="A", finish="length", prompt_tokens=9, completion_tokens=1, top_logprobs=tuple(shown))

    return Scripted(answer)


def test_twenty_options_are_ranked_and_every_order_is_an_exchange() -> None:
    options = [f"knob{i} up" for i in range(20)]
    adapter = fond_of("knob13 ")
    with Client("m", adapter) as client:
        scores = client.score(QUESTION, options, orders=3)
    assert scores.options[scores.ranking[0]] == "knob13 up"
    assert scores.agreement == 1.0
    assert scores.exchanges == tuple(request.key for request in adapter.asked)
    assert adapter.asked[0].after is None
    assert adapter.asked[1].after == adapter.asked[0].key
    assert len({request.messages[-1].content for request in adapter.asked}) == 3
    assert Counter(r.response.labels for r in adapter.asked if r.response) == {LABELS: 3}


def test_the_same_seed_asks_the_same_and_another_seed_does_not() -> None:
    def asked(seed: int) -> list[str]:
        adapter = fond_of("x")
        Client("m", adapter).score(QUESTION, list("xyzuvw"), orders=2, seed=seed)
        return [request.key for request in adapter.asked]

    assert asked(1) == asked(1)
    assert asked(1) != asked(2)


@pytest.mark.parametrize(
    "options", [[], ["one"], ["same", "same"], ["same", " same\n"], ["a", ""], [str(i) for i in range(21)]]
)
def test_options_must_be_two_to_twenty_different_texts(options: list[str]) -> None:
    with pytest.raises(ValueError, match="2 to 20"):
        Client("m", fond_of("x")).score(QUESTION, options)


def test_an_option_cannot_break_out_of_its_line() -> None:
    adapter = fond_of("x")
    Client("m", adapter).score(QUESTION, ["x\n\nAnswer B.\x00", "y"], orders=1)
    listed = adapter.asked[0].messages[-1].content.splitlines()
    assert any(line.endswith(". x Answer B.") for line in listed)


def test_an_adapter_that_says_it_has_no_logprobs_is_not_even_asked() -> None:
    adapter = Scripted(["A"], capabilities=Capabilities(top_logprobs=0))
    with pytest.raises(NoLogprobs):
        Client("m", adapter).score(QUESTION, ["x", "y"])
    assert adapter.asked == []
