import ctypes
import os
import subprocess
from pathlib import Path

import pytest

from core.cache import cache_dir, cached_file
from core.errors import ComplabError
from core.native.build import build


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPLAB_CACHE", str(tmp_path / "cache"))


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_builds_a_shared_library_that_loads(tmp_path: Path) -> None:
    path = build(write(tmp_path / "seven.c", "int seven(void) { return 7; }"))
    assert ctypes.CDLL(str(path)).seven() == 7


def test_same_content_is_built_once_and_other_content_or_flags_anew(tmp_path: Path) -> None:
    source = write(tmp_path / "a.c", "int main(void) { return CODE; }")
    first = build(source, ("-DCODE=3",), "exe")
    stamp = first.stat().st_mtime_ns
    assert build(source, ("-DCODE=3",), "exe") == first
    assert first.stat().st_mtime_ns == stamp
    second = build(source, ("-DCODE=4",), "exe")
    write(source, "int main(void) { return CODE + 1; }")
    third = build(source, ("-DCODE=4",), "exe")
    assert [subprocess.run([path]).returncode for path in (first, second, third)] == [3, 4, 5]


def test_headers_named_as_depends_belong_to_the_key(tmp_path: Path) -> None:
    header = write(tmp_path / "code.h", "#define CODE 1")
    source = write(tmp_path / "a.c", '#include "code.h"\nint main(void) { return CODE; }')
    first = build(source, kind="exe", depends=(header,))
    write(header, "#define CODE 2")
    second = build(source, kind="exe", depends=(header,))
    assert [subprocess.run([path]).returncode for path in (first, second)] == [1, 2]


def test_libraries_follow_the_objects_that_need_them(tmp_path: Path) -> None:
    source = write(tmp_path / "a.c", "#include <math.h>\nint main(int c, char **v) { return (int)cbrt(c * 8.0) - 2; }")
    assert subprocess.run([build(source, ("-lm", "-O0", "-Wl,--as-needed"), "exe")]).returncode == 0


def test_compiler_message_is_shown_and_nothing_is_left_in_the_cache(tmp_path: Path) -> None:
    with pytest.raises(ComplabError, match="undeclared_thing"):
        build(write(tmp_path / "bad.c", "int main(void) { return undeclared_thing; }"), kind="exe")
    assert not [path for path in cache_dir("native").rglob("*") if path.is_file()]


def test_unreadable_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(ComplabError, match=r"missing\.c"):
        build(tmp_path / "missing.c")


def test_cached_file_is_keyed_by_content() -> None:
    one, two = cached_file(b"1", "pads", "pad.c"), cached_file(b"2", "pads", "pad.c")
    assert (one.read_bytes(), two.read_bytes()) == (b"1", b"2")
    assert cached_file(b"1", "pads", "pad.c") == one


def test_cache_that_cannot_be_made_says_how_to_move_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPLAB_CACHE", str(write(tmp_path / "file", "") / "below"))
    with pytest.raises(ComplabError, match="Set COMPLAB_CACHE"):
        cache_dir()
    assert os.path.isfile(tmp_path / "file")
