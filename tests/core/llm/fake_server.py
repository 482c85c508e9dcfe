"""An OpenAI-compatible server on loopback that misbehaves on demand."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Scene = Callable[["_Handler"], None]


def completion(text: str, finish: str = "stop", top: list[dict[str, Any]] | None = None) -> bytes:
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": finish,
    }
    if top is not None:
        choice["logprobs"] = {"content": [{"token": text, "logprob": 0.0, "bytes": None, "top_logprobs": top}]}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    body = {"id": "x", "object": "chat.completion", "created": 0, "model": "fake", "choices": [choice], "usage": usage}
    return json.dumps(body).encode()


class FakeServer:
    """Plays its scenes in order; `requests` holds the bodies that came, `keys` their Authorization headers."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.scenes: list[Scene] = []
        self.ended = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._http.daemon_threads = True
        self._http.fake = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def close(self) -> None:
        self.ended.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    completion = staticmethod(completion)

    def say(self, text: str, finish: str = "stop", top: list[dict[str, Any]] | None = None) -> None:
        self.raw(completion(text, finish, top))

    def raw(self, body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.scenes.append(lambda handler: handler.answer(body, status, headers or {}))

    def fail(self, status: int, message: str = "no", headers: dict[str, str] | None = None) -> None:
        self.raw(json.dumps({"error": {"message": message}}).encode(), status, headers)

    def half_a_body(self) -> None:
        body = completion("never finished")
        self.scenes.append(lambda handler: handler.answer(body[: len(body) // 2], 200, {}, length=len(body)))

    def hang(self) -> None:
        self.scenes.append(lambda handler: handler.fake.ended.wait(20) and None)

    def drip(self, pause_s: float) -> None:
        def scene(handler: "_Handler") -> None:
            body = completion("so slow")
            handler.start(200, len(body), {})
            for index in range(len(body)):
                if handler.fake.ended.wait(pause_s):
                    return
                handler.wfile.write(body[index : index + 1])

        self.scenes.append(scene)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def fake(self) -> FakeServer:
        return self.server.fake  # type: ignore[attr-defined,no-any-return]

    def do_GET(self) -> None:
        self.answer(json.dumps({"data": [{"id": "first-listed"}]}).encode(), 200, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.fake.requests.append(json.loads(body))
        self.fake.keys.append(self.headers.get("Authorization"))
        if not self.fake.scenes:
            self.answer(b'{"error": "the fake server has no scene left"}', 418, {})
            return
        try:
            self.fake.scenes.pop(0)(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client gave up, as it should

    def start(self, status: int, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def answer(self, body: bytes, status: int, headers: dict[str, str], length: int | None = None) -> None:
        self.start(status, len(body) if length is None else length, headers)
        self.wfile.write(body)
        if length is not None:
            self.close_connection = True
        self.wfile.flush()

    def log_message(self, *_: Any) -> None:
        pass
