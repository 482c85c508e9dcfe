import csv
import json

import pytest
from click.testing import CliRunner

from core.errors import BadInput
from core.runs import export as export_module
from core.runs.cli import runs
from tests.core.runs.test_run import searched


def invoke(*arguments):
    return CliRunner().invoke(runs, list(map(str, arguments)), catch_exceptions=False)


def test_list_shows_runs_and_says_what_it_left_out(tmp_path):
    directory = searched(tmp_path)
    (tmp_path / "toy" / "broken").mkdir()
    (tmp_path / "toy" / "broken" / "run.json").write_text("{")
    result = invoke("list", "--root", tmp_path)
    assert directory.name in result.stdout.replace("\n", "")
    assert "done" in result.stdout
    assert "left out:" in result.stderr
    data = json.loads(invoke("list", "--root", tmp_path, "--json").stdout)
    assert [run["status"] for run in data["runs"]] == ["done"]
    assert len(data["unreadable"]) == 1


def test_list_of_nothing_says_so(tmp_path):
    assert "No runs in" in invoke("list", "--root", tmp_path / "none").stdout


def test_show_prints_trials_and_result(tmp_path):
    directory = searched(tmp_path)
    data = json.loads(invoke("show", "--root", tmp_path, directory.name, "--json").stdout)
    assert len(data["trials"]) == data["trials"][-1]["index"] + 1
    assert data["outcome"]["fallback"] is None
    text = invoke("show", "--root", tmp_path, directory.name).stdout
    assert "baseline" in text
    assert f"{data['ratio']:.3f}x [" in text


def test_show_lets_no_proposal_steer_the_terminal(tmp_path):
    directory = searched(tmp_path)
    path = directory / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "message": "\x1b[2J", "status": "failed"}))
    (directory / "outcome.json").unlink()
    assert "\x1b" not in invoke("show", "--root", tmp_path, directory.name).stdout


def test_exported_tables_hold_every_trial(tmp_path):
    directory = searched(tmp_path)
    shown = json.loads(invoke("show", "--root", tmp_path, directory.name, "--json").stdout)["trials"]
    invoke("export", "--root", tmp_path, "--out", tmp_path / "t.csv", directory.name)
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [json.loads(row["payload"]) for row in rows] == [t["proposal"]["payload"] for t in shown]
    assert [row["proof_ratio"] for row in rows] == [str(t["proof"]["ratio"]) if t["proof"] else "" for t in shown]
    invoke("export", "--root", tmp_path, "--format", "json", "--out", tmp_path / "t.json", directory.name)
    assert [row["trial"] for row in json.loads((tmp_path / "t.json").read_text())] == [t["index"] for t in shown]


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(BadInput, match="pip install pyarrow"):
        export_module.FORMATS["parquet"]([{"a": 1}])


def test_an_unknown_run_is_bad_input(tmp_path):
    with pytest.raises(BadInput, match="no run 'x'"):
        invoke("show", "--root", tmp_path, "x")
