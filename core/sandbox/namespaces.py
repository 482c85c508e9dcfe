"""For machines without bubblewrap: the same namespaces, made by our own launcher, with Landlock behind them."""

import os

from core.sandbox.launcher import Job, counts_by_namespace, launcher
from core.sandbox.scratch import FOLDERS, HOME, WORK
from core.sandbox.supervisor import Launch


def launch(job: Job) -> Launch:
    """Build the start of our launcher in new namespaces."""
    info_r, info_w = os.pipe()
    tasks_bounded = job.uid is not None or counts_by_namespace()
    devices = {name: name for name in ("null", "zero", "full", "random", "urandom")}
    if not job.memory_counted:  # it reads the same, and cannot be mapped as memory that no process shows
        devices["zero"] = "full"
    layout = {
        "binds": job.layout.binds,
        "links": job.layout.links,
        "parents": job.layout.parents,
        "masks": job.layout.masks,
        "devices": devices,
        "home": HOME,
        "folders": FOLDERS,
        "scratch_bytes": job.policy.limits.scratch_bytes,
    }
    argv, spec_fd = launcher(
        job,
        cwd=WORK,
        landlock=(("/", False), ("/dev", True), (HOME, True)),
        landlock_required=False,
        limit_tasks=tasks_bounded,
        namespaces=layout,
        info_fd=info_w,
    )
    return Launch(
        argv=argv,
        fds=(info_w, spec_fd, *job.kept_fds),
        info_fd=info_r,
        uid=job.uid,
        tasks_bounded=tasks_bounded,
    )
