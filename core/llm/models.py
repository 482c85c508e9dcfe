"""From a model's name on the command line to a client: which adapter, at what price, and what a launch may cost."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from core.errors import BadInput
from core.llm.adapters.base import Adapter
from core.llm.budget import Allowance, Budget
from core.llm.cassette import Cassette, Mode
from core.llm.client import Client
from core.llm.limiter import Limiter
from core.llm.retry import RetryPolicy
from core.llm.types import CachePolicy, Price
from core.records import Record

Kind = Literal["local", "scripted", "http", "litellm"]

POSSIBLE: Final = (
    "Possible are: `local` (the packaged SmolLM2-135M), `local/PATH.gguf`, `http(s)://HOST/v1/NAME` "
    "or `openai/NAME` with --api-base (any OpenAI-compatible endpoint), "
    "and `PROVIDER/NAME` of any provider that litellm knows (anthropic/..., gemini/..., openai/...)."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelName:
    """A model's name, taken apart.

    Attributes:
        kind: which adapter.
        id: the name in exchange keys; holds no path of a machine.
        name: what the adapter is asked for (a file, or a name at the endpoint).
        api_base: address, for kind `http`.
    """

    kind: Kind
    id: str
    name: str
    api_base: str = ""


def parse_model(model: str, api_base: str | None = None) -> ModelName:
    """Take a model's name apart.

    Raises:
        BadInput: it is no name of a model; the message lists what is possible.
    """
    head, _, tail = model.strip().partition("/")
    if model.startswith(("http://", "https://")):
        return _parse_url(model)
    if head == "local":
        if tail in ("", "smollm2-135m"):
            return ModelName(kind="local", id="local/smollm2-135m", name="")
        if tail.endswith(".gguf"):
            return ModelName(kind="local", id=f"local/{Path(tail).name}", name=tail)
        raise BadInput(f"{model!r}: no local model {tail!r}.", POSSIBLE)
    if not tail or any(c.isspace() for c in model) or not head:
        raise BadInput(f"{model!r} is not the name of a model.", POSSIBLE)
    if head == "scripted":
        return ModelName(kind="scripted", id=f"scripted/{Path(tail).name}", name=tail)
    if api_base is not None and head == "openai":
        return ModelName(kind="http", id=model, name=tail, api_base=api_base)
    return ModelName(kind="litellm", id=model, name=model)


def open_client(
    model: str,
    *,
    cassette: Path | None = None,
    mode: Mode = "off",
    max_usd: float | None = None,
    budget: Budget | None = None,
    api_base: str | None = None,
    api_key: str | None = None,
    price: Price | None = None,
    allow_unpriced: bool = False,
    retry: RetryPolicy | None = None,
    limiter: Limiter | None = None,
    max_reasks: int = 2,
    threads: int | None = None,
    prompt_cache: CachePolicy = "follow",
    adapter: Adapter | None = None,
    sleep: Callable[[float], None] | None = None,
) -> Client:
    """Return a client for a model by its name. Nothing is started or connected before the first live call.

    Args:
        model: see `POSSIBLE`; `scripted/PATH.json` plays a file of replies.
        cassette: file of recorded exchanges; needed unless the mode is `off`.
        mode: what to do with it; with `replay` the model need not be installed or reachable.
        max_usd: dollar limit; added below `budget` when both are given.
        budget: limits shared with others.
        api_base: address of an OpenAI-compatible endpoint, for `openai/NAME` and litellm's providers.
        api_key: the key; None: from the environment variable of the provider.
        price: dollars per token; None: what is known of the model.
        allow_unpriced: take a model of unknown price.
        retry: patience with the endpoint.
        limiter: concurrency and rate.
        max_reasks: how often an invalid answer is asked again.
        threads: compute threads of a local model.
        prompt_cache: when a local model reuses prompt prefixes; anything but `always` repeats.
        adapter: a transport to use instead of the one that the name stands for (tests).
        sleep: waits between retries (tests).

    Raises:
        BadInput: unknown model, missing package or file, damaged cassette; UnpricedModel among them.
    """
    parsed = parse_model(model, api_base)
    if (mode == "off") != (cassette is None):
        raise ValueError("a cassette file and a mode other than `off` belong together")
    tape = None if cassette is None else Cassette(cassette, mode)
    if max_usd is not None:
        budget = Budget(Allowance(usd=max_usd), name="--max-usd", parent=budget)
    if adapter is None:
        if parsed.kind == "local" and mode != "replay":
            adapter = _local(parsed, threads, prompt_cache)
        else:
            adapter = _adapter_of(parsed, mode, api_base, api_key, price)
    if limiter is None and parsed.kind == "local":
        limiter = Limiter(concurrent=1)
    options = {} if sleep is None else {"sleep": sleep}
    return Client(
        parsed.id,
        adapter,
        cassette=tape,
        budget=budget,
        allow_unpriced=allow_unpriced,
        retry=retry,
        limiter=limiter,
        max_reasks=max_reasks,
        **options,
    )


def parse_price(text: str) -> Price:
    """Read a price given as `IN,OUT`, dollars per million prompt and completion tokens.

    Raises:
        BadInput: it is not two numbers that are not negative.
    """
    try:
        prompt, completion = (float(part) / 1e6 for part in text.split(","))
        return Price(prompt=prompt, completion=completion, source="given")
    except ValueError as error:  # pydantic's ValidationError among them
        raise BadInput(
            f"--price {text!r} is not a price.", "Give IN,OUT in dollars per million tokens, as 0.15,0.6."
        ) from error


class Estimate(Record):
    """The most that a launch can cost, shown before a paid one."""

    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None
    """None: the price is unknown."""
    price_source: str

    @property
    def text(self) -> str:
        """One sentence for people."""
        dollars = "an unknown price" if self.usd is None else f"at most ${self.usd:.4f} (prices: {self.price_source})"
        return (
            f"{self.model}: up to {self.calls} calls, {self.prompt_tokens} prompt and "
            f"{self.completion_tokens} completion tokens, {dollars}."
        )


def estimate(client: Client, *, calls: int, prompt_bytes: int, max_tokens: int) -> Estimate:
    """Return the worst case of a launch: every call is re-asked as often as allowed, with doubled tokens.

    Args:
        client: the model and its price.
        calls: questions asked.
        prompt_bytes: length of the longest prompt.
        max_tokens: of the first try.
    """
    tries = 1 + client.max_reasks
    completion = calls * max_tokens * (2**tries - 1)
    prompt = calls * tries * (-(-prompt_bytes // 2) + 64) + (
        completion if tries > 1 else 0
    )  # re-asks quote bad answers
    price = client.adapter.price
    return Estimate(
        model=client.model,
        calls=calls * tries,
        prompt_tokens=prompt,
        completion_tokens=completion,
        usd=None if price is None else price.usd(prompt, completion),
        price_source="unknown" if price is None else price.source,
    )


def _parse_url(model: str) -> ModelName:
    parts = urlsplit(model)
    if not parts.hostname:
        raise BadInput(f"{model!r} is not an address.", POSSIBLE)
    base, slash, name = model.partition("/v1/")
    api_base = base + "/v1" if slash else model.rstrip("/")
    return ModelName(kind="http", id=f"http/{name or parts.hostname}", name=name, api_base=api_base)


def _local(parsed: ModelName, threads: int | None, prompt_cache: CachePolicy) -> Adapter:
    from core.llm.adapters.local import Local
    from core.llm.adapters.weights import packaged_weights, weights_at

    weights = weights_at(Path(parsed.name)) if parsed.name else packaged_weights()
    return Local(weights, threads=threads, cache=prompt_cache)


def _adapter_of(
    parsed: ModelName, mode: Mode, api_base: str | None, api_key: str | None, price: Price | None
) -> Adapter:
    if mode == "replay":
        from core.llm.adapters.replay import Replay

        return Replay()
    if parsed.kind == "scripted":
        from core.llm.adapters.scripted import Scripted, script_from_file

        return Scripted(script_from_file(Path(parsed.name)), price=price)
    if parsed.kind == "http":
        from core.llm.adapters.openai_http import OpenAIHttp

        return OpenAIHttp(parsed.api_base, parsed.name, api_key=api_key, price=price)
    from core.llm.adapters.litellm_ import LiteLLM

    try:
        return LiteLLM(parsed.name, api_base=api_base, api_key=api_key, price=price)
    except BadInput as error:
        raise BadInput(f"{parsed.id}: {error.what}", f"{error.fix} {POSSIBLE}") from error
