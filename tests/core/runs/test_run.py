import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import BadInput, ComplabError
from core.runs.bench import sample_trial
from core.runs.record import find_run, list_runs, read_run
from core.runs.run import SCHEMA, Run, read_info
from core.search.advisors.random import RandomAdvisor
from core.search.contract import Budget
from core.search.loop import search
from tests.core.search.toy import ToyCompiler, ToyJudge, ToyProblem, services

CONFIG = {"advisor": "random", "budget": 8}


def open_run(root, **changes):
    arguments = {"system": "toy", "name": "a b/c", "config": CONFIG, "seed": 3, **changes}
    return Run(root, arguments.pop("system"), arguments.pop("name"), arguments.pop("config"), **arguments)


def searched(root, **changes):
    with open_run(root, **changes) as run:
        search(ToyProblem(), RandomAdvisor(), ToyCompiler(), ToyJudge(), Budget(evaluations=8), run, services())
    return run.directory


def test_a_run_holds_the_files_that_the_layout_promises(tmp_path):
    directory = searched(tmp_path, env={"cpu": "toy"})
    assert directory.parent == tmp_path / "toy"
    assert directory.name.startswith("a-b-c-")
    names = {path.name for path in directory.iterdir()}
    assert names >= {"run.json", "config.yaml", "env.json", "outcome.json", "trials.jsonl", "events.jsonl", "problems"}
    assert (directory / "config.yaml").read_text() == "advisor: random\nbudget: 8\n"
    assert json.loads((directory / "env.json").read_text())[0]["cpu"] == "toy"
    (problem,) = (directory / "problems").iterdir()
    assert json.loads(problem.read_text())["view"]["evidence"]["channels"] == {"hint": "wide is good"}
    assert not [path for path in directory.rglob(".*")]


def test_the_same_command_opens_the_same_run_and_others_open_others(tmp_path):
    first = searched(tmp_path)
    assert searched(tmp_path) == first
    assert read_info(first).starts == 2
    assert searched(tmp_path, seed=4) != first
    assert searched(tmp_path, config={**CONFIG, "budget": 9}) != first
    fresh = searched(tmp_path, new=True)
    assert fresh.name == f"{first.name}-2"
    assert searched(tmp_path) == fresh
    assert searched(tmp_path, new=True).name == f"{first.name}-3"


def test_status_tells_done_failed_and_interrupted(tmp_path):
    directory = searched(tmp_path)
    assert read_info(directory).state == "done"
    with pytest.raises(ComplabError), open_run(tmp_path, new=True) as run:
        raise ComplabError("the compiler is missing.")
    assert (read_info(run.directory).state, read_info(run.directory).message) == ("failed", "the compiler is missing.")
    with pytest.raises(KeyboardInterrupt), open_run(tmp_path, new=True) as run:
        raise KeyboardInterrupt
    assert read_info(run.directory).state == "interrupted"
    with open_run(tmp_path) as run:
        assert read_info(run.directory).state == "running"


def test_bad_input_before_the_first_trial_leaves_no_run(tmp_path):
    with pytest.raises(BadInput), open_run(tmp_path) as run:
        raise BadInput("The program prints the time.")
    assert not run.directory.exists()
    directory = searched(tmp_path)
    with pytest.raises(BadInput), open_run(tmp_path):
        raise BadInput("The program is gone.")
    assert read_info(directory).state == "failed"


def test_a_failure_is_recorded_without_secrets(tmp_path):
    with pytest.raises(ComplabError), open_run(tmp_path) as run:
        raise ComplabError("http://me:opensesame@host does not answer.")
    assert "opensesame" not in (run.directory / "run.json").read_text()


def test_a_run_whose_process_died_counts_as_interrupted(tmp_path):
    code = (
        "import os, pathlib\nfrom core.runs.run import Run\n"
        f"run = Run(pathlib.Path({str(tmp_path)!r}), 'toy', 'dead', {{}}, seed=1)\nos._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    (run,) = list_runs(tmp_path).runs
    assert (run.info.status, run.info.state) == ("running", "interrupted")
    with Run(tmp_path, "toy", "dead", {}, seed=1) as again:
        assert again.directory == run.directory


def test_a_run_that_is_open_elsewhere_is_an_error_that_names_the_process(tmp_path):
    with open_run(tmp_path), pytest.raises(ComplabError, match=rf"is open in process {os.getpid()} on .*--new"):
        open_run(tmp_path)
    open_run(tmp_path).close("interrupted")


@pytest.mark.parametrize("version", [SCHEMA + 1, 0, None, "x"])
def test_another_schema_is_refused_not_guessed(tmp_path, version):
    directory = searched(tmp_path)
    info = json.loads((directory / "run.json").read_text())
    (directory / "run.json").write_text(json.dumps({**info, "schema_version": version}))
    with pytest.raises(BadInput, match=f"has run schema {version!r}; this complab reads schema {SCHEMA}"):
        open_run(tmp_path)
    assert list_runs(tmp_path).runs == ()
    assert "has run schema" in list_runs(tmp_path).unreadable[0]


@pytest.mark.parametrize(("text", "message"), [("{", "is not JSON"), ('{"schema_version": 1}', "Field required")])
def test_a_damaged_run_file_is_an_error_for_people(tmp_path, text, message):
    directory = searched(tmp_path)
    (directory / "run.json").write_text(text)
    with pytest.raises(BadInput, match=message):
        read_run(directory)


def test_a_colliding_directory_of_another_configuration_is_refused(tmp_path):
    directory = searched(tmp_path)
    info = json.loads((directory / "run.json").read_text())
    (directory / "run.json").write_text(json.dumps({**info, "identity": "0" * 64}))
    with pytest.raises(BadInput, match="belongs to another configuration"):
        open_run(tmp_path)


def test_a_trial_is_recorded_once_and_its_proof_once(tmp_path):
    with open_run(tmp_path) as run:
        trial = sample_trial(1)
        proven = trial.model_copy(update={"hidden": trial.verdict, "proof": trial.screen})
        run.append(trial)
        with pytest.raises(ValueError, match="recorded already"):
            run.append(trial.model_copy(update={"key": "0" * 64}))
        run.append(proven)
        with pytest.raises(ValueError, match="recorded already"):
            run.append(proven)
        assert run.trials == (proven,)


def test_what_an_interruption_tore_is_said(tmp_path, caplog):
    directory = searched(tmp_path)
    (directory / "outcome.json").unlink()
    path = directory / "trials.jsonl"
    path.write_bytes(path.read_bytes()[:-5])
    assert "torn" in read_run(directory).dropped
    with open_run(tmp_path) as run:
        assert "trials.jsonl: the last line" in run.dropped[0]
    assert run.dropped[0] in caplog.text


def test_an_output_that_cannot_be_written_is_one_paragraph(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="is in the way"):
        open_run(tmp_path / "file")
    with pytest.raises(BadInput, match="cannot be read or written"):
        open_run(Path("/sys"))  # nobody, not even root, makes directories there


@pytest.mark.parametrize("system", ["", "a/b", "..", "A"])
def test_a_system_is_a_plain_word(tmp_path, system):
    with pytest.raises(BadInput, match="cannot name a system"):
        open_run(tmp_path, system=system)


@pytest.mark.parametrize("name", ["../../etc", "", "x" * 500, "a\nb", "-rf"])
def test_no_name_leaves_the_root(tmp_path, name):
    directory = searched(tmp_path, name=name)
    assert directory.parent == tmp_path / "toy"
    assert read_info(directory).name == name


def test_a_run_is_found_by_the_start_of_its_name(tmp_path):
    directory = searched(tmp_path)
    other = searched(tmp_path, seed=4)
    assert find_run(tmp_path, directory.name).directory == directory
    assert find_run(tmp_path, f"toy/{other.name[:-2]}").directory == other
    assert find_run(tmp_path, str(directory)).directory == directory
    with pytest.raises(BadInput, match="means 2 runs"):
        find_run(tmp_path, "a-b")
    with pytest.raises(BadInput, match=f"no run 'nope'.*{directory.name}"):
        find_run(tmp_path, "nope")


def test_events_tell_the_story_with_times(tmp_path):
    lines = [json.loads(line) for line in (searched(tmp_path) / "events.jsonl").read_text().splitlines()]
    kinds = [line["kind"] for line in lines]
    assert kinds[:2] == ["trial", "described"]
    assert kinds[-1] == "outcome"
    assert all(line["time"].endswith("+00:00") for line in lines)


@pytest.mark.parametrize("text", ["{bad", "{}", ""])
def test_a_damaged_list_of_environments_is_an_error_for_people(tmp_path, text):
    directory = searched(tmp_path)
    (directory / "env.json").write_text(text)
    with pytest.raises(BadInput, match=r"env\.json"):
        open_run(tmp_path)
