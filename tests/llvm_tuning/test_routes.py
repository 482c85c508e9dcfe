import subprocess

import pytest

from core.errors import ComplabError
from core.search.contract import Proposal, Verdict
from llvm_tuning.compiler import LlvmCompiler
from llvm_tuning.problem import make_problem
from llvm_tuning.program import load_program
from llvm_tuning.toolchain.build import compile_object
from llvm_tuning.toolchain.routes import (
    DEFAULT,
    NoBitcode,
    codegen,
    default_pipeline,
    frontend_bitcode,
    opt_arguments,
    optimize,
)
from llvm_tuning.tune import build_command

SUM = """
#include <stdio.h>
static int square(int x) { return x * x; }
int a[1000];
int main(int c, char **v) {
  int s = 0;
  for (int i = 0; i < 1000; i++) s += square(a[i]) * c;
  printf("%d\\n", s);
  return 0;
}
"""


@pytest.fixture
def problem(problem_of):
    return problem_of(SUM)


def materialized(problem, services, **payload):
    return LlvmCompiler().materialize(problem, Proposal(payload=payload), services)


@pytest.mark.parametrize("name", ["named", "spelled out"])
def test_the_unedited_pipeline_is_the_baselines_machine_code(problem, services, tools, name):
    pipeline = DEFAULT if name == "named" else default_pipeline(tools)
    base, staged = materialized(problem, services), materialized(problem, services, pipeline=pipeline)
    assert staged.key == base.key
    assert (base.provenance["route"], staged.provenance["route"]) == ("clang", "opt")


def test_an_edited_pipeline_is_another_candidate(problem, services):
    assert materialized(problem, services, pipeline="mem2reg").key != materialized(problem, services).key


@pytest.mark.parametrize(
    "knob", [{"force-vector-width": "8"}, {"opt-level": "s"}, {"disable-lsr": "1"}, {"enable-newgvn": "1"}], ids=str
)
def test_options_act_on_the_opt_route_as_they_do_on_clangs(problem, services, knob):
    staged = materialized(problem, services, pipeline="default<Os>" if "opt-level" in knob else DEFAULT, **knob)
    assert staged.key == materialized(problem, services, **knob).key


def test_a_spelled_out_pipeline_keeps_the_limits_of_o3(services, tools):
    # It has a loop that -O3 unrolls fully and -O2, whose limit opt's text falls back to, does not.
    problem = make_problem(load_program("base64"), tools)
    base = materialized(problem, services)
    assert materialized(problem, services, pipeline=default_pipeline(tools)).key == base.key
    lower = {"pipeline": default_pipeline(tools), "unroll-threshold": "50"}
    assert materialized(problem, services, **lower).key != base.key


def test_a_limit_that_an_option_sets_or_a_level_implies_is_not_given_twice():
    assert opt_arguments(DEFAULT) == (f"-passes={DEFAULT}",)
    assert opt_arguments("thinlto-pre-link<O3>") == ("-passes=thinlto-pre-link<O3>",)
    told = opt_arguments("function(mem2reg),inline", ("-unroll-threshold=50",))
    assert [o for o in told if o.startswith("-unroll-threshold")] == ["-unroll-threshold=50"]
    assert "-inline-threshold=250" in told


def test_what_passes_between_the_stages_is_bitcode(problem, box, tools):
    bitcode = frontend_bitcode(box, tools, problem.program, problem.unit)
    optimized = optimize(box, tools, bitcode, DEFAULT)
    assert bitcode.startswith(b"BC\xc0\xde")
    assert optimized.code.startswith(b"BC\xc0\xde")
    assert codegen(box, tools, problem.program, optimized.code).code.startswith(b"\x7fELF")


@pytest.mark.parametrize(
    "pipeline",
    ["no-such-pass", "mem2reg,licm", "function(", "mem2reg;touch owned", "default<O3> -o /tmp/x", "loop-unroll<O9>"],
)
def test_a_pipeline_that_opt_refuses_or_dies_of_is_the_proposals_fault(problem, services, pipeline):
    verdict = materialized(problem, services, pipeline=pipeline)
    assert isinstance(verdict, Verdict)
    assert verdict.reason == "compile_error"
    assert verdict.message


def test_a_unit_that_the_front_end_refuses_is_named(problem, box, tools):
    with pytest.raises(NoBitcode, match="undeclared"):
        frontend_bitcode(box, tools, problem.program, b"int main(void) { return x; }")


def test_a_toolchain_without_opt_offers_no_pipeline_and_says_so(problem, box, tools):
    bare = tools.model_copy(update={"paths": {}})
    with pytest.raises(ComplabError, match="no opt of clang"):
        default_pipeline(bare)
    with pytest.raises(ComplabError, match="no opt of clang"):
        optimize(box, bare, b"", DEFAULT)
    assert "pipeline" in problem.space.fields


def test_the_command_to_paste_builds_the_same_code(problem, box, tools, tmp_path):
    payload = {"pipeline": "default<O2>", "prefer-vector-width": "128", "disable-lsr": "1"}
    command = build_command(problem, payload).replace(" && ", " -c -o p.o && ").replace(" -c -o p.o", "", 2)
    done = subprocess.run(["sh", "-c", f"{command} -c -o p.o"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    bitcode = frontend_bitcode(box, tools, problem.program, problem.unit, ("-mprefer-vector-width=128",))
    optimized = optimize(box, tools, bitcode, "default<O2>")
    words = ("-mprefer-vector-width=128", "-mllvm", "-disable-lsr=1")
    made = codegen(box, tools, problem.program, optimized.code, words).code
    assert made != compile_object(box, tools, problem.program, problem.unit, ()).code
    assert text_of(tools, tmp_path / "p.o") == text_of(tools, made)


def text_of(tools, code):
    """Return the disassembly of an object, which has no file names in it."""
    argv = [tools.tool("llvm-objdump"), "-d", "--no-show-raw-insn", "-" if isinstance(code, bytes) else str(code)]
    done = subprocess.run(argv, input=code if isinstance(code, bytes) else None, capture_output=True, check=True)
    return [line for line in done.stdout.splitlines() if b"file format" not in line]
