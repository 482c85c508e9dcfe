"""Append-only JSONL: one write a record, checksummed lines, a torn tail dropped, other damage refused."""

import errno
import os
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from core.errors import ComplabError
from core.files import refusal
from core.records import Record, canonical_json

R = TypeVar("R", bound=Record)

_TAIL = len(b',"crc":"00000000"}\n')


def encode(record: Record) -> bytes:
    """Return a record's line: canonical JSON whose last key holds the crc32 of the JSON without it."""
    body = canonical_json(record.model_dump(mode="json"))
    return body[:-1] + b',"crc":"%08x"}\n' % zlib.crc32(body)


def decode(line: bytes) -> bytes | None:
    """Return the JSON of a line (with its newline) without the checksum; None when the line is damaged."""
    body = line[:-_TAIL] + b"}"
    return body if line[-_TAIL:] == b',"crc":"%08x"}\n' % zlib.crc32(body) else None


class Loaded(Generic[R]):
    """The records of a journal, and what was dropped from its end."""

    def __init__(self, records: list[R], sound_bytes: int, dropped: str | None) -> None:
        self.records = records
        self.sound_bytes = sound_bytes
        """Length of the file up to the end of the last sound line."""
        self.dropped = dropped
        """None, or one sentence on the torn last line."""


def load(path: Path, kind: type[R]) -> Loaded[R]:
    """Read a journal; a missing file is an empty one. Nothing is changed on disk.

    Args:
        path: the file.
        kind: the record type of its lines.

    Raises:
        ComplabError: a line that is not the last is damaged, or a sound line holds no such record.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Loaded([], 0, None)
    except OSError as error:
        raise refusal(error, path) from error
    *whole, tail = data.split(b"\n")
    lines = [text + b"\n" for text in whole] + ([tail] if tail else [])
    records: list[R] = []
    sound_bytes = 0
    for number, line in enumerate(lines, start=1):
        body = decode(line)
        if body is None:
            if not line.endswith(b"\n"):
                dropped = f"{path.name}: the last line ({number}) was torn by an interruption and is dropped."
                return Loaded(records, sound_bytes, dropped)
            raise ComplabError(
                f"{path}: line {number} of {len(lines)} is damaged (its checksum does not match).",
                "Restore the file from a copy, or start another run with --new.",
            )
        try:
            records.append(kind.model_validate_json(body))
        except ValidationError as error:
            first = error.errors()[0]
            raise ComplabError(
                f"{path}: line {number} is no {kind.__name__}: {'.'.join(map(str, first['loc']))}: {first['msg']}.",
                "It was written by another version of complab: use that one, or start another run with --new.",
            ) from error
        sound_bytes += len(line)
    return Loaded(records, sound_bytes, None)


class Journal(Generic[R]):
    """One growing file of records, with one writer.

    A finished `append` survives the end of this process at once, and a power loss after a second at most.

    Args:
        path: the file; made if missing, cut back to its last sound line if torn.
        kind: the record type of its lines.
        clock: monotonic seconds, for the rate of flushes.

    Raises:
        ComplabError: the file is damaged, or the disk refuses.
    """

    FLUSH_EVERY_S = 1.0

    def __init__(self, path: Path, kind: type[R], clock: Callable[[], float] = time.monotonic) -> None:
        loaded = load(path, kind)
        self.path = path
        self.records = loaded.records
        self.dropped = loaded.dropped
        self._clock = clock
        self._flushed_at = clock()
        self._dirty = False
        try:
            self._file: int | None = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            if loaded.dropped is not None:
                os.ftruncate(self._file, loaded.sound_bytes)
        except OSError as error:
            raise refusal(error, path) from error
        self._bytes = loaded.sound_bytes

    def append(self, record: R) -> None:
        """Write one record: wholly, or not at all and with an error.

        Raises:
            ComplabError: the disk refuses, or the journal is closed.
        """
        if self._file is None:
            raise ComplabError(f"{self.path} is closed.", "Append before closing.")
        line = encode(record)
        try:
            written = os.write(self._file, line)
            if written != len(line):
                os.ftruncate(self._file, self._bytes)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # what a short write to a file means
            self._bytes += written
            self.records.append(record)
            self._dirty = True
            if self._clock() - self._flushed_at >= self.FLUSH_EVERY_S:
                self.flush()
        except OSError as error:
            raise refusal(error, self.path) from error

    def flush(self) -> None:
        """Make all that was appended survive a power loss."""
        if self._dirty and self._file is not None:
            os.fdatasync(self._file)
            self._dirty = False
            self._flushed_at = self._clock()

    def close(self) -> None:
        """Flush and close; closing twice is harmless."""
        if self._file is not None:
            try:
                self.flush()
            except OSError as error:
                raise refusal(error, self.path) from error
            finally:
                os.close(self._file)
                self._file = None
