"""The doctor: what is there is named, what is missing comes with its command, what was not shown is not claimed."""

import errno
import json
import os
import stat
from collections import namedtuple
from pathlib import Path

import pytest
from click.testing import CliRunner

from core.machine import cli, doctor, facts, tools
from core.machine.doctor import Diagnosis, Row, machine_rows
from core.sandbox.policy import Guarantee
from core.sandbox.probe import ProbeReport, ProfileReport, Trial, judge

SMI = """#!/bin/sh
case "$1" in
  --query-gpu=*) echo 'NVIDIA H200, 570.86.15, 9.0' ;;
  *) echo '| NVIDIA-SMI 570.86.15   Driver Version: 570.86.15   CUDA Version: 12.8  |' ;;
esac
"""


def rows(tmp_path: Path) -> dict[str, Row]:
    return {row.name: row for row in machine_rows(tmp_path / "runs", tmp_path / "cache")}


def script(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose PATH holds nothing but what a test puts into the returned folder, and no Python packages."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    for module in (doctor, cli):
        monkeypatch.setattr(module, "package_version", lambda name: None)
    return folder


def test_the_compilers_of_this_machine_are_found(tmp_path: Path) -> None:
    found = rows(tmp_path)
    for name in ("clang", "opt", "llc", "ld.lld", "llvm-mca", "g++"):
        assert found[name].state == "ok", found[name]
        assert found[name].found.startswith("/")


def test_a_missing_tool_comes_with_the_command_that_installs_it(tmp_path: Path, bare: Path) -> None:
    found = rows(tmp_path)
    assert found["clang"].state == "missing"
    assert found["clang"].fix == (
        "sudo apt-get install --no-install-recommends clang-22 llvm-22 lld-22 libclang-rt-22-dev"
    )
    assert "'.[ray]'" in found["ray"].fix
    assert "pytorch.org" in found["torch"].fix
    assert Diagnosis(rows=tuple(found.values())).lacking == (found["clang"],)


def test_pip_compilers_make_a_missing_clang_bearable(
    tmp_path: Path, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "package_version", {"ziglang": "0.17.1"}.get)
    assert Diagnosis(rows=tuple(rows(tmp_path).values())).lacking == ()


def test_the_newest_working_llvm_is_taken(bare: Path) -> None:
    script(bare, "clang-22", "#!/bin/sh\nexit 1\n")
    script(bare, "clang-19", "#!/bin/sh\necho 'clang version 19.1.7'\n")
    script(bare, "clang", "#!/bin/sh\necho 'clang version 14.0.0'\n")
    tool = tools.find_llvm_tool("clang")
    assert tool == tools.Tool(path=bare / "clang-19", version="clang version 19.1.7")


def test_gpus_and_the_drivers_cuda_are_read(bare: Path) -> None:
    assert facts.gpus() == []
    script(bare, "nvidia-smi", SMI)
    expected = facts.Gpu(name="NVIDIA H200", driver="570.86.15", compute_capability="9.0", cuda="12.8")
    assert facts.gpus() == [expected]


@pytest.mark.parametrize(("nvrtc", "state"), [("12.6.85", "ok"), ("13.0.48", "missing"), (None, "missing")])
def test_nvrtc_is_held_against_the_driver(
    tmp_path: Path, bare: Path, monkeypatch: pytest.MonkeyPatch, nvrtc: str | None, state: str
) -> None:
    script(bare, "nvidia-smi", SMI)
    monkeypatch.setattr(doctor, "package_version", {"nvidia-cuda-nvrtc": nvrtc}.get)
    assert rows(tmp_path)["NVRTC"].state == state


def test_nvrtc_without_a_driver_is_unproven(tmp_path: Path, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "package_version", {"nvidia-cuda-nvrtc": "12.6.85"}.get)
    assert rows(tmp_path)["NVRTC"].state == "unproven"


@pytest.mark.parametrize(
    ("torch", "requires", "triton", "state"),
    [
        ("2.13.0+cpu", [], "3.7.1", "ok"),
        ("2.13.0+cpu", [], "3.9.0", "missing"),
        ("2.13.0+cpu", [], None, "missing"),
        ("2.13.0", ["triton==3.7.1; platform_system == 'Linux'"], "3.7.1", "ok"),
        ("2.13.0", ["triton==3.7.1"], "3.7.0", "missing"),
        ("2.99.0+cpu", [], "3.7.1", "unproven"),
    ],
)
def test_triton_must_be_the_one_of_this_torch(
    tmp_path: Path,
    bare: Path,
    monkeypatch: pytest.MonkeyPatch,
    torch: str,
    requires: list[str],
    triton: str | None,
    state: str,
) -> None:
    monkeypatch.setattr(doctor, "package_version", {"torch": torch, "triton": triton}.get)
    monkeypatch.setattr(doctor.importlib.metadata, "requires", lambda name: requires)
    row = rows(tmp_path)["triton"]
    assert row.state == state
    assert bool(row.fix) == (state == "missing")


@pytest.mark.parametrize(
    ("code", "outcome", "state"),
    [
        (errno.ENOENT, "absent", "missing"),
        (errno.EACCES, "forbidden", "unproven"),
        (errno.EINVAL, "unknown", "unproven"),
    ],
)
def test_counters_that_could_not_be_opened_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, outcome: str, state: str
) -> None:
    library = namedtuple("library", "syscall")(lambda *arguments: -1)
    monkeypatch.setattr(facts.ctypes, "CDLL", lambda *arguments, **settings: library)
    monkeypatch.setattr(facts.ctypes, "get_errno", lambda: code)
    assert facts.counters() == outcome
    assert rows(tmp_path)["hardware counters"].state == state


def test_counters_are_really_tried_here() -> None:
    before = len(os.listdir("/proc/self/fd"))
    assert facts.counters() in ("ok", "absent", "forbidden")
    assert len(os.listdir("/proc/self/fd")) == before


def test_room_is_measured_where_a_directory_will_be_made(tmp_path: Path) -> None:
    room = facts.space(tmp_path / "not" / "yet")
    assert room.writable
    assert room.free_bytes > 0
    assert not (tmp_path / "not").exists()


def test_a_full_disk_keeps_the_demo_from_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "space", lambda directory: facts.Space(free_bytes=1 << 20, writable=True))
    lacking = Diagnosis(rows=tuple(machine_rows(tmp_path / "runs", tmp_path / "cache"))).lacking
    assert [row.name for row in lacking] == ["runs", "cache"]
    assert "2.0 GiB" in lacking[0].fix


GOOD = Row(group="a", name="thing", state="ok", found="here [not markup]", needed=True)
GONE = Row(group="b", name="part", state="missing", found="not here", fix="install it", needed=True)
VAGUE = Row(group="b", name="promise", state="unproven", found="tried, no answer")


@pytest.mark.parametrize(("found", "code"), [((GOOD, VAGUE), 0), ((GOOD, GONE), 1)])
def test_the_exit_code_says_whether_the_demo_can_run(
    monkeypatch: pytest.MonkeyPatch, found: tuple[Row, ...], code: int
) -> None:
    monkeypatch.setattr(cli, "examine", lambda: Diagnosis(rows=found))
    shown = CliRunner().invoke(cli.doctor, ["--json"])
    assert shown.exit_code == code
    answer = json.loads(shown.output)
    assert answer["demo_ready"] == (code == 0)
    assert [row["name"] for row in answer["rows"]] == [row.name for row in found]


def test_what_could_not_be_proven_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "examine", lambda: Diagnosis(rows=(GOOD, GONE, VAGUE)))
    output = CliRunner().invoke(cli.doctor, []).output
    assert "here [not markup]" in output
    assert "-> install it" in output
    assert "Could not be proven on this machine: promise." in output
    assert "`make demo` cannot run: it needs part." in output


def trial(guarantee: str, *, control: bool, held: bool) -> Trial:
    return Trial(
        probe="p",
        what="connect to the host",
        guarantee=Guarantee(guarantee),
        outside="connected",
        control=control,
        inside="refused" if held else "connected",
        held=held,
    )


def backend(name: str, trials: tuple[Trial, ...], problem: str = "") -> ProbeReport:
    profile = ProfileReport(guarantees=judge(trials), trials=trials, problem=problem)
    return ProbeReport(backend=name, hint=f"help {name}", profiles={"toolchain": profile, "pure": profile})


HELD = tuple(trial(guarantee, control=True, held=True) for guarantee in Guarantee)


def test_a_guarantee_counts_only_when_an_attempt_that_succeeds_outside_was_stopped() -> None:
    trials = (
        trial("no_net", control=True, held=True),
        trial("mem", control=False, held=True),
        trial("pids", control=True, held=False),
    )
    found = {row.name: row for row in cli.guarantee_rows({"own": backend("own", trials)})}
    assert (found["no_net"].state, found["mem"].state, found["pids"].state) == ("ok", "unproven", "missing")
    assert "connected" in found["pids"].found
    assert found["pids"].fix == "help own"
    assert {row.name for row in Diagnosis(rows=tuple(found.values())).lacking} == set(Guarantee) - {"no_net"}


def test_one_backend_that_proves_everything_is_enough() -> None:
    reports = {"bubblewrap": backend("bubblewrap", (), "bwrap is not installed"), "own": backend("own", HELD)}
    found = {row.name: row for row in cli.guarantee_rows(reports)}
    assert (found["bubblewrap"].state, found["bubblewrap"].fix) == ("missing", "help bubblewrap")
    assert found["own"].state == "ok"
    assert Diagnosis(rows=tuple(found.values())).lacking == ()
