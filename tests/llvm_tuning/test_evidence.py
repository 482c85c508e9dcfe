from pathlib import Path

import pytest
from click.testing import CliRunner

from llvm_tuning.cli import llvm
from llvm_tuning.evidence.analyses import parse_analyses
from llvm_tuning.evidence.cli import tabulate
from llvm_tuning.evidence.collect import collect
from llvm_tuning.evidence.hardware import hardware, vector_bits
from llvm_tuning.evidence.machine_code import instruction_mix, parse_sizes, spills
from llvm_tuning.evidence.passes import parse_passes
from llvm_tuning.evidence.remarks import Remark

GOLDENS = Path(__file__).parent / "evidence_goldens"

SUMS = """#include <stdio.h>
#include <stdlib.h>
static int a[1000];
__attribute__((noinline)) int total(int n) {
  int s = 0;
  for (int r = 0; r < n; r++) for (int i = 0; i < 1000; i++) s += a[i] * r;
  return s;
}
int main(int c, char **v) { a[c] = c; printf("%d\\n", total(9)); }
"""


def test_passes_are_counted_with_and_without_a_change():
    counts = parse_passes((GOLDENS / "print_changed.txt").read_bytes())
    assert counts["MemProfRemoveInfo"] == {"runs": 1, "changed": 0}
    assert counts["InferFunctionAttrsPass"] == {"runs": 1, "changed": 1}
    assert counts["SROAPass"]["changed"] >= 1
    order = [c["changed"] for c in counts.values()]
    assert order == sorted(order, reverse=True)


def test_a_function_has_its_loops_trip_counts_and_frequencies():
    functions = parse_analyses((GOLDENS / "analyses.txt").read_bytes())
    assert [f.name for f in functions] == ["total", "main"]
    total = functions[0]
    assert total.properties["MaxLoopDepth"] == 2
    assert [(x.depth, x.innermost) for x in total.loops] == [(1, False), (2, True)]
    assert total.loops[1].trips == 125
    assert isinstance(total.loops[0].trips, str)
    assert total.frequencies["vector.body"] > min(total.frequencies.values())


def test_sizes_are_those_of_the_kept_sections():
    assert parse_sizes((GOLDENS / "size.txt").read_bytes())[".text"] == 365
    assert parse_sizes(b".text.f 3 0\n.text 4 0\n.comment 9 0\n") == {".text": 7}


def test_mix_and_spills_come_from_the_code_generators_remarks():
    def remark(compiler_pass, name, **args):
        return Remark(
            kind="Analysis", compiler_pass=compiler_pass, name=name, function="f", line=1, message="", args=args
        )

    mixed = [remark("asm-printer", "InstructionMix", INST_ADD="2", BasicBlock="x") for _ in range(2)]
    assert instruction_mix(mixed) == {"ADD": 4}
    spilled = remark("regalloc", "SpillReloadCopies", NumSpills="3", TotalSpillsCost="1.5e+01")
    assert spills([*mixed, spilled]) == [{"function": "f", "NumSpills": 3.0, "TotalSpillsCost": 15.0}]


def test_hardware_shows_the_widest_vectors_and_no_invented_caches(tmp_path):
    assert vector_bits(("sse2", "avx2")) == 256
    assert vector_bits(()) is None
    assert hardware(tmp_path)["caches"] == {}


def test_all_channels_of_a_program_are_collected(problem_of, box):
    seen = problem_of(SUMS).evidence(box)
    wanted = {"remarks", "mix", "spills", "size", "features", "functions", "loops", "frequencies", "passes"}
    assert wanted | {"hardware", "knobs"} <= set(seen.channels)
    assert not wanted & set(seen.missing)
    assert seen.channels["functions"][0]["function"] == "total"
    assert seen.channels["passes"]["LoopVectorizePass"]["changed"] >= 1


def test_a_toolchain_without_opt_names_what_is_missing(problem_of, box, tools):
    problem = problem_of(SUMS)
    seen = collect(box, tools.model_copy(update={"paths": {}}), problem.program, problem.unit)
    assert {"functions", "loops", "frequencies", "passes", "size"} <= set(seen.missing)
    assert "no opt of clang" in seen.missing["passes"]


def test_one_channel_is_shown_alone_and_a_wrong_name_lists_the_right_ones(tmp_path):
    (tmp_path / "p.c").write_text(SUMS)
    shown = CliRunner().invoke(llvm, ["evidence", str(tmp_path / "p.c"), "--channel", "size"])
    assert shown.exit_code == 0, shown.output
    assert ".text" in shown.output
    wrong = CliRunner().invoke(llvm, ["evidence", str(tmp_path / "p.c"), "--channel", "sizes"])
    assert wrong.exit_code != 0
    assert "remarks" in wrong.exception.fix


@pytest.mark.parametrize("content", [[], {}, None, 3])
def test_any_channel_can_be_a_table(content):
    header, rows = tabulate(content)
    assert all(len(row) == len(header) for row in rows)
