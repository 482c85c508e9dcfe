"""Which failures are tried again, how long to wait, and when to give up: one table for all transports."""

import logging
import time
from collections.abc import Callable
from typing import Final

import tenacity

from core.llm.errors import Cause, EndpointError
from core.llm.types import Reply
from core.records import Record

_LOG = logging.getLogger(__name__)

RETRIED: Final[dict[Cause, bool]] = {
    "connection": True,
    "timeout": True,
    "rate_limit": True,
    "server": True,
    "protocol": True,
    "auth": False,
    "not_found": False,
    "context_length": False,
    "bad_request": False,
}

_CAUSE_OF_STATUS: Final[dict[int, Cause]] = {
    401: "auth",
    403: "auth",
    404: "not_found",
    408: "timeout",
    409: "rate_limit",
    413: "context_length",
    429: "rate_limit",
    504: "timeout",
}


def cause_of(status: int, body: str) -> Cause:
    """Return the cause of a failure from its HTTP status and the server's text."""
    words = body.lower()
    if status in (400, 413, 422, 500) and ("context" in words and ("length" in words or "exceed" in words)):
        return "context_length"
    if status == 429 and "insufficient_quota" in words:
        return "auth"  # an empty account answers 429 for ever
    return _CAUSE_OF_STATUS.get(status, "server" if status >= 500 else "bad_request")


class RetryPolicy(Record):
    """How patient to be with one call."""

    attempts: int = 5
    """Calls at most, the first included."""
    first_wait_s: float = 1.0
    """Upper end of the first random wait; it doubles with each attempt (full jitter)."""
    longest_wait_s: float = 30.0
    attempt_s: float = 120.0
    """Deadline of one attempt, whole body included."""
    total_s: float = 300.0
    """Deadline of all attempts and waits together. A wait that would pass it is not begun."""


def call_with_retries(
    call: Callable[[float], Reply],
    policy: RetryPolicy,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Reply:
    """Call until it succeeds, the failure is one that waiting does not cure, or patience ends.

    Args:
        call: gets the seconds that this attempt may take.
        policy: limits.
        sleep: waits; tests inject their own.
        clock: seconds, monotonic.

    Raises:
        EndpointError: the last failure, saying how often it was tried.
    """
    start = clock()
    jitter = tenacity.wait_random_exponential(multiplier=policy.first_wait_s, max=policy.longest_wait_s)

    def left() -> float:
        return policy.total_s - (clock() - start)

    def wait(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after_s if isinstance(error, EndpointError) else None
        return jitter(state) if asked is None else max(asked, 0.0)

    def stop(state: tenacity.RetryCallState) -> bool:
        return state.attempt_number >= policy.attempts or state.upcoming_sleep >= left()

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(lambda e: isinstance(e, EndpointError) and RETRIED[e.cause]),
        wait=wait,
        stop=stop,
        sleep=sleep,
        before_sleep=_log_retry,
        reraise=True,
    )
    attempt = 0
    try:
        for this in retrying:
            with this:
                attempt = this.retry_state.attempt_number
                return call(max(0.001, min(policy.attempt_s, left())))
    except EndpointError as error:
        if attempt > 1:
            raise EndpointError(
                f"{error.what} Tried {attempt} times in {clock() - start:.1f} s.",
                error.fix,
                cause=error.cause,
                status=error.status,
                retry_after_s=error.retry_after_s,
            ) from error
        raise
    raise AssertionError("tenacity ended without a result")


def _log_retry(state: tenacity.RetryCallState) -> None:
    _LOG.info(
        "attempt %d failed, next in %.1f s: %s",
        state.attempt_number,
        state.upcoming_sleep,
        state.outcome and state.outcome.exception(),
    )
