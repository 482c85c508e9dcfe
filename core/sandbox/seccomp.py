"""System call filters as raw BPF: what a profile may never ask of the kernel, on x86-64 and AArch64."""

import errno
import platform
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.errors import InfraError
from core.sandbox.policy import Profile

PID_MARK = 0x6B1DC0DE
"""Stands for the program's own pid in a filter; `launch.py` puts the real one in, which only it knows."""

_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_ERRNO = 0x00050000
_LD, _JEQ, _JSET, _JGE, _AND, _RET = 0x20, 0x15, 0x45, 0x35, 0x54, 0x06
_NR_AT, _ARCH_AT, _ARGS_AT = 0, 4, 16
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000

# The calls that no confined program needs: other processes' memory, mounts, namespaces, keys, tracing, kernel parts.
_DENIED = """
acct add_key adjtimex bpf chroot clock_adjtime clock_settime delete_module fanotify_init fanotify_mark
finit_module fsconfig fsmount fsopen fspick init_module io_uring_enter io_uring_register io_uring_setup ioperm
iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie memfd_secret migrate_pages modify_ldt mount
mount_setattr move_mount move_pages name_to_handle_at nfsservctl open_by_handle_at open_tree perf_event_open
pidfd_getfd pivot_root process_madvise process_mrelease process_vm_readv process_vm_writev ptrace quotactl
quotactl_fd reboot request_key setdomainname sethostname setns settimeofday swapoff swapon syslog umount2
unshare uselib userfaultfd vhangup
"""
# A pure function starts nothing, signals nobody else, and changes no owner,
# mode or time of a file (Landlock does not cover these).
_DENIED_PURE = """
chmod chown execveat fchmod fchmodat fchmodat2 fchown fchownat fork fremovexattr fsetxattr futimesat
inotify_init inotify_init1 ioprio_set lchown lremovexattr lsetxattr mq_open mq_unlink msgctl msgget msgrcv
msgsnd pidfd_open pidfd_send_signal removexattr rt_sigqueueinfo rt_tgsigqueueinfo semctl semget semop semtimedop
setpriority setxattr shmat shmctl shmget socket tkill utime utimensat utimes vfork
"""
# Memory that belongs to no process, so that a census of processes does not find it.
_DENIED_UNSEEN = "memfd_create mq_open msgget shmget socket socketpair vmsplice"
_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20
_NEW_NAMESPACES = 0x7E020000
_CLONE_THREAD = 0x00010000
_AF_UNIX = 1
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_ADDR_NO_RANDOMIZE = 0x0040000
_PERSONALITY_QUERY = 0xFFFFFFFF

_NUMBERS_X86_64 = """
acct=163 add_key=248 adjtimex=159 bpf=321 chmod=90 chown=92 chroot=161 clock_adjtime=305 clock_settime=227 clone3=435
clone=56 delete_module=176 execve=59 execveat=322 fanotify_init=300 fanotify_mark=301 fchmod=91 fchmodat2=452
fchmodat=268 fchown=93 fchownat=260 finit_module=313 fork=57 fremovexattr=199 fsconfig=431 fsetxattr=190 fsmount=432
fsopen=430 fspick=433 futimesat=261 init_module=175 inotify_init1=294 inotify_init=253 io_uring_enter=426
io_uring_register=427 io_uring_setup=425 ioctl=16 ioperm=173 iopl=172 ioprio_set=251 kcmp=312 kexec_file_load=320
kexec_load=246 keyctl=250 kill=62 lchown=94 lookup_dcookie=212 lremovexattr=198 lsetxattr=189 memfd_create=319
memfd_secret=447 migrate_pages=256 mmap=9 modify_ldt=154 mount=165 mount_setattr=442 move_mount=429 move_pages=279
mq_open=240 mq_unlink=241 msgctl=71 msgget=68 msgrcv=70 msgsnd=69 name_to_handle_at=303 nfsservctl=180
open_by_handle_at=304 open_tree=428 perf_event_open=298 personality=135 pidfd_getfd=438 pidfd_open=434
pidfd_send_signal=424 pivot_root=155 prlimit64=302 process_madvise=440 process_mrelease=448 process_vm_readv=310
process_vm_writev=311 ptrace=101 quotactl=179 quotactl_fd=443 reboot=169 removexattr=197 request_key=249
rt_sigqueueinfo=129 rt_tgsigqueueinfo=297 sched_setaffinity=203 sched_setattr=314 sched_setparam=142
sched_setscheduler=144 semctl=66 semget=64 semop=65 semtimedop=220 setdomainname=171 sethostname=170 setns=308
setpriority=141 settimeofday=164 setxattr=188 shmat=30 shmctl=31 shmget=29 socket=41 socketpair=53 swapoff=168
swapon=167 syslog=103 tgkill=234 tkill=200 umount2=166 unshare=272 uselib=134 userfaultfd=323 utime=132 utimensat=280
utimes=235 vfork=58 vhangup=153 vmsplice=278
"""
_NUMBERS_AARCH64 = """
acct=89 add_key=217 adjtimex=171 bpf=280 chroot=51 clock_adjtime=266 clock_settime=112 clone3=435 clone=220
delete_module=106 execve=221 execveat=281 fanotify_init=262 fanotify_mark=263 fchmod=52 fchmodat2=452 fchmodat=53
fchown=55 fchownat=54 finit_module=273 fremovexattr=16 fsconfig=431 fsetxattr=7 fsmount=432 fsopen=430 fspick=433
init_module=105 inotify_init1=26 io_uring_enter=426 io_uring_register=427 io_uring_setup=425 ioctl=29 ioprio_set=30
kcmp=272 kexec_file_load=294 kexec_load=104 keyctl=219 kill=129 lookup_dcookie=18 lremovexattr=15 lsetxattr=6
memfd_create=279 memfd_secret=447 migrate_pages=238 mmap=222 mount=40 mount_setattr=442 move_mount=429 move_pages=239
mq_open=180 mq_unlink=181 msgctl=187 msgget=186 msgrcv=188 msgsnd=189 name_to_handle_at=264 nfsservctl=42
open_by_handle_at=265 open_tree=428 perf_event_open=241 personality=92 pidfd_getfd=438 pidfd_open=434
pidfd_send_signal=424 pivot_root=41 prlimit64=261 process_madvise=440 process_mrelease=448 process_vm_readv=270
process_vm_writev=271 ptrace=117 quotactl=60 quotactl_fd=443 reboot=142 removexattr=14 request_key=218
rt_sigqueueinfo=138 rt_tgsigqueueinfo=240 sched_setaffinity=122 sched_setattr=274 sched_setparam=118
sched_setscheduler=119 semctl=191 semget=190 semop=193 semtimedop=192 setdomainname=162 sethostname=161 setns=268
setpriority=140 settimeofday=170 setxattr=5 shmat=196 shmctl=195 shmget=194 socket=198 socketpair=199 swapoff=225
swapon=224 syslog=116 tgkill=131 tkill=130 umount2=39 unshare=97 userfaultfd=282 utimensat=88 vhangup=58 vmsplice=75
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Door:
    """The one execve that a pure program's start needs: two random addresses that the new program cannot know.

    The filter lets execve through only when its path and its environment lie at these addresses, which vanish with
    the old address space. Guessing them means hitting one of about 2**64 pairs.
    """

    path_address: int
    env_address: int


def machine() -> str:
    """Return the name of this machine's instruction set as the tables know it.

    Raises:
        InfraError: there is no table for it.
    """
    name = {"arm64": "aarch64", "amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    if name not in _AUDIT_ARCH:
        raise InfraError(f"The sandbox has no system call table for {name}.", "Use an x86-64 or AArch64 machine.")
    return name


def numbers(arch: str) -> dict[str, int]:
    """Return the numbers of the calls that filters name; older calls are missing on newer architectures."""
    text = {"x86_64": _NUMBERS_X86_64, "aarch64": _NUMBERS_AARCH64}[arch]
    return {name: int(number) for name, _, number in (item.partition("=") for item in text.split())}


def assemble(profile: Profile, *, arch: str, door: Door | None = None, memory_counted: bool = True) -> bytes:
    """Return the filter of a profile as an array of struct sock_filter.

    Args:
        profile: `pure` (no exec, no fork) or `toolchain`.
        arch: as `machine()` returns.
        door: the one exec that a pure program's start may do; None: none at all.
        memory_counted: a control group counts all memory; False: only a census of processes does, so deny what it
            cannot see.
    """
    number = numbers(arch)
    unseen = "" if memory_counted else _DENIED_UNSEEN
    denied = dict.fromkeys((_DENIED + unseen + (_DENIED_PURE if profile == "pure" else "")).split())
    code = [
        _op(_LD, _ARCH_AT), _jump(_JEQ, _AUDIT_ARCH[arch], 1, 0), _op(_RET, _KILL),
        _op(_LD, _NR_AT), _jump(_JGE, _X32, 0, 1), _op(_RET, _KILL),
    ]  # fmt: skip
    for name in denied:
        if name in number:
            code += [_jump(_JEQ, number[name], 0, 1), _deny()]
    code += [_jump(_JEQ, number["clone3"], 0, 1), _deny(errno.ENOSYS)]  # its flags are out of a filter's reach
    code += _on(number["ioctl"], [_arg(1), *_deny_any((_TIOCSTI, _TIOCLINUX)), _op(_RET, _ALLOW)])
    code += _on(number["personality"], [_arg(0), *_allow_any((0, _ADDR_NO_RANDOMIZE, _PERSONALITY_QUERY)), _deny()])
    code += _on(number["prlimit64"], [_arg(0), *_allow_any((0, PID_MARK) if profile == "pure" else (0,)), _deny()])
    if not memory_counted:
        anonymous = [_jump(_JSET, _MAP_ANONYMOUS, 1, 0), _op(_RET, _ALLOW), _jump(_JSET, _MAP_SHARED, 0, 1), _deny()]
        code += _on(number["mmap"], [_arg(3), *anonymous, _op(_RET, _ALLOW)])
    if profile == "toolchain":
        code += _on(number["clone"], [_arg(0), _jump(_JSET, _NEW_NAMESPACES, 0, 1), _deny(), _op(_RET, _ALLOW)])
        code += _on(number["socket"], [_arg(0), *_allow_any((_AF_UNIX,)), _deny()])
    else:
        code += _on(number["clone"], [_arg(0), _jump(_JSET, _CLONE_THREAD, 1, 0), _deny(), _op(_RET, _ALLOW)])
        for name in ("kill", "tgkill"):
            code += _on(number[name], [_arg(0), *_allow_any((PID_MARK,)), _deny()])
        for name in ("sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"):
            code += _on(number[name], [_arg(0), *_allow_any((0, PID_MARK)), _deny()])
        code += _on(number["execve"], _through(door) if door else [_deny()])
    return b"".join([*code, _op(_RET, _ALLOW)])


def _op(code: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, 0, 0, value)


def _jump(code: int, value: int, if_true: int, if_false: int) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _arg(index: int, *, high: bool = False) -> bytes:
    """Load a half of an argument; both machines are little endian."""
    return _op(_LD, _ARGS_AT + 8 * index + 4 * high)


def _deny(number: int = errno.EPERM) -> bytes:
    return _op(_RET, _ERRNO | number)


def _on(number: int, block: Sequence[bytes]) -> list[bytes]:
    """Run a block, which must end in a return, for one call only: the number is still loaded after it otherwise."""
    return [_jump(_JEQ, number, 0, len(block)), *block]


def _allow_any(values: Iterable[int]) -> list[bytes]:
    return [step for value in values for step in (_jump(_JEQ, value, 0, 1), _op(_RET, _ALLOW))]


def _deny_any(values: Iterable[int]) -> list[bytes]:
    return [step for value in values for step in (_jump(_JEQ, value, 0, 1), _deny())]


def _through(door: Door) -> list[bytes]:
    steps = []
    for index, address in ((0, door.path_address), (2, door.env_address)):
        for high in (False, True):
            half = address >> 32 if high else address & 0xFFFFFFFF
            steps += [_arg(index, high=high), _jump(_JEQ, half, 1, 0), _deny()]
    return [*steps, _op(_RET, _ALLOW)]
