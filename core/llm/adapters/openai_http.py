"""Any OpenAI-compatible endpoint over HTTP: vLLM, SGLang, llama.cpp, Ollama and most vendors."""

import email.utils
import json
import os
import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx

from core.errors import BadInput
from core.llm.adapters.openai_format import body_of, reply_of
from core.llm.errors import EndpointError
from core.llm.redact import register_secret
from core.llm.retry import cause_of
from core.llm.types import Capabilities, Price, Reply, Request
from core.records import Json

_BODY_CAP_BYTES = 16 << 20
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def is_loopback(url: str) -> bool:
    """Return whether a URL names this machine."""
    return urlsplit(url).hostname in _LOOPBACK


class OpenAIHttp:
    """Chat completions at `base_url` (the address that ends in /v1).

    Args:
        base_url: http or https.
        model: name at the endpoint; empty: the first that it lists.
        api_key: the key; None: `OPENAI_API_KEY` from the environment for a remote host, none for loopback.
        capabilities: what the endpoint can be asked for.
        price: dollars per token; None: unknown, except on loopback, where it is zero.
        extra_body: further fields of every request body (they become part of the provenance).

    Raises:
        BadInput: the URL is not one.
    """

    def __init__(
        self,
        base_url: str,
        model: str = "",
        *,
        api_key: str | None = None,
        capabilities: Capabilities | None = None,
        price: Price | None = None,
        extra_body: Mapping[str, Json] | None = None,
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise BadInput(f"{base_url!r} is not the address of an endpoint.", "Give http(s)://HOST[:PORT]/v1.")
        self._base_url = base_url.rstrip("/")
        self._model = model
        loopback = is_loopback(base_url)
        key = api_key if api_key is not None else ("" if loopback else os.environ.get("OPENAI_API_KEY", ""))
        register_secret(key)
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._capabilities = capabilities or Capabilities()
        self._price = price or (Price(prompt=0, completion=0, source="loopback") if loopback else None)
        self._extra_body = dict(extra_body or {})
        self._trust_env = not loopback  # a proxy variable must not catch calls to this machine
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None
        self._client_pid = 0

    @property
    def name(self) -> str:
        """`openai_http`."""
        return "openai_http"

    @property
    def capabilities(self) -> Capabilities:
        """As given."""
        return self._capabilities

    @property
    def price(self) -> Price | None:
        """As given; zero on loopback."""
        return self._price

    @property
    def base_url(self) -> str:
        """The address that ends in /v1."""
        return self._base_url

    def call(self, request: Request, timeout_s: float, extra_body: Mapping[str, Json] | None = None) -> Reply:
        """Make one attempt; `extra_body` holds fields of this request alone."""
        deadline = time.monotonic() + timeout_s
        if not self._model:
            self._model = self._first_model(deadline)
        extra = self._extra_body | dict(extra_body or {})
        body = body_of(request, self._model, self._capabilities) | extra
        data = self._exchange("POST", "/chat/completions", deadline, body)
        endpoint = "loopback" if is_loopback(self._base_url) else self._base_url  # ports change, recordings should not
        engine: dict[str, Json] = {"adapter": self.name, "endpoint": endpoint}
        return reply_of(data, request, engine | ({"extra_body": extra} if extra else {}))

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            if self._client is not None and self._client_pid == os.getpid():
                self._client.close()
            self._client = None

    def _http(self) -> httpx.Client:
        with self._lock:
            if self._client is None or self._client_pid != os.getpid():  # connections must not be shared after a fork
                self._client = httpx.Client(headers=self._headers, trust_env=self._trust_env, follow_redirects=False)
                self._client_pid = os.getpid()
            return self._client

    def _first_model(self, deadline: float) -> str:
        data = self._exchange("GET", "/models", deadline, None)
        try:
            return str(data["data"][0]["id"])
        except (KeyError, IndexError, TypeError) as error:
            raise EndpointError(
                f"{self._base_url} lists no model.", "Name the model after /v1/ in the address.", cause="not_found"
            ) from error

    def _exchange(self, method: str, path: str, deadline: float, body: dict[str, Any] | None) -> Any:
        """Send and read within the deadline, whole body included: a server that drips bytes is a timeout too."""
        url = self._base_url + path
        timeout_s = max(0.001, deadline - time.monotonic())
        chunks: list[bytes] = []
        try:
            with self._http().stream(method, url, json=body, timeout=timeout_s) as response:
                size = 0
                for chunk in response.iter_bytes():
                    size += len(chunk)
                    chunks.append(chunk)
                    if time.monotonic() > deadline:
                        raise EndpointError(f"{url} did not finish its answer in {timeout_s:.1f} s.", cause="timeout")
                    if size > _BODY_CAP_BYTES:
                        raise EndpointError(f"{url} answered more than {_BODY_CAP_BYTES} bytes.", cause="bad_request")
                status, headers = response.status_code, response.headers
        except httpx.TimeoutException as error:
            raise EndpointError(
                f"{url} did not answer in {timeout_s:.1f} s.", "Is the server overloaded?", cause="timeout"
            ) from error
        except httpx.ConnectError as error:
            raise EndpointError(
                f"{url} cannot be reached ({error}).",
                "Is the server running, and the address right?",
                cause="connection",
            ) from error
        except httpx.HTTPError as error:
            raise EndpointError(f"{url} broke off its answer ({error}).", cause="protocol") from error
        text = b"".join(chunks).decode(errors="replace")
        if status != 200:
            raise _refusal(url, status, text, headers)
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise EndpointError(f"{url} answered no JSON: {text[:200]!r}.", cause="protocol") from error


def retry_after_s(headers: Mapping[str, str], now_s: float) -> float | None:
    """Return how long the server asks to wait: Retry-After in seconds or as a date, or retry-after-ms."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            return max(0.0, float(value) * unit)
        except ValueError:
            date = email.utils.parsedate_tz(value)
            if date is not None:
                return max(0.0, email.utils.mktime_tz(date) - now_s)
    return None


def _refusal(url: str, status: int, text: str, headers: Mapping[str, str]) -> EndpointError:
    cause = cause_of(status, text)
    fix = {
        "auth": "Check the API key (environment variable OPENAI_API_KEY).",
        "not_found": "Check the name of the model and that the address ends in /v1.",
        "context_length": "Shorten the prompt, or use a model with a longer context.",
    }.get(cause, "")
    return EndpointError(
        f"{url} answered {status}: {text[:400].strip()!r}.",
        fix,
        cause=cause,
        status=status,
        retry_after_s=retry_after_s(headers, time.time()),
    )
