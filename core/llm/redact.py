"""The one place where secrets are taken out of text: prompts, cassettes, logs and error messages all pass here."""

import os
import re
from collections.abc import Mapping

from core.records import Json

HIDDEN = "[redacted]"

_SECRET_NAME = re.compile(r"SECRET|(?:^|_)(?:API_?KEY|ACCESS_KEY|TOKEN|PASSWORD|PASSWD|CREDENTIAL)S?$", re.IGNORECASE)
_MIN_SECRET_CHARS = 12  # shorter values ("none", "test") would blank ordinary words
_SHAPES = re.compile(
    r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bhf_[A-Za-z0-9]{20,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\bAIza[0-9A-Za-z_-]{30,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|(?<=://)[^\s/:@]+:[^\s/@]+(?=@)"
    r"|(?<=Bearer )[A-Za-z0-9._~+/=-]{8,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----",
    re.DOTALL,
)
_registered: set[str] = set()


def register_secret(value: str) -> None:
    """Hide this exact value from now on (a key that did not come from the environment)."""
    if value:
        _registered.add(value)


def secrets_of(environ: Mapping[str, str]) -> set[str]:
    """Return the values of variables whose names say that they are secret."""
    return {v for k, v in environ.items() if _SECRET_NAME.search(k) and len(v) >= _MIN_SECRET_CHARS}


def redact(text: str) -> str:
    """Return the text without known secrets and without anything that has the shape of one."""
    for secret in sorted(_registered | secrets_of(os.environ), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return _SHAPES.sub(HIDDEN, text)


def redact_json(value: Json) -> Json:
    """Return the JSON value with every string in it redacted, keys of objects included."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redact_json(item) for item in value]
    if isinstance(value, dict):
        return {redact(key): redact_json(item) for key, item in value.items()}
    return value
