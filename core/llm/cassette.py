"""Record and replay of exchanges: one JSON line each, readable in review, transcript and training data at once."""

import difflib
import errno
import json
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from core.errors import BadInput
from core.files import make_directory, write_whole
from core.llm.errors import ReplayMiss
from core.llm.types import Exchange, Reply, Request
from core.records import Digest, canonical_json

Mode = Literal["off", "record", "replay", "replay_or_record", "refresh"]
"""off: no file. record: every call is live and written. replay: nothing is live, a miss is an error.
replay_or_record: a hit is replayed, a miss is live and written (how a run resumes). refresh: every call is live; when
it closes, the file holds just what was asked this time, sorted by key."""

_LOG = logging.getLogger(__name__)


class Cassette:
    """The exchanges of one file. Thread-safe; one writing process at a time.

    Args:
        path: the JSONL file; it need not exist unless the mode is `replay`.
        mode: see `Mode`; not `off` (then there is no cassette).

    Raises:
        BadInput: a line is not an exchange, or its key is not that of its request; the file is missing in `replay`.
    """

    def __init__(self, path: Path, mode: Mode) -> None:
        if mode == "off":
            raise ValueError("mode `off` means no cassette")
        if mode == "replay" and not path.is_file():
            raise BadInput(f"{path}: no such cassette, and mode `replay` calls no model.", "Record it first.")
        self.path = path
        self.mode = mode
        self.dropped = ""
        """The torn last line, when there was one: a write that never finished."""
        self._lock = threading.Lock()
        self._exchanges = self._load()
        self._asked: dict[Digest, Exchange] = {}

    def __len__(self) -> int:
        return len(self._exchanges)

    def __iter__(self) -> Iterator[Exchange]:
        with self._lock:
            return iter(list(self._exchanges.values()))

    def find(self, request: Request) -> Reply | None:
        """Return the recorded reply, or None when the call must be live.

        Raises:
            ReplayMiss: mode `replay` and no such exchange; the message shows the nearest one and where it differs.
        """
        if self.mode in ("record", "refresh"):
            return None
        with self._lock:
            exchange = self._exchanges.get(request.key)
            if exchange is not None:
                return exchange.reply
            if self.mode == "replay":
                raise self._miss(request)
        return None

    def record(self, request: Request, reply: Reply) -> Reply:
        """Store a live exchange with one write and return the reply that stands for it.

        When two threads asked the same thing at once, the first answer stands for both, so that a replay agrees.
        """
        exchange = Exchange(key=request.key, request=request, reply=reply)
        with self._lock:
            earlier = self._asked.get(exchange.key)
            if earlier is not None:
                return earlier.reply
            self._asked[exchange.key] = exchange
            self._exchanges[exchange.key] = exchange
            if self.mode != "refresh":
                self._append(line_of(exchange))
        return reply

    def close(self) -> None:
        """End a refresh: replace the file by what was asked, in one rename. Other modes have nothing left to do."""
        if self.mode != "refresh" or not self._asked:
            return
        with self._lock:
            make_directory(self.path.parent)
            write_whole(self.path, b"".join(line_of(self._asked[key]) for key in sorted(self._asked)))

    def _load(self) -> dict[Digest, Exchange]:
        exchanges: dict[Digest, Exchange] = {}
        if not self.path.is_file():
            return exchanges
        data = self.path.read_bytes()
        whole, _, torn = data.rpartition(b"\n")
        if torn:
            self.dropped = torn.decode(errors="replace")
            _LOG.warning("%s: the last line was torn (%d bytes) and is dropped", self.path, len(torn))
            if self.mode != "replay":
                os.truncate(self.path, len(data) - len(torn))
        for number, line in enumerate(whole.split(b"\n") if whole else [], start=1):
            try:
                exchange = Exchange.model_validate_json(line)
            except ValidationError as error:
                raise BadInput(
                    f"{self.path}:{number}: not an exchange ({error.errors()[0]['msg']}).",
                    "Restore the file from version control, or record it again with mode `refresh`.",
                ) from error
            if exchange.key != exchange.request.key:
                raise BadInput(
                    f"{self.path}:{number}: the request was edited (its key is {exchange.request.key[:12]}, "
                    f"the line says {exchange.key[:12]}).",
                    "Record the cassette again with mode `refresh`.",
                )
            exchanges[exchange.key] = exchange  # the last line of a key wins
        return exchanges

    def _append(self, line: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            before = os.fstat(descriptor).st_size
            if os.write(descriptor, line) != len(line):
                os.ftruncate(descriptor, before)  # else the next line would be glued to the half one
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
            os.fdatasync(descriptor)  # an answer took seconds, perhaps dollars
        finally:
            os.close(descriptor)

    def _miss(self, request: Request) -> ReplayMiss:
        nearest = nearest_exchange(request, list(self._exchanges.values()))
        if nearest is None:
            return ReplayMiss(f"{self.path}: the cassette is empty, nothing to replay.", "Record it first.")
        field, asked, recorded = first_difference(request, nearest.request)
        return ReplayMiss(
            f"{self.path}: no recorded answer for request {request.key[:12]}. The nearest is {nearest.key[:12]}; "
            f"it differs in `{field}`: asked {asked}, recorded {recorded}.",
            "Undo the change, or record again (mode `refresh`, or `replay_or_record` to keep the rest).",
        )


def line_of(exchange: Exchange) -> bytes:
    """Return the one line of an exchange: canonical JSON, so equal exchanges are equal bytes."""
    return canonical_json(exchange.model_dump(mode="json")) + b"\n"


def chat_line(exchange: Exchange) -> bytes:
    """Return an exchange as a training example in the common chat format, the answer as the last message."""
    messages = [message.model_dump() for message in exchange.request.messages]
    return canonical_json({"messages": [*messages, {"role": "assistant", "content": exchange.reply.text}]}) + b"\n"


def export_chat(cassette: Cassette, path: Path) -> int:
    """Write the finished exchanges of a cassette as chat-format JSONL and return how many there are.

    Answers that were cut short and one-token label answers teach nothing and are left out.
    """
    lines = [
        chat_line(exchange)
        for exchange in cassette
        if exchange.reply.finish == "stop"
        and not (exchange.request.response is not None and exchange.request.response.labels)
    ]
    path.write_bytes(b"".join(lines))
    return len(lines)


def nearest_exchange(request: Request, recorded: list[Exchange]) -> Exchange | None:
    """Return the recorded exchange whose request has the fewest differing fields, then the most similar text."""
    if not recorded:
        return None
    wanted = _fields(request)

    def distance(exchange: Exchange) -> int:
        other = _fields(exchange.request)
        return sum(wanted.get(name) != other.get(name) for name in wanted.keys() | other.keys())

    fewest = min(distance(exchange) for exchange in recorded)
    close = [exchange for exchange in recorded if distance(exchange) == fewest][:50]
    text = _text(request)
    return max(close, key=lambda e: difflib.SequenceMatcher(None, text, _text(e.request), autojunk=False).quick_ratio())


def first_difference(asked: Request, recorded: Request) -> tuple[str, str, str]:
    """Return the path of the first differing field and both values, cut around the place where they part."""
    left, right = _fields(asked), _fields(recorded)
    for name in [*left, *(n for n in right if n not in left)]:
        if left.get(name) != right.get(name):
            return name, *_around(left.get(name, "nothing"), right.get(name, "nothing"))
    return "nothing", "", ""


def _around(one: str, other: str, span: int = 60) -> tuple[str, str]:
    same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, same - span // 3)

    def cut(text: str) -> str:
        return ("..." if start else "") + text[start : start + span] + ("..." if len(text) > start + span else "")

    return cut(one), cut(other)


def _text(request: Request) -> str:
    return "\n".join(message.content for message in request.messages)[:4000]


def _fields(request: Request) -> dict[str, str]:
    """Flatten what the key covers to path -> JSON text, in a fixed order."""
    flat: dict[str, str] = {}

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict) and value:
            for name, item in value.items():
                walk(item, f"{path}.{name}" if path else name)
        elif isinstance(value, list) and value:
            for index, item in enumerate(value):
                walk(item, f"{path}[{index}]")
        else:
            flat[path] = json.dumps(value, ensure_ascii=False)

    walk(request.model_dump(mode="json", exclude={"templates"}), "")
    return flat
