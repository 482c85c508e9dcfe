"""The header of a GGUF file: metadata and the table of tensors.

The gguf library reads headers too, but makes an array of each token of the vocabulary, which takes seconds; it is used
for the quantised types only. Format: docs/gguf.md of the ggml project, versions 2 and 3.
"""

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.errors import BadInput

MAGIC = b"GGUF"
VERSIONS = (2, 3)
STRING, ARRAY = 8, 9
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Type numbers of metadata values, as struct codes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GgufTensor:
    """A row of the table of tensors."""

    name: str
    shape: tuple[int, ...]
    """Slowest axis first, the reverse of the order in the file."""
    kind: int
    """Number of the storage type."""
    offset_bytes: int
    """From the start of the file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GgufHeader:
    """All of a GGUF file but its tensors' values."""

    metadata: dict[str, Any]
    tensors: tuple[GgufTensor, ...]


class _Cursor:
    """A place in the mapped file; reading past the end is a ValueError."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self.data):
            raise ValueError(f"the header goes on past byte {len(self.data)}")
        chunk = self.data[self.at : end]
        self.at = end
        return chunk

    def scalar(self, code: str) -> Any:
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def string(self) -> str:
        # A few very old vocabularies hold bytes that are no UTF-8: they must not stop the reading of the rest.
        return self.take(self.scalar("Q")).decode("utf-8", errors="replace")

    def value(self, kind: int) -> Any:
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            if kind not in SCALARS:
                raise ValueError(f"a value has the unknown type {kind}")
            return self.scalar(SCALARS[kind])
        inner, count = self.scalar("I"), self.scalar("Q")
        if inner in SCALARS:
            dtype = np.dtype(SCALARS[inner]).newbyteorder("<")
            return np.frombuffer(self.take(count * dtype.itemsize), dtype=dtype).tolist()
        return [self.value(inner) for _ in range(count)]


def read_gguf_header(file: Path) -> GgufHeader:
    """Return metadata and tensor table of a GGUF file.

    Raises:
        BadInput: the file is no GGUF file, of another version or byte order, damaged or truncated; names it.
    """
    if file.stat().st_size < 24:
        raise BadInput(f"{file} is no GGUF file: it has {file.stat().st_size} bytes.", "Download it again.")
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        cursor = _Cursor(data)
        magic, version = cursor.take(4), cursor.scalar("I")
        if magic != MAGIC:
            raise BadInput(f"{file} is no GGUF file: it begins with {magic!r}.", "Give a .gguf file or a directory.")
        if version & 0xFFFF == 0:
            raise BadInput(f"{file} is written for the other byte order.", "Use the ordinary little-endian file.")
        if version not in VERSIONS:
            raise BadInput(f"{file} is GGUF version {version}.", "Supported: 2 and 3. Convert the model again.")
        try:
            return _read(cursor)
        except (ValueError, RecursionError, MemoryError) as error:
            raise BadInput(f"{file} is damaged or truncated: {error}.", "Download it again.") from error


def _read(cursor: _Cursor) -> GgufHeader:
    tensor_count, key_count = cursor.scalar("Q"), cursor.scalar("Q")
    metadata: dict[str, Any] = {}
    for _ in range(key_count):
        key = cursor.string()
        metadata[key] = cursor.value(cursor.scalar("I"))
    rows = []
    for _ in range(tensor_count):
        name, rank = cursor.string(), cursor.scalar("I")
        shape = tuple(cursor.scalar("Q") for _ in range(min(rank, 5)))
        if not 1 <= rank <= 4 or 0 in shape:
            raise ValueError(f"tensor {name!r} has {rank} axes of {shape}")
        rows.append((name, shape[::-1], cursor.scalar("I"), cursor.scalar("Q")))
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise ValueError(f"general.alignment is {alignment!r}, expected a power of two")
    start = -(-cursor.at // alignment) * alignment
    tensors = (
        GgufTensor(name=name, shape=shape, kind=kind, offset_bytes=start + offset) for name, shape, kind, offset in rows
    )
    return GgufHeader(metadata=metadata, tensors=tuple(tensors))
