"""The strongest backend: bubblewrap's namespaces around a uid that no other run has."""

import os

from core.sandbox import seccomp
from core.sandbox.launcher import Job, counts_by_namespace, launcher, memory_file, rlimits
from core.sandbox.scratch import FOLDERS, HOME, WORK
from core.sandbox.supervisor import READY, Launch

_NAMES = {0: "cpu", 1: "fsize", 4: "core", 6: "nproc", 7: "nofile", 8: "memlock", 9: "as", 12: "msgqueue"}
"""What prlimit(1) calls the kinds of limits."""


def launch(job: Job) -> Launch:
    """Build the chain prlimit, bwrap, sh, setpriv, env, program; in profile `pure` bwrap, our own launcher, program.

    The launcher can forbid exec and apply Landlock (profile `pure`); the C programs start faster (`toolchain`).
    """
    info_r, info_w = os.pipe()
    tasks_bounded = job.uid is not None or counts_by_namespace()
    fds = [info_w]
    options = [*_options(job), "--info-fd", str(info_w)]
    fds.append(memory_file(seccomp.assemble("toolchain", arch=seccomp.machine(), memory_counted=job.memory_counted)))
    options += ["--seccomp", str(fds[-1])]
    # By descriptor, so that no path of the host shows up in the sandbox's /proc/1/cmdline.
    fds.append(memory_file(b"".join(o.encode() + b"\0" for o in options)))
    outside: tuple[str, ...] = ("bwrap", "--args", str(fds[-1]), "--")
    if job.policy.profile == "pure":  # the launcher sets the rlimits itself, just before the program
        inside, spec_fd = launcher(
            job,
            cwd=WORK,
            landlock=(("/", False), ("/dev", True), (HOME, True)),
            landlock_required=False,
            limit_tasks=tasks_bounded,
        )
        fds.append(spec_fd)
    else:
        settings = (f"{key}={value}" for key, value in job.env.items())
        outside = ("prlimit", *_limit_options(job), "--", *outside)
        inside = ("/bin/sh", "-c", READY, "sh", *_drop(job), "env", "-i", *settings, *job.argv)
    return Launch(
        argv=outside + inside,
        fds=(*fds, *job.kept_fds),
        info_fd=info_r,
        uid=job.uid,
        tasks_bounded=tasks_bounded,
    )


def _limit_options(job: Job) -> list[str]:
    options = [f"--{_NAMES[kind]}={soft}:{hard}" for kind, soft, hard in rlimits(job)]
    # For root's own bwrap this limit does nothing until the drop of the uid; for others it must wait until then.
    return options if job.uid is None else [*options, f"--nproc={job.policy.limits.pids}"]


def _drop(job: Job) -> tuple[str, ...]:
    if job.uid is None:
        return ("prlimit", f"--nproc={job.policy.limits.pids}", "--") if counts_by_namespace() else ()
    return (
        *("setpriv", f"--reuid={job.uid}", f"--regid={job.uid}", "--clear-groups"),
        *("--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "--"),
    )


def _options(job: Job) -> list[str]:
    options = ["--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    options += ["--hostname", "box", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if job.uid is None:
        options += ["--unshare-user", "--disable-userns"]
    else:  # never in a user namespace of root's: there the drop would count as uid 0 again
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
            options += ["--cap-add", capability]
    for parent in job.layout.parents:
        options += ["--perms", "0755", "--dir", parent]
    for path in job.layout.binds:
        options += ["--ro-bind", path, path]
    for path in job.layout.masks:
        options += ["--perms", "0000", "--tmpfs", path]
    for target, path in job.layout.links:
        options += ["--symlink", target, path]
    options += ["--proc", "/proc", "--dev", "/dev"]
    if not job.memory_counted:  # it reads the same, and cannot be mapped as memory that no process shows
        options += ["--dev-bind", "/dev/full", "/dev/zero"]
    options += ["--perms", "0755", "--size", str(job.policy.limits.scratch_bytes), "--tmpfs", HOME]
    for folder in FOLDERS:
        options += ["--perms", "0755", "--dir", f"{HOME}/{folder}"]
    return [*options, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORK]
