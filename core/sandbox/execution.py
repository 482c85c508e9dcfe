"""One run: its own uid, control group, scratch space and channel, all gone afterwards. No choice of backend here."""

import itertools
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

from core.errors import BadInput, InfraError
from core.sandbox import channel, scratch
from core.sandbox.backends import Backend
from core.sandbox.census import census_of_family, census_of_namespace
from core.sandbox.cgroups import Group, Places, find_places
from core.sandbox.launcher import Job
from core.sandbox.layout import environment, plan_layout
from core.sandbox.policy import Command, Guarantee, Policy, Result
from core.sandbox.supervisor import Ending, Supervisor
from core.sandbox.watch import Watch

_UID_BASE = 0x70000000
"""Start of a range of uids that no distribution or user database hands out."""
_SLOTS = 64
_slots_free = threading.Semaphore(_SLOTS)
_slots_lock = threading.Lock()
_slots_taken: set[int] = set()


@contextmanager
def _own_uid() -> Iterator[int | None]:
    """Lend a uid that no other run on this machine has, when we are root and may give one."""
    if os.geteuid() != 0:
        yield None
        return
    with _slots_free:
        with _slots_lock:
            slot = next(n for n in itertools.count() if n not in _slots_taken)
            _slots_taken.add(slot)
        try:
            yield _UID_BASE | os.getpid() << 6 | slot
        finally:
            with _slots_lock:
                _slots_taken.discard(slot)


@cache
def places() -> Places | None:
    """Return where control groups can be made, or None."""
    return find_places(Path("/proc/self/cgroup").read_text())


class Tree:
    """One started command. Use `wait` for a single run or `ask` for a conversation, then `finish` for the result.

    Args:
        backend: how to confine it.
        command: what to run.
        policy: under which profile and limits.
        guarantees: what is proven of this backend, stamped on the result.
        modules: run these modules of core.sandbox in the launching interpreter instead of `command.argv`.
        counted: use a control group if there is one; False shows what holds without.

    Raises:
        BadInput: the command cannot be run as it is given.
        InfraError: the sandbox could not be set up.
    """

    def __init__(
        self,
        backend: Backend,
        command: Command,
        policy: Policy,
        guarantees: frozenset[Guarantee],
        *,
        modules: tuple[str, ...] = (),
        counted: bool = True,
    ) -> None:
        _check(command, modules)
        self._backend, self._command, self._policy, self._guarantees = backend, command, policy, guarantees
        self._result: Result | None = None
        self._full = False
        with ExitStack() as stack:
            uid = stack.enter_context(_own_uid())
            group = stack.enter_context(_group(policy)) if counted and backend.name != "unsafe" else None
            self._supervisor = stack.enter_context(self._start(uid, group, modules))
            self._stack = stack.pop_all()

    @contextmanager
    def _start(self, uid: int | None, group: Group | None, modules: tuple[str, ...]) -> Iterator[Supervisor]:
        command, limits = self._command, self._policy.limits
        layout = plan_layout(command)
        with ExitStack() as stack:
            link = channel_fd = None
            if command.channel or modules:
                ours, theirs = socket.socketpair()
                stack.callback(ours.close)
                link, channel_fd = (ours, channel.new_nonce()), theirs.detach()
            job = Job(
                argv=() if modules else command.argv,
                modules=modules,
                env=environment(command, channel_fd),
                layout=layout,
                outputs=command.outputs,
                policy=self._policy,
                uid=uid,
                memory_counted=group is not None and group.counts_memory,
                channel_fd=channel_fd,
            )
            try:
                launch = self._backend.launch(job)
            except BaseException:
                if channel_fd is not None:
                    os.close(channel_fd)
                raise
            if launch.info_fd is not None:
                stack.callback(os.close, launch.info_fd)
            if launch.scratch is not None:
                stack.callback(shutil.rmtree, launch.scratch, ignore_errors=True)
            supervisor = Supervisor(launch, limits, command.stdin, group, link)
            stack.callback(supervisor.close)
            supervisor.wait_ready()
            inside = None if launch.info_fd is None else supervisor.root(launch.info_fd)
            root = launch.scratch if inside is None else inside / scratch.HOME.lstrip("/")
            if root is None:
                raise InfraError(f"The backend {self._backend.name} has no scratch space.")
            self._root_fd = _open_folder(root)
            stack.callback(os.close, self._root_fd)
            census = (
                census_of_family(supervisor.pid)
                if inside is None
                else census_of_namespace(_open_folder(inside / "proc"), self._root_fd)
            )
            stack.callback(census.close)
            ready_made = command.outputs if self._backend.name == "kernel" else ()
            try:
                self._work_fd = scratch.populate(
                    self._root_fd, command.files, command.executables, launch.uid, empty_files=ready_made
                )
                stack.callback(os.close, self._work_fd)
                supervisor.release(Watch(limits, group, census, tasks_bounded=launch.tasks_bounded))
            except scratch.ScratchFull:
                self._full = True
            yield supervisor

    def wait(self) -> None:
        """Wait until the program ended or was stopped at a limit."""
        if not self._full:
            self._supervisor.wait_end()

    def ask(self, payload: bytes, timeout_s: float) -> bytes | None:
        """Send a frame on the channel and wait for the reply; None when there is none: `finish` then says why."""
        return None if self._full else self._supervisor.ask(payload, timeout_s)

    def hang_up(self, grace_s: float) -> None:
        """Tell a conversing child that nothing more will be asked, and give it time to end by itself."""
        if not self._full and self._result is None:
            self._supervisor.hang_up(grace_s)

    def finish(self, *, conversed: bool = False) -> Result:
        """End the tree by force if it still lives, clean up, and return what came of it. Safe to call again.

        Args:
            conversed: the frames were replies to `ask`; without it at most one frame may have come.
        """
        if self._result is None:
            with self._stack:
                self._result = self._judge(self._supervisor.close(), conversed)
        return self._result

    def _judge(self, ending: Ending, conversed: bool) -> Result:
        status, detail = ending.status, ending.detail
        files: dict[str, bytes] = {}
        frames = ending.frames
        if self._full:
            status, detail = "resource", f"disk: the input files exceed {self._policy.limits.scratch_bytes} bytes"
        else:
            files, refused = scratch.collect(self._work_fd, self._command.outputs, self._policy.limits.file_bytes)
            if self._backend.name == "kernel":  # there each output was made empty before the start
                files = {name: content for name, content in files.items() if content or name in self._command.files}
            if refused:
                detail = f"{detail} refused outputs (not regular files, or too large): {', '.join(refused)}".strip()
            own_space = self._backend.name not in ("kernel", "unsafe")
            if status in ("exit", "signal") and own_space and scratch.is_full(self._root_fd):
                status, detail = "resource", f"disk: the {self._policy.limits.scratch_bytes} bytes of scratch are full"
        if status != "tampered" and frames and (conversed or len(frames) > 1):
            status, detail = "tampered", "the channel carried more frames than were asked for"
        return Result(
            status=status,
            exit_code=ending.exit_code if status == "exit" else None,
            signal=ending.signal if status == "signal" else None,
            stdout=ending.stdout,
            stderr=ending.stderr,
            truncated=ending.truncated,
            files=files,
            wall_s=ending.wall_s,
            cpu_s=ending.cpu_s,
            backend=self._backend.name,
            guarantees=self._guarantees,
            detail=detail,
            channel=frames[0] if frames and status != "tampered" else None,
        )


def _open_folder(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


@contextmanager
def _group(policy: Policy) -> Iterator[Group | None]:
    where = places()
    if where is None:
        yield None
        return
    group = Group(where, policy.limits)
    try:
        yield group
    finally:
        group.remove()


def _check(command: Command, modules: tuple[str, ...]) -> None:
    scratch.check_names((*command.files, *command.executables, *command.outputs))
    if not modules and (not command.argv or not command.argv[0] or "=" in command.argv[0]):
        raise BadInput(f"The sandbox cannot run {command.argv!r}.", "Name a program, without `=` in its name.")
    for text in (*command.argv, *command.env, *command.env.values()):
        if "\0" in text:
            raise BadInput("An argument or environment variable for the sandbox has a NUL character.")
    for key in command.env:
        if not key or "=" in key:
            raise BadInput(f"The environment variable name {key!r} is not usable.")
    if unknown := set(command.executables) - set(command.files):
        raise BadInput(f"Command.executables names what Command.files lacks: {', '.join(sorted(unknown))}.")
