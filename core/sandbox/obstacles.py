"""Why this machine forbids user namespaces to ordinary users, and what its administrator can type against that."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

_PROFILE = "abi <abi/4.0>,\\nprofile {name} {path} flags=(unconfined) {{ userns, }}\\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Obstacle:
    """One setting in the way."""

    reason: str
    fix: str


def namespace_obstacle(settings: Path = Path("/proc/sys")) -> Obstacle | None:
    """Return the setting that forbids user namespaces to us, or None when no setting does.

    A setting of AppArmor may spare single programs, so it is an obstacle only if the trial failed.

    Args:
        settings: where the kernel shows them.
    """
    if os.geteuid() == 0:  # root needs none
        return None
    for name, forbids, allowing in (
        ("user.max_user_namespaces", "0", "15000"),
        ("kernel.unprivileged_userns_clone", "0", "1"),
    ):
        if _value(settings, name) == forbids:
            return Obstacle(
                reason=f"the kernel forbids user namespaces ({name} = {forbids})", fix=_sysctl(name, allowing)
            )
    name = "kernel.apparmor_restrict_unprivileged_userns"
    if _value(settings, name) == "1":
        return Obstacle(
            reason=f"AppArmor restricts user namespaces ({name} = 1)",
            fix=f"allow them to bwrap alone: {_apparmor()} -- or to all programs: {_sysctl(name, '0')}",
        )
    return None


def _value(settings: Path, name: str) -> str:
    try:
        return (settings / name.replace(".", "/")).read_text().strip()
    except OSError:  # this kernel has no such setting
        return ""


def _sysctl(name: str, value: str) -> str:
    return f"echo {name}={value} | sudo tee /etc/sysctl.d/60-complab.conf && sudo sysctl --system"


def _apparmor() -> str:
    profile = _PROFILE.format(name="bwrap", path=shutil.which("bwrap") or "/usr/bin/bwrap")
    place = "/etc/apparmor.d/bwrap"
    return f"printf '{profile}' | sudo tee {place} && sudo apparmor_parser -r {place}"
