"""Without a control group a tree is counted by /proc: all of it, once, and stopped by name when it is too much."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from core.sandbox.backends import BUBBLEWRAP, NAMESPACES, Backend
from core.sandbox.census import Census, census_of_family
from core.sandbox.execution import Tree
from core.sandbox.policy import Command, Limits, Policy, Result

MB = 1 << 20
TWO = """
import os, sys, time
block = bytearray(%d << 20)
block[::4096] = b"x" * len(block[::4096])
os.fork()
sys.stdout.write("y")
sys.stdout.flush()
time.sleep(30)
"""


def uncounted(backend: Backend, script: str, **limits: float) -> Result:
    command = Command(argv=("python3", "-c", script))
    tree = Tree(backend, command, Policy(limits=Limits.model_validate(limits)), frozenset(), counted=False)
    tree.wait()
    return tree.finish()


@pytest.fixture
def family() -> Iterator[Census]:
    """Count two processes that share 64 MiB."""
    process = subprocess.Popen((sys.executable, "-c", TWO % 64), stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.read(2) == b"yy"
    census = census_of_family(process.pid)
    yield census
    census.close()
    os.killpg(process.pid, 9)
    process.wait()
    process.stdout.close()


def test_shared_memory_is_counted_once_where_it_matters(family: Census) -> None:
    assert family.take().tasks == 2
    assert family.take().memory_bytes > 128 * MB
    assert 64 * MB < family.take(exact=True).memory_bytes < 110 * MB


def test_dead_child_that_nobody_awaited_still_counts() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ntime.sleep(30)"
    parent = "import signal, subprocess, sys\nsignal.signal(17, signal.SIG_IGN)\n"
    parent += f"subprocess.Popen((sys.executable, '-c', {burn!r}))\nimport time\ntime.sleep(30)"
    process = subprocess.Popen((sys.executable, "-c", parent), stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    process.stdout.read(1)
    census = census_of_family(process.pid)
    assert census.take().cpu_s >= 0.25
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as children:
        os.kill(int(children.read().split()[0]), 9)
    end = time.monotonic() + 30
    while census.take().tasks > 1 and time.monotonic() < end:
        time.sleep(0.01)
    assert census.take().cpu_s >= 0.25
    census.close()
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize("backend", [BUBBLEWRAP, NAMESPACES], ids=lambda backend: backend.name)
def test_tree_above_its_memory_is_stopped_and_memory_is_named(backend: Backend) -> None:
    script = "import os, time\nos.fork(); os.fork()\nb = bytearray(50 << 20)\ntime.sleep(20)"
    result = uncounted(backend, script, memory_bytes=128 * MB)
    assert (result.status, result.exit_code) == ("resource", None)
    assert "memory" in result.detail
    assert result.wall_s < 15


def test_scratch_space_counts_as_memory() -> None:
    script = "import time\nfor n in range(4): open(f'f{n}', 'wb').write(bytes(40 << 20))\ntime.sleep(20)"
    result = uncounted(BUBBLEWRAP, script, memory_bytes=100 * MB)
    assert (result.status, "memory" in result.detail) == ("resource", True)


def test_processes_that_share_their_memory_are_not_stopped_for_it() -> None:
    script = "import os, time\nb = bytearray(60 << 20)\nos.fork(); os.fork()\ntime.sleep(0.5)"
    result = uncounted(BUBBLEWRAP, script, memory_bytes=128 * MB)
    assert result.ok, result.detail
