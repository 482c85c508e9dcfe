"""Finds the LLVM tools of this machine and says what they accept."""

import functools
import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

from core.errors import BadInput, ComplabError
from core.records import Record
from llvm_tuning.suite.catalogue import Language

VERSIONS = (22, 21, 20, 19)
"""LLVM versions that are tried, best first."""

INSTALL_HINT = (
    "Install LLVM 22 (`apt-get install --no-install-recommends clang-22 llvm-22 lld-22 libclang-rt-22-dev`), "
    "or without root `pip install ziglang`; `complab doctor` shows what is found."
)


class Toolchain(Record):
    """One compiler driver with its linker, and the `-mllvm` options that it accepts."""

    driver: tuple[str, ...]
    """argv prefix of the C compiler."""
    version: str
    linker: str | None
    """Absolute path of ld.lld, or None: the driver's own default linker."""
    options: frozenset[str]
    """Names of all LLVM options that the compiler knows."""
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
        return Toolchain(driver=(path,), version=f"clang {version}", linker=linker, options=_options((path,)))
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


@functools.cache
def _options(driver: tuple[str, ...]) -> frozenset[str]:
    """Return the names of the compiler's LLVM options, from its own hidden help."""
    argv = [*driver, "-mllvm", "-help-hidden", "-x", "c", "-c", "/dev/null", "-o", "/dev/null"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    names = re.findall(r"^ +--?([A-Za-z0-9][\w-]*)", done.stdout, flags=re.MULTILINE)
    if len(names) < 100:
        raise ComplabError(
            f"{' '.join(driver)} did not list its LLVM options (found {len(names)}): {done.stderr[:300]}", INSTALL_HINT
        )
    return frozenset(names)
