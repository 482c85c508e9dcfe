"""For profile `pure` where namespaces are forbidden: Landlock, seccomp and rlimits alone."""

import os
import tempfile
from dataclasses import replace
from pathlib import Path

from core.errors import InfraError
from core.sandbox.launcher import Job, launcher, python
from core.sandbox.scratch import HOME
from core.sandbox.supervisor import Launch

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def launch(job: Job) -> Launch:
    """Build the start of our launcher in the present namespaces.

    The scratch space is a directory of the host. Only the declared outputs are writable in it, each up to the cap of
    one file, because nothing else could bound the space that the program takes.

    Raises:
        InfraError: the profile is not `pure`: nothing here confines a tree of processes.
    """
    if job.policy.profile != "pure":
        raise InfraError("The kernel backend runs profile pure only.")
    scratch = Path(tempfile.mkdtemp(prefix="complab-box-"))
    work = scratch / "work"
    # Of the links only the system's: /tmp, which points into the sandbox elsewhere, is the host's here.
    links = [path for target, path in job.layout.links if not target.startswith(HOME)]
    rules = [(path, False) for path in (*job.layout.binds, *links)]
    rules += [(str(work), False), *((str(work / name), True) for name in job.outputs)]
    devices = _DEVICES if job.memory_counted else [path for path in _DEVICES if path != "/dev/zero"]
    rules += [(device, True) for device in devices]  # without /dev/zero no memory can be mapped that no process shows
    if job.uid is not None and not _open_to_all(Path(python())):
        job = replace(job, uid=None)  # root without any capability; `probe` then does not grant no_privs
    env = {**job.env, "HOME": str(scratch / "home"), "TMPDIR": str(scratch / "tmp")}
    job = replace(job, env=env)
    argv, spec_fd = launcher(
        job, cwd=str(work), landlock=tuple(rules), landlock_required=True, limit_tasks=job.uid is not None
    )
    return Launch(
        argv=argv,
        fds=(spec_fd, *job.kept_fds),
        scratch=scratch,
        uid=job.uid,
        tasks_bounded=job.uid is not None,
    )


def _open_to_all(path: Path) -> bool:
    """Say whether any uid may pass every directory down to a path."""
    return all(os.stat(folder).st_mode & 0o001 for folder in path.parents)
