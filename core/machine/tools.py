"""The compilers and tools on this machine, and the commands that install the missing ones."""

import importlib.metadata
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements"
_NEWEST_LLVM, _OLDEST_LLVM = 24, 14
_VERSION_TIMEOUT_S = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """A program that was found and answered when asked for its version."""

    path: Path
    version: str
    """The line in which it names its version."""


def find_tool(*names: str) -> Tool | None:
    """Return the first of these programs that is on PATH and runs; None when there is none."""
    for name in names:
        if path := shutil.which(name):
            version = version_of(Path(path))
            if version is not None:
                return Tool(path=Path(path), version=version)
    return None


def find_llvm_tool(name: str) -> Tool | None:
    """Return the newest version of an LLVM program (`clang`, `opt`, `ld.lld`, ...); unversioned names come last."""
    return find_tool(*(f"{name}-{version}" for version in range(_NEWEST_LLVM, _OLDEST_LLVM - 1, -1)), name)


def version_of(program: Path) -> str | None:
    """Return the line in which a program names its version; None when it does not run."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = [line.strip() for line in done.stdout.splitlines() if re.search(r"\d+\.\d+", line)]
    return lines[0] if done.returncode == 0 and lines else None


def package_version(distribution: str) -> str | None:
    """Return the version of an installed Python distribution, without importing it."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def apt_command(*lists: str) -> str:
    """Return the command that installs the packages of `requirements/system-LIST.txt`."""
    packages: list[str] = []
    for name in lists:
        lines = (_REQUIREMENTS / f"system-{name}.txt").read_text(encoding="utf-8").splitlines()
        packages += [word for line in lines for word in line.partition("#")[0].split()]
    return f"sudo apt-get install --no-install-recommends {' '.join(packages)}"


def pip_command(extra: str) -> str:
    """Return the command that installs an extra of pyproject.toml."""
    return f".venv/bin/pip install -c requirements/constraints.txt -e '.[{extra}]'"
