"""Any provider that litellm knows, litellm being transport only: no cache, no retries, no dropped parameters."""

import importlib
import importlib.metadata
import os
import re
import time
from pathlib import Path
from typing import Any, Final

from core.errors import BadInput
from core.llm.adapters.openai_format import body_of, reply_of
from core.llm.adapters.openai_http import retry_after_s
from core.llm.errors import Cause, EndpointError
from core.llm.redact import register_secret
from core.llm.retry import cause_of
from core.llm.types import Capabilities, Price, Reply, Request
from core.records import Json

BAD_RELEASES: Final = re.compile(r"1\.82\.7|1\.82\.8|1\.107\..*")
"""Releases known to carry malicious code (2026), or withdrawn from the index under that suspicion."""

_SWITCHES: Final = {"suppress_debug_info": True, "drop_params": False, "telemetry": False}
_INSTALL: Final = "Install it: `pip install 'complab[llm]'`."


def installed_version() -> str:
    """Return the version of the installed litellm without importing it, after looking for known malicious content.

    Raises:
        BadInput: litellm is not installed, is a known bad release, or brought a `.pth` file (code that runs at every
            start of Python; litellm has none).
    """
    try:
        distribution = importlib.metadata.distribution("litellm")
    except importlib.metadata.PackageNotFoundError as error:
        raise BadInput("this model needs litellm, which is not installed.", _INSTALL) from error
    refuse_bad_release(distribution.version)
    site = Path(str(distribution.locate_file("")))
    listed = [str(f) for f in distribution.files or [] if f.suffix == ".pth"]
    refuse_start_hooks(listed + [str(f) for f in site.glob("*litellm*.pth")])
    return distribution.version


def refuse_bad_release(version: str) -> None:
    """Raise BadInput for a release that must never be imported."""
    if BAD_RELEASES.fullmatch(version):
        raise BadInput(
            f"litellm {version} is a known malicious release.",
            "Uninstall it, treat every secret of this machine as stolen, and install litellm==1.110.2.",
        )


def refuse_start_hooks(files: list[str]) -> None:
    """Raise BadInput when litellm's files include one that runs at every start of Python."""
    if files:
        raise BadInput(
            f"{files[0]} belongs to litellm and runs at every start of Python; no good release has such a file.",
            "Delete it, uninstall litellm, and treat every secret of this machine as stolen.",
        )


class LiteLLM:
    """Chat completions through `litellm.completion`.

    Args:
        model: litellm's name, `provider/name`.
        api_base: address of the endpoint, when it is not the provider's own.
        api_key: the key; None: the provider's environment variable.
        price: dollars per token; None: what litellm's bundled list says.

    Raises:
        BadInput: litellm is not usable, or does not know the provider.
    """

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        price: Price | None = None,
    ) -> None:
        self._version = installed_version()
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # before import: no download of a price list
        self._litellm: Any = importlib.import_module("litellm")
        for switch, value in _SWITCHES.items():
            setattr(self._litellm, switch, value)
        provider = model.partition("/")[0]
        known = {str(getattr(p, "value", p)) for p in self._litellm.provider_list}
        if provider not in known:
            raise BadInput(f"{model!r}: litellm {self._version} knows no provider {provider!r}.", "Give provider/name.")
        register_secret(api_key or "")
        self._model = model
        self._api_base = api_base
        self._api_key = api_key
        self._price = price or self._listed_price()
        self._taken = set(self._litellm.get_supported_openai_params(model=model) or ())

    @property
    def name(self) -> str:
        """`litellm`."""
        return "litellm"

    @property
    def capabilities(self) -> Capabilities:
        """What litellm says of the provider."""
        return Capabilities(
            json_schema="response_format" in self._taken,
            top_logprobs=20 if {"logprobs", "top_logprobs"} <= self._taken else 0,
        )

    @property
    def price(self) -> Price | None:
        """As given, or from litellm's bundled list."""
        return self._price

    def call(self, request: Request, timeout_s: float) -> Reply:
        """Make one attempt."""
        body = body_of(request, self._model, self.capabilities)
        # What a provider does not take would fail the call. Only these two may be left out, and it is written down.
        not_sent: list[Json] = [name for name in ("seed",) if name not in self._taken]
        if request.params.top_p == 1.0:
            not_sent.append("top_p")  # its default; some providers refuse it beside a temperature
        body = {name: value for name, value in body.items() if name not in not_sent}
        try:
            answer = self._litellm.completion(
                **body, timeout=timeout_s, num_retries=0, max_retries=0, api_base=self._api_base, api_key=self._api_key
            )
        except (
            Exception
        ) as error:  # its classes don't tell causes apart (a refused connection is an InternalServerError)
            raise self._refusal(error) from error
        engine: dict[str, Json] = {
            "adapter": self.name,
            "runtime": f"litellm {self._version}",
            "not_sent": not_sent,
        }
        return reply_of(answer.model_dump(), request, engine)

    def close(self) -> None:
        """Do nothing: litellm keeps its own connections."""

    def _listed_price(self) -> Price | None:
        known = self._litellm.model_cost.get(self._model) or self._litellm.model_cost.get(self._model.partition("/")[2])
        if not known:
            return None
        prompt, completion = known.get("input_cost_per_token"), known.get("output_cost_per_token")
        if not prompt or not completion:  # the list writes 0 for what it does not know
            return None
        return Price(prompt=prompt, completion=completion, source=f"litellm {self._version}")

    def _missing_keys(self, error: Exception) -> str:
        """Return the variables that hold no key, when that is what an error is about (litellm calls it a server's)."""
        if self._api_key is not None or not re.search(r"api_key|credentials", str(error)):
            return ""
        return " or ".join(self._litellm.validate_environment(model=self._model)["missing_keys"])

    def _refusal(self, error: Exception) -> EndpointError:
        missing = self._missing_keys(error)
        cause = "auth" if missing else cause_of_exception(error)
        status = getattr(error, "status_code", None)
        response = getattr(error, "response", None)
        headers = getattr(response, "headers", None) or getattr(error, "litellm_response_headers", None) or {}
        fix: dict[Cause, str] = {
            "auth": f"Set {missing}." if missing else "Check the provider's API key in its environment variable.",
            "not_found": "Check the name of the model.",
            "connection": "Is the endpoint running, and the address right?",
        }
        return EndpointError(
            f"{self._model} through litellm failed ({type(error).__name__}): {str(error)[:400]}",
            fix.get(cause, ""),
            cause=cause,
            status=status if isinstance(status, int) else None,
            retry_after_s=retry_after_s(headers, time.time()),
        )


def cause_of_exception(error: BaseException) -> Cause:
    """Return the cause of an exception that litellm raised: by the transport error under it, else by its status."""
    link: BaseException | None = error
    while link is not None:
        names = {c.__name__ for c in type(link).__mro__}
        if names & {"ConnectError", "ConnectionError", "ClientConnectorError"}:
            return "connection"
        if names & {"TimeoutException", "TimeoutError", "APITimeoutError", "Timeout"}:
            return "timeout"
        if names & {"RemoteProtocolError", "JSONDecodeError", "ClientPayloadError"}:
            return "protocol"
        link = link.__cause__ or link.__context__
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return cause_of(status, str(error))
    return "protocol"
