"""Where control groups are looked for, in both versions, on made-up hierarchies; and that stale ones go."""

import os
from pathlib import Path

import pytest

from core.sandbox import cgroups
from core.sandbox.cgroups import find_places


def test_version_1_places_are_below_our_own_group(tmp_path: Path) -> None:
    for name in ("memory/a/b", "pids", "cpu,cpuacct/x"):
        (tmp_path / name).mkdir(parents=True)
    text = "9:memory:/a/b\n8:pids:/\n2:cpu,cpuacct:/x\n0::/\n"
    places = find_places(text, tmp_path)
    assert places is not None
    assert places.version == 1
    assert places.memory == tmp_path / "memory/a/b"
    assert places.pids == tmp_path / "pids"
    assert places.cpu == tmp_path / "cpu,cpuacct/x"


def test_path_of_the_host_in_a_container_falls_back_to_the_mount(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    places = find_places("9:memory:/docker/123\n", tmp_path)
    assert places is not None
    assert (places.memory, places.pids) == (tmp_path / "memory", None)


def test_version_2_takes_the_nearest_group_that_passes_controllers_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "user.slice/app.slice/mine.scope"
    own.mkdir(parents=True)
    (tmp_path / "cgroup.controllers").write_text("memory pids cpu")
    offered = {own: "", own.parent: "cpu memory pids", own.parent.parent: "cpu memory pids"}
    monkeypatch.setattr(
        cgroups, "_can_create", lambda folder, needed: set(needed.split()) <= set(offered.get(folder, "").split())
    )
    places = find_places("0::/user.slice/app.slice/mine.scope\n", tmp_path)
    assert places is not None
    assert (places.version, places.memory, places.folders) == (2, own.parent, (own.parent,))


def test_nothing_usable_is_none(tmp_path: Path) -> None:
    assert find_places("0::/\n", tmp_path) is None
    assert find_places("", tmp_path) is None


def test_only_groups_of_dead_makers_are_stale(tmp_path: Path) -> None:
    alive = f"complab-{os.getpid()}-{cgroups._start_ticks(os.getpid())}-0"
    recycled = f"complab-{os.getpid()}-1-0"  # the pid is used again, by a process that started at another time
    for name in (alive, recycled, "complab-4194305-77-3", "other"):
        (tmp_path / name).mkdir()
    assert {path.name for path in cgroups._stale_groups(tmp_path)} == {recycled, "complab-4194305-77-3"}


def test_kill_never_means_our_own_process_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append(pid))
    (tmp_path / "cgroup.procs").write_text("0\n77\n")
    cgroups._kill_all(tmp_path)
    assert killed == [77]
