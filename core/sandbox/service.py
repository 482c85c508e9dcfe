"""Opens the sandbox: picks the strongest backend that proves what the policy requires, and runs commands in it."""

import os
import sys

from core.errors import BadInput
from core.sandbox.backends import CONFINING, UNSAFE, Backend
from core.sandbox.execution import Tree
from core.sandbox.policy import Command, Guarantee, Policy, Result, Sandbox, SandboxUnavailable, SessionEnded
from core.sandbox.probe import proven, report
from core.sandbox.unconfined import BANNER, VARIABLE

_GRACE_S = 2.0
"""How long a session's child may take to end by itself."""


def open_sandbox(*, backend: str | None = None, allow_unsafe: bool = False) -> Sandbox:
    """Open the one door through which untrusted code runs.

    Args:
        backend: insist on this backend; None: for each policy the strongest that covers it.
        allow_unsafe: together with COMPLAB_UNSAFE_SANDBOX=1 permits running unconfined when no backend covers the
            policy. A banner says so on stderr, and each result has backend `unsafe` and no guarantee.

    Raises:
        BadInput: there is no backend of this name.
    """
    return Box(backend=backend, allow_unsafe=allow_unsafe)


class Box:
    """Runs each command in a fresh confined tree. Holds no state but its settings, so threads may share it."""

    def __init__(self, *, backend: str | None = None, allow_unsafe: bool = False) -> None:
        names = [b.name for b in CONFINING]
        if backend is not None and backend not in names:
            raise BadInput(f"There is no sandbox backend {backend!r}.", f"Choose one of {', '.join(names)}.")
        self._backends = tuple(b for b in CONFINING if backend in (None, b.name))
        self._unsafe = allow_unsafe and os.environ.get(VARIABLE) == "1"
        if self._unsafe:
            print(BANNER, file=sys.stderr, flush=True)

    def choose(self, policy: Policy) -> tuple[Backend, frozenset[Guarantee]]:
        """Return the strongest backend that covers a policy, and what it proved.

        Raises:
            SandboxUnavailable: none does; the message names what is missing and how to get it.
        """
        shortfalls = []
        for backend in self._backends:
            if policy.profile not in backend.profiles:
                shortfalls.append(f"{backend.name} has no profile {policy.profile}")
                continue
            guarantees = proven(backend, policy.profile)
            if missing := policy.required - guarantees:
                problem = "" if guarantees else report(backend, policy.profile).problem.strip()
                why = f": {problem}" if problem else ""
                shortfalls.append(f"{backend.name} does not prove {', '.join(sorted(missing))}{why}")
                continue
            return backend, guarantees
        if self._unsafe:
            return UNSAFE, frozenset()
        hints = dict.fromkeys(b.fix for b in self._backends if policy.profile in b.profiles)
        raise SandboxUnavailable(
            f"No sandbox of this machine covers the policy ({'; '.join(shortfalls)}), so the code was not run.",
            f"To fix: {'; or '.join(hints)}. `complab doctor` shows what was tried.",
        )

    def run(self, command: Command, policy: Policy) -> Result:
        """See `Sandbox.run`."""
        backend, guarantees = self.choose(policy)
        tree = Tree(backend, command, policy, guarantees)
        try:
            tree.wait()
        finally:
            result = tree.finish()
        return result

    def session(self, command: Command, policy: Policy) -> "Conversation":
        """See `Sandbox.session`."""
        backend, guarantees = self.choose(policy)
        return Conversation(Tree(backend, command.model_copy(update={"channel": True}), policy, guarantees))


class Conversation:
    """A long-lived confined child. The thread that starts it must outlive it: the kernel kills it with that thread."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def __enter__(self) -> "Conversation":
        return self

    def __exit__(self, *exc: object) -> None:
        if exc[0] is None:
            self.close()
        else:
            self._tree.finish(conversed=True)

    def ask(self, payload: bytes, timeout_s: float) -> bytes:
        """See `Session.ask`."""
        reply = self._tree.ask(payload, timeout_s)
        if reply is None:
            result = self._tree.finish(conversed=True)
            raise SessionEnded(f"The confined session ended: {result.status} {result.detail}".rstrip() + ".", result)
        return reply

    def close(self) -> Result:
        """See `Session.close`."""
        self._tree.hang_up(_GRACE_S)
        return self._tree.finish(conversed=True)
