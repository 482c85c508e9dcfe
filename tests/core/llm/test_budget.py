"""No call is begun that could pass a limit, here or anywhere above."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.llm.adapters.scripted import Scripted
from core.llm.budget import Allowance, Budget
from core.llm.client import Client
from core.llm.errors import BudgetExceeded, EndpointError, UnpricedModel
from core.llm.models import estimate, open_client
from core.llm.types import GenParams, Message, Price, Reply, Request, Usage


def one(tokens: int = 0, usd: float | None = 0.0) -> Usage:
    return Usage(calls=1, prompt_tokens=tokens, usd=usd)


def test_the_worst_case_is_held_until_it_is_settled() -> None:
    budget = Budget(Allowance(tokens=100))
    held = budget.reserve(one(60))
    with pytest.raises(BudgetExceeded, match="tokens"):
        budget.reserve(one(60))
    held.commit(one(10))
    budget.reserve(one(60)).refund()
    assert budget.spending.spent.tokens == 10


def test_a_parent_holds_its_children_together() -> None:
    run = Budget(Allowance(usd=1.0), name="run")
    first, second = run.child("first", Allowance(usd=0.9)), run.child("second", Allowance(usd=0.9))
    first.reserve(one(usd=0.8)).commit(one(usd=0.8))
    with pytest.raises(BudgetExceeded, match=r"^run:"):
        second.reserve(one(usd=0.5))
    assert second.spending.spent.calls == 0
    second.reserve(one(usd=0.2)).commit(one(usd=0.2))
    assert run.spending.spent.usd == pytest.approx(1.0)


def test_a_refused_reservation_holds_nothing_anywhere() -> None:
    run = Budget(Allowance(calls=5))
    child = run.child("child", Allowance(calls=1))
    child.reserve(one())
    with pytest.raises(BudgetExceeded, match=r"^child:"):
        child.reserve(one())
    for _ in range(4):
        run.reserve(one())


def test_wall_time_is_a_limit() -> None:
    now = [0.0]
    budget = Budget(Allowance(wall_s=10), clock=lambda: now[0])
    budget.reserve(one()).refund()
    now[0] = 11.0
    with pytest.raises(BudgetExceeded, match="wall_s"):
        budget.reserve(one())


def test_a_dollar_limit_refuses_an_unknown_price() -> None:
    with pytest.raises(BudgetExceeded, match="unknown price"):
        Budget(Allowance(usd=1.0)).reserve(one(usd=None))


def test_an_unknown_price_stays_unknown_in_the_sum() -> None:
    budget = Budget()
    budget.reserve(one(usd=None)).commit(one(usd=None))
    budget.reserve(one(usd=0.5)).commit(one(usd=0.5))
    assert budget.spending.spent.usd is None


def test_a_reservation_is_settled_once() -> None:
    held = Budget().reserve(one(5))
    held.commit(one(5))
    held.refund()
    with pytest.raises(ValueError, match="once"):
        held.commit(one(5))


def test_threads_cannot_overdraw_together() -> None:
    budget = Budget(Allowance(calls=50))
    refused: list[int] = []

    def spend() -> None:
        for _ in range(20):
            try:
                budget.reserve(one()).commit(one())
            except BudgetExceeded:
                refused.append(1)

    threads = [threading.Thread(target=spend) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert budget.spending.spent.calls == 50
    assert len(refused) == 50


@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from(["commit", "refund", "hold"])), max_size=30))
def test_spent_plus_held_never_passes_the_limit_and_the_parent_is_the_sum(moves: list[tuple[int, str]]) -> None:
    run = Budget(Allowance(tokens=100))
    children = [run.child("a"), run.child("b")]
    held = spent = 0
    for index, (tokens, end) in enumerate(moves):
        try:
            reservation = children[index % 2].reserve(one(tokens))
        except BudgetExceeded:
            assert spent + held + tokens > 100
            continue
        assert spent + held + tokens <= 100
        if end == "commit":
            reservation.commit(one(tokens))
            spent += tokens
        elif end == "hold":
            held += tokens
        else:
            reservation.refund()
    assert run.spending.spent.tokens == spent == sum(c.spending.spent.tokens for c in children)


def priced(price: Price | None, script: list[object]) -> Scripted:
    adapter = Scripted(script)  # type: ignore[arg-type]
    adapter._price = price
    return adapter


PAID = Price(prompt=1e-3, completion=1e-3, source="given")


def test_a_call_that_could_pass_the_dollar_limit_is_not_made() -> None:
    adapter = priced(PAID, ["never"])
    with open_client("scripted/x", adapter=adapter, max_usd=0.01) as client, pytest.raises(BudgetExceeded, match="usd"):
        client.complete(Request(model="m", messages=(Message(role="user", content="hi"),)))
    assert adapter.asked == []


def test_a_failed_call_gives_its_reservation_back() -> None:
    script: list[object] = [EndpointError("no", cause="bad_request"), "fine"]
    request = Request(model="m", messages=(Message(role="user", content="hi"),), params=GenParams(max_tokens=50))
    with open_client("scripted/x", adapter=priced(PAID, script), max_usd=0.1) as client:
        with pytest.raises(EndpointError):
            client.complete(request)
        assert client.complete(request).text == "fine"


def test_real_usage_is_charged_not_the_worst_case() -> None:
    reply = Reply(text="x", finish="stop", prompt_tokens=3, completion_tokens=4)
    with open_client("scripted/x", adapter=priced(PAID, [reply]), max_usd=10) as client:
        client.complete(Request(model="m", messages=(Message(role="user", content="hi"),)))
    assert client.budget.spending.spent.usd == pytest.approx(7e-3)


def test_an_unknown_price_is_an_error_unless_allowed() -> None:
    with pytest.raises(UnpricedModel, match="unknown"):
        Client("m", priced(None, []))
    with Client("m", priced(None, ["fine"]), allow_unpriced=True) as client:
        assert client.complete(Request(model="m", messages=(Message(role="user", content="hi"),))).usage.usd is None


def test_a_client_within_another_counts_in_both() -> None:
    with Client("m", Scripted(["a", "b"]), budget=Budget(Allowance(calls=5))) as client:
        part = client.within("part", Allowance(calls=1))
        request = Request(model="m", messages=(Message(role="user", content="hi"),))
        part.complete(request)
        with pytest.raises(BudgetExceeded, match=r"^part:"):
            part.complete(request)
        client.complete(request)
    assert client.budget.spending.spent.calls == 2


def test_the_estimate_bounds_what_the_worst_run_really_costs() -> None:
    bad = Reply(text="{" * 400, finish="length", prompt_tokens=40, completion_tokens=10)
    adapter = priced(PAID, [bad] * 3)
    with Client("m", adapter) as client:
        worst = estimate(client, calls=1, prompt_bytes=2, max_tokens=10)
        for _ in range(3):
            client.complete(
                Request(model="m", messages=(Message(role="user", content="hi"),), params=GenParams(max_tokens=10))
            )
    assert worst.usd is not None
    assert client.budget.spending.spent.usd is not None
    assert worst.usd >= client.budget.spending.spent.usd
    assert "$" in worst.text
