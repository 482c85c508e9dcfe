"""litellm is transport only, and its known malicious releases are refused before they are imported."""

import importlib.metadata
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from core.errors import BadInput
from core.llm.adapters import litellm_
from core.llm.errors import EndpointError
from core.llm.models import open_client
from core.llm.retry import RetryPolicy
from core.llm.types import Message, Price, Request, ResponseSpec

if TYPE_CHECKING:
    from tests.core.llm.fake_server import FakeServer

# litellm is an extra: a developer may be without it, continuous integration may not.
live = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("litellm") is None and "CI" not in os.environ, reason="the extra `llm` is not installed"
    ),
    pytest.mark.filterwarnings("ignore"),  # litellm's and its dependencies' own
]


@pytest.mark.parametrize("version", ["1.82.7", "1.82.8", "1.107.0", "1.107.12"])
def test_known_bad_releases_are_refused(version: str) -> None:
    with pytest.raises(BadInput, match="malicious"):
        litellm_.refuse_bad_release(version)


@pytest.mark.parametrize("version", ["1.82.6", "1.82.70", "1.110.2", "11.107.1", "1.1070.0"])
def test_other_releases_are_not(version: str) -> None:
    litellm_.refuse_bad_release(version)


def install(site: Path, version: str, *files: str) -> None:
    """Make a folder look as if this litellm were installed in it; importing it would fail the test."""
    info = site / f"litellm-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: litellm\nVersion: {version}\n")
    package = site / "litellm"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('imported')\n")
    for name in files:
        (site / name).write_text("import os\n")
    listed = ["litellm/__init__.py,,", *(f"{name},," for name in files)]
    (info / "RECORD").write_text("\n".join(listed) + "\n")


@pytest.mark.parametrize(
    ("version", "files", "complaint"),
    [("1.82.8", (), "known malicious"), ("1.110.2", ("litellm_init.pth",), "every start of Python")],
)
def test_a_bad_install_is_refused_before_its_import(
    version: str, files: tuple[str, ...], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, version, *files)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "litellm", raising=False)
    with pytest.raises(BadInput, match=complaint):
        open_client("openai/some-model")
    assert "litellm" not in sys.modules


def test_a_start_hook_that_is_in_no_record_is_found_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "1.110.2")
    (tmp_path / "zz_litellm_hook.pth").write_text("import os\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadInput, match="zz_litellm_hook"):
        litellm_.installed_version()


def test_without_litellm_the_error_says_how_to_get_it_and_what_else_is_possible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> Any:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", missing)
    with pytest.raises(BadInput, match=r"complab\[llm\].*Possible are"):
        open_client("openai/some-model")


class _Status(Exception):
    def __init__(self, status: int | None) -> None:
        super().__init__("x")
        self.status_code = status


class ConnectError(Exception):
    """Named as the transport's own."""


def test_causes_come_from_the_transport_error_under_an_exception_before_its_status() -> None:
    refused = _Status(500)  # litellm shows a refused connection as an InternalServerError
    refused.__cause__ = ConnectError()
    assert litellm_.cause_of_exception(refused) == "connection"
    assert litellm_.cause_of_exception(_Status(429)) == "rate_limit"
    assert litellm_.cause_of_exception(_Status(401)) == "auth"
    assert litellm_.cause_of_exception(TimeoutError()) == "timeout"
    assert litellm_.cause_of_exception(_Status(None)) == "protocol"


class TestInstalled:
    pytestmark = live

    def open(self, server: "FakeServer", attempts: int = 2, attempt_s: float = 20) -> Any:
        # hosted_vllm is litellm's provider for any OpenAI-compatible endpoint; openai/NAME would be ours
        return open_client(
            "hosted_vllm/fake",
            api_base=server.url,
            api_key="correct-horse-battery",
            price=Price(prompt=0, completion=0, source="given"),
            retry=RetryPolicy(attempts=attempts, attempt_s=attempt_s),
            sleep=lambda _: None,
        )

    def request(self) -> Request:
        schema = {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "required": ["a"],
            "additionalProperties": False,
        }
        question = Message(role="user", content="hi")
        return Request(model="m", messages=(question,), response=ResponseSpec(json_schema=schema))

    def test_the_installed_release_is_a_good_one(self) -> None:
        assert litellm_.installed_version() == importlib.metadata.version("litellm")

    def test_an_answer_comes_through_after_a_passing_fault(self, server: "FakeServer") -> None:
        server.fail(429, headers={"Retry-After": "3"})
        server.say('{"a": 1}')
        with self.open(server) as client:
            response = client.complete(self.request())
        assert response.text == '{"a": 1}'
        assert response.usage.tokens == 15
        assert len(server.requests) == 2
        assert server.requests[1]["response_format"]["json_schema"]["schema"]["required"] == ["a"]
        assert server.keys[1] == "Bearer correct-horse-battery"

    @pytest.mark.parametrize(
        ("status", "cause"),
        [(400, "bad_request"), (401, "auth"), (404, "not_found"), (429, "rate_limit"), (500, "server")],
    )
    def test_failures_have_their_cause(self, server: "FakeServer", status: int, cause: str) -> None:
        server.fail(status, "key correct-horse-battery is bad", headers={"Retry-After": "3"})
        with self.open(server, attempts=1) as client, pytest.raises(EndpointError) as caught:
            client.complete(self.request())
        assert caught.value.cause == cause
        assert "correct-horse-battery" not in str(caught.value)
        assert len(server.requests) == 1  # litellm itself does not retry
        if status == 429:
            assert caught.value.retry_after_s == 3

    def test_a_missing_key_is_named_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        waited: list[float] = []
        with (
            open_client("openai/gpt-4o-mini", sleep=waited.append) as client,
            pytest.raises(EndpointError, match="Set OPENAI_API_KEY") as caught,
        ):
            client.complete(self.request())
        assert caught.value.cause == "auth"
        assert not waited

    def test_a_refused_connection_and_a_hang_are_told_apart(self, server: "FakeServer") -> None:
        server.hang()
        with self.open(server, attempts=1, attempt_s=0.5) as client, pytest.raises(EndpointError) as caught:
            client.complete(self.request())
        assert caught.value.cause == "timeout"
        server.close()
        with self.open(server, attempts=1) as client, pytest.raises(EndpointError) as caught:
            client.complete(self.request())
        assert caught.value.cause == "connection"

    def test_what_a_provider_does_not_take_is_left_out_and_written_down(self, server: "FakeServer") -> None:
        picky = litellm_.LiteLLM("anthropic/claude-3-5-haiku-20241022", api_key="none")
        assert picky.capabilities.top_logprobs == 0
        server.say('{"a": 1}')
        with self.open(server) as client:
            client.adapter._taken -= {"seed"}
            response = client.complete(self.request())
        assert "seed" not in server.requests[0]
        assert response.engine["not_sent"] == ["seed", "top_p"]

    def test_an_unknown_provider_is_bad_input_and_an_unlisted_price_is_unknown(self) -> None:
        with pytest.raises(BadInput, match=r"no provider 'nosuch'.*Possible are"):
            open_client("nosuch/model")
        assert litellm_.LiteLLM("openai/no-such-model-at-all").price is None
        known = litellm_.LiteLLM("openai/gpt-4o-mini").price
        assert known is not None
        assert known.prompt > 0
