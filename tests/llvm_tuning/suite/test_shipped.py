"""Promises about the programs that come with complab."""

import functools
from collections import Counter

import pytest

from core.records import digest_bytes
from llvm_tuning.program import load_program
from llvm_tuning.suite.catalogue import INPUTS, load_suite
from llvm_tuning.suite.check import build, check_program, execute
from llvm_tuning.suite.split import SEEN_BEFORE_THE_SPLIT, assign
from llvm_tuning.suite.table import PAGE, with_table
from llvm_tuning.suite.unconfined import run_own
from llvm_tuning.toolchain.discover import discover

SUITE = load_suite()
NAMES = [program.name for program in SUITE.programs]
PROGRAMS = pytest.mark.parametrize("program", SUITE.programs, ids=NAMES)

tools = functools.cache(discover)


def test_the_suite_has_36_programs_and_at_least_four_in_cpp():
    assert len(SUITE.programs) == 36
    assert sum(program.language == "c++" for program in SUITE.programs) >= 4


def test_every_source_file_is_in_the_catalogue():
    sources = {f.name for f in SUITE.path.parent.iterdir() if f.suffix in (".c", ".cpp")}
    assert sources == {program.filename for program in SUITE.programs}


def test_the_split_is_what_the_rule_gives():
    assert {p.name: (p.split, p.core12) for p in SUITE.programs} == {
        name: (place.split, place.core12) for name, place in assign(SUITE.programs).items()
    }


def test_a_third_is_test_and_every_domain_has_one_test_and_one_core12_program():
    assert Counter(p.split for p in SUITE.programs) == {"dev": 24, "test": 12}
    assert Counter(p.domain for p in SUITE.programs if p.split == "test") == Counter(SUITE.domains)
    assert Counter(p.domain for p in SUITE.programs if p.core12) == Counter(SUITE.domains)


def test_no_program_that_was_tuned_before_the_split_is_test():
    assert not {p.name for p in SUITE.programs if p.split == "test"} & SEEN_BEFORE_THE_SPLIT


@PROGRAMS
def test_a_program_has_all_inputs_recorded_and_the_hidden_one_is_of_another_size_and_seed(program):
    assert program.inputs == INPUTS
    assert set(program.expected) == set(INPUTS)
    assert len(set(program.expected.values())) == len(INPUTS)
    assert program.kernels
    assert all(hidden != seen for hidden, seen in zip(program.hidden_args, program.args, strict=True))


@PROGRAMS
def test_a_program_prints_what_is_recorded(program):
    built = build(program, SUITE.source(program).read_text(), tools(), run_own, "-O3")
    assert built.binary is not None, built.message
    result = execute(program, built.binary, "small", run_own)
    assert result.ok
    assert digest_bytes(result.stdout) == program.expected["small"], result.stdout.decode()


@PROGRAMS
def test_a_source_is_short_and_uses_no_clock_locale_or_library_random(program):
    text = SUITE.source(program).read_text()
    assert len(text.splitlines()) <= 180
    assert not [word for word in ("<time.h>", "chrono", "locale", " rand(", "clock(", "<random>") if word in text]


def test_the_documented_table_is_up_to_date():
    page = PAGE.read_text()
    assert page == with_table(page, SUITE), "run python -m llvm_tuning.suite.table"


def test_a_small_program_shows_the_loss_of_each_kernel():
    program = next(p for p in SUITE.programs if p.name == "conv_int8")
    assert check_program(SUITE, program, tools(), run_own, inputs=("small",)) == []


@pytest.mark.slow
@PROGRAMS
def test_every_promise_of_the_suite_holds(program):
    assert check_program(SUITE, program, tools(), run_own) == []


def test_the_tuner_finds_the_shipped_programs():
    assert load_program("lu_solve").inputs[0].args == next(p.args for p in SUITE.programs if p.name == "lu_solve")
