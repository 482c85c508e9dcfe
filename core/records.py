"""Frozen records and content digests: the vocabulary that every part of complab shares."""

import hashlib
import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, JsonValue, StringConstraints

Json = JsonValue
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""sha256 in lower-case hex, of canonical JSON or of bytes."""


class Record(BaseModel):
    """Base of all records: frozen, unknown fields refused, finite numbers only."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def digest(self) -> Digest:
        """Return the digest of this record's canonical JSON."""
        return digest_json(self.model_dump(mode="json"))


def canonical_json(value: Any) -> bytes:
    """Return the one JSON text of a value: sorted keys, no spaces, UTF-8, no NaN.

    Raises:
        ValueError: the value holds NaN or an infinity.
        TypeError: the value is not JSON.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest_bytes(data: bytes) -> Digest:
    """Return the sha256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def digest_json(value: Any) -> Digest:
    """Return the sha256 of a value's canonical JSON."""
    return digest_bytes(canonical_json(value))
