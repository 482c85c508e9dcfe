"""Tries to get out: runs the programs of `probes/` inside a backend, and outside to see that each could succeed."""

import ctypes
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from core.cache import cache_dir
from core.records import Record
from core.sandbox.backends import Backend
from core.sandbox.execution import Tree
from core.sandbox.launcher import python
from core.sandbox.policy import Command, Guarantee, Limits, Policy, Profile, Status

_FOLDER = Path(__file__).parent / "probes"
_SECRET = "COMPLAB_PROBE_SECRET"
_NOBODYS_UID = 0x7FFFFFF0
_IPC_CREAT, _IPC_RMID = 0o1000, 0


class Probe(Record):
    """One attempt to escape, as the YAML files of `probes/` give it."""

    name: str
    what: str
    guarantee: Guarantee
    """The promise that it would break."""
    program: str
    """Python, run after `probes/prelude.py`; calls `escaped(evidence)` when it got out."""
    core: bool = False
    """Among the few that decide whether a backend may be used; the others are run by tests and `complab doctor`."""
    limits: dict[str, float] = Field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    channel: bool = False
    profiles: tuple[Profile, ...] = ("pure", "toolchain")
    statuses: tuple[Status, ...] = ()
    """It counts as held only if the run ends with one of these; empty: any."""
    needs_root: bool = False
    """Outside it can succeed only as root."""
    only_inside: str = ""
    """Why it cannot be tried outside."""
    shows_outside: bool = False
    """Show it the directory of the bait read-only."""
    control_s: float = 30.0
    """How long it may take outside."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """What came of one try."""

    escaped: bool
    evidence: str


class _Bait:
    """Things of the host that a program could reach if it were not confined, fresh for each try."""

    def __init__(self, folder: Path, secret: Path, sockets: dict[str, Any], victim: int, shm_key: int) -> None:
        self.token = secret.read_text()
        self.folder = folder
        self.victim = victim
        self.facts = {
            "token": self.token,
            "secret": str(secret),
            "outside": str(folder),
            "target": str(folder / "target"),
            "suid_cat": str(folder / "suid-cat"),
            "private": str(folder / "private"),
            "harness": str(Path(__file__).with_name("policy.py")),
            "parent": os.getpid(),
            "victim": victim,
            "shm_key": shm_key,
            **sockets,
        }
        self._before = self._look()

    def _look(self) -> tuple[Any, ...]:
        target = self.folder / "target"
        state = target.stat() if target.exists() else None
        kept = None if state is None else (state.st_size, state.st_mode, int(state.st_mtime))
        return sorted(p.name for p in self.folder.iterdir()), kept

    def harm(self) -> str:
        """Say what happened to the host's things and which processes are left; "" when nothing did."""
        if self._look() != self._before:
            return "changed the host's files"
        if os.waitid(os.P_PID, self.victim, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return "killed a process of the host"
        left = self.survivors()
        return f"left {len(left)} processes behind" if left else ""

    def survivors(self) -> list[int]:
        """Return the processes that have this bait's token on their command line, zombies not counted."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    line = (entry / "cmdline").read_bytes()
                except (FileNotFoundError, ProcessLookupError):
                    continue
                if self.token.encode() in line:
                    found.append(int(entry.name))
        return found


@cache
def catalogue() -> tuple[Probe, ...]:
    """Return all probes."""
    entries: dict[str, Any] = {}
    for path in sorted(_FOLDER.glob("*.yaml")):
        entries |= yaml.safe_load(path.read_text())
    return tuple(Probe.model_validate({"name": name, **entry}) for name, entry in entries.items())


def not_applicable(probe: Probe, backend: Backend, profile: Profile) -> str:
    """Say why a probe says nothing about a backend; "" when it applies."""
    if profile not in backend.profiles:
        return f"{backend.name} has no profile {profile}"
    if profile not in probe.profiles:
        return f"it needs what profile {profile} forbids (starting another process)"
    if probe.shows_outside and os.geteuid() != 0:
        return "only root can prepare a setuid program of another uid"
    if probe.outputs and backend.name == "kernel":
        return "there the parent makes the output files itself and the program cannot replace them"
    return ""


def try_inside(probe: Probe, backend: Backend, profile: Profile, *, counted: bool = True) -> Attempt:
    """Run a probe confined.

    Args:
        probe: what to try.
        backend: what should hold it.
        profile: under which profile.
        counted: with a control group where there is one.

    Raises:
        InfraError: the backend does not work here.
    """
    with _bait() as bait:
        command = Command(
            argv=(python(), "-I", "-S", "-B", "probe.py", json.dumps(bait.facts)),
            files={"probe.py": _source(probe)},
            outputs=probe.outputs,
            readonly=(bait.folder,) if probe.shows_outside else (),
            channel=probe.channel,
        )
        limits = Limits.model_validate({"wall_s": 10.0, "cpu_s": 10.0, **probe.limits})
        tree = Tree(backend, command, Policy(profile=profile, limits=limits), frozenset(), counted=counted)
        try:
            tree.wait()
        finally:
            result = tree.finish()
        said = result.stdout.decode(errors="replace").strip()
        stolen = any(bait.token.encode() in content for content in result.files.values())
        harm = bait.harm()
        if said.startswith("ESCAPED") or stolen or harm:
            return Attempt(escaped=True, evidence=harm or said[-200:] or "the parent brought a secret back")
        if probe.statuses and result.status not in probe.statuses:
            return Attempt(escaped=True, evidence=f"ended with status {result.status}, not {probe.statuses}")
        last = (result.stderr.decode(errors="replace").strip().splitlines() or [""])[-1]
        return Attempt(escaped=False, evidence=result.detail or last[:200] or f"{result.status}: got nothing")


def try_outside(probe: Probe) -> Attempt | str:
    """Run a probe unconfined: it must be able to succeed, or it proves nothing. Harmless by construction.

    Returns:
        The attempt, or the reason why it was not made.
    """
    if probe.only_inside:
        return probe.only_inside
    if probe.needs_root and os.geteuid() != 0:
        return "outside it can succeed only as root"
    with _bait() as bait, tempfile.TemporaryDirectory(prefix="complab-probe-") as folder:
        Path(folder, "probe.py").write_bytes(_source(probe))
        argv = (python(), "-I", "-S", "-B", "probe.py", json.dumps(bait.facts))
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(
                argv, cwd=folder, env={**os.environ, _SECRET: bait.token}, stdin=subprocess.DEVNULL,
                stdout=out, stderr=err, close_fds=False,
            )  # fmt: skip
            try:
                process.wait(timeout=probe.control_s)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            harm = bait.harm()
            out.seek(0)
            err.seek(0)
            said = out.read().decode(errors="replace").strip()
            last = (err.read().decode(errors="replace").strip().splitlines() or [""])[-1]
        escaped = "ESCAPED" in said[-2000:] or bool(harm)
        return Attempt(escaped=escaped, evidence=harm or said[-200:] or last[:200])


def _source(probe: Probe) -> bytes:
    return (_FOLDER / "prelude.py").read_bytes() + b"\n" + probe.program.encode()


@contextmanager
def _bait() -> Iterator[_Bait]:
    token = secrets.token_hex(16)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="complab-bait-")))
        folder.chmod(0o777)
        (folder / "target").write_text("target")
        (folder / "target").chmod(0o666)
        if os.geteuid() == 0:
            _setuid_program(folder, token)
        secret = cache_dir("sandbox") / f"bait-{token}"
        secret.write_text(token)
        stack.callback(secret.unlink, missing_ok=True)
        leaked = os.open(secret, os.O_RDONLY)
        os.set_inheritable(leaked, True)
        stack.callback(os.close, leaked)
        sockets = stack.enter_context(_listeners(folder, token, leaked))
        victim = subprocess.Popen(("sleep", "60"), env={"SECRET": token}, stdout=subprocess.DEVNULL)
        stack.callback(victim.wait)
        stack.callback(victim.kill)
        bait = _Bait(folder, secret, sockets, victim.pid, stack.enter_context(_shared_memory(token)))
        try:
            yield bait
        finally:
            for pid in bait.survivors():
                _kill(pid)


def _setuid_program(folder: Path, token: str) -> None:
    """Make a setuid program and a file that only its owner may read; nobody's uid, for root's would be a hole."""
    for path in (folder / "private", folder / "suid-cat"):
        path.touch(mode=0o600)
        os.chown(path, _NOBODYS_UID, _NOBODYS_UID)
    (folder / "private").write_text(token)
    shutil.copyfile("/bin/cat", folder / "suid-cat")
    (folder / "suid-cat").chmod(0o4755)


@contextmanager
def _listeners(folder: Path, token: str, leaked: int) -> Iterator[dict[str, Any]]:
    """Serve on TCP, UDP, an abstract and a file Unix socket until the block ends."""
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as file,
    ):
        udp.bind(("127.0.0.1", 0))
        abstract.bind(f"\0complab-{token}")
        abstract.listen()
        file.bind(str(folder / "socket"))
        (folder / "socket").chmod(0o777)
        file.listen()

        def answer() -> None:
            try:
                question, sender = udp.recvfrom(100)
                if sender is not None:  # as it is when the wait was ended
                    udp.sendto(question[:10], sender)
            except OSError:  # closed: nobody asked
                return

        def pass_descriptor() -> None:
            try:
                peer, _ = file.accept()
                with peer:
                    socket.send_fds(peer, [b"x"], [leaked])
            except OSError:  # closed: nobody came, or did not stay
                return

        threads = [threading.Thread(target=serve, daemon=True) for serve in (answer, pass_descriptor)]
        for thread in threads:
            thread.start()
        yield {
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "abstract": f"complab-{token}",
            "unix": str(folder / "socket"),
        }
        for waiting in (udp, file):
            try:
                waiting.shutdown(socket.SHUT_RDWR)
            except OSError:  # an unconnected UDP socket says so, and still wakes its reader
                continue
        for thread in threads:
            thread.join(timeout=5)


@contextmanager
def _shared_memory(token: str) -> Iterator[int]:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    key = int(token[:7], 16) + 1
    segment = libc.shmget(key, 64, 0o666 | _IPC_CREAT)
    address = libc.shmat(segment, None, 0)
    ctypes.memmove(address, token.encode(), len(token))
    libc.shmdt(ctypes.c_void_p(address))
    try:
        yield key
    finally:
        libc.shmctl(segment, _IPC_RMID, None)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
