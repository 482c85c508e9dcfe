"""Where content-keyed caches live on this machine."""

import os
from pathlib import Path

from core.errors import ComplabError
from core.files import write_whole
from core.records import digest_bytes


def cache_dir(*parts: str) -> Path:
    """Return a directory below `$COMPLAB_CACHE` (or `~/.cache/complab`), made when it is not there.

    Args:
        parts: names below the cache's root, for example "native".

    Raises:
        ComplabError: the directory cannot be made.
    """
    root = os.environ.get("COMPLAB_CACHE")
    path = (Path(root) if root else Path.home() / ".cache" / "complab").joinpath(*parts)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ComplabError(
            f"The cache directory {path} cannot be made: {error.strerror}.",
            "Set COMPLAB_CACHE to a directory that you can write.",
        ) from error
    return path.resolve()


def cached_file(data: bytes, kind: str, name: str) -> Path:
    """Return a cached file with this content, written at once or not at all.

    Args:
        data: the content; its digest is part of the path.
        kind: directory below the cache's root.
        name: the file's own name.
    """
    path = cache_dir(kind, digest_bytes(data)[:24]) / name
    if not path.exists():
        write_whole(path, data, durable=False)
    return path
