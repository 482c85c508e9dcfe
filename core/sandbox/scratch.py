"""The only place where confined code may write: input files go in, output files come back, no link is ever followed."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from core.errors import BadInput

HOME = "/box"
"""Mount point of the scratch tmpfs inside the sandbox."""
WORK = f"{HOME}/work"
"""Working directory of the program inside the sandbox."""
FOLDERS = ("work", "home", "tmp")


class ScratchFull(Exception):
    """The input files do not fit in the scratch space."""


def check_names(names: Iterable[str]) -> None:
    """Refuse names that are not plain relative paths below the working directory.

    Raises:
        BadInput: an absolute name, one with `..`, an empty one, or one with a NUL.
    """
    for name in names:
        path = PurePosixPath(name)
        if not name or "\0" in name or path.is_absolute() or ".." in path.parts or name != str(path) or name == ".":
            raise BadInput(
                f"The sandbox file name {name!r} is not usable.", "Give a plain relative path such as a/b.c."
            )


def populate(
    root_fd: int,
    files: Mapping[str, bytes],
    executables: Iterable[str],
    uid: int | None,
    empty_files: Iterable[str] = (),
) -> int:
    """Make the folders of a fresh scratch space and write the input files.

    Args:
        root_fd: the scratch directory.
        files: names relative to the working directory -> content.
        executables: names among `files` that get the execute bit.
        uid: owner of everything, or None to keep our own.
        empty_files: further files to make, empty, where writing is allowed to existing files only.

    Returns:
        A descriptor of the working directory, which stays usable after the sandbox is gone.

    Raises:
        ScratchFull: the files do not fit.
    """
    runnable = frozenset(executables)
    for folder in FOLDERS:
        _make_folder(folder, root_fd, uid)
    work_fd = os.open("work", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root_fd)
    try:
        made: set[PurePosixPath] = set()
        for name, content in {**dict.fromkeys(empty_files, b""), **files}.items():
            for parent in reversed(PurePosixPath(name).parents[:-1]):
                if parent not in made:
                    _make_folder(str(parent), work_fd, uid)
                    made.add(parent)
            _write(work_fd, name, content, 0o755 if name in runnable else 0o644, uid)
    except OSError as error:
        os.close(work_fd)
        if error.errno == errno.ENOSPC:
            raise ScratchFull from error
        raise
    return work_fd


def collect(work_fd: int, names: Iterable[str], cap_bytes: int) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Read output files back; only regular files below the cap, reached through real directories.

    Returns:
        The content by name, and the names that exist but were refused (a link, a device, too large).
    """
    found: dict[str, bytes] = {}
    refused: list[str] = []
    for name in names:
        try:
            content = _read(work_fd, PurePosixPath(name), cap_bytes)
        except FileNotFoundError:
            continue
        except OSError:  # a symlink (ELOOP), a socket (ENXIO), a directory in the way: hostile or broken output
            content = None
        if content is None:
            refused.append(name)
        else:
            found[name] = content
    return found, tuple(refused)


def is_full(root_fd: int) -> bool:
    """Say whether the scratch tmpfs has no free block or no free inode left."""
    state = os.fstatvfs(root_fd)
    return state.f_bavail == 0 or (state.f_files > 0 and state.f_favail == 0)


def _make_folder(name: str, dir_fd: int, uid: int | None) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=dir_fd)
    if uid is not None:
        os.chown(name, uid, uid, dir_fd=dir_fd, follow_symlinks=False)


def _write(dir_fd: int, name: str, content: bytes, mode: int, uid: int | None) -> None:
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=dir_fd)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(fd, left) :]
        os.fchmod(fd, mode)
        if uid is not None:
            os.fchown(fd, uid, uid)
    finally:
        os.close(fd)


def _read(work_fd: int, path: PurePosixPath, cap_bytes: int) -> bytes | None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    fd = os.dup(work_fd)
    try:
        for part in path.parts[:-1]:
            deeper = os.open(part, flags | os.O_DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = deeper
        last = os.open(path.parts[-1], flags, dir_fd=fd)
        os.close(fd)
        fd = last
        state = os.fstat(fd)
        if not stat.S_ISREG(state.st_mode) or state.st_size > cap_bytes:
            return None
        parts: list[bytes] = []
        size = 0
        while chunk := os.read(fd, min(1 << 20, cap_bytes + 1 - size)):
            parts.append(chunk)
            size += len(chunk)
            if size > cap_bytes:
                return None
        return b"".join(parts)
    finally:
        os.close(fd)
