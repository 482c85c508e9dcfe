"""Can a model do what complab asks of models: structured answers, actions, option scoring; how fast, at what price."""

import statistics
import time
from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from core.llm.client import Client
from core.llm.errors import BudgetExceeded, EndpointError, LLMError
from core.llm.loop import ActionLoop
from core.llm.models import Estimate, estimate
from core.llm.types import Message, Usage
from core.records import Json, Record

_CALLS = 3 + 3 + 2
_PROMPT_BYTES = 900
_MAX_TOKENS = 90

_OPTIONS = ("inline-threshold=500", "unroll-threshold=0", "vectorize-loops=off", "no change")


class CheckItem(Record):
    """One thing that was tried."""

    name: str
    ok: bool
    detail: str
    seconds: float


class CheckReport(Record):
    """What `complab llm check MODEL --json` prints."""

    model: str
    ok: bool
    """Structured answers and actions both work; option scoring may be missing."""
    items: tuple[CheckItem, ...]
    latency_s: float | None
    """Median of a structured answer; None when there was none."""
    usage: Usage
    price: str
    """Where the price comes from, with dollars per million tokens."""
    engine: dict[str, Json]


class _Advice(BaseModel):
    model_config = ConfigDict(extra="forbid")
    knob: Literal["inline-threshold", "unroll-threshold", "vectorize-loops"]
    value: int = Field(ge=0, le=1000)
    reason: str = Field(max_length=60)


class _Inspect(BaseModel):
    kind: Literal["inspect"]
    function: Literal["main", "kernel"]


class _Finish(BaseModel):
    kind: Literal["finish"]
    verdict: Literal["change", "keep"]


def check_estimate(client: Client) -> Estimate:
    """Return the most that `check` can cost with this client."""
    return estimate(client, calls=_CALLS, prompt_bytes=_PROMPT_BYTES, max_tokens=_MAX_TOKENS)


def check(client: Client) -> CheckReport:
    """Try a model and report. A thing that it cannot do is an item with `ok` false, not an exception.

    Raises:
        EndpointError, BudgetExceeded: the model could not be asked at all.
    """
    latencies: list[float] = []
    engine: dict[str, Json] = {}

    def structured() -> str:
        for remark in ("bar not inlined into main", "loop not vectorized: call in loop", "loop not unrolled"):
            start = time.monotonic()
            advice, response = client.structured(_Advice, _question(remark))
            latencies.append(time.monotonic() - start)
            engine.update(response.engine)
        return f"3 of 3 fit the schema; the last: {advice.knob}={advice.value}"

    def actions() -> str:
        loop = ActionLoop(client, _question("kernel is hot; main is cold"), (_Inspect, _Finish), max_steps=3)
        action = loop.ask()
        while action is not None:
            if isinstance(action, _Finish):
                loop.finish()
                break
            action = loop.observe({"calls": 12, "size": 310})
        if loop.stopped not in ("finished", "steps"):
            raise LLMError(f"the loop stopped after {loop.steps} actions: {loop.stopped}.")
        return f"{loop.steps} valid actions, {loop.stopped}"

    def scoring() -> str:
        scores = client.score(_question("bar not inlined into main"), _OPTIONS, orders=2)
        best = scores.ranking[0]
        return (
            f"favours {scores.options[best]!r} with {scores.probabilities[best]:.2f}, agreement {scores.agreement:.2f}"
        )

    items = tuple(
        _try(name, run) for name, run in (("structured", structured), ("actions", actions), ("scoring", scoring))
    )
    price = client.adapter.price
    return CheckReport(
        model=client.model,
        ok=all(item.ok for item in items if item.name != "scoring"),
        items=items,
        latency_s=statistics.median(latencies) if latencies else None,
        usage=client.budget.spending.would_have,
        price="unknown"
        if price is None
        else f"${price.prompt * 1e6:g} in, ${price.completion * 1e6:g} out per million tokens ({price.source})",
        engine=engine,
    )


def _try(name: str, run: Callable[[], str]) -> CheckItem:
    start = time.monotonic()
    try:
        detail, ok = run(), True
    except LLMError as error:
        if isinstance(error, BudgetExceeded) or (isinstance(error, EndpointError) and error.cause != "bad_request"):
            raise
        detail, ok = str(error), False
    return CheckItem(name=name, ok=ok, detail=detail, seconds=round(time.monotonic() - start, 3))


def _question(remark: str) -> list[Message]:
    return [
        Message(role="system", content="You advise a compiler. Answer with JSON only when asked for it."),
        Message(role="user", content=f"An optimization remark says: {remark}. What should be done for speed?"),
    ]
