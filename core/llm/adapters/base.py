"""The protocol of a transport: one call, no retries, no cache, no judgement."""

from typing import Protocol

from core.llm.types import Capabilities, Price, Reply, Request


class Adapter(Protocol):
    """Carries one request to one endpoint. Safe to call from several threads."""

    @property
    def name(self) -> str:
        """Which adapter this is, as written into provenance."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What the endpoint can be asked for."""
        ...

    @property
    def price(self) -> Price | None:
        """The price of the model, or None when it is unknown."""
        ...

    def call(self, request: Request, timeout_s: float) -> Reply:
        """Make one attempt within `timeout_s` seconds. `Reply.usd` is filled in by the client.

        Raises:
            EndpointError: anything that went wrong, with its cause.
        """
        ...

    def close(self) -> None:
        """Release connections and child processes. Calling it twice is harmless."""
        ...
