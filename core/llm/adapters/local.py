"""A GGUF model on this machine, served by a child process on loopback that starts at the first call."""

import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from core.errors import BadInput
from core.llm.adapters.openai_http import OpenAIHttp
from core.llm.adapters.weights import Weights
from core.llm.errors import EndpointError
from core.llm.types import CachePolicy, Capabilities, Price, Reply, Request
from core.records import Digest, Json

_START_S = 120.0
_OPENMP = {"OMP_WAIT_POLICY": "PASSIVE"}  # threads that spin while they wait make a busy machine several times slower
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "TMPDIR", "LANG", "HOME")  # a child gets no keys it doesn't need


class LlamaServer:
    """The child process. A context manager; killed on exit, and by itself when this process dies.

    Args:
        weights: the model file.
        threads: compute threads.
        context_tokens: context length.

    Raises:
        BadInput: xllamacpp is not installed, or it cannot load the file.
    """

    def __init__(self, weights: Weights, *, threads: int, context_tokens: int) -> None:
        if find_spec("xllamacpp") is None:
            raise BadInput(
                "the local model needs xllamacpp, which is not installed.",
                "Install it: `pip install 'complab[local]'`.",
            )
        self.api_key = secrets.token_urlsafe(24)
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("llama_server.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ} | _OPENMP,
            close_fds=True,
        )
        try:
            reply = self._handshake(
                {
                    "parent": os.getpid(),
                    "path": str(weights.path),
                    "threads": threads,
                    "context_tokens": context_tokens,
                    "api_key": self.api_key,
                }
            )
        except BaseException:
            self.close()
            raise
        if "error" in reply:
            tail = self._tail()
            self.close()
            raise BadInput(
                f"{weights.path}: llama.cpp cannot serve it ({reply['error']}). {tail}", "Try another GGUF file."
            )
        self.address: str = reply["address"]
        self.version: str = reply["version"]

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the child still runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """Kill the child and reap it."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def _handshake(self, settings: dict[str, Json]) -> dict[str, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        watchdog = threading.Timer(_START_S, self._process.kill)
        watchdog.start()
        try:
            self._process.stdin.write(json.dumps(settings).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = b""
        finally:
            watchdog.cancel()
        if not line:
            self._process.wait()
            raise EndpointError(
                f"the local model's server ended at its start (status {self._process.returncode}). {self._tail()}",
                "Run `complab doctor` to see what this machine lacks.",
                cause="connection",
            )
        reply: dict[str, str] = json.loads(line)
        return reply

    def _tail(self) -> str:
        self._log.seek(0)
        return self._log.read()[-400:].decode(errors="replace").strip()


def _usable_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Local:
    """Chat completions of a GGUF file on this machine. Nothing starts before the first call.

    Args:
        weights: the model file.
        threads: compute threads; None: the CPUs this process may use, four at most.
        context_tokens: context length.
        cache: when prompt prefixes are reused.
    """

    def __init__(
        self,
        weights: Weights,
        *,
        threads: int | None = None,
        context_tokens: int = 4096,
        cache: CachePolicy = "follow",
    ) -> None:
        self._weights = weights
        self._threads = threads or max(1, min(4, _usable_cpus()))
        self._context_tokens = context_tokens
        self._cache: CachePolicy = cache
        self._lock = threading.RLock()  # one slot: one call at a time
        self._server: LlamaServer | None = None
        self._http: OpenAIHttp | None = None
        self._owner = 0
        self._last: Digest | None = None

    @property
    def name(self) -> str:
        """`local`."""
        return "local"

    @property
    def capabilities(self) -> Capabilities:
        """JSON schema and labels are enforced by the engine; log-probabilities of any number of tokens."""
        return Capabilities(label_grammar=True, top_logprobs=200, prefix_reuse=self._cache != "never")

    @property
    def price(self) -> Price | None:
        """Zero."""
        return Price(prompt=0, completion=0, source="local")

    @property
    def server(self) -> LlamaServer | None:
        """The child process, when it has been started."""
        return self._server

    def call(self, request: Request, timeout_s: float) -> Reply:
        """Make one attempt, starting the server when there is none (or it died)."""
        with self._lock:
            deadline = time.monotonic() + timeout_s  # waiting for the slot is not the attempt's fault
            server, http = self._running()
            reuse = self._cache == "always" or (
                self._cache == "follow" and request.after is not None and request.after == self._last
            )
            self._last = None
            reply = http.call(request, max(0.001, deadline - time.monotonic()), {"cache_prompt": reuse})
            self._last = request.key
        return reply.model_copy(
            update={
                "engine": {
                    "adapter": self.name,
                    "served_model": self._weights.name,
                    "weights_sha256": self._weights.sha256,
                    "runtime": f"xllamacpp {server.version}",
                    "threads": self._threads,
                    "context_tokens": self._context_tokens,
                    "cache_prompt": reuse,
                }
            }
        )

    def close(self) -> None:
        """Kill the server, if this process started one."""
        with self._lock:
            if self._http is not None:
                self._http.close()
            if self._server is not None and self._owner == os.getpid():
                self._server.close()
            self._server = self._http = self._last = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def _running(self) -> tuple[LlamaServer, OpenAIHttp]:
        if self._server is None or self._http is None or self._owner != os.getpid() or not self._server.alive:
            self.close()
            server = LlamaServer(self._weights, threads=self._threads, context_tokens=self._context_tokens)
            self._server, self._owner = server, os.getpid()
            self._http = OpenAIHttp(
                server.address + "/v1", self._weights.name, api_key=server.api_key, capabilities=self.capabilities
            )
        return self._server, self._http
