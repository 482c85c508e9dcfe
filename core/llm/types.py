"""What is asked of a model and what it answers: frozen records, the same for every transport."""

from typing import Annotated, Literal

from pydantic import Field

from core.records import Digest, Json, Record, digest_json

FORMAT = 1
"""Version of the meaning of an exchange key and of a cassette line."""

Finish = Literal["stop", "length", "other"]
"""Why the model stopped: by itself, at max_tokens, or for a reason of the provider's (a filter, a tool call)."""

CachePolicy = Literal["never", "follow", "always"]
"""When the engine may reuse the prompt prefix in its slot. never: every prompt is computed whole. follow: only after
exactly the exchange that `Request.after` names, which is as repeatable and faster for option scoring. always: fastest,
but the last digits (and so near-ties) then depend on what was asked before."""


class Message(Record):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class GenParams(Record):
    """Sampling parameters. The defaults are greedy, so that an answer is as repeatable as its engine."""

    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    seed: int = 0
    max_tokens: Annotated[int, Field(ge=1)] = 512
    stop: tuple[str, ...] = ()
    top_logprobs: Annotated[int, Field(ge=0)] = 0
    """How many alternatives of the first token to report; 0: none."""


class ResponseSpec(Record):
    """The form that an answer must have: exactly one of a JSON schema or a closed set of labels."""

    json_schema: dict[str, Json] | None = None
    labels: tuple[str, ...] | None = None


class TemplateRef(Record):
    """Which prompt template a request was rendered from."""

    id: str
    sha256: Digest


class Request(Record):
    """One question to one model."""

    model: str
    messages: tuple[Message, ...]
    params: GenParams = GenParams()
    response: ResponseSpec | None = None
    sample: int = 0
    """Index among repeated samples of one question, so that each has its own recorded answer."""
    after: Digest | None = None
    """Key of the exchange just before, whose prompt prefix the engine may reuse; part of the key because reuse moves
    the last digits of log-probabilities."""
    templates: tuple[TemplateRef, ...] = ()
    """Provenance only: not part of the key, since the rendered text is."""

    @property
    def key(self) -> Digest:
        """Identity of the exchange: what is asked, of which model, how; not where, with which key or patience."""
        return digest_json([FORMAT, self.model_dump(mode="json", exclude={"templates"})])


class Usage(Record):
    """What calls consumed."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float | None = 0.0
    """None: the price is unknown (and unpriced calls were allowed)."""

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "Usage") -> "Usage":
        """Return the sum; an unknown price stays unknown."""
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            usd=None if self.usd is None or other.usd is None else self.usd + other.usd,
        )


class TokenLogprob(Record):
    """A possible first token with its natural log-probability."""

    token: str
    logprob: Annotated[float, Field(le=1e-6)]


class Reply(Record):
    """What one call to an endpoint returned: the half of an exchange that a cassette stores."""

    text: str
    finish: Finish
    prompt_tokens: int
    completion_tokens: int
    top_logprobs: tuple[TokenLogprob, ...] = ()
    """Alternatives of the first token, most likely first; empty when not asked or not given."""
    usd: float | None = None
    """Price of this call when it was made; None: unknown."""
    engine: dict[str, Json] = Field(default_factory=dict)
    """What answered: adapter, served model, engine version, weights, threads, cache use, ..."""


class Exchange(Record):
    """A request with its reply: one line of a cassette."""

    key: Digest
    request: Request
    reply: Reply


class Response(Record):
    """A valid answer, with all exchanges that led to it (re-asks included)."""

    text: str
    finish: Finish
    top_logprobs: tuple[TokenLogprob, ...]
    engine: dict[str, Json]
    exchanges: tuple[Digest, ...]
    """Keys, oldest first: what `Proposal.exchanges` quotes."""
    usage: Usage
    """Sum over the exchanges as they were first made; a replay spends nothing but reports what it would cost."""
    replayed: bool
    """True when no exchange was live."""


class OptionScores(Record):
    """How a model weighs a closed set of options, averaged over permuted orders."""

    options: tuple[str, ...]
    probabilities: tuple[float, ...]
    """In the order of `options`; they sum to 1."""
    agreement: float
    """Share of the orders whose favourite is the overall favourite: low means position bias or indifference."""
    unseen: float
    """Largest bound, over the orders, of the label mass that the endpoint did not show."""
    orders: int
    exchanges: tuple[Digest, ...]
    usage: Usage
    replayed: bool

    @property
    def ranking(self) -> tuple[int, ...]:
        """Indices of options, most probable first; ties keep the order of `options`."""
        return tuple(sorted(range(len(self.options)), key=lambda i: -self.probabilities[i]))


class Price(Record):
    """Dollars per token."""

    prompt: Annotated[float, Field(ge=0)]
    completion: Annotated[float, Field(ge=0)]
    source: str
    """Where the figure comes from: `local`, `loopback`, `given`, `litellm 1.110.2`, ..."""

    def usd(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the price of a call."""
        return self.prompt * prompt_tokens + self.completion * completion_tokens


class Capabilities(Record):
    """What an adapter's endpoint can be asked for; the client never asks for what is not here."""

    json_schema: bool = True
    """The server takes a JSON schema as response format (whether it keeps to it is checked, never trusted). Where it
    does not, the schema is written into the last message."""
    label_grammar: bool = False
    """The server takes a grammar that allows only the labels."""
    top_logprobs: int = 20
    """Most alternatives that may be asked for; 0: no log-probabilities."""
    prefix_reuse: bool = False
    """`Request.after` has an effect."""
