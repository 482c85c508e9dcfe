"""One timed task at a time on the whole machine, whoever started it."""

import contextlib
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from core.errors import InfraError

_POLL_S = 0.02


def default_lock_path() -> Path:
    """Return the lock file that all users of this machine share."""
    shared = Path("/run/lock")
    directory = shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir())
    return directory / "complab-measure.lock"


@contextlib.contextmanager
def machine_lock(path: Path, wait_s: float) -> Iterator[None]:
    """Hold the lock; the kernel frees it when the holder dies.

    The file is opened for reading only, because a sticky directory keeps users from writing each other's files (and
    that is why this is not the filelock package, which writes); flock needs no more.

    Args:
        path: the lock file; made, readable by all, when it is not there.
        wait_s: how long to wait for other timed tasks.

    Raises:
        InfraError: the lock was not free within `wait_s`, or the path is no regular file that can be read.
    """
    descriptor = _open(path)
    try:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise InfraError(
                        f"Another timed task has held {path} for {wait_s:g} s.",
                        "Measurements take turns: wait for it, or end it if it hangs (`fuser` names it).",
                    ) from error
                time.sleep(_POLL_S)
        yield
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        with contextlib.suppress(FileExistsError):
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            os.fchmod(made, 0o644)  # whatever the umask: other users must be able to read it
            os.close(made)
        descriptor = os.open(path, flags)
    except OSError as error:
        raise InfraError(f"The measurement lock {path} cannot be opened: {error.strerror}.") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InfraError(f"The measurement lock {path} is no regular file.", "Remove it.")
    return descriptor
