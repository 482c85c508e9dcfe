"""Finds the LLVM tools of this machine and says what they accept."""

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from core.errors import BadInput, ComplabError
from core.records import Record
from llvm_tuning.suite.catalogue import Language

VERSIONS = (22, 21, 20, 19)
"""LLVM versions that are tried, best first."""

BESIDE = (
    *("opt", "llc", "llvm-mca", "llvm-profdata", "llvm-remarkutil", "llvm-extract", "llvm-link", "llvm-dis"),
    *("llvm-as", "llvm-objdump", "llvm-objcopy", "llvm-bcanalyzer", "llvm-nm", "llvm-size"),
)
"""Tools of the compiler's own version that are looked for; what needs one asks `Toolchain.tool`."""

INSTALL_HINT = (
    "Install LLVM 22 (`apt-get install --no-install-recommends clang-22 llvm-22 lld-22 libclang-rt-22-dev`), "
    "or without root `pip install ziglang`; `complab doctor` shows what is found."
)

TOOLS_HINT = "Install LLVM 22 with its tools (`apt-get install --no-install-recommends clang-22 llvm-22 lld-22`)."


class Toolchain(Record):
    """One compiler driver with its linker, and the `-mllvm` options that it accepts."""

    driver: tuple[str, ...]
    """argv prefix of the C compiler."""
    version: str
    linker: str | None
    """Absolute path of ld.lld, or None: the driver's own default linker."""
    options: dict[str, str | None]
    """All LLVM options that the compiler knows, each with its default (None: it has none of its own)."""
    paths: dict[str, str] = {}
    """Absolute paths of the LLVM tools of the same version, by plain name (`opt`, `llvm-mca`)."""
    system_cc: str | None = None
    """The system's C compiler, which links what zig compiled: zig itself would build a C library for every link."""
    readonly: tuple[Path, ...] = ()
    """Directories outside /usr that a sandbox must show for it to work."""

    def compiler(self, language: Language) -> tuple[str, ...]:
        """Return the driver that compiles a language.

        Raises:
            BadInput: C++ without clang: zig's C++ library links only with zig, which builds it anew in every sandbox.
        """
        if language == "c":
            return self.driver
        if self.system_cc is not None:
            raise BadInput("Without clang, only C programs can be tuned.", INSTALL_HINT)
        return (*self.driver, "--driver-mode=g++")

    def link_driver(self, language: Language) -> tuple[str, ...]:
        """Return the driver that links objects of a language."""
        return self.compiler(language) if self.system_cc is None else (self.system_cc,)

    def tool(self, name: str) -> str:
        """Return the absolute path of an LLVM tool of the compiler's version.

        Raises:
            ComplabError: it is not installed; the message has the install hint.
        """
        if name not in self.paths:
            raise ComplabError(f"There is no {name} of {self.version}'s version.", TOOLS_HINT)
        return self.paths[name]


def discover() -> Toolchain:
    """Return the best toolchain of this machine: clang-22 to clang-19, clang, then pip's ziglang.

    Raises:
        ComplabError: none is installed; the message has the install hint.
    """
    for name in (*(f"clang-{v}" for v in VERSIONS), "clang"):
        path = shutil.which(name)
        if path is None:
            continue
        version = _version((path,))
        if version is None or int(version.split(".")[0]) < min(VERSIONS):
            continue
        linker = shutil.which(name.replace("clang", "ld.lld"))
        return Toolchain(
            driver=(path,),
            version=f"clang {version}",
            linker=linker,
            options=_options((path,)),
            paths=_beside(Path(path), version),
        )
    zig = importlib.util.find_spec("ziglang")
    if zig is not None and zig.origin is not None:
        home = Path(zig.origin).parent
        driver = (str(home / "zig"), "cc")
        version = _version(driver)
        system_cc = shutil.which("cc")  # resolved below: a sandbox shows /usr, not a directory of links
        if version is not None and system_cc is not None:
            return Toolchain(
                driver=driver,
                version=f"zig cc (clang {version})",
                linker=None,
                options=_options(driver),
                system_cc=str(Path(system_cc).resolve()),
                readonly=(home,),
            )
    raise ComplabError(
        "No usable C compiler: clang-22 to clang-19, and pip's ziglang with a system cc, were looked for.", INSTALL_HINT
    )


def _version(driver: tuple[str, ...]) -> str | None:
    try:
        done = subprocess.run([*driver, "--version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"clang version (\d+\.\d+\.\d+)", done.stdout)
    return found.group(1) if found else None


def _beside(clang: Path, version: str) -> dict[str, str]:
    """Return the tools of clang's version: those with its number in their name, or that lie in its own directory.

    A plain `opt` from elsewhere on PATH may be another version, whose bitcode and options differ: it is never taken.
    """
    major, home = version.split(".")[0], clang.resolve().parent
    found = {name: shutil.which(f"{name}-{major}") or shutil.which(name, path=str(home)) for name in BESIDE}
    return {name: path for name, path in found.items() if path is not None}


@functools.cache
def _options(driver: tuple[str, ...]) -> dict[str, str | None]:
    """Return the compiler's LLVM options with their defaults, as it prints them itself."""
    argv = [*driver, "-O3", "-mllvm", "--print-all-options", "-x", "c", "-c", "/dev/null", "-o", "/dev/null"]
    # In a directory of its own: zig writes beside the object, and answers a repeated call from its cache, in silence.
    with tempfile.TemporaryDirectory() as place:
        env = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": place, "ZIG_LOCAL_CACHE_DIR": place}
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120, cwd=place, env=env)
    lines = re.findall(
        r"^ +--?([A-Za-z0-9][\w-]*) += .*?(?:\(default: (.*)\))?$", done.stdout + done.stderr, flags=re.MULTILINE
    )
    if len(lines) < 100:
        raise ComplabError(
            f"{' '.join(driver)} did not list its LLVM options (found {len(lines)}): {done.stderr[:300]}", INSTALL_HINT
        )
    return {name: None if default in ("", "*no default*") else default for name, default in lines}
