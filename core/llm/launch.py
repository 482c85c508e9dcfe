"""Opens the model of a launch, and says before a paid one what it may cost at most."""

from pathlib import Path
from typing import Any

from core.errors import BadInput
from core.llm.budget import Allowance, Budget
from core.llm.client import Client
from core.llm.configs import ModelConfig
from core.llm.models import estimate, open_client, parse_price


def open_model(config: ModelConfig, cassette: Path) -> Client:
    """Return the client of a run: what the cassette holds is replayed, the rest is asked and recorded.

    Raises:
        BadInput: the model is unknown, or its price is.
    """
    unlimited = config.allow_unpriced and config.max_usd == 0
    limits = Allowance() if unlimited else Allowance(usd=config.max_usd)
    # What an interrupted start has spent counts: the limit is the run's, not the process's.
    budget = Budget(limits, name="--max-usd", charge_replays=True)
    return open_client(config.name, cassette=cassette, mode="replay_or_record", budget=budget, **_access(config))


def worst_case(config: ModelConfig, *, calls: int, prompt_bytes: int, max_tokens: int) -> str | None:
    """Return in one sentence what a launch may cost at most; None when the model is free.

    Args:
        config: the model.
        calls: questions asked.
        prompt_bytes: length of the longest prompt.
        max_tokens: of an answer.

    Raises:
        BadInput: the model is unknown, its price is, or it costs money while nothing may be spent.
    """
    with open_client(config.name, **_access(config)) as client:
        worst = estimate(client, calls=calls, prompt_bytes=prompt_bytes, max_tokens=max_tokens)
    if worst.usd == 0:
        return None
    if worst.usd is not None and config.max_usd <= 0:
        raise BadInput(worst.text, "Say what it may cost with --max-usd X, or use --model local.")
    return worst.text if config.max_usd <= 0 else f"{worst.text} It is stopped at ${config.max_usd:g}."


def _access(config: ModelConfig) -> dict[str, Any]:
    price = None if config.price is None else parse_price(config.price)
    return {"api_base": config.api_base, "price": price, "allow_unpriced": config.allow_unpriced}
