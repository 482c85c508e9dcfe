"""Waiting is bounded, random, and only for what waiting cures."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.llm.errors import Cause, EndpointError
from core.llm.limiter import Limiter
from core.llm.retry import RETRIED, RetryPolicy, call_with_retries, cause_of
from core.llm.types import Reply

GOOD = Reply(text="x", finish="stop", prompt_tokens=1, completion_tokens=1)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


def run(failures: list[EndpointError], policy: RetryPolicy, call_s: float = 0.0) -> tuple[Clock, list[float]]:
    clock = Clock()
    left = list(failures)
    allowed: list[float] = []

    def call(timeout_s: float) -> Reply:
        allowed.append(timeout_s)
        clock.now += min(call_s, timeout_s)
        if left:
            raise left.pop(0)
        return GOOD

    call_with_retries(call, policy, sleep=clock.sleep, clock=clock)
    return clock, allowed


def test_the_table_names_every_cause() -> None:
    assert set(RETRIED) == set(get_args(Cause))


@pytest.mark.parametrize(
    ("status", "body", "cause"),
    [
        (408, "", "timeout"),
        (409, "", "rate_limit"),
        (429, "slow down", "rate_limit"),
        (429, "insufficient_quota", "auth"),
        (500, "", "server"),
        (503, "", "server"),
        (504, "", "timeout"),
        (400, "maximum context length", "context_length"),
        (500, "input exceeds the context size", "context_length"),
        (400, "bad schema", "bad_request"),
        (418, "", "bad_request"),
    ],
)
def test_causes_follow_status_and_text(status: int, body: str, cause: Cause) -> None:
    assert cause_of(status, body) == cause


@given(st.integers(1, 6))
def test_waits_grow_within_the_bounds_of_full_jitter(failures: int) -> None:
    error = EndpointError("busy", cause="server")
    clock, _ = run([error] * failures, RetryPolicy(attempts=10, first_wait_s=1, longest_wait_s=8))
    assert len(clock.waits) == failures
    assert all(0 <= wait <= min(8, 2**n) for n, wait in enumerate(clock.waits))


def test_the_total_deadline_bounds_attempts_and_waits_together() -> None:
    error = EndpointError("hang", cause="timeout")
    policy = RetryPolicy(attempts=100, attempt_s=30, total_s=100, first_wait_s=0.001)
    clock = Clock()

    def call(timeout_s: float) -> Reply:
        clock.now += timeout_s
        raise error

    with pytest.raises(EndpointError, match="Tried 4 times"):
        call_with_retries(call, policy, sleep=clock.sleep, clock=clock)
    assert clock.now <= 100.01


def test_the_last_attempt_gets_only_what_is_left() -> None:
    _, allowed = run(
        [EndpointError("x", cause="timeout", retry_after_s=5)], RetryPolicy(attempt_s=30, total_s=50), call_s=30
    )
    assert allowed == [30, 15]


def test_a_lasting_failure_is_raised_as_it_is() -> None:
    error = EndpointError("no such model", cause="not_found")
    with pytest.raises(EndpointError) as caught:
        run([error], RetryPolicy())
    assert caught.value is error


def test_other_exceptions_are_not_ours_to_retry() -> None:
    def call(_: float) -> Reply:
        raise KeyError("bug")

    with pytest.raises(KeyError):
        call_with_retries(call, RetryPolicy())


def test_the_rate_limit_spreads_calls_over_the_minute() -> None:
    clock = Clock()
    limiter = Limiter(per_minute=2, clock=clock, sleep=clock.sleep)
    begun = []
    for _ in range(5):
        with limiter.place():
            begun.append(clock.now)
    assert begun == [0, 0, 60, 60, 120]
