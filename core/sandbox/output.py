"""Takes a program's output up to a cap and drains the rest, so that nobody blocks."""

import os
from typing import IO

FLOOD = 16
"""A program that prints this many times its output cap is stopped instead of drained."""


class Capture:
    """One output stream with its cap."""

    def __init__(self, stream: IO[bytes], cap_bytes: int) -> None:
        self.fd = stream.fileno()
        self.stream = stream
        self.data = bytearray()
        self.seen_bytes = 0
        self._cap_bytes = cap_bytes

    def read(self) -> bool:
        """Take what is there; False at the end of the stream."""
        try:
            chunk = os.read(self.fd, 1 << 16)
        except BlockingIOError:
            return True
        self.seen_bytes += len(chunk)
        self.data += chunk[: max(0, self._cap_bytes - len(self.data))]
        return bool(chunk)

    @property
    def truncated(self) -> bool:
        """Whether the cap cut something off."""
        return self.seen_bytes > self._cap_bytes

    @property
    def flooded(self) -> bool:
        """Whether so much came that the program should be stopped."""
        return self.seen_bytes > FLOOD * self._cap_bytes
