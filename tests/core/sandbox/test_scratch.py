"""Files go in and come out of the scratch space without following anything that the program laid out."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import BadInput
from core.sandbox.scratch import check_names, collect, populate


@pytest.fixture
def work(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    root = os.open(tmp_path, os.O_RDONLY)
    fd = populate(root, {"in/a/b": b"1", "run": b"2"}, ("run",), None, empty_files=("out",))
    yield fd, tmp_path / "work"
    os.close(fd)
    os.close(root)


def test_populate_writes_content_modes_and_folders(work: tuple[int, Path]) -> None:
    _, folder = work
    assert (folder / "in/a/b").read_bytes() == b"1"
    assert os.access(folder / "run", os.X_OK)
    assert not (folder / "in/a/b").stat().st_mode & 0o111
    assert (folder / "out").read_bytes() == b""
    assert {p.name for p in folder.parent.iterdir()} == {"work", "home", "tmp"}


def test_collect_takes_regular_files_up_to_the_cap(work: tuple[int, Path]) -> None:
    fd, folder = work
    (folder / "fits").write_bytes(bytes(10))
    (folder / "large").write_bytes(bytes(11))
    assert collect(fd, ("fits", "large", "missing", "in/a/b"), 10) == ({"fits": bytes(10), "in/a/b": b"1"}, ("large",))


def test_collect_follows_no_link_anywhere_on_the_way(work: tuple[int, Path], tmp_path: Path) -> None:
    fd, folder = work
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to(tmp_path)
    (folder / "self").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    names = ("link", "up/secret", "self/run", "pipe", "in", "run/x")
    assert collect(fd, names, 100) == ({}, names)


@given(st.text(max_size=20))
def test_accepted_names_stay_inside(name: str) -> None:
    try:
        check_names([name])
    except BadInput:
        return
    inside = Path("/base")
    assert Path(os.path.normpath(inside / name)).is_relative_to(inside)
    assert os.path.normpath(name) == name
    assert name != "."
