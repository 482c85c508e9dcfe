"""Child's side of the channel, for Python. Stands alone: copy it into the sandbox, or let `launcher.py` run it there.

Create the Channel before starting any other process; it takes the descriptor for itself.
"""

from __future__ import annotations

import os
import struct


class Channel:
    """The authenticated channel to the parent."""

    def __init__(self) -> None:
        self._fd = int(os.environ.pop("COMPLAB_CHANNEL"))
        os.set_inheritable(self._fd, False)
        nonce = self._read(32)
        if nonce is None:
            raise EOFError("the parent closed the channel before it sent the nonce")
        self._nonce = nonce

    def send(self, payload: bytes) -> None:
        """Send one frame."""
        left = memoryview(self._nonce + struct.pack("<I", len(payload)) + payload)
        while left:
            left = left[os.write(self._fd, left) :]

    def receive(self) -> bytes | None:
        """Return the payload of the next frame; None when the parent has hung up."""
        head = self._read(36)
        if head is None or head[:32] != self._nonce:
            return None
        return self._read(struct.unpack("<I", head[32:])[0])

    def _read(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            chunk = os.read(self._fd, min(1 << 20, size - len(data)))
            if not chunk:
                return None
            data += chunk
        return bytes(data)
