"""The adapter of mode `replay`: there is nothing behind it, only the cassette in front."""

from core.llm.errors import ReplayMiss
from core.llm.types import Capabilities, Price, Reply, Request


class Replay:
    """Answers nothing. The cassette answers; whatever gets past it is an error.

    It claims every capability, because what was asked when the cassette was recorded may be asked again.
    """

    name = "replay"
    capabilities = Capabilities(label_grammar=True, top_logprobs=100, prefix_reuse=True)
    price: Price | None = Price(prompt=0, completion=0, source="replay")

    def call(self, request: Request, timeout_s: float) -> Reply:
        """Raise: a replay makes no call."""
        raise ReplayMiss(
            f"request {request.key[:12]} is not recorded, and mode `replay` calls no model.", "Record it first."
        )

    def close(self) -> None:
        """Do nothing."""
