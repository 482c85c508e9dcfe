import os
import threading
import time
from pathlib import Path

import pytest

from core.errors import InfraError
from core.measure.machine_lock import default_lock_path, machine_lock


def test_only_one_holder_at_a_time(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        with machine_lock(tmp_path / "lock", 20):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.02)
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]


def test_waiting_ends_with_a_message(tmp_path: Path) -> None:
    with (
        machine_lock(tmp_path / "lock", 1),
        pytest.raises(InfraError, match="take turns"),
        machine_lock(tmp_path / "lock", 0.05),
    ):
        pass


def test_lock_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="x"), machine_lock(tmp_path / "lock", 1):
        raise ValueError("x")
    with machine_lock(tmp_path / "lock", 0.05):
        pass


def test_file_of_another_user_serves_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch(mode=0o444)
    path.chmod(0o444)
    with machine_lock(path, 1):
        assert path.stat().st_mode & 0o777 == 0o444


@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_traps_in_a_shared_directory_are_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "lock"
    {"link": lambda: path.symlink_to(tmp_path / "target"), "pipe": lambda: os.mkfifo(path), "directory": path.mkdir}[
        kind
    ]()
    with pytest.raises(InfraError, match="lock"), machine_lock(path, 1):
        pass
    assert not (tmp_path / "target").exists()


def test_default_lock_can_be_taken() -> None:
    assert default_lock_path().parent.is_dir()


def test_other_users_can_read_the_lock_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with machine_lock(tmp_path / "lock", 1):
            assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)
