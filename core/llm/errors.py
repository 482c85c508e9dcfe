"""What can go wrong with a model, as errors for people. Every message is redacted when it is made."""

from typing import Literal

from core.errors import BadInput, ComplabError
from core.llm.redact import redact
from core.records import Digest

Cause = Literal[
    "connection",
    "timeout",
    "rate_limit",
    "server",
    "protocol",
    "auth",
    "not_found",
    "context_length",
    "bad_request",
]
"""Why an endpoint failed, whatever the transport calls it. `protocol`: it answered something that is no answer."""


class LLMError(ComplabError):
    """A model could not be asked, or its answer cannot be used. An advisor falls back; it never guesses."""

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(redact(what), redact(fix))


class EndpointError(LLMError):
    """A call failed at the transport or the server.

    Attributes:
        cause: the class of the failure; `core.llm.retry` decides by it.
        status: HTTP status, when there was one.
        retry_after_s: how long the server asks to wait, when it says so.
    """

    def __init__(
        self,
        what: str,
        fix: str = "",
        *,
        cause: Cause,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(what, fix)
        self.cause = cause
        self.status = status
        self.retry_after_s = retry_after_s
        if cause in ("auth", "not_found"):
            self.exit_code = BadInput.exit_code


class InvalidOutput(LLMError):
    """The model's answers stayed invalid after every re-ask.

    Attributes:
        text: the last answer.
        exchanges: keys of all exchanges of this question.
    """

    def __init__(self, what: str, fix: str = "", *, text: str, exchanges: tuple[Digest, ...]) -> None:
        super().__init__(what, fix)
        self.text = redact(text)
        self.exchanges = exchanges


class BudgetExceeded(LLMError):
    """The next call could pass a limit, so it was not made."""


class ReplayMiss(LLMError):
    """A replay was asked something that the cassette does not hold."""


class NoLogprobs(LLMError):
    """The endpoint gives no usable first-token log-probabilities, so options cannot be scored with it."""


class UnpricedModel(LLMError, BadInput):
    """The price of a model is unknown: never taken as zero."""

    exit_code = BadInput.exit_code
