"""A sandbox for tests of the timing alone: it confines nothing, but speaks the channel's protocol."""

import os
import secrets
import socket
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import Self

import pytest

from core.measure.service import Measure, MeasureSettings
from core.sandbox.policy import Command, Policy, Result, SessionEnded, Status


class _Child:
    """A started command with our end of its channel."""

    def __init__(self, command: Command) -> None:
        self._scratch = tempfile.TemporaryDirectory()
        for name, data in command.files.items():
            path = Path(self._scratch.name, name)
            path.write_bytes(data)
            path.chmod(0o755 if name in command.executables else 0o644)
        self.nonce = secrets.token_bytes(32)
        self.channel, theirs = socket.socketpair()
        with theirs:
            self._child = subprocess.Popen(
                command.argv,
                cwd=self._scratch.name,
                env={"PATH": os.environ["PATH"], **command.env, "COMPLAB_CHANNEL": str(theirs.fileno())},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(theirs.fileno(),),
            )
        self.channel.sendall(self.nonce)

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size and (part := self.channel.recv(size - len(data))):
            data += part
        return data

    def frame(self) -> bytes | None:
        head = self.read(36)
        if not head:
            return None
        assert head[:32] == self.nonce
        return self.read(int(struct.unpack("<I", head[32:])[0]))

    def end(self, payload: bytes | None, status: Status | None = None) -> Result:
        self.channel.close()
        if status == "timeout":
            self._child.kill()
        stdout, stderr = self._child.communicate(timeout=60)
        self._scratch.cleanup()
        code = self._child.returncode
        return Result(
            status=status or ("exit" if code >= 0 else "signal"),
            exit_code=code if code >= 0 else None,
            signal=None if code >= 0 else -code,
            stdout=stdout,
            stderr=stderr,
            truncated=False,
            files={},
            wall_s=0.0,
            cpu_s=0.0,
            backend="unconfined",
            guarantees=frozenset(),
            channel=payload,
        )


class _Session:
    def __init__(self, command: Command) -> None:
        self._child: _Child | None = _Child(command)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def ask(self, payload: bytes, timeout_s: float) -> bytes:
        child = self._child
        assert child is not None
        child.channel.settimeout(timeout_s)
        status: Status | None = None
        try:
            child.channel.sendall(child.nonce + struct.pack("<I", len(payload)) + payload)
            reply = child.frame()
        except TimeoutError:
            reply, status = None, "timeout"
        if reply is None:
            self._child = None
            raise SessionEnded("The session ended.", child.end(None, status))
        return reply

    def close(self) -> Result | None:
        child, self._child = self._child, None
        return child.end(None) if child else None


class Unconfined:
    """Runs commands as they are, in a temporary directory."""

    def run(self, command: Command, policy: Policy) -> Result:
        child = _Child(command)
        return child.end(child.frame())

    def session(self, command: Command, policy: Policy) -> _Session:
        return _Session(command)


@pytest.fixture
def box() -> Unconfined:
    return Unconfined()


@pytest.fixture
def measure(box: Unconfined, tmp_path: Path) -> Measure:
    return Measure(box, settings=MeasureSettings(lock=tmp_path / "lock"))  # type: ignore[arg-type]
