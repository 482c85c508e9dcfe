"""Whole files, written at once or not at all, and the messages for a disk that refuses."""

import errno
import os
import tempfile
from pathlib import Path

from core.errors import BadInput, ComplabError


def refusal(error: OSError, path: Path) -> ComplabError:
    """Return the error for people of a file that could not be written or read."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return ComplabError(
                f"No space is left on the disk of {path}.",
                "Free some space and repeat the same command: what was finished is kept.",
            )
        case errno.EACCES | errno.EPERM | errno.EROFS | errno.ENOENT:
            return BadInput(
                f"{path} cannot be read or written ({os.strerror(error.errno)}).",
                "Choose another directory for the output, or change its permissions.",
            )
        case errno.ENOTDIR | errno.EEXIST | errno.EISDIR:
            return BadInput(f"{path} is in the way: {error.strerror}.", "Move it, or choose another directory.")
    return ComplabError(f"{path}: {error.strerror or error}.", "Check the disk, then repeat the same command.")


def make_directory(path: Path) -> None:
    """Make a directory and its parents.

    Raises:
        ComplabError: the disk refuses; the message says why.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refusal(error, path) from error


def write_whole(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a file so that readers see the old content or the new, never a part.

    Args:
        path: the file; its directory exists.
        data: the content.
        durable: also survive a power loss from here on; costs a disk flush.

    Raises:
        ComplabError: the disk refuses; the message says why.
    """
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:32]}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                if durable:
                    file.flush()
                    os.fdatasync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise refusal(error, path) from error
