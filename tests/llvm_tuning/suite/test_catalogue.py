import textwrap

import pytest

from core.errors import BadInput
from llvm_tuning.suite.catalogue import load_suite, select
from llvm_tuning.suite.table import BEGIN, END, with_table

GOOD = """
    one:
      about: the first
      domain: sums
      kernels: [add]
      args: ["10", "1"]
      hidden_args: ["9", "2"]
    two:
      about: the second
      split: test
      language: c++
      core12: true
      args: ["10"]
      hidden_args: ["9"]
"""


def suite_of(tmp_path, text=GOOD):
    (tmp_path / "one.c").write_text("int main(void) { return 0; }\n")
    (tmp_path / "two.cpp").write_text("int main() {}\n")
    (tmp_path / "suite.yaml").write_text(textwrap.dedent(text))
    return load_suite(tmp_path / "suite.yaml")


def test_a_suite_knows_its_programs_and_their_files(tmp_path):
    suite = suite_of(tmp_path)
    assert [suite.source(p).name for p in suite.programs] == ["one.c", "two.cpp"]
    assert suite.domains == ("sums", "general")
    assert suite.programs[0].inputs == ("args", "hidden_args")


@pytest.mark.parametrize(
    ("change", "to", "said"),
    [
        ("split: test", "split: train", r"suite\.yaml: program 'two', field 'split': .*'dev' or 'test'.*'train'"),
        ("split: test", "splt: test", r"program 'two', field 'splt': .*Did you mean 'split'"),
        ('args: ["10", "1"]', "args: [10, 1]", r"program 'one', field 'args\.0': .*found 10\)\. Quote numbers"),
        ('hidden_args: ["9"]', 'hidden_args: ["10"]', "program 'two', field 'hidden_args': is the same as args"),
        ("about: the first", "", "program 'one', field 'about': Field required"),
        ("about: the first", "about: [", "is not YAML"),
        ("about: the first", "about: a\n      about: b", "'about' comes twice"),
        ("two:", "one:", "'one' comes twice"),
        ("two:", "../two:", r"program '\.\./two', field 'name'"),
        ("two:", "three:", r"program 'three': there is no file"),
        ("core12: true", "expected: {large: " + "a" * 64 + "}", r"field 'expected\.large': there is no input 'large'"),
        ("core12: true", "expected: {args: abc}", r"field 'expected\.args'"),
        ("core12: true", 'cflags: ["-fplugin=x.so"]', r"field 'cflags\.0': .*load foreign code"),
        ("core12: true", 'cflags: ["-Xclang"]', r"field 'cflags\.0'"),
        ("kernels: [add]", 'kernels: ["add()"]', r"field 'kernels\.0'"),
    ],
)
def test_a_wrong_field_is_named_with_its_program_and_file(tmp_path, change, to, said):
    text = GOOD.replace(change, to)
    assert text != GOOD
    with pytest.raises(BadInput, match=said):
        suite_of(tmp_path, text)


@pytest.mark.parametrize("text", ["", "[]", "text"])
def test_a_file_without_programs_is_refused(tmp_path, text):
    with pytest.raises(BadInput, match="holds no programs"):
        suite_of(tmp_path, text)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        load_suite(tmp_path / "none.yaml")


def test_programs_are_chosen_by_name_split_domain_and_core12(tmp_path):
    suite = suite_of(tmp_path)

    def names(**asked):
        return [p.name for p in select(suite, **asked)]

    assert names() == ["one", "two"]
    assert names(names=("two",)) == ["two"]
    assert names(split="dev") == ["one"]
    assert names(domain="sums") == ["one"]
    assert names(core12=True) == ["two"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"names": ("tow",)}, "no program 'tow'. Did you mean 'two'"),
        ({"domain": "sum"}, "no domain 'sum'. Did you mean 'sums'"),
        ({"split": "dev", "core12": True}, "No program of .* meets all"),
    ],
)
def test_a_choice_that_meets_nothing_is_named(tmp_path, asked, said):
    with pytest.raises(BadInput, match=said):
        select(suite_of(tmp_path), **asked)


def test_a_page_keeps_all_but_its_table(tmp_path):
    page = with_table(f"before\n{BEGIN}\nold\n{END}\nafter\n", suite_of(tmp_path))
    assert page.startswith("before\n")
    assert page.endswith("after\n")
    assert "old" not in page
    assert "| sums | `one` | C | dev | the first | `10 1` |" in page


def test_a_page_without_marks_is_refused(tmp_path):
    with pytest.raises(BadInput, match="no marks"):
        with_table("nothing", suite_of(tmp_path))
