"""Runs the shipped programs and their compiler without a sandbox: they are complab's own files, not a user's."""

import os
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from core.sandbox.policy import Command, Result, Status


def run_own(command: Command, wall_s: float) -> Result:
    """Run a command in a directory of its own, which is then removed; nothing but the deadline holds it.

    Raises:
        OSError: the program does not exist or cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="complab-suite-") as name:
        directory = Path(name)
        for relative, content in command.files.items():
            (directory / relative).write_bytes(content)
            (directory / relative).chmod(0o700 if relative in command.executables else 0o600)
        started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        status: Status = "exit"
        with subprocess.Popen(
            command.argv,
            cwd=directory,
            env={
                "PATH": os.environ.get("PATH", os.defpath),
                "HOME": name,
                "TMPDIR": name,
                "LC_ALL": "C",
                **command.env,
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # so that a compiler's children end with it
        ) as process:
            try:
                stdout, stderr = process.communicate(command.stdin, timeout=wall_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                stdout, stderr = process.communicate()
                status = "timeout"
        took_s, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        code = process.returncode
        if code < 0 and status == "exit":
            status = "signal"
        return Result(
            status=status,
            exit_code=code if status == "exit" else None,
            signal=-code if status == "signal" else None,
            stdout=stdout,
            stderr=stderr,
            truncated=False,
            files={o: (directory / o).read_bytes() for o in command.outputs if (directory / o).is_file()},
            wall_s=took_s,
            cpu_s=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            backend="none",
            guarantees=frozenset(),
        )
