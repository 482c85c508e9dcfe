import functools
import json
import textwrap

import pytest
from click.testing import CliRunner

from core.records import digest_bytes
from core.sandbox.service import open_sandbox
from llvm_tuning.suite.catalogue import load_suite
from llvm_tuning.suite.check import check, confined
from llvm_tuning.suite.cli import suite
from llvm_tuning.suite.unconfined import run_own
from llvm_tuning.toolchain.discover import discover

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
static int square(int x) { return x * x; }
static void shout(int x) { if (x > 1000) puts("big"); }
int main(int argc, char **argv) {
  int x = square(atoi(argv[argc - 1]));
  shout(x);
  printf("%d\\n", x);
  return 0;
}
"""

tools = functools.cache(discover)


def findings(tmp_path, program=PROGRAM, kernels="[square]", three=b"9\n", run=run_own):
    (tmp_path / "squares.c").write_text(program)
    (tmp_path / "suite.yaml").write_text(
        textwrap.dedent(
            f"""
            squares:
              about: squares a number
              kernels: {kernels}
              args: ["3"]
              hidden_args: ["4"]
              expected:
                args: {digest_bytes(three)}
                hidden_args: {digest_bytes(b"16" + bytes([10]))}
            """
        )
    )
    return [(f.kind, f.message) for f in check(load_suite(tmp_path / "suite.yaml"), tools(), run)]


def test_a_sound_program_gives_no_findings(tmp_path):
    assert findings(tmp_path) == []


def test_a_users_suite_is_checked_inside_the_sandbox(tmp_path):
    run = confined(open_sandbox())
    assert findings(tmp_path, run=run) == []
    [(kind, _)] = findings(tmp_path, kernels="[square, shout]", run=run)
    assert kind == "blind"


def test_an_output_that_ignores_a_kernel_is_blind(tmp_path):
    [(kind, message)] = findings(tmp_path, kernels="[square, shout]")
    assert kind == "blind"
    assert "when shout does nothing" in message


def test_a_recorded_output_that_is_not_printed_is_found_at_each_level(tmp_path):
    found = findings(tmp_path, three=b"8\n")
    assert [kind for kind, _ in found] == ["wrong_output", "wrong_output"]
    assert "args at -O0" in found[0][1]
    assert digest_bytes(b"9\n") in found[0][1]


def test_an_input_without_a_digest_is_named_with_what_it_prints(tmp_path):
    (tmp_path / "squares.c").write_text(PROGRAM)
    (tmp_path / "suite.yaml").write_text(
        'squares: {about: x, kernels: [square], args: ["3"], hidden_args: ["4"], expected: {}}'
    )
    found = check(load_suite(tmp_path / "suite.yaml"), tools(), run_own, inputs=("args",))
    assert [f.kind for f in found] == ["unrecorded", "unrecorded"]
    assert digest_bytes(b"9\n") in found[0].message


@pytest.mark.parametrize(
    ("change", "to", "kernels", "kind", "said"),
    [
        ("return x * x", "return x * y", "[square]", "build", "undeclared identifier 'y'"),
        ("return 0;", "return 3;", "[square]", "failed", "ended with exit code 3"),
        ("return 0;", "abort();", "[square]", "failed", "was killed by signal 6"),
        ("", "", "[]", "no_kernel", "names no kernels"),
        ("", "", "[cube]", "mutant", "No definition of the function 'cube'"),
    ],
)
def test_what_goes_wrong_is_said(tmp_path, change, to, kernels, kind, said):
    found = findings(tmp_path, PROGRAM.replace(change, to) if change else PROGRAM, kernels)
    assert found
    assert all(k == kind for k, _ in found)
    assert said in found[0][1]


def test_a_program_whose_runs_differ_is_found(tmp_path):
    program = PROGRAM.replace('printf("%d\\n", x)', 'printf("%d\\n%d\\n", x, (int)getpid())')
    program = program.replace("#include <stdlib.h>", "#include <stdlib.h>\n#include <unistd.h>")
    kinds = {kind for kind, _ in findings(tmp_path, program)}
    assert "nondeterministic" in kinds


def test_a_mutant_that_never_ends_counts_as_seen(tmp_path, monkeypatch):
    monkeypatch.setattr("llvm_tuning.suite.check.MUTANT_S", 0.3)
    program = PROGRAM.replace("shout(x);", "for (int n = 0; n < 3; n = more(n)) shout(n);")
    program = program.replace("int main", "static int more(int n) { return n + 1; }\nint main")
    assert findings(tmp_path, program, "[more]") == []


@pytest.mark.parametrize(("three", "kinds", "code"), [(b"9\n", set(), 0), (b"8\n", {"wrong_output"}, 1)])
def test_the_command_checks_a_suite_of_ones_own(tmp_path, three, kinds, code):
    findings(tmp_path, three=three)  # writes the suite
    done = CliRunner().invoke(suite, ["check", "--file", str(tmp_path / "suite.yaml"), "--json"])
    assert done.exit_code == code, done.stderr
    shown = json.loads(done.stdout)
    assert shown["checked"] == ["squares"]
    assert {finding["kind"] for finding in shown["findings"]} == kinds
