"""Watches one confined process tree from its start to its end: deadlines, output caps, channel, killing, reaping."""

import contextlib
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from core.errors import InfraError
from core.sandbox.cgroups import Group
from core.sandbox.channel import FrameReader, Tampered, frame
from core.sandbox.output import FLOOD, Capture
from core.sandbox.policy import Limits, Status
from core.sandbox.watch import Watch

_SETUP_S = 30.0
"""A sandbox that is not set up by then failed; generous because a loaded machine is slow, not broken."""
_READY = b"ready\n"

_ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8"}
"""Environment of the trusted stages; nothing of ours or of the command's can steer them."""
_FIRST = ("setpriv", "--pdeathsig", "KILL", "/bin/sh", "-c")
ENTER = (
    '[ "$PPID" = "$1" ] || exit 125; shift; echo 1000 >/proc/self/oom_score_adj; '
    'while [ "$1" != -- ]; do echo 0 >"$1/cgroup.procs" || exit 125; shift; done; shift; exec "$@"'
)
"""First stage, for sh: ends if the parent is already dead, offers itself as the first to be killed when the machine's
memory runs out, joins the control groups, becomes the backend."""
READY = 'echo ready; read -r go && exec "$@"'
"""Last stage inside, for sh: tells the parent that the sandbox stands, waits for its word, becomes the rest."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """How a backend starts a command: the program prints `ready` when it is confined and goes on at a line of input."""

    argv: tuple[str, ...]
    fds: tuple[int, ...] = ()
    """Descriptors that the chain inherits; the parent's copies are closed after the start."""
    info_fd: int | None = None
    """Read end on which the backend writes {"child-pid": N}: the process whose root directory is the sandbox's."""
    uid: int | None = None
    """The uid that the program runs as when it is not ours: the owner of its scratch space."""
    tasks_bounded: bool = False
    """The kernel refuses processes and threads above the limit."""
    scratch: Path | None = None
    """The scratch space when it is a directory of the host, to be removed afterwards."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """What the supervisor saw."""

    status: Status
    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    truncated: bool
    wall_s: float
    cpu_s: float
    detail: str
    frames: tuple[bytes, ...]


class Supervisor:
    """One started tree. Call `wait_ready`, `release`, then `wait_end` or `ask`, then `close`.

    Args:
        launch: how to start it.
        limits: what to enforce.
        stdin: input of the program.
        group: control group it joins, or None.
        link: our end of the channel with the nonce, or None.
    """

    def __init__(
        self,
        launch: Launch,
        limits: Limits,
        stdin: bytes,
        group: Group | None,
        link: tuple[socket.socket, bytes] | None,
    ) -> None:
        self._limits = limits
        self._group = group
        self._stop: tuple[Status, str] | None = None
        self._frames: list[bytes] = []
        self._inbox = bytearray(stdin)
        self._selector = selectors.PollSelector()
        self._root_pidfd: int | None = None
        self._ended = False
        self._ending: Ending | None = None
        self._started_s = 0.0
        self._watch: Watch | None = None
        self._link: socket.socket | None = link[0] if link else None
        self._nonce = link[1] if link else b""
        self._reader = FrameReader(self._nonce, limits.channel_bytes)
        self._outbox = bytearray(self._nonce)
        folders = tuple(str(folder) for folder in group.folders) if group else ()
        try:
            self._process = subprocess.Popen(
                (*_FIRST, ENTER, "sh", str(os.getpid()), *folders, "--", *launch.argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_ENV,
                cwd="/",
                pass_fds=launch.fds,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise InfraError(f"The sandbox needs {error.filename}.", "Install util-linux.") from error
        finally:
            for fd in launch.fds:
                os.close(fd)
        self._pidfd = os.pidfd_open(self._process.pid)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._stdin = self._process.stdin
        self._out = Capture(self._process.stdout, limits.output_bytes)
        self._err = Capture(self._process.stderr, limits.output_bytes)
        for fd in (self._stdin.fileno(), self._out.fd, self._err.fd):
            os.set_blocking(fd, False)
        self._selector.register(self._pidfd, selectors.EVENT_READ, self._on_exit)
        self._selector.register(self._out.fd, selectors.EVENT_READ, self._on_output)
        self._selector.register(self._err.fd, selectors.EVENT_READ, self._on_error_output)

    def wait_ready(self) -> None:
        """Wait until the tree is confined.

        Raises:
            InfraError: the backend could not set the sandbox up.
        """
        deadline_s = time.monotonic() + _SETUP_S
        while not self._out.data.startswith(_READY):
            if (
                self._ended
                or time.monotonic() > deadline_s
                or self._out.data[: len(_READY)] != _READY[: len(self._out.data)]
            ):
                self.kill()
                self._drain()
                said = bytes(self._err.data).decode(errors="replace").strip() or "it said nothing"
                if said.startswith("Traceback"):
                    said = said.rpartition("\n")[2]
                raise InfraError(f"The sandbox could not be set up: {said[:500]}.", "See `complab doctor`.")
            self._pump(deadline_s)
        del self._out.data[: len(_READY)]
        self._out.seen_bytes -= len(_READY)

    def root(self, info_fd: int) -> Path:
        """Return the path by which the parent reaches the confined root directory while the tree lives."""
        told = b""
        while chunk := os.read(info_fd, 4096):
            told += chunk
        pid = int(json.loads(told)["child-pid"])
        self._root_pidfd = os.pidfd_open(pid)
        # Not by the first process itself: it never executed anything after its change of rights, so only root sees it.
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return Path(f"/proc/{children[0] if children else pid}/root")

    @property
    def pid(self) -> int:
        """The first process, which is the program itself unless namespaces lie between."""
        return self._process.pid

    def release(self, watch: Watch) -> None:
        """Let the program start, held to its limits by a watch; the clocks begin here."""
        self._inbox[:0] = b"go\n"
        self._selector.register(self._stdin, selectors.EVENT_WRITE, self._on_input)
        if self._link is not None:
            self._link.setblocking(False)
            self._selector.register(self._link, selectors.EVENT_READ | selectors.EVENT_WRITE, self._on_link)
        self._watch = watch
        self._started_s = time.monotonic()

    def wait_end(self) -> None:
        """Wait until the tree ended, by itself or at a limit."""
        while not self._ended:
            self._pump(self._started_s + self._limits.wall_s)
            self._enforce()

    def hang_up(self, grace_s: float) -> None:
        """Close the channel from our side, which a well-behaved child takes as the end, and wait for that."""
        deadline_s = time.monotonic() + grace_s
        if self._link is not None:
            with contextlib.suppress(OSError):  # the child hung up first
                self._link.shutdown(socket.SHUT_WR)
        while not self._ended and time.monotonic() < deadline_s:
            self._pump(min(deadline_s, self._started_s + self._limits.wall_s))
            self._enforce()

    def ask(self, payload: bytes, timeout_s: float) -> bytes | None:
        """Send a frame and wait for one; None when the tree ended, tampered or did not answer in time."""
        deadline_s = min(time.monotonic() + timeout_s, self._started_s + self._limits.wall_s)
        if self._link is None or self._ended or self._stop:
            return None
        while self._read_link():
            pass
        if self._frames:
            self._end_with("tampered", "the channel carried a frame that nobody asked for")
            return None
        self._outbox += frame(self._nonce, payload)
        self._selector.modify(self._link, selectors.EVENT_READ | selectors.EVENT_WRITE, self._on_link)
        while not self._frames and not self._ended and not self._stop:
            self._pump(deadline_s)
            self._enforce()
            if time.monotonic() >= deadline_s and not self._frames:
                self._end_with("timeout", f"no reply within {timeout_s:g} s")
        return self._frames.pop(0) if self._frames and not self._stop else None

    def kill(self) -> None:
        """Kill the whole tree. Safe to call again."""
        if self._group is not None:
            self._group.kill()
        if self._root_pidfd is not None:
            _send_kill(self._root_pidfd)
        if self._root_pidfd is None or self._group is None:
            _send_kill(self._pidfd)

    def close(self) -> Ending:
        """Kill what is left, reap it, and say what happened. Safe to call again."""
        if self._ending is None:
            self._ending = self._close()
        return self._ending

    def _close(self) -> Ending:
        wall_s = time.monotonic() - self._started_s if self._started_s else 0.0
        if self._watch is not None:
            self._watch.count_cpu()  # bwrap may end without waiting for those inside, so that wait4 misses them
        if not self._ended:
            self.kill()
        self._await_tree()
        _, code, rusage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(code)
        self._drain()
        for fd in filter(None, (self._pidfd, self._root_pidfd)):
            os.close(fd)
        self._selector.close()
        for stream in (self._out.stream, self._err.stream):
            stream.close()
        self._close_stdin()
        cpu_s = rusage.ru_utime + rusage.ru_stime
        if self._watch is not None:
            cpu_s = self._watch.total_cpu_s(cpu_s)
        use = self._group.use() if self._group else None
        return self._judge(wall_s, cpu_s, use is not None and use.memory_killed, use is not None and use.pids_refused)

    def _await_tree(self) -> None:
        """Wait until the namespace's first process is dead, which the kernel grants when all others in it are."""
        if self._root_pidfd is not None:
            _send_kill(self._root_pidfd)
            death = select.poll()  # select.select fails with many open files
            death.register(self._root_pidfd, select.POLLIN)
            death.poll(_SETUP_S * 1000)

    def _judge(self, wall_s: float, cpu_s: float, memory_killed: bool, pids_refused: bool) -> Ending:
        code = self._process.returncode
        sign = -code if code < 0 else code - 128 if 128 < code <= 128 + signal.NSIG else None
        status: Status = "exit" if sign is None else "signal"
        detail = "" if sign is None else f"killed by signal {sign}"
        if self._stop is not None:
            status, detail = self._stop
        elif memory_killed:
            status, detail = "resource", f"memory: the limit is {self._limits.memory_bytes} bytes"
        elif sign == signal.SIGXCPU or cpu_s > self._limits.cpu_s:
            status, detail = "resource", f"cpu: the limit is {self._limits.cpu_s:g} s"
        elif pids_refused:
            status, detail = "resource", f"pids: the limit is {self._limits.pids} processes and threads"
        elif sign == signal.SIGXFSZ:
            status, detail = "resource", f"disk: the limit of one file is {self._limits.file_bytes} bytes"
        return Ending(
            status=status,
            exit_code=code if status == "exit" else None,
            signal=sign if status == "signal" else None,
            stdout=bytes(self._out.data),
            stderr=bytes(self._err.data),
            truncated=self._out.truncated or self._err.truncated,
            wall_s=wall_s,
            cpu_s=max(0.0, cpu_s),
            detail=detail,
            frames=tuple(self._frames),
        )

    def _pump(self, deadline_s: float) -> None:
        """Serve events once, at most until the deadline or until a limit could be reached."""
        wait_s = min(deadline_s, self._watch.next_s if self._watch else deadline_s) - time.monotonic()
        for key, _ in self._selector.select(max(0.0, wait_s)):
            handler: Callable[[], None] = key.data
            handler()

    def _enforce(self) -> None:
        if self._ended or self._stop:
            return
        now_s = time.monotonic()
        if now_s >= self._started_s + self._limits.wall_s:
            self._end_with("timeout", f"the wall limit is {self._limits.wall_s:g} s")
        elif self._watch is not None and now_s >= self._watch.next_s:
            if passed := self._watch.look():
                self._end_with(*passed)
        elif self._out.flooded or self._err.flooded:
            self._end_with("resource", f"output: more than {FLOOD} times {self._limits.output_bytes} bytes")

    def _end_with(self, status: Status, detail: str) -> None:
        self._stop = self._stop or (status, detail)
        self.kill()

    def _on_exit(self) -> None:
        self._ended = True

    def _on_output(self) -> None:
        if not self._out.read():
            self._selector.unregister(self._out.fd)

    def _on_error_output(self) -> None:
        if not self._err.read():
            self._selector.unregister(self._err.fd)

    def _on_input(self) -> None:
        try:
            sent = os.write(self._stdin.fileno(), self._inbox)
        except BlockingIOError:
            return
        except BrokenPipeError:  # the program closed its input: its right
            sent = len(self._inbox)
        del self._inbox[:sent]
        if not self._inbox:
            self._selector.unregister(self._stdin)
            self._close_stdin()

    def _close_stdin(self) -> None:
        try:
            self._stdin.close()
        except BrokenPipeError:  # nothing of ours is buffered; the reader is gone
            return

    def _on_link(self) -> None:
        assert self._link is not None
        try:
            if self._outbox:
                del self._outbox[: self._link.send(self._outbox)]
                if not self._outbox:
                    self._selector.modify(self._link, selectors.EVENT_READ, self._on_link)
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            self._outbox.clear()
        self._read_link()

    def _read_link(self) -> bool:
        """Take what the channel holds; True while there may be more at once."""
        assert self._link is not None
        try:
            data = self._link.recv(1 << 18)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            data = b""
        try:
            if not data:
                if self._link in self._selector.get_map():
                    self._selector.unregister(self._link)
                self._reader.end()
                return False
            self._frames += self._reader.feed(data)
        except Tampered as error:
            self._end_with("tampered", str(error))
            return False
        return True

    def _drain(self) -> None:
        """Take what the pipes and the channel still hold after the tree's death."""
        for capture in (self._out, self._err):
            before = -1
            while capture.seen_bytes != before and not capture.flooded:
                before = capture.seen_bytes
                capture.read()
        if self._link is not None and self._started_s and not self._stop:
            while self._read_link():
                pass


def _send_kill(pidfd: int) -> None:
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return
