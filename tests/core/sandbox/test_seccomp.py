"""The filters, run by a small interpreter of classic BPF, for both machines whatever this one is."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.sandbox.seccomp import PID_MARK, Door, assemble, numbers

ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS = 0x50001, 0x50026
DOOR = Door(path_address=0x1234_5678_9AB0, env_address=0x2345_6789_ABC0)


def decide(program: bytes, audit_arch: int, number: int, *arguments: int) -> int:
    data = struct.pack("=IIQ6Q", number, audit_arch, 0, *(a & 2**64 - 1 for a in (*arguments, *(0,) * 6)[:6]))
    steps = list(struct.iter_unpack("=HBBI", program))
    at = accumulator = 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif code == 0x06:
            return value
        else:
            hit = {0x15: accumulator == value, 0x45: bool(accumulator & value), 0x35: accumulator >= value}[code]
            at += if_true if hit else if_false


@pytest.fixture(params=ARCHES)
def arch(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def verdict(arch: str, profile: str, name: str, *arguments: int, door: Door | None = None) -> int:
    return decide(assemble(profile, arch=arch, door=door), ARCHES[arch], numbers(arch)[name], *arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("profile", ["pure", "toolchain"])
@pytest.mark.parametrize(
    "name",
    ["ptrace", "process_vm_readv", "process_vm_writev", "mount", "unshare", "setns", "bpf", "keyctl", "io_uring_setup",
     "userfaultfd", "perf_event_open", "kexec_load", "init_module", "open_by_handle_at", "pidfd_getfd", "reboot"],
)  # fmt: skip
def test_kernel_parts_are_denied_in_both_profiles(arch: str, profile: str, name: str) -> None:
    assert verdict(arch, profile, name) == EPERM


@pytest.mark.parametrize("profile", ["pure", "toolchain"])
def test_conditional_calls(arch: str, profile: str) -> None:
    assert verdict(arch, profile, "clone3") == ENOSYS
    assert verdict(arch, profile, "ioctl", 0, 0x5412) == EPERM
    assert verdict(arch, profile, "ioctl", 0, 0xFF_0000_5412) == EPERM  # the kernel looks at the low half only
    assert verdict(arch, profile, "ioctl", 0, 0x5401) == ALLOW
    assert verdict(arch, profile, "prlimit64", 0) == ALLOW
    assert verdict(arch, profile, "prlimit64", 1234) == EPERM
    assert verdict(arch, profile, "personality", 0x40000) == ALLOW
    assert verdict(arch, profile, "personality", 0x400000) == EPERM


def test_toolchain_starts_processes_but_no_namespaces(arch: str) -> None:
    assert verdict(arch, "toolchain", "execve") == ALLOW
    assert verdict(arch, "toolchain", "clone", 17) == ALLOW
    assert verdict(arch, "toolchain", "clone", 0x10000000 | 17) == EPERM
    assert verdict(arch, "toolchain", "socket", 1) == ALLOW
    for family in (2, 10, 16, 17, 40):
        assert verdict(arch, "toolchain", "socket", family) == EPERM


@pytest.mark.parametrize("profile", ["pure", "toolchain"])
def test_memory_that_no_process_shows_is_denied_where_no_group_counts(arch: str, profile: str) -> None:
    program = assemble(profile, arch=arch, memory_counted=False)  # type: ignore[arg-type]
    for name in ("memfd_create", "shmget", "socketpair", "vmsplice"):
        assert decide(program, ARCHES[arch], numbers(arch)[name]) == EPERM
    mmap = numbers(arch)["mmap"]
    verdicts = {flags: decide(program, ARCHES[arch], mmap, 0, 4096, 3, flags) for flags in (0x01, 0x02, 0x21, 0x22)}
    assert verdicts == {0x01: ALLOW, 0x02: ALLOW, 0x21: EPERM, 0x22: ALLOW}  # 0x01 shared, 0x02 private, 0x20 no file
    assert verdict(arch, profile, "memfd_create") == verdict(arch, profile, "mmap", 0, 4096, 3, 0x21) == ALLOW


def test_pure_starts_threads_only(arch: str) -> None:
    assert verdict(arch, "pure", "clone", 17) == EPERM
    assert verdict(arch, "pure", "clone", 0x3D0F00) == ALLOW  # what pthread_create asks for
    assert verdict(arch, "pure", "execveat") == EPERM
    assert verdict(arch, "pure", "socket", 1) == EPERM
    for name in ("fork", "vfork", "chmod"):
        if name in numbers(arch):
            assert verdict(arch, "pure", name) == EPERM
    for name in ("kill", "tgkill"):
        assert verdict(arch, "pure", name, PID_MARK) == ALLOW
        assert verdict(arch, "pure", name, 1) == EPERM


def test_only_the_door_leads_to_exec(arch: str) -> None:
    path, env = DOOR.path_address, DOOR.env_address
    assert verdict(arch, "pure", "execve", path, 5, env, door=DOOR) == ALLOW
    for wrong in ((path + 1, env), (path, env + 1), (path | 1 << 32, env | 1 << 46), (env, path), (0, 0)):
        assert verdict(arch, "pure", "execve", wrong[0], 5, wrong[1], door=DOOR) == EPERM
    assert verdict(arch, "pure", "execve", path, 5, env) == EPERM


@given(st.integers(0, 2**32 - 1), st.sampled_from(["pure", "toolchain"]), st.sampled_from(list(ARCHES)))
def test_foreign_machines_numbers_kill(number: int, profile: str, arch: str) -> None:
    program = assemble(profile, arch=arch)  # type: ignore[arg-type]
    assert decide(program, 0x40000003, number) == KILL  # i386 on x86-64
    if number >= 0x40000000:
        assert decide(program, ARCHES[arch], number) == KILL  # x32


@given(st.integers(0, 600), st.lists(st.integers(0, 2**64 - 1), max_size=6), st.sampled_from(list(ARCHES)))
def test_pure_allows_nothing_that_toolchain_denies(number: int, arguments: list[int], arch: str) -> None:
    pure, toolchain = (assemble(profile, arch=arch, door=DOOR) for profile in ("pure", "toolchain"))
    # prlimit64 and the signals name the program's own pid, which the toolchain filter does not know.
    if PID_MARK not in (a & 0xFFFFFFFF for a in arguments):
        allowed = [decide(program, ARCHES[arch], number, *arguments) == ALLOW for program in (pure, toolchain)]
        assert allowed in ([False, False], [False, True], [True, True])
