"""A content-addressed cache of compiled C and C++: the same sources and flags are compiled once."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

from core.cache import cache_dir
from core.errors import ComplabError
from core.records import digest_bytes, digest_json

Kind = Literal["shared", "exe", "object"]

_NEWEST_CLANG, _OLDEST_CLANG = 24, 14
_CXX_SUFFIXES = frozenset({".cc", ".cpp", ".cxx"})
_KIND_FLAGS: dict[Kind, tuple[str, ...]] = {"shared": ("-shared", "-fPIC"), "exe": (), "object": ("-c", "-fPIC")}
_KIND_SUFFIX: dict[Kind, str] = {"shared": ".so", "exe": "", "object": ".o"}
_COMPILE_TIMEOUT_S = 300


@lru_cache(maxsize=2)
def compiler(*, cxx: bool = False) -> Path:
    """Return the compiler to use: the newest versioned clang, then clang, gcc and cc (or their C++ names).

    Raises:
        ComplabError: there is none on PATH.
    """
    clang, others = ("clang++", ("g++", "c++")) if cxx else ("clang", ("gcc", "cc"))
    versioned = [f"{clang}-{version}" for version in range(_NEWEST_CLANG, _OLDEST_CLANG - 1, -1)]
    for name in (*versioned, clang, *others):
        if found := shutil.which(name):
            return Path(found)
    raise ComplabError(
        f"No {'C++' if cxx else 'C'} compiler was found on PATH ({clang}, {', '.join(others)}).",
        "Install one, for example with `apt install clang`.",
    )


@lru_cache(maxsize=8)
def compiler_version(path: Path) -> str:
    """Return the first line of `COMPILER --version`."""
    return subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def build(
    sources: Path | Sequence[Path], flags: Sequence[str] = (), kind: Kind = "shared", *, depends: Sequence[Path] = ()
) -> Path:
    """Compile sources of our own (this is no sandbox) and return the cached result.

    Args:
        sources: C or C++ files; one C++ file makes it a C++ build. Exactly one for kind "object".
        flags: compiler and linker flags, in order; put `-l...` here too.
        kind: a shared library, an executable or an object file.
        depends: headers that the sources include: their content belongs to the key.

    Returns:
        A path in the cache whose content never changes.

    Raises:
        ComplabError: no compiler, an unreadable source, or the compiler refused (its message is shown).
    """
    files = [sources] if isinstance(sources, Path) else list(sources)
    cc = compiler(cxx=any(file.suffix in _CXX_SUFFIXES for file in files))
    try:
        contents = [[file.name, digest_bytes(file.read_bytes())] for file in (*files, *depends)]
    except OSError as error:
        raise ComplabError(f"The source {error.filename} cannot be read: {error.strerror}.") from error
    key = digest_json([str(cc), compiler_version(cc), kind, list(flags), contents])
    target = cache_dir("native", key[:2]) / f"{files[0].stem}-{key[:24]}{_KIND_SUFFIX[kind]}"
    if target.exists():
        return target
    # Linkers come after the objects that need them, so libraries go last.
    libraries = [flag for flag in flags if flag.startswith("-l")]
    options = [flag for flag in flags if not flag.startswith("-l")]
    handle, temporary = tempfile.mkstemp(prefix=".build-", dir=target.parent)
    os.close(handle)
    try:
        done = subprocess.run(
            [cc, *_KIND_FLAGS[kind], *options, *files, "-o", temporary, *libraries],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_COMPILE_TIMEOUT_S,
        )
        if done.returncode:
            raise ComplabError(f"{cc.name} could not compile {', '.join(str(file) for file in files)}:\n{done.stderr}")
        os.chmod(temporary, 0o644 if kind == "object" else 0o755)
        os.replace(temporary, target)
    except subprocess.TimeoutExpired as error:
        raise ComplabError(f"{cc.name} did not end within {_COMPILE_TIMEOUT_S} s on {files[0]}.") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
    return target
