"""Runs inside, as the last trusted code of a child: takes every right away from itself, then becomes the program.

This module is not imported by the parent. `launcher.py` compiles it and hands code and specification over in a memory
file, so no file of ours is visible inside. It uses only what `python -I -S` has, and starts as little as it can.
"""

from __future__ import annotations

import ctypes
import os
import struct

TYPE_CHECKING = False  # importing typing would cost a tenth of the start
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

SPEC: dict[str, Any] = globals()["SPEC"]
"""Put in by launcher.py, which documents the keys."""

_libc = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CLONE_NEWNS, _CLONE_NEWCGROUP, _CLONE_NEWUTS, _CLONE_NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_SYS_LANDLOCK = (444, 445, 446)
_FS_EXECUTE, _FS_WRITE_FILE, _FS_READ_FILE, _FS_READ_DIR = 1, 2, 4, 8
_FS_TRUNCATE, _FS_IOCTL_DEV = 1 << 14, 1 << 15
_FS_BITS_BY_ABI = (0, 13, 14, 15, 15, 16)
_MAP_FLAGS = 0x02 | 0x20 | 0x100000  # private, anonymous, fixed, never over something else


def _check(value: int, what: str) -> int:
    if value < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return value


def _syscall(number: int, *arguments: Any) -> int:
    return int(_libc.syscall(ctypes.c_long(number), *arguments))


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [None if v is None else os.fsencode(v) for v in (source, target, kind)]
    _check(_libc.mount(*encoded, ctypes.c_ulong(flags), None if data is None else data.encode()), f"mount {target}")


def _restrict_mount(path: str, flags: int, *, recursive: bool = True) -> None:
    attributes = struct.pack("=QQQQ", flags, 0, 0, 0)  # the flags have the same bits as the old ones
    scope = _AT_RECURSIVE if recursive else 0
    done = _syscall(SPEC["mount_setattr"], _AT_FDCWD, path.encode(), scope, attributes, ctypes.c_size_t(32))
    _check(done, f"mount_setattr {path}")


def _build_root(layout: dict[str, Any]) -> None:
    """Make the sandbox's file system in a new mount namespace and move into it."""
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    _mount("tmpfs", "/tmp", "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0755")
    os.mkdir("/tmp/old")
    os.mkdir("/tmp/new")
    _check(_syscall(SPEC["pivot_root"], b"/tmp", b"/tmp/old"), "pivot_root")
    os.chdir("/")
    _mount("tmpfs", "/new", "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0755")
    for parent in layout["parents"]:
        os.makedirs("/new" + parent, 0o755, exist_ok=True)
    for path in layout["binds"]:
        if os.path.isdir("/old" + path):
            os.makedirs("/new" + path, 0o755, exist_ok=True)
        else:
            os.close(os.open("/new" + path, os.O_CREAT | os.O_WRONLY, 0o644))
        _mount("/old" + path, "/new" + path, None, _MS_BIND | _MS_REC)
        _restrict_mount("/new" + path, _MS_RDONLY | _MS_NOSUID | _MS_NODEV)
    for path in layout["masks"]:
        _mount("tmpfs", "/new" + path, "tmpfs", _MS_RDONLY | _MS_NOSUID | _MS_NODEV, "mode=0000")
    for target, path in layout["links"]:
        os.symlink(target, "/new" + path)
    os.mkdir("/new/proc")
    _mount("proc", "/new/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    os.mkdir("/new/dev")
    _mount("tmpfs", "/new/dev", "tmpfs", _MS_NOSUID | _MS_NOEXEC, "mode=0755")
    for name, source in layout["devices"].items():
        os.close(os.open("/new/dev/" + name, os.O_CREAT | os.O_WRONLY, 0o644))
        _mount("/old/dev/" + source, "/new/dev/" + name, None, _MS_BIND)
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink("/proc/self/fd" + target, "/new/dev/" + name)
    _restrict_mount("/new/dev", _MS_RDONLY | _MS_NOSUID | _MS_NOEXEC)
    home = "/new" + layout["home"]
    os.mkdir(home)
    _mount("tmpfs", home, "tmpfs", _MS_NOSUID | _MS_NODEV, f"mode=0755,size={layout['scratch_bytes']}")
    for folder in layout["folders"]:
        os.mkdir(f"{home}/{folder}")
    # Only the root itself: what is mounted below it already has its own flags.
    _restrict_mount("/new", _MS_RDONLY, recursive=False)
    os.chdir("/new")
    _check(_syscall(SPEC["pivot_root"], b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", _MNT_DETACH), "umount2")
    os.chdir("/")


def _enter_namespaces(layout: dict[str, Any]) -> None:
    """Become the program's process in new namespaces; two of us stay behind as waiter outside and init inside."""
    flags = _CLONE_NEWNS | _CLONE_NEWPID | _CLONE_NEWNET | _CLONE_NEWIPC | _CLONE_NEWUTS | _CLONE_NEWCGROUP
    uid, gid = os.geteuid(), os.getegid()
    if uid != 0:
        flags |= _CLONE_NEWUSER
    _check(_libc.unshare(flags), "unshare")
    if uid != 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    init = os.fork()
    if init:
        os.write(SPEC["info_fd"], b'{"child-pid": %d}' % init)
        _leave_only(())
        os._exit(_code(os.waitpid(init, 0)[1]))
    _libc.prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    _build_root(layout)
    _libc.sethostname(b"box", 3)
    program = os.fork()
    if program:
        _leave_only(())
        while True:
            pid, status = os.wait()
            if pid == program:
                os._exit(_code(status))
    os.setsid()  # a signal to "my process group" must not reach the two outside
    _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)


def _code(status: int) -> int:
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _leave_only(kept: Iterable[int]) -> None:
    low = 0
    for fd in sorted(kept):
        if low < fd:  # CPython takes an empty range from 0 for the range of everything
            os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, 1 << 16)


def _landlock(rules: Iterable[tuple[str, bool]]) -> None:
    """Allow reading below some paths and writing below others; refuse TCP, abstract sockets and signals to outside."""
    create, add, restrict = _SYS_LANDLOCK
    abi = _syscall(create, None, ctypes.c_size_t(0), 1)
    if abi < 1 and not SPEC["landlock_required"]:  # an old kernel: the mount namespace holds without it
        return
    _check(abi, "landlock")
    handled = (1 << _FS_BITS_BY_ABI[min(abi, 5)]) - 1
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    attributes = struct.pack("=QQQ", handled, 3, 3)[:size]
    ruleset = _check(_syscall(create, attributes, ctypes.c_size_t(size), 0), "landlock_create_ruleset")
    for path, writable in rules:
        if not os.path.exists(path):
            continue
        allowed = handled if writable else _FS_EXECUTE | _FS_READ_FILE | _FS_READ_DIR
        if not os.path.isdir(path):
            allowed &= _FS_EXECUTE | _FS_READ_FILE | _FS_WRITE_FILE | _FS_TRUNCATE | _FS_IOCTL_DEV
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        _check(_syscall(add, ruleset, 1, struct.pack("=Qi", allowed & handled, fd), 0), f"landlock {path}")
        os.close(fd)
    _check(_syscall(restrict, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


def _drop_privileges(uid: int | None) -> None:
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    header = struct.pack("=Ii", 0x20080522, 0)
    _check(_libc.capset(header, bytes(24)), "capset")
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _libc.prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)  # a change of uid clears it


def _set_rlimits(rlimits: Iterable[tuple[int, int, int]]) -> None:
    for kind, soft, hard in rlimits:
        pair = struct.pack("=QQ", soft, hard)
        _check(_libc.setrlimit(kind, pair), f"setrlimit {kind}")


def _filter(program: bytes) -> None:
    if not SPEC["confine"]:
        return
    program = program.replace(struct.pack("=I", SPEC["pid_mark"]), struct.pack("=I", os.getpid()))
    buffer = ctypes.create_string_buffer(program, len(program))
    fprog = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    _check(_libc.prctl(_PR_SET_SECCOMP, 2, fprog, 0, 0), "seccomp")


def _at(address: int, content: bytes) -> None:
    """Put bytes at an address of our choice."""
    page = address & ~0xFFF
    _libc.mmap.restype = ctypes.c_void_p
    size = (address - page + len(content) + 0xFFF) & ~0xFFF
    got = _libc.mmap(ctypes.c_void_p(page), ctypes.c_size_t(size), 3, _MAP_FLAGS, -1, ctypes.c_long(0))
    if got != page:
        raise OSError(f"mmap at a chosen address: {os.strerror(ctypes.get_errno())}")
    ctypes.memmove(address, content, len(content))


def _find(program: str, env: dict[str, str]) -> str:
    if "/" in program:
        return program
    for folder in env.get("PATH", "").split(":"):
        path = f"{folder}/{program}"
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return program


def _become(argv: tuple[str, ...], env: dict[str, str]) -> None:
    """Execute the program; through the filter's one door when there is one."""
    path = os.fsencode(_find(argv[0], env))
    door = SPEC["door"]
    settings = [os.fsencode(f"{k}={v}") for k, v in env.items()]
    words = [os.fsencode(a) for a in argv]
    arguments = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    variables = (ctypes.c_char_p * (len(settings) + 1))(*settings, None)
    if door:
        _at(door[0], path + b"\0")
        _at(door[1], bytes(variables))
        where: list[Any] = [ctypes.c_void_p(address) for address in door]
    else:
        where = [ctypes.c_char_p(path), variables]
    for number in (13, 25):  # SIGPIPE and SIGXFSZ, which Python ignores and a program would inherit so
        _libc.signal(number, None)
    _filter(SPEC["filter"])
    _syscall(SPEC["execve"], where[0], arguments, where[1])
    number = ctypes.get_errno()
    os.write(2, b"%s: %s\n" % (path, os.strerror(number).encode()))
    os._exit(127 if number == 2 else 126)


def _main() -> None:
    if SPEC["layout"] is not None:
        _enter_namespaces(SPEC["layout"])
    _leave_only({0, 1, 2, *SPEC["keep"]})
    os.write(1, b"ready\n")
    while (byte := os.read(0, 1)) != b"\n":
        if not byte:
            os._exit(125)
    os.chdir(SPEC["cwd"])
    if SPEC["confine"]:
        _drop_privileges(SPEC["uid"])
        _landlock(SPEC["landlock"])
        _set_rlimits(SPEC["rlimits"])
    if SPEC["argv"]:
        _become(SPEC["argv"], SPEC["env"])
    os.environ.clear()
    os.environ.update(SPEC["env"])
    _filter(SPEC["filter"])


_main()
