"""No sandbox at all, for machines that offer none and users who say twice that they want that."""

import tempfile
from dataclasses import replace
from pathlib import Path

from core.sandbox.launcher import Job, launcher
from core.sandbox.supervisor import Launch

VARIABLE = "COMPLAB_UNSAFE_SANDBOX"
"""Environment variable that must be 1, besides the caller's flag."""
BANNER = "complab: WARNING: UNSAFE SANDBOX: generated code runs with all your rights, on your files and your network."


def launch(job: Job) -> Launch:
    """Build the start of a program in a temporary directory, with nothing to protect the host but the supervisor."""
    scratch = Path(tempfile.mkdtemp(prefix="complab-unsafe-"))
    env = {**job.env, "HOME": str(scratch / "home"), "TMPDIR": str(scratch / "tmp")}
    argv, spec_fd = launcher(
        replace(job, env=env),
        cwd=str(scratch / "work"),
        landlock=(),
        landlock_required=False,
        limit_tasks=False,
        confine=False,
    )
    return Launch(argv=argv, fds=(spec_fd, *job.kept_fds), scratch=scratch)
