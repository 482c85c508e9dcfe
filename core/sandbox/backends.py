"""The backends by name, strongest first."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass

from core.sandbox import bubblewrap, kernel, namespaces, unconfined
from core.sandbox.launcher import Job
from core.sandbox.obstacles import namespace_obstacle
from core.sandbox.policy import Profile
from core.sandbox.supervisor import Launch


@dataclass(frozen=True, kw_only=True, slots=True)
class Backend:
    """One way to confine a program."""

    name: str
    launch: Callable[[Job], Launch]
    profiles: tuple[Profile, ...]
    hint: str
    """What to install or allow where this backend does not work and no known setting is in its way."""

    @property
    def fix(self) -> str:
        """What to install, type or allow where this backend does not work."""
        if self.name == KERNEL.name or (self.name == BUBBLEWRAP.name and shutil.which("bwrap") is None):
            return self.hint
        obstacle = namespace_obstacle()
        return f"{obstacle.reason}: {obstacle.fix}" if obstacle else self.hint


BUBBLEWRAP = Backend(
    name="bubblewrap",
    launch=bubblewrap.launch,
    profiles=("pure", "toolchain"),
    hint="install bubblewrap 0.8 or later (Debian, Ubuntu: apt-get install bubblewrap)",
)
NAMESPACES = Backend(
    name="namespaces",
    launch=namespaces.launch,
    profiles=("pure", "toolchain"),
    hint="allow user namespaces (in a container: --security-opt seccomp=unconfined --security-opt apparmor=unconfined)",
)
KERNEL = Backend(
    name="kernel",
    launch=kernel.launch,
    profiles=("pure",),
    hint="use a kernel with Landlock and seccomp (5.13 or later, `landlock` in /sys/kernel/security/lsm)",
)
UNSAFE = Backend(name="unsafe", launch=unconfined.launch, profiles=("pure", "toolchain"), hint="")
CONFINING = (BUBBLEWRAP, NAMESPACES, KERNEL)
