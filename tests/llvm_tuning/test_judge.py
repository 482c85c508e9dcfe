from dataclasses import replace

import pytest

from core.errors import BadInput
from core.measure.service import Measure, MeasureSettings
from core.search.contract import Candidate
from core.search.services import Doors
from llvm_tuning.baseline import establish
from llvm_tuning.judge import LlvmJudge
from llvm_tuning.toolchain.build import compile_object

PRINTS = '#include <stdio.h>\nint main(void) { puts("%s"); return 0; }\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("int main(void) { return 3; }", "exit code 3"),
        ("int main(void) { for (;;) ; }", "did not end within"),
        ("#include <stdlib.h>\nint main(void) { abort(); }", "signal 6"),
        (
            "#include <stdio.h>\n#include <time.h>\nint main(void) { struct timespec t; clock_gettime(0, &t);"
            'printf("took\\n%ld\\n", t.tv_nsec); return 0; }',
            "does not repeat itself.*Line 2 of standard output",
        ),
        ("int main(void) { return y; }", "does not compile.*undeclared"),
        ("int work(void); int main(void) { return work(); }", "did not link"),
    ],
)
def test_a_program_that_cannot_be_a_baseline_is_said_why(problem_of, box, text, said):
    problem = problem_of(text)
    with pytest.raises(Exception, match="(?s)" + said) as raised:
        establish(box, problem, 1.0)
    assert isinstance(raised.value, BadInput)


def candidate_from(problem, other, box, tools, services):
    """A candidate of `problem` whose machine code is that of another program: a miscompilation."""
    code = compile_object(box, tools, other.program, other.unit, ()).code
    return Candidate(problem=problem.id, proposal="0" * 64, target=problem.target, artefact=services.store.put(code))


@pytest.mark.parametrize(
    ("text", "reason", "said"),
    [
        (PRINTS % "lo", "wrong_output", "Line 1 of standard output: 'hi' became 'lo'"),
        ("int main(void) { return 1; }", "crash", "exit code 1"),
        ("int main(void) { for (;;) ; }", "timeout", "did not end"),
        ("int main(void) { return *(volatile int *)0; }", "crash", "signal 11"),
    ],
)
def test_a_miscompiled_candidate_is_rejected(problem_of, box, tools, services, text, reason, said):
    problem, other = problem_of(PRINTS % "hi"), problem_of(text)
    judge = LlvmJudge(baseline=establish(box, problem, 1.0), run_timeout_s=1.0, measure=MeasureSettings())
    verdict = judge.check(problem, candidate_from(problem, other, box, tools, services), "screen", 0, services)
    assert (verdict.accepted, verdict.reason) == (False, reason)
    assert said in verdict.message


def test_an_equal_program_is_accepted_with_its_checks_counted(problem_of, box, tools, services):
    writes = '#include <stdio.h>\nint main(void) { FILE *f = fopen("o", "w"); fputs("x", f); fclose(f); return 0; }\n'
    problem = problem_of(writes, outputs=("o",), check_stderr=True)
    judge = LlvmJudge(baseline=establish(box, problem, 5.0), run_timeout_s=5.0, measure=MeasureSettings())
    verdict = judge.check(problem, candidate_from(problem, problem, box, tools, services), "screen", 0, services)
    assert verdict.accepted
    assert verdict.checks == 4  # exit code, stdout, stderr, the file


def test_a_changed_output_file_is_found(problem_of, box, tools, services):
    writes = '#include <stdio.h>\nint main(void) { FILE *f = fopen("o", "w"); fputs("%s", f); fclose(f); return 0; }\n'
    problem, other = problem_of(writes % "x", outputs=("o",)), problem_of(writes % "y")
    judge = LlvmJudge(baseline=establish(box, problem, 5.0), run_timeout_s=5.0, measure=MeasureSettings())
    verdict = judge.check(problem, candidate_from(problem, other, box, tools, services), "screen", 0, services)
    assert verdict.reason == "wrong_output"
    assert "the file 'o'" in verdict.message


def test_the_program_gets_its_arguments_input_and_files(problem_of, box, tmp_path):
    (tmp_path / "in").write_text("abc")
    (tmp_path / "data").write_text("xyz")
    text = (
        "#include <stdio.h>\nint main(int c, char **v) { char a[9] = {0}, b[9] = {0};\n"
        'fread(a, 1, 8, stdin); FILE *f = fopen("data", "r"); fread(b, 1, 8, f);\n'
        'printf("%s %s %s\\n", v[1], a, b); return 0; }\n'
    )
    problem = problem_of(text, args="'one word'", stdin=str(tmp_path / "in"), files=(str(tmp_path / "data"),))
    (shown,) = establish(box, problem, 5.0).shown.values()
    assert shown.stdout == b"one word abc xyz\n"


def test_what_decides_a_measurement_decides_the_key_of_its_trials():
    def settings(**measure):
        return LlvmJudge(baseline=None, run_timeout_s=1.0, measure=MeasureSettings(**measure)).settings

    usual = MeasureSettings()
    longer = usual.screen.model_copy(update={"wall_s": 9.0})
    assert len({settings(), settings(screen=longer), settings(prove=longer), settings(margin=0.5)}) == 4
    assert settings() == settings(lock_wait_s=1.0)


def test_a_program_that_changes_only_while_it_is_timed_is_bad_input(problem_of, box, services):
    problem = problem_of(PRINTS % "same")
    baseline = establish(box, problem, 1.0)
    (key,) = baseline.shown
    other = baseline.shown[key].model_copy(update={"stdout": b"another\n"})
    judge = LlvmJudge(baseline=replace(baseline, shown={key: other}), run_timeout_s=1.0, measure=MeasureSettings())
    with pytest.raises(BadInput, match="not do the same in every run"):
        judge.control(problem, Doors(box=box, store=services.store, measure=Measure(box, services.store), llm=None))
