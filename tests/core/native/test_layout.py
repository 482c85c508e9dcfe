import subprocess
from pathlib import Path

import pytest

from core.errors import ComplabError
from core.native.build import build, compiler
from core.native.layout import layout_variants, link_layouts, links_with_lld

PROGRAM = """
#include <stdio.h>
__attribute__((noinline)) int first(int x) { return x * 3 + 1; }
__attribute__((noinline)) int second(int x) { return x ^ 5; }
static int table[1000];
static volatile int set = 7;
int main(void) {
    for (int i = 0; i < 1000; i++) table[i] = first(i) + second(i) + set;
    printf("%d\\n", table[77]);
}
"""


@pytest.fixture
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setenv("COMPLAB_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "program.c"
    source.write_text(PROGRAM)
    return [build(source, ("-O1", "-ffunction-sections"), "object")]


def addresses(path: Path) -> dict[str, int]:
    lines = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines()
    return {parts[2]: int(parts[0], 16) for parts in map(str.split, lines) if len(parts) == 3}


def test_layouts_move_code_and_data_but_not_what_is_computed(objects: list[Path]) -> None:
    linked = link_layouts(objects, count=4, seed=1)
    outputs = {subprocess.run([path], capture_output=True, check=True).stdout for path in linked}
    assert len(outputs) == 1
    for name in ("first", "second", "table", "set"):
        assert len({addresses(path)[name] for path in linked}) >= 3, f"{name} lies at the same place"
        assert len({addresses(path)[name] % 64 for path in linked}) >= 2, f"{name} has the same cache-line offset"


def test_functions_change_their_order(objects: list[Path]) -> None:
    assert links_with_lld(compiler()), "lld is needed: without it layouts vary by padding alone"
    distances = {
        addresses(path)["second"] - addresses(path)["first"] for path in link_layouts(objects, count=5, seed=2)
    }
    assert len(distances) > 1


def test_layouts_are_reproducible_and_extend_one_another() -> None:
    assert layout_variants(3, 5, lld=True) == layout_variants(6, 5, lld=True)[:3]
    assert layout_variants(3, 5, lld=True) != layout_variants(3, 6, lld=True)
    assert all(variant.link_flags == () for variant in layout_variants(3, 5, lld=False))


def test_padding_alone_already_moves_code(tmp_path: Path, objects: list[Path]) -> None:
    places = set()
    for index, variant in enumerate(layout_variants(4, 9, lld=False)):
        source = tmp_path / f"pad{index}.c"
        source.write_text(variant.pad_source)
        places.add(addresses(build([build(source, kind="object"), *objects], kind="exe"))["first"])
    assert len(places) >= 3


def test_a_link_that_fails_shows_the_message(objects: list[Path]) -> None:
    with pytest.raises(ComplabError, match="no_such_library"):
        link_layouts(objects, count=1, seed=1, flags=("-lno_such_library",))
