"""The one client: every question to every model goes through here.

A call goes cassette -> budget -> limiter -> retry(adapter) -> validate, re-ask -> log. The cassette comes before the
budget because a replayed call spends nothing.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Self, TypeVar

from pydantic import BaseModel

from core.llm.adapters.base import Adapter
from core.llm.adapters.openai_format import prompt_tokens_bound
from core.llm.budget import Allowance, Budget
from core.llm.cassette import Cassette
from core.llm.errors import EndpointError, InvalidOutput, NoLogprobs, UnpricedModel
from core.llm.limiter import Limiter
from core.llm.redact import redact, redact_json
from core.llm.retry import RetryPolicy, call_with_retries
from core.llm.schema import check_json, parse_answer, strict_schema, token_bound
from core.llm.scoring import LABELS, combine, label_logprobs, one_line, orders_of, question_text
from core.llm.types import (
    GenParams,
    Message,
    OptionScores,
    Reply,
    Request,
    Response,
    ResponseSpec,
    TemplateRef,
    Usage,
)
from core.records import Digest

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

_LOG = logging.getLogger(__name__)
_BAD_ANSWER_CAP_CHARS = 2000


class Client:
    """Asks one model. Thread-safe; a context manager.

    Args:
        model: the model's name as requested; part of every exchange key.
        adapter: the transport.
        cassette: record or replay; None: every call is live and nothing is written.
        budget: limits; None: no limits.
        allow_unpriced: take a model whose price is unknown. Its dollars are then reported as unknown, never as zero.
        retry: patience with the endpoint.
        limiter: concurrency and rate; None: four calls at once.
        max_reasks: how often an invalid answer is asked again, with the reason.
        sleep: waits between retries; tests inject their own.

    Raises:
        UnpricedModel: the adapter knows no price and `allow_unpriced` is not set.
    """

    def __init__(
        self,
        model: str,
        adapter: Adapter,
        *,
        cassette: Cassette | None = None,
        budget: Budget | None = None,
        allow_unpriced: bool = False,
        retry: RetryPolicy | None = None,
        limiter: Limiter | None = None,
        max_reasks: int = 2,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if adapter.price is None and not allow_unpriced:
            raise UnpricedModel(
                f"the price of {model} is unknown, so no dollar limit could be kept.",
                "Give its price (--price IN,OUT in dollars per million tokens), or allow it (--allow-unpriced).",
            )
        self.model = model
        self.adapter = adapter
        self.cassette = cassette
        self.budget = budget or Budget()
        self.retry = retry or RetryPolicy()
        self.max_reasks = max_reasks
        self._limiter = limiter or Limiter()
        self._sleep = sleep
        self._one_scoring = threading.RLock()

    def within(self, name: str, allowance: Allowance | None = None) -> "Client":
        """Return a client for the same model, cassette and limits of rate, with a budget below this one's.

        Close the original, not this one.
        """
        client = Client.__new__(Client)
        client.__dict__.update(self.__dict__)
        client.budget = self.budget.child(name, allowance)
        return client

    def complete(self, request: Request) -> Response:
        """Return a valid answer; with a JSON schema, its text is one object that fits the schema.

        Raises:
            InvalidOutput: the answers stayed invalid after all re-asks.
            EndpointError, BudgetExceeded, ReplayMiss: as they say.
        """
        spec = request.response
        if spec is not None and spec.json_schema is not None:
            schema = spec.json_schema
            return self._ask(request, lambda text: check_json(text, schema))[1]
        if spec is not None and spec.labels is not None:
            labels = spec.labels
            return self._ask(request, lambda text: _one_of(text, labels))[1]
        return self._ask(request, lambda text: text)[1]

    def structured(
        self,
        model_cls: type[M],
        messages: Sequence[Message],
        *,
        params: GenParams | None = None,
        check: Callable[[M], None] | None = None,
        sample: int = 0,
        templates: tuple[TemplateRef, ...] = (),
    ) -> tuple[M, Response]:
        """Return an instance of a pydantic model, and the response it came in.

        Args:
            model_cls: the form of the answer; see `core.llm.schema.strict_schema` for what it may hold.
            messages: the question.
            params: sampling; None: greedy, with as many tokens as the schema can need.
            check: further validation; raises ValueError with a message for the model.
            sample: index among repeated samples of the same question.
            templates: where the messages come from.

        Raises:
            InvalidOutput: the answers stayed invalid after all re-asks.
            UnfitSchema: the model class has no largest answer.
            EndpointError, BudgetExceeded, ReplayMiss: as they say.
        """
        schema = strict_schema(model_cls)
        request = Request(
            model=self.model,
            messages=tuple(messages),
            params=params or GenParams(max_tokens=token_bound(schema)),
            response=ResponseSpec(json_schema=schema),
            sample=sample,
            templates=templates,
        )

        def parse(text: str) -> M:
            instance = parse_answer(text, model_cls, schema)
            if check is not None:
                check(instance)
            return instance

        return self._ask(request, parse)

    def score(
        self,
        messages: Sequence[Message],
        options: Sequence[str],
        *,
        orders: int = 3,
        seed: int = 0,
        templates: tuple[TemplateRef, ...] = (),
    ) -> OptionScores:
        """Return how the model weighs a closed set of options.

        Each option gets a one-token label; one token is asked for, and the log-probabilities of the labels are read
        from its alternatives, once per order of the options, and averaged. The order is permuted because models favour
        places. Prompt log-probabilities are never used.

        Args:
            messages: the question; the options are listed after its last message, which is the user's.
            options: 2 to 20 different texts, one line each, 300 characters at most.
            orders: how many orders to ask; more cost more and cancel more bias.
            seed: of the permutation.
            templates: where the messages come from.

        Raises:
            ValueError: the options are too few, too many or not different.
            NoLogprobs: the endpoint gives no usable log-probabilities. Nothing is then scored at chance.
            EndpointError, BudgetExceeded, ReplayMiss: as they say.
        """
        texts = [one_line(option) for option in options]
        if not 2 <= len(texts) <= len(LABELS) or len(set(texts)) != len(texts) or not all(texts):
            raise ValueError(f"score needs 2 to {len(LABELS)} different options that are not empty, got {texts}")
        if not messages or messages[-1].role != "user" or orders < 1:
            raise ValueError("score needs a last message from the user, and at least one order")
        if self.adapter.capabilities.top_logprobs < 1:
            raise NoLogprobs(
                f"{self.model} gives no log-probabilities, so it cannot score options.",
                "Use a model behind an endpoint that gives top_logprobs, or ask with `structured`.",
            )
        labels = LABELS[: len(texts)]
        chosen = orders_of(len(texts), orders, seed)
        per_order: list[list[float]] = []
        unseen: list[float] = []
        responses: list[Response] = []
        previous: Digest | None = None
        with self._sequence():
            for order in chosen:
                request = Request(
                    model=self.model,
                    messages=(
                        *messages[:-1],
                        Message(role="user", content=f"{messages[-1].content}\n\n{question_text(texts, order)}"),
                    ),
                    params=GenParams(max_tokens=1, top_logprobs=max(20, len(labels))),
                    response=ResponseSpec(labels=labels),
                    after=previous,
                    templates=templates,
                )
                request = _redacted(request)
                try:
                    reply, replayed = self._exchange(request)
                except EndpointError as error:
                    if error.cause != "bad_request":
                        raise
                    raise NoLogprobs(
                        f"{self.model} refuses a request for log-probabilities: {error.what}",
                        "Use another endpoint, or ask with `structured`.",
                    ) from error
                logprobs, hidden = label_logprobs(reply.top_logprobs, labels, self.model)
                per_order.append(logprobs)
                unseen.append(hidden)
                responses.append(_response(reply, (request.key,), self._usage(reply), replayed))
                previous = request.key
        probabilities, agreement = combine(per_order, chosen, len(texts))
        return OptionScores(
            options=tuple(options),
            probabilities=probabilities,
            agreement=agreement,
            unseen=max(unseen),
            orders=len(chosen),
            exchanges=tuple(key for response in responses for key in response.exchanges),
            usage=sum((response.usage for response in responses), Usage()),
            replayed=all(response.replayed for response in responses),
        )

    def close(self) -> None:
        """Close the adapter (and with it a local model's process) and the cassette."""
        try:
            self.adapter.close()
        finally:
            if self.cassette is not None:
                self.cassette.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def _ask(self, request: Request, parse: Callable[[str], T]) -> tuple[T, Response]:
        """Ask until `parse` takes the answer: a bad one is shown with the reason, a cut one gets twice the tokens."""
        request = _redacted(request)
        original = request
        keys: list[Digest] = []
        usage = Usage()
        all_replayed = True
        while True:
            reply, replayed = self._exchange(request)
            keys.append(request.key)
            usage += self._usage(reply)
            all_replayed = all_replayed and replayed
            try:
                if reply.finish == "length" and request.response is not None and request.response.labels is None:
                    raise _CutShort(f"the answer was cut off at {request.params.max_tokens} tokens")
                return parse(reply.text), _response(reply, tuple(keys), usage, all_replayed)
            except ValueError as error:
                _LOG.info("invalid answer in exchange %s: %s", request.key[:12], redact(str(error)))
                if len(keys) > self.max_reasks:
                    raise InvalidOutput(
                        f"{self.model} gave no valid answer in {len(keys)} tries; the last: {error}.",
                        "Use a larger model, or a simpler question.",
                        text=reply.text,
                        exchanges=tuple(keys),
                    ) from error
                request = _again(original, request, reply, error)

    def _exchange(self, request: Request) -> tuple[Reply, bool]:
        """Return the recorded reply, or a live one (recorded when there is a cassette); and whether it was recorded."""
        if self.cassette is not None:
            recorded = self.cassette.find(request)
            if recorded is not None:
                self.budget.replay(self._usage(recorded))
                return recorded, True
        reply = self._live(request)
        if self.cassette is not None:
            reply = self.cassette.record(request, reply)
        return reply, False

    def _live(self, request: Request) -> Reply:
        price = self.adapter.price
        prompt, completion = prompt_tokens_bound(request), request.params.max_tokens
        worst = Usage(
            calls=1,
            prompt_tokens=prompt,
            completion_tokens=completion,
            usd=None if price is None else price.usd(prompt, completion),
        )
        reservation = self.budget.reserve(worst)
        start = time.monotonic()
        try:
            with self._sequence(), self._limiter.place():
                reply = call_with_retries(
                    lambda timeout_s: self.adapter.call(request, timeout_s), self.retry, sleep=self._sleep
                )
            usd = None if price is None else price.usd(reply.prompt_tokens, reply.completion_tokens)
            reply = reply.model_copy(
                update={"usd": usd, "text": redact(reply.text), "engine": redact_json(reply.engine)}
            )
            reservation.commit(self._usage(reply))
        finally:
            reservation.refund()
        _LOG.info(
            "exchange %s: %s, %d + %d tokens, %s dollars, %.2f s",
            request.key[:12],
            self.model,
            reply.prompt_tokens,
            reply.completion_tokens,
            "unknown" if reply.usd is None else f"{reply.usd:.6f}",
            time.monotonic() - start,
        )
        return reply

    def _sequence(self) -> AbstractContextManager[object]:
        """Keep other calls out while calls that share a prompt prefix are made. Taken before a place of the limiter."""
        return self._one_scoring if self.adapter.capabilities.prefix_reuse else nullcontext()

    @staticmethod
    def _usage(reply: Reply) -> Usage:
        return Usage(
            calls=1, prompt_tokens=reply.prompt_tokens, completion_tokens=reply.completion_tokens, usd=reply.usd
        )


class _CutShort(ValueError):
    """The answer ended at max_tokens."""


def _one_of(text: str, labels: Sequence[str]) -> str:
    if text.strip() not in labels:
        raise ValueError(f"the answer must be one of {', '.join(labels)}")
    return text.strip()


def _again(original: Request, request: Request, reply: Reply, error: ValueError) -> Request:
    """Return the re-ask: with twice the tokens when the answer was cut, else with the answer and what is wrong."""
    if isinstance(error, _CutShort):
        params = request.params.model_copy(update={"max_tokens": 2 * request.params.max_tokens})
        return request.model_copy(update={"params": params})
    complaint = f"This answer is not valid: {error}. Answer again, with the JSON object alone."
    if original.response is not None and original.response.labels is not None:
        complaint = f"This answer is not valid: {error}. Answer again, with the label alone."
    turns = (
        Message(role="assistant", content=reply.text[:_BAD_ANSWER_CAP_CHARS] or "(nothing)"),
        Message(role="user", content=complaint),
    )
    return request.model_copy(update={"messages": (*original.messages, *turns)})


def _redacted(request: Request) -> Request:
    """Return the request as it may leave this process: no secret reaches a model or a file."""
    messages = tuple(m.model_copy(update={"content": redact(m.content)}) for m in request.messages)
    return request.model_copy(update={"messages": messages})


def _response(reply: Reply, keys: tuple[Digest, ...], usage: Usage, replayed: bool) -> Response:
    return Response(
        text=reply.text,
        finish=reply.finish,
        top_logprobs=reply.top_logprobs,
        engine=reply.engine,
        exchanges=keys,
        usage=usage,
        replayed=replayed,
    )
