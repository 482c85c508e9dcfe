"""The fingerprint of the environment that figures were measured in."""

import os
import platform
import shutil
import subprocess
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from core.machine import cpu
from core.records import Digest, Record, digest_json

_PACKAGES = ("complab", "numpy", "scipy", "pydantic", "torch", "triton", "llvmlite", "xllamacpp", "transformers")
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "TORCH_NUM_THREADS",
)
_REPOSITORY = Path(__file__).parents[2]
_GIT_TIMEOUT_S = 10


class Environment(Record):
    """What measured figures depend on. `digest()` covers all but the momentary load and free memory."""

    cpu_model: str
    cpu_flags: Digest
    """Digest of the sorted instruction-set flags."""
    cores: int
    """Cores that this process may use."""
    hypervisor: bool
    governor: str | None
    """None: not visible on this machine."""
    turbo: bool | None
    """None: not visible on this machine."""
    memory_bytes: int
    kernel: str
    libc: str
    python: str
    packages: dict[str, str]
    commit: str | None
    """The repository's commit; None when complab does not run from a checkout."""
    dirty: bool | None
    """Whether tracked files differ from the commit; None when there is no commit."""
    threads: dict[str, str]
    """Variables that set thread counts."""
    load_1min: float
    memory_free_bytes: int

    def digest(self) -> Digest:
        """Return the digest of all that does not change from one moment to the next."""
        return digest_json(self.model_dump(mode="json", exclude={"load_1min", "memory_free_bytes"}))


def environment() -> Environment:
    """Look at this machine and return its fingerprint; the parts that cannot change are looked up once a process."""
    import psutil

    commit, dirty = _checkout()
    memory = psutil.virtual_memory()
    return Environment(
        cpu_model=cpu.cpu_model(),
        cpu_flags=digest_json(list(cpu.cpu_flags())),
        cores=len(cpu.allowed_cores()),
        hypervisor=cpu.hypervisor(),
        governor=cpu.governor(),
        turbo=cpu.turbo(),
        memory_bytes=int(memory.total),
        kernel=platform.release(),
        libc="-".join(platform.libc_ver()),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        packages=_packages(),
        commit=commit,
        dirty=dirty,
        threads={name: os.environ[name] for name in _THREAD_VARIABLES if name in os.environ},
        load_1min=os.getloadavg()[0],
        memory_free_bytes=int(memory.available),
    )


@lru_cache(maxsize=1)
def _packages() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@lru_cache(maxsize=1)
def _checkout() -> tuple[str | None, bool | None]:
    """Return commit and dirtiness of the checkout that this file lies in."""
    if not (_REPOSITORY / ".git").exists() or not shutil.which("git"):
        return None, None
    commit = _git("rev-parse", "HEAD")
    return (None, None) if commit is None else (commit, bool(_git("status", "--porcelain", "--untracked-files=no")))


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(_REPOSITORY), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):  # no git, or a repository on a slow disk: the commit is not known
        return None
    return done.stdout.strip() if done.returncode == 0 else None
