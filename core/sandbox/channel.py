"""Parent's side of the authenticated channel: frames of nonce, length and payload, parsed without trusting a byte.

The parent first writes a random nonce of 32 bytes. Every frame, in both directions, is the nonce, the payload's length
as 32 bits little endian, and the payload. `channel.h` and `channel_child.py` are the child's side in C and in Python.
"""

import secrets
import struct

NONCE_BYTES = 32
VARIABLE = "COMPLAB_CHANNEL"
"""Environment variable with the descriptor's number in the child."""
_LENGTH = struct.Struct("<I")


class Tampered(Exception):
    """The channel carried something else than well-formed frames with this run's nonce."""


def new_nonce() -> bytes:
    """Return a fresh nonce."""
    return secrets.token_bytes(NONCE_BYTES)


def frame(nonce: bytes, payload: bytes) -> bytes:
    """Return the frame of a payload."""
    return nonce + _LENGTH.pack(len(payload)) + payload


class FrameReader:
    """Turns a stream of bytes into payloads; any deviation raises Tampered, and nothing after it is looked at."""

    def __init__(self, nonce: bytes, cap_bytes: int) -> None:
        self._nonce = nonce
        self._cap_bytes = cap_bytes
        self._data = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Take more bytes and return the payloads that are now complete.

        Raises:
            Tampered: a wrong nonce or a payload above the cap.
        """
        self._data += data
        payloads: list[bytes] = []
        head_bytes = NONCE_BYTES + _LENGTH.size
        while True:
            head = bytes(self._data[:head_bytes])
            if not secrets.compare_digest(head[:NONCE_BYTES], self._nonce[: len(head)]):
                raise Tampered("the channel carried a frame without this run's nonce")
            if len(head) < head_bytes:
                return payloads
            (size,) = _LENGTH.unpack_from(head, NONCE_BYTES)
            if size > self._cap_bytes:
                raise Tampered(f"the channel carried a frame of {size} bytes; the cap is {self._cap_bytes}")
            if len(self._data) < head_bytes + size:
                return payloads
            payloads.append(bytes(self._data[head_bytes : head_bytes + size]))
            del self._data[: head_bytes + size]

    def end(self) -> None:
        """State that no byte follows.

        Raises:
            Tampered: the last frame is torn.
        """
        if self._data:
            raise Tampered("the channel ended in the middle of a frame")
