"""`python -m experiments.launch`: the same runs as the command line, from files, one or many."""

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from core.config import choices, load, require_conf
from experiments.cli import COMMANDS
from experiments.launch import JOBS

JOB_MODULE = """
from dataclasses import dataclass
from core.config import option
from core.errors import BadInput

@dataclass(frozen=True, kw_only=True)
class SampleConfig:
    budget: int = option(24, help="Candidates.")
    seed: int = option(0, help="Seed.")

def run(config):
    if config.seed == 13:
        raise BadInput("Seed 13 is unlucky.", "Take another.")
    if config.seed == 130:
        raise KeyboardInterrupt
    print(config)
"""

PROGRAM = """
import sys
from pathlib import Path
from experiments.exits import guarded
from experiments.launch import Job, launch
jobs = {"sample": Job(schema="sample_job:SampleConfig", run="sample_job:run")}
sys.exit(guarded(lambda: launch(jobs, Path("conf"))))
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    conf = tmp_path / "conf"
    for folder in ("job", "experiment"):
        (conf / folder).mkdir(parents=True)
    (conf / "config.yaml").write_text((require_conf() / "config.yaml").read_text())
    (conf / "job" / "sample.yaml").write_text(
        "# @package _global_\ndefaults:\n  - /schema/sample@_global_\n  - _self_\n"
    )
    small = "# @package _global_\ndefaults:\n  - override /job: sample\nbudget: 3\n"
    (conf / "experiment" / "small.yaml").write_text(small)
    (tmp_path / "sample_job.py").write_text(JOB_MODULE)
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def launched(place: Path, *argv: str) -> "subprocess.CompletedProcess[str]":
    root = Path(__file__).resolve().parents[2]
    path = {"PYTHONPATH": f"{root}:{place}", "PATH": "/usr/bin:/bin", "HOME": str(place)}
    command = [sys.executable, "program.py", *argv]
    return subprocess.run(command, capture_output=True, text=True, cwd=place, env=path, timeout=60)


def test_an_experiment_runs_its_job_with_its_values(place: Path) -> None:
    done = launched(place, "experiment=small", "seed=5")
    assert (done.returncode, done.stdout) == (0, "SampleConfig(budget=3, seed=5)\n"), done.stderr


def test_a_sweep_goes_on_after_a_failed_run_and_says_so_in_its_exit_code(place: Path) -> None:
    done = launched(place, "-m", "experiment=small", "seed=1,13,2")
    runs = [line for line in done.stdout.splitlines() if line.startswith("SampleConfig")]
    assert runs == ["SampleConfig(budget=3, seed=1)", "SampleConfig(budget=3, seed=2)"]
    assert "Error: Seed 13 is unlucky. Take another." in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 2
    assert list((place / "runs" / "hydra" / "sample").glob("*/multirun.yaml"))


def test_ctrl_c_ends_a_whole_sweep(place: Path) -> None:
    done = launched(place, "-m", "experiment=small", "seed=130,1")
    assert done.returncode == 130
    assert "SampleConfig" not in done.stdout


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["experiment=small", "budgett=3"], "'budgett'. Near ones: budget"),
        (["experiment=small", "budget=many"], "'budget' is 'many'"),
        (["experiment=smal"], "Near ones: small"),
        ([], "No job is chosen"),
        (["job=sampel"], "Near ones: sample"),
    ],
)
def test_bad_input_is_one_paragraph_and_exit_code_2(place: Path, argv: list[str], named: str) -> None:
    done = launched(place, *argv)
    assert done.returncode == 2
    assert named in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (place / "runs").exists()


@pytest.mark.parametrize("name", JOBS)
def test_every_job_is_a_command_and_its_yaml_composes_with_its_schema(name: str) -> None:
    assert name in COMMANDS
    schema = pkgutil.resolve_name(JOBS[name].schema)
    assert callable(pkgutil.resolve_name(JOBS[name].run))
    assert load(name, ["program=x.c"], schema) == schema(program="x.c")


@pytest.mark.parametrize("name", choices("experiment"))
def test_every_experiment_composes_with_its_jobs_schema(name: str) -> None:
    written = yaml.safe_load((require_conf() / "experiment" / f"{name}.yaml").read_text())
    (job,) = [entry["override /job"] for entry in written.pop("defaults") if "override /job" in entry]
    schema = pkgutil.resolve_name(JOBS[job].schema)
    loaded = load(job, [f"experiment={name}"], schema)
    assert {key: getattr(loaded, key) for key in written} == written
