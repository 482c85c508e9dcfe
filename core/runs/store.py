"""Content-addressed blobs: what a digest in a record stands for."""

import re
from pathlib import Path

from core.errors import ComplabError
from core.files import make_directory, refusal, write_whole
from core.records import Digest, digest_bytes

_DIGEST = re.compile(r"[0-9a-f]{64}")


class Store:
    """Blobs under `root`, each at `<first two digits>/<sha256>`; written once, checked whenever read.

    Args:
        root: the directory; made when the first blob comes.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, digest: Digest) -> Path:
        """Return where a blob lies or would lie.

        Raises:
            ComplabError: the text is not a digest.
        """
        if not _DIGEST.fullmatch(digest):
            raise ComplabError(f"{digest[:80]!r} is not a sha256 digest.", "Take digests from the run's records.")
        return self.root / digest[:2] / digest

    def has(self, digest: Digest) -> bool:
        """Return whether a blob is here."""
        return self.path(digest).is_file()

    def put(self, data: bytes) -> Digest:
        """Keep a blob and return its digest; a blob that is here already costs nothing.

        Raises:
            ComplabError: the disk refuses; the message says why.
        """
        digest = digest_bytes(data)
        path = self.path(digest)
        if not path.is_file():
            make_directory(path.parent)
            write_whole(path, data, durable=False)
        return digest

    def get(self, digest: Digest) -> bytes:
        """Return a blob, its content checked.

        Raises:
            ComplabError: the blob is missing or damaged.
        """
        path = self.path(digest)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise ComplabError(
                f"Blob {digest} is missing from {self.root}.", "Copy runs with their blobs/ directory."
            ) from None
        except OSError as error:
            raise refusal(error, path) from error
        if digest_bytes(data) != digest:
            raise ComplabError(f"Blob {path} is damaged: its content is not what its name says.", "Remove it.")
        return data
