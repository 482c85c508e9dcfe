"""Tasks that worker processes can import."""

import os
import signal
import subprocess
import time
from pathlib import Path

from core.errors import ComplabError, InfraError


def double(n):
    return 2 * n


def pid():
    return os.getpid()


def nap(seconds, value=None):
    time.sleep(seconds)
    return value


def hang():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(60)


def hang_with_child(path):
    child = subprocess.Popen(["sleep", "600"])
    Path(path).write_text(str(child.pid))
    child.wait()


def die(directory, times):
    """Be killed the first `times` tries."""
    tries = Path(directory) / f"{os.getpid()}-{time.monotonic_ns()}"
    tries.touch()
    if len(list(Path(directory).iterdir())) <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


def fail(kind):
    raise {"infra": InfraError("busy"), "ours": ComplabError("bad"), "other": ZeroDivisionError("oops")}[kind]


def flaky(directory, times):
    (Path(directory) / str(time.monotonic_ns())).touch()
    if len(list(Path(directory).iterdir())) <= times:
        raise InfraError("busy")
    return "done"


def unpicklable():
    return lambda: None


def leave():
    raise SystemExit(3)
