"""`complab bench`: exit code 1 unless every bar holds; JSON is the report itself."""

import json
import sys
import types

import pytest
from click.testing import CliRunner

from core.bench import BenchReport, Figure
from experiments.bench import BENCHMARKS, bench, exit_code


def report(*figures: Figure) -> BenchReport:
    return BenchReport(name="sandbox", machine={"cpu": "Test", "load": 0.5}, figures=figures)


PLAIN = Figure(name="median", value=41.25, unit="ms", ci=(40.0, 43.0))
HELD = Figure(name="cold run", value=41.25, unit="ms", bar="<= 60", holds=True)
BROKEN = Figure(name="escapes", value=1, unit="probes", bar="== 0", holds=False)
UNDECIDED = Figure(name="slow", value=1, unit="s", bar="<= 60")


@pytest.fixture
def result(monkeypatch: pytest.MonkeyPatch) -> list[BenchReport]:
    """What the stand-in for the sandbox benchmark returns."""
    reports: list[BenchReport] = []
    module = types.ModuleType("benchmark_under_test")
    module.run = lambda *, quick: reports[quick]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "benchmark_under_test", module)
    monkeypatch.setattr("experiments.bench.BENCHMARKS", {**BENCHMARKS, "sandbox": "benchmark_under_test:run"})
    return reports


def test_a_bar_that_does_not_hold_or_was_not_decided_is_a_failure() -> None:
    assert exit_code(report(PLAIN, HELD)) == 0
    assert exit_code(report(HELD, BROKEN)) == 1
    assert exit_code(report(UNDECIDED)) == 1


def test_json_is_the_report_and_quick_reaches_the_benchmark(result: list[BenchReport]) -> None:
    result += [report(HELD), report(PLAIN, BROKEN)]
    full = CliRunner().invoke(bench, ["sandbox", "--json"])
    quick = CliRunner().invoke(bench, ["sandbox", "--quick", "--json"])
    assert (full.exit_code, quick.exit_code) == (0, 1)
    assert BenchReport.model_validate(json.loads(full.output)) == result[0]
    assert BenchReport.model_validate(json.loads(quick.output)) == result[1]


def test_the_table_shows_every_figure_with_its_bar_and_the_machine(
    result: list[BenchReport], capsys: pytest.CaptureFixture[str]
) -> None:
    result.append(report(PLAIN, HELD, BROKEN))
    output = CliRunner().invoke(bench, ["sandbox"]).output
    for shown in ("median", "41.25", "40 .. 43", "<= 60", "yes", "no", "cpu: Test"):
        assert shown in output


def test_an_unknown_benchmark_is_refused() -> None:
    assert CliRunner().invoke(bench, ["nothing"]).exit_code == 2
