"""What a sandbox is asked for (policy, command) and what it answers (result)."""

from enum import StrEnum
from pathlib import Path
from typing import Literal, Protocol, Self

from pydantic import Field

from core.errors import ComplabError
from core.records import Record


class SandboxUnavailable(ComplabError):
    """No backend of this machine proves the guarantees that a policy requires."""


class Guarantee(StrEnum):
    """A promise about confined code. A policy requires some; a backend proves some by trying."""

    NO_NET = "no_net"
    FS_CONFINED = "fs_confined"
    MEM = "mem"
    PIDS = "pids"
    CPU = "cpu"
    WALL = "wall"
    TREE_KILL = "tree_kill"
    NO_PRIVS = "no_privs"


class Limits(Record):
    """Upper bounds of one run. The parent enforces each, whatever the child does."""

    wall_s: float = 10.0
    cpu_s: float = 10.0
    memory_bytes: int = 2 << 30
    pids: int = 64
    output_bytes: int = 1 << 20
    """Cap of stdout and of stderr, each."""
    file_bytes: int = 64 << 20
    """Cap of one written file, and of each file brought back."""
    scratch_bytes: int = 256 << 20
    """Size of the writable working directory (a tmpfs)."""
    open_files: int = 256
    channel_bytes: int = 64 << 20
    """Cap of one frame on the channel."""


Profile = Literal["pure", "toolchain"]
"""`pure`: no exec and no fork (threads are allowed). `toolchain`: compilers, linkers, programs that start others."""


class Policy(Record):
    """A named set of required guarantees with limits."""

    profile: Profile = "toolchain"
    required: frozenset[Guarantee] = frozenset(Guarantee)
    limits: Limits = Limits()


class Command(Record):
    """One program to run inside: argv and all that it may see."""

    argv: tuple[str, ...]
    files: dict[str, bytes] = Field(default_factory=dict)
    """Files placed in the working directory before the start: relative name -> content."""
    executables: tuple[str, ...] = ()
    """Names among `files` that get the execute bit."""
    readonly: tuple[Path, ...] = ()
    """Extra host files or directories bound read-only at their own path."""
    env: dict[str, str] = Field(default_factory=dict)
    stdin: bytes = b""
    outputs: tuple[str, ...] = ()
    """Relative names of regular files to bring back when the program ended (missing ones are left out)."""
    channel: bool = False
    """Give argv[0]'s process the authenticated channel (its descriptor number is in the variable COMPLAB_CHANNEL)."""


Status = Literal["exit", "signal", "timeout", "resource", "tampered"]
"""How a run ended: by itself, by a signal, at the wall deadline, at a memory/cpu/pids/output/disk limit, or with a
channel that carried anything but well-formed frames of the one authenticated writer.

A signal is reported like a shell does: under `bubblewrap` a program that calls exit(128 + n) looks killed by signal n.
"""


class Result(Record):
    """What came of one command, and under which proven guarantees it ran."""

    status: Status
    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    truncated: bool
    """stdout or stderr hit its cap."""
    files: dict[str, bytes]
    wall_s: float
    cpu_s: float
    backend: str
    guarantees: frozenset[Guarantee]
    detail: str = ""
    """What to tell a person when the status is not `exit`: which limit was hit, what the channel carried."""
    channel: bytes | None = None
    """Payload of the one frame that the program sent; None: it sent none, or the status is `tampered`."""

    @property
    def ok(self) -> bool:
        """True when the program ended by itself with exit code 0."""
        return self.status == "exit" and self.exit_code == 0


class Session(Protocol):
    """A long-lived confined child that the parent drives over the authenticated channel."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def ask(self, payload: bytes, timeout_s: float) -> bytes:
        """Send one request and return the payload of the reply.

        Raises:
            SessionEnded: the child ended, timed out or tampered; the session is closed and holds the Result.
        """
        ...

    def close(self) -> Result:
        """End the child (closing the channel first, then by force) and return what came of it."""
        ...


class Sandbox(Protocol):
    """The one door through which untrusted code runs."""

    def session(self, command: Command, policy: Policy) -> Session:
        """Start a confined child with a channel; `limits.wall_s` bounds the whole session.

        Raises:
            SandboxUnavailable: no backend of this machine covers `policy.required`; the message has the install hint.
            InfraError: the sandbox itself failed (not the command).
        """
        ...

    def run(self, command: Command, policy: Policy) -> Result:
        """Run one command to its end in a fresh confined process tree.

        Raises:
            SandboxUnavailable: no backend of this machine covers `policy.required`; the message has the install hint.
            InfraError: the sandbox itself failed (not the command).
        """
        ...


class SessionEnded(ComplabError):
    """A session's child is no more; `result` says how it ended."""

    def __init__(self, what: str, result: Result) -> None:
        super().__init__(what)
        self.result = result
