import pytest

from core.errors import BadInput
from llvm_tuning.baseline import establish
from llvm_tuning.undefined import parse_report

CHANGES = """#include <stdio.h>
#include <limits.h>
__attribute__((noinline)) static int wraps(int x) { return x + 1 > x; }
int main(int c, char **v) { printf("%d\\n", wraps(INT_MAX - 1 + c)); return 0; }
"""

HARMLESS = """#include <stdio.h>
#include <limits.h>
int main(int c, char **v) { volatile int big = INT_MAX; int x = big + c; printf("%d\\n", x); return 0; }
"""


def test_undefined_behaviour_that_changes_the_output_is_refused_with_the_report(problem_of, box):
    with pytest.raises(BadInput, match=r"(?s)undefined behaviour that changes its output.*signed integer overflow"):
        establish(box, problem_of(CHANGES), 2.0)


def test_undefined_behaviour_that_changes_nothing_is_a_warning(problem_of, box):
    (warning,) = establish(box, problem_of(HARMLESS), 2.0).warnings
    assert "signed integer overflow" in warning


def test_a_sound_program_has_no_warnings(problem_of, box):
    assert establish(box, problem_of("int main(void) { return 0; }"), 2.0).warnings == ()


def test_a_report_starts_at_its_first_finding():
    text = b"mine\na.c:1:2: runtime error: signed integer overflow\nmore\n"
    assert parse_report(text).startswith("a.c:1:2: runtime error")
    assert parse_report(b"a runtime of errors\n") == ""
