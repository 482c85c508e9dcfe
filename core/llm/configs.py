"""Which model a command asks, and what it may cost: the same flags everywhere."""

from dataclasses import dataclass

from core.config import option


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A model and its limits."""

    name: str = option("local", help="Model, as provider/name; `local` is the packaged one.", flag="--model")
    max_usd: float = option(0.0, help="Most dollars it may cost; 0: only free models.", flag="--max-usd")
    api_base: str | None = option(None, help="Address of an OpenAI-compatible endpoint.", flag="--api-base")
    price: str | None = option(None, help="IN,OUT: dollars per million tokens, where unknown.", flag="--price")
    allow_unpriced: bool = option(False, help="Take a model of unknown price.", flag="--allow-unpriced")
