import json

import pytest
from click.testing import CliRunner

from core.errors import ComplabError
from llvm_tuning.cli import llvm
from llvm_tuning.toolchain import selftest as module
from llvm_tuning.toolchain.build import Built, compile_object
from llvm_tuning.toolchain.routes import optimize
from llvm_tuning.toolchain.selftest import ROUTES, functions, selftest

TWO = """
__attribute__((noinline)) int twice(int x) { return 2 * x; }
int total(int *a, int n) { int s = 0; for (int i = 0; i < n; i++) s += a[i]; return s; }
int main(int c, char **v) { return twice(c) - 2; }
"""


def test_every_unedited_route_is_compared_with_clang(problem_of, box, tools):
    problem = problem_of(TWO)
    found = selftest(box, tools, problem.program, problem.unit)
    assert [a.route for a in found] == list(ROUTES)
    assert all(a.same and str(a) == "same" for a in found)


def test_a_route_that_differs_names_the_functions(problem_of, box, tools, monkeypatch):
    def scalar(box, tools, program, bitcode):
        return compile_object(box, tools, program, problem.unit, ("-fno-vectorize", "-fno-unroll-loops"))

    problem = problem_of(TWO)
    monkeypatch.setattr(module, "ROUTES", {"scalar": scalar})
    (found,) = selftest(box, tools, problem.program, problem.unit)
    assert not found.same
    assert found.functions == ("total",)
    assert str(found) == "differs in total"


def test_a_route_that_gives_no_object_says_why(problem_of, box, tools, monkeypatch):
    def broken(box, tools, program, bitcode) -> Built:
        return optimize(box, tools, bitcode, "no-such-pass")

    problem = problem_of(TWO)
    monkeypatch.setattr(module, "ROUTES", {"broken": broken})
    (found,) = selftest(box, tools, problem.program, problem.unit)
    assert not found.same
    assert "no-such-pass" in str(found)


def test_functions_are_compared_without_their_addresses(problem_of, box, tools):
    one, moved = (
        problem_of(text, name=name) for text, name in ((TWO, "a.c"), ("int f(void) { return 7; }" + TWO, "b.c"))
    )
    first, second = (
        functions(box, tools, compile_object(box, tools, p.program, p.unit, ()).code) for p in (one, moved)
    )
    assert set(second) - set(first) == {"f"}
    assert {name: second[name] for name in first} == first


def test_what_is_no_object_is_refused(box, tools):
    with pytest.raises(ComplabError, match="does not read the object"):
        functions(box, tools, b"no object")


def test_the_advisor_is_told_where_a_pipeline_starts(problem_of, box):
    assert problem_of(TWO).evidence(box).channels["routes"] == dict.fromkeys(ROUTES, "same")


def test_the_command_counts_per_route(tmp_path):
    source = tmp_path / "two.c"
    source.write_text(TWO)
    done = CliRunner().invoke(llvm, ["selftest", str(source), "--json", "-"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["routes"] == [{"route": route, "same": 1, "programs": 1} for route in ROUTES]
