"""What a run promises: the program's own doing comes back exactly, and every limit ends it and says so."""

import concurrent.futures
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

import core
from core.errors import BadInput
from core.sandbox.backends import BUBBLEWRAP, NAMESPACES
from core.sandbox.execution import places
from core.sandbox.policy import Command, Guarantee, Limits, Policy, Result
from core.sandbox.scratch import WORK
from core.sandbox.service import Box, open_sandbox

BACKENDS = ["bubblewrap", "namespaces"]
HELLO = b'#include <stdio.h>\nint main(void) { puts("hello"); return 3; }\n'


def run(*argv: str, backend: str = "bubblewrap", limits: Limits | None = None, **more: object) -> Result:
    box = open_sandbox(backend=backend)
    return box.run(Command(argv=argv, **more), Policy(limits=limits or Limits()))  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("compiler", ["clang-22", "gcc"])
def test_compile_and_run_a_program(backend: str, compiler: str) -> None:
    built = run(compiler, "-O2", "-g", "a/hello.c", "-o", "hello", backend=backend, files={"a/hello.c": HELLO},
                outputs=("hello",))  # fmt: skip
    assert built.ok, built.stderr
    ran = run("./hello", backend=backend, files={"hello": built.files["hello"]}, executables=("hello",))
    assert (ran.status, ran.exit_code, ran.stdout) == ("exit", 3, b"hello\n")
    assert ran.backend == backend
    assert ran.guarantees == frozenset(Guarantee)


def test_compiler_message_comes_back() -> None:
    result = run("clang-22", "-c", "x.c", files={"x.c": b"int main(void) { return undefined_thing; }"})
    assert result.exit_code == 1
    assert b"undefined_thing" in result.stderr


@pytest.mark.parametrize("backend", BACKENDS)
def test_input_arguments_environment_and_files_go_in_and_come_out(backend: str) -> None:
    script = 'cat; echo "$1 $GREETING $HOME $TMPDIR"; pwd; cat in/put; mkdir out; echo made >out/put; echo >&2 err'
    result = run("sh", "-c", script, "sh", "a b", backend=backend, files={"in/put": b"I\n"}, stdin=b"S\n",
                 env={"GREETING": "hi"}, outputs=("out/put", "missing"))  # fmt: skip
    assert result.stdout == b"S\na b hi /box/home /box/tmp\n/box/work\nI\n"
    assert result.stderr == b"err\n"
    assert result.files == {"out/put": b"made\n"}


def test_environment_holds_nothing_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_API_KEY", "hunter2")
    names = {line.split(b"=")[0] for line in run("env", env={"MINE": "1"}).stdout.splitlines()}
    assert names == {b"PATH", b"HOME", b"TMPDIR", b"LANG", b"OMP_NUM_THREADS", b"MINE"}


def test_commands_environment_cannot_steer_the_trusted_stages() -> None:
    result = run("/usr/bin/id", "-u", env={"LD_PRELOAD": f"{WORK}/evil.so", "PATH": WORK},
                 files={"sh": b"#!/bin/sh\necho evil\n", "setpriv": b"#!/bin/sh\necho evil\n"},
                 executables=("sh", "setpriv"))  # fmt: skip
    assert b"evil\n" not in result.stdout
    assert result.stdout.strip() != b"0"


@pytest.mark.parametrize("backend", BACKENDS)
def test_program_has_only_the_three_standard_descriptors(backend: str) -> None:
    assert run("ls", "/proc/self/fd", backend=backend).stdout.split() == [b"0", b"1", b"2", b"3"]  # 3 is ls's own


def test_signal_is_reported() -> None:
    result = run("sh", "-c", "kill -SEGV $$")
    assert (result.status, result.signal, result.exit_code) == ("signal", signal.SIGSEGV, None)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("script", "limits", "status", "detail"),
    [
        ("sleep 30", {"wall_s": 0.3}, "timeout", "wall"),
        ("while :; do :; done", {"cpu_s": 0.3}, "resource", "cpu"),
        ("while :; do /bin/true; done", {"cpu_s": 0.3}, "resource", "cpu"),
        ("yes", {"output_bytes": 4096}, "resource", "output"),
        ("cat /dev/zero >f", {"scratch_bytes": 4 << 20}, "resource", "disk"),
        ("cat /dev/zero >f", {"file_bytes": 1 << 20}, "resource", "disk"),
        ("python3 -c 'bytearray(300 << 20)'", {"memory_bytes": 96 << 20}, "resource", "memory"),
        ("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 5 & done; wait", {"pids": 8}, "resource", "pids"),
    ],
)
def test_limit_ends_the_run_and_is_named(
    backend: str, script: str, limits: dict[str, float], status: str, detail: str
) -> None:
    if places() is None and detail in ("memory", "pids"):
        # The kernel refuses one process too much memory, or one more process, and does not tell us.
        result = run("sh", "-c", script, backend=backend, limits=Limits.model_validate(limits))
        assert not result.ok
        return
    result = run("sh", "-c", script, backend=backend, limits=Limits.model_validate(limits))
    assert (result.status, result.exit_code) == (status, None)
    assert detail in result.detail


def test_input_files_that_do_not_fit_are_a_disk_limit() -> None:
    result = run("true", files={"big": bytes(8 << 20)}, limits=Limits(scratch_bytes=4 << 20))
    assert (result.status, result.exit_code) == ("resource", None)
    assert "disk" in result.detail


def test_output_above_the_cap_is_cut_and_drained() -> None:
    result = run("sh", "-c", "head -c 20000 /dev/zero; echo done >f", limits=Limits(output_bytes=8192), outputs=("f",))
    assert result.ok
    assert (len(result.stdout), result.truncated, result.files) == (8192, True, {"f": b"done\n"})


def test_large_input_and_output_do_not_block_each_other() -> None:
    text = os.urandom(1 << 20)
    result = run("cat", stdin=text, limits=Limits(output_bytes=2 << 20))
    assert result.stdout == text


def test_program_that_never_reads_its_input_ends() -> None:
    assert run("true", stdin=bytes(1 << 20)).ok


def test_cpu_time_counts_the_whole_tree() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    result = run("sh", "-c", f"python3 -c '{burn}' & python3 -c '{burn}' & wait; setsid -w python3 -c '{burn}'")
    # Without a control group the very last is lost when bwrap ends before it waited for it.
    assert (0.9 if places() else 0.6) <= result.cpu_s < 1.6


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../b", "", ".", "a//b", "a\0b"])
def test_file_names_outside_the_working_directory_are_refused(name: str) -> None:
    for field in ({"files": {name: b""}}, {"outputs": (name,)}):
        with pytest.raises(BadInput):
            run("true", **field)


def test_unusable_commands_are_refused() -> None:
    for command in (Command(argv=()), Command(argv=("a=b",)), Command(argv=("a\0",)),
                    Command(argv=("a",), env={"A=B": ""}), Command(argv=("a",), executables=("a",)),
                    Command(argv=("a",), readonly=(Path("/no/such/place"),))):  # fmt: skip
        with pytest.raises(BadInput):
            open_sandbox().run(command, Policy())


def test_missing_program_is_the_programs_failure() -> None:
    assert run("no-such-program").exit_code == 127


def test_outputs_are_never_followed_links_or_devices() -> None:
    script = "ln -s /etc/ld.so.cache a; mkfifo b; mkdir c; ln -s /usr d; echo ok >f"
    result = run("sh", "-c", script, outputs=("a", "b", "c", "d/bin/env", "f"))
    assert result.files == {"f": b"ok\n"}
    assert "refused outputs" in result.detail


def test_readonly_paths_are_seen_at_their_place_and_stay_unwritable(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    (tmp_path / "data").write_text("shown")
    (tmp_path / "data").chmod(0o666)
    result = run("sh", "-c", f"cat {tmp_path}/data; echo x >{tmp_path}/data", readonly=(tmp_path,))
    assert result.stdout == b"shown"
    assert b"Read-only" in result.stderr
    assert (tmp_path / "data").read_text() == "shown"


def test_own_sources_stay_hidden_even_below_a_shown_path() -> None:
    root = Path(core.__file__).parent.parent
    result = run("sh", "-c", f"cat {root}/core/__init__.py", readonly=(root,))
    assert result.exit_code != 0
    assert result.stdout == b""


def test_runs_from_many_threads_do_not_meet() -> None:
    def one(number: int) -> tuple[bytes, bytes]:
        result = run("sh", "-c", f"id -u; echo {number} >f; sleep 0.05; cat f", outputs=("f",))
        uid, seen = result.stdout.split()
        assert seen == str(number).encode() == result.files["f"].strip()
        return uid, seen

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(one, range(24)))
    assert len({number for _, number in seen}) == 24


@pytest.mark.parametrize("backend", [*BACKENDS, "kernel"])
def test_run_leaves_no_descriptor_directory_or_process(backend: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    box = Box(backend=backend)
    policy = Policy(profile="pure", required=frozenset({Guarantee.NO_NET}))

    def held() -> tuple[int, int]:
        mine = subprocess.run(("pgrep", "-c", "-P", str(os.getpid())), capture_output=True).stdout
        return len(os.listdir("/proc/self/fd")), int(mine)

    box.run(Command(argv=("/bin/true",)), policy)
    before = held()
    box.run(Command(argv=("/bin/true",), channel=True, stdin=b"x"), policy)
    with pytest.raises(BadInput):
        box.run(Command(argv=("/bin/true",), readonly=(Path("/no/such"),), channel=True), policy)
    assert held() == before
    assert list(tmp_path.iterdir()) == []


def test_control_groups_are_removed() -> None:
    where = places()
    if where is None:
        pytest.skip("no control groups can be made here")
    run("true")
    mine = [g.name for folder in where.folders for g in folder.glob(f"complab-{os.getpid()}-*")]
    assert mine == []


PARENT = """
import sys, threading
from core.sandbox.service import open_sandbox
from core.sandbox.policy import *
token = sys.argv[1]
script = "sh -c 'sleep 61; true' $0 & setsid sh -c 'sleep 61; true' $0 & wait"
print("go", flush=True)
open_sandbox(backend=sys.argv[2]).run(Command(argv=("sh", "-c", script, token)), Policy(limits=Limits(wall_s=60)))
"""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_death_of_the_parent_leaves_nothing(backend: str, how: signal.Signals, tmp_path: Path) -> None:
    token = f"complab-test-{os.getpid()}-{backend}-{how}"
    root = str(Path(core.__file__).parent.parent)
    parent = subprocess.Popen((sys.executable, "-c", textwrap.dedent(PARENT), token, backend),
                              env={**os.environ, "PYTHONPATH": root}, stderr=subprocess.DEVNULL)  # fmt: skip
    assert until(lambda: len(children_of(token, parent.pid)) >= 3)
    parent.send_signal(how)
    parent.wait(timeout=60)
    assert until(lambda: not children_of(token, parent.pid))
    run("true")  # sweeps what the dead parent could not
    where = places()
    for folder in where.folders if where else ():
        assert not list(folder.glob(f"complab-{parent.pid}-*"))


def children_of(token: str, parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) not in (parent, os.getpid()):
            try:
                if token.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def until(condition: object, seconds: float = 120.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.02)
    return False


def test_unknown_backend_is_bad_input() -> None:
    with pytest.raises(BadInput, match="bubblewrap, namespaces, kernel"):
        open_sandbox(backend="docker")


def test_box_takes_the_strongest_backend_that_covers_the_policy() -> None:
    backend, guarantees = Box().choose(Policy())
    assert backend is BUBBLEWRAP
    assert guarantees >= Policy().required
    assert Box(backend="namespaces").choose(Policy())[0] is NAMESPACES
