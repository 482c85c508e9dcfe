"""What of the host's file system a confined program sees, whatever backend shows it."""

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import core
from core.errors import BadInput
from core.sandbox.channel import VARIABLE
from core.sandbox.policy import Command
from core.sandbox.scratch import HOME

_TOP = ("/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32")
_ETC = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Read-only views at their own path; everything else of the host is absent."""

    binds: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    """(target, path) of symbolic links to make."""
    parents: tuple[str, ...]
    """Directories that must be made, in order, so that the binds have a place that any uid may pass."""
    masks: tuple[str, ...]
    """Directories below the binds that are covered by empty ones: our own sources."""


def plan_layout(command: Command) -> Layout:
    """Decide what a command sees: the system's programs and libraries, this interpreter, and what it asks for.

    Raises:
        BadInput: a path of `command.readonly` does not exist.
    """
    for path in command.readonly:
        if not path.is_absolute() or not path.exists():
            raise BadInput(f"The sandbox cannot show {path}: no such absolute path.")
    return _layout(command.readonly)


@lru_cache(maxsize=256)
def _layout(readonly: tuple[Path, ...]) -> Layout:
    links = tuple((os.readlink(top), top) for top in _TOP if os.path.islink(top))
    system = ("/usr", *(top for top in _TOP if os.path.isdir(top) and not os.path.islink(top)))
    wanted = (*system, *(e for e in _ETC if os.path.exists(e)), *interpreter_paths(), *map(str, readonly))
    binds = _outermost(wanted)
    parents = sorted({str(p) for b in binds for p in Path(b).parents if str(p) != "/"})
    if not any(p == "/tmp" or p.startswith("/tmp/") for p in (*parents, *binds)):
        links += ((f"{HOME}/tmp", "/tmp"),)
    return Layout(binds=binds, links=links, parents=tuple(parents), masks=_own_sources(binds))


@cache
def interpreter_paths() -> tuple[str, ...]:
    """Return the directories that this interpreter and its virtual environment need, without those below /usr."""
    prefixes = (sys.prefix, sys.base_prefix, sys.exec_prefix, str(Path(sys.executable).resolve().parents[1]))
    return tuple(dict.fromkeys(p for p in prefixes if Path(p).parts[:2] != ("/", "usr")))


def environment(command: Command, channel_fd: int | None) -> dict[str, str]:
    """Return the whole environment of the program: nothing of ours is inherited."""
    base = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": f"{HOME}/home", "TMPDIR": f"{HOME}/tmp", "LANG": "C.UTF-8"}
    told = {} if channel_fd is None else {VARIABLE: str(channel_fd)}
    return {**base, "OMP_NUM_THREADS": "1", **command.env, **told}


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Drop paths that lie below another one, for which one bind is enough."""
    distinct = list(dict.fromkeys(os.path.normpath(p) for p in paths))
    return tuple(p for p in distinct if not any(p != q and Path(p).is_relative_to(q) for q in distinct))


def _own_sources(binds: Iterable[str]) -> tuple[str, ...]:
    here = Path(core.__file__).resolve().parent.parent
    ours = [here / name for name in ("core", "passgen", "llvm_tuning", "cuda_compile", "tpu_mlir", "experiments")]
    return tuple(str(p) for p in ours if p.is_dir() and any(p.is_relative_to(Path(b).resolve()) for b in binds))
