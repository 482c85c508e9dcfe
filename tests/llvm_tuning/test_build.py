import pytest

from core.errors import BadInput
from llvm_tuning.compiler import LlvmCompiler
from llvm_tuning.observe import observe
from llvm_tuning.toolchain.build import compile_object
from llvm_tuning.toolchain.link import Layouts, link_layouts

HELLO = '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n'


def test_a_header_beside_the_program_is_found(problem_of, tmp_path):
    (tmp_path / "word.h").write_text('#define WORD "there"\n')
    problem = problem_of('#include <stdio.h>\n#include "word.h"\nint main(void) { puts(WORD); return 0; }\n')
    assert b'puts("there")' in problem.unit


def test_a_missing_header_is_bad_input_with_the_compilers_words(problem_of):
    with pytest.raises(BadInput, match=r"(?s)p\.c does not preprocess.*nowhere\.h"):
        problem_of('#include "nowhere.h"\n')


def test_the_same_program_is_the_same_problem_wherever_it_lies(problem_of, tmp_path):
    assert problem_of(HELLO, folder=tmp_path / "a").id == problem_of(HELLO, folder=tmp_path / "b").id
    assert problem_of(HELLO, cflags="-DX").id != problem_of(HELLO).id
    assert problem_of(HELLO, args="7").id != problem_of(HELLO).id


def test_equal_settings_give_equal_artefacts_and_other_code_another(problem_of, services):
    problem = problem_of(
        "#include <stdio.h>\nint a[1000]; int main(int c, char **v) { int s = 0;\n"
        'for (int i = 0; i < 1000; i++) s += a[i] * c; printf("%d\\n", s); return 0; }\n'
    )
    compiler = LlvmCompiler()
    first, again = (compiler.materialize(problem, problem.default, services) for _ in range(2))
    assert first.key == again.key
    unrolled = problem.default.model_copy(update={"payload": {"force-vector-width": "1"}})
    assert compiler.materialize(problem, unrolled, services).key != first.key


def test_a_program_that_does_not_compile_is_rejected_with_the_message(problem_of, services):
    problem = problem_of("int main(void) { return x; }\n")
    verdict = LlvmCompiler().materialize(problem, problem.default, services)
    assert (verdict.accepted, verdict.reason) == (False, "compile_error")
    assert "undeclared" in verdict.message


def test_every_layout_is_another_file_and_the_same_program(problem_of, box, tools):
    problem = problem_of(HELLO)
    code = compile_object(box, tools, problem.program, problem.unit, ()).code
    programs = link_layouts(box, tools, problem.program, code, first=0, count=4)
    assert len(set(programs)) == 4
    shown = [observe(box, problem.program, p, problem.program.inputs[0], 5.0) for p in programs]
    assert {s.stdout for s in shown} == {b"hello\n"}


def test_layouts_are_linked_when_looked_at_and_shared_between_views():
    asked = []

    def link(first, count):
        asked.append((first, count))
        return tuple(b"%d" % i for i in range(first, first + count))

    layouts = Layouts(link, 12)
    assert layouts[0] == b"0"
    assert asked == [(0, 1)]
    assert [*layouts.first(6)] == [b"%d" % i for i in range(6)]
    assert layouts[11] == b"11"
    assert asked == [(0, 1), (1, 5), (6, 5), (11, 1)]
    assert len(layouts.first(6)) == 6
    with pytest.raises(IndexError):
        layouts[12]
