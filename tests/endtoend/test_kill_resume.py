"""Kill -9 at any point loses at most the trial in flight; the same command continues the run."""

import json
import multiprocessing
import signal
import time
from pathlib import Path
from random import Random

from core.runs.record import read_run
from core.runs.run import Run
from core.search.advisors.evolution import EvolutionAdvisor
from core.search.contract import Budget
from core.search.loop import search
from tests.core.search.toy import ToyCompiler, ToyJudge, ToyProblem, services

KILLS = 30
TRIALS = 60


def run_once(root: Path, sleep_s: float = 0.0) -> Path:
    """What the same command does each time: open the run and search."""
    with Run(root, "toy", "kill", {"budget": TRIALS}, seed=5) as run:
        judge = ToyJudge(sleep_s=sleep_s)
        budget = Budget(evaluations=TRIALS, proposals=TRIALS)
        search(ToyProblem(), EvolutionAdvisor(), ToyCompiler(), judge, budget, run, services())
    return run.directory


def trials_of(directory: Path) -> list[dict]:
    """The trials without their durations."""
    trials = [t.model_dump(mode="json") for t in read_run(directory).trials]
    for trial in trials:
        trial["cost"].pop("wall_s")
        trial["free"].pop("wall_s")
    return trials


def lines_of(directory: Path) -> list[bytes]:
    path = directory / "trials.jsonl"
    return path.read_bytes().splitlines() if path.exists() else []


def test_no_finished_trial_is_lost_or_doubled_by_kills_at_random_moments(tmp_path):
    reference = trials_of(run_once(tmp_path / "reference"))
    assert len(reference) == TRIALS + 1
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.endtoend.test_kill_resume"])
    warm = context.Process(target=int)  # starts the server, so that a kill meets the search and not the imports
    warm.start()
    warm.join()

    def start(root: Path) -> multiprocessing.process.BaseProcess:
        child = context.Process(target=run_once, args=(root, 0.002))
        child.start()
        return child

    rng = Random(11)
    kills = midway = 0
    for attempt in range(3 * KILLS):
        root = tmp_path / str(attempt)
        child = start(root)
        moment = rng.randrange(TRIALS + 3)  # by progress, so that a slow machine is killed as far along as a fast one
        while child.is_alive() and len(lines_of(next((root / "toy").glob("*"), root))) < moment:
            time.sleep(0.001)
        time.sleep(rng.random() * 0.005)
        child.kill()
        child.join()
        if child.exitcode != -signal.SIGKILL:
            continue  # it was faster than the kill
        kills += 1
        before = lines_of(next((root / "toy").glob("*"), root))
        directory = run_once(root)
        after = lines_of(directory)
        finished = [line for line in before if line.endswith(b'"}')]
        assert after[: len(finished)] == finished, "a finished trial was lost or changed"
        indices = [(line["index"], line["hidden"] is not None) for line in map(json.loads, after)]
        assert len(indices) == len(set(indices)), "a trial was recorded twice"
        assert trials_of(directory) == reference
        midway += 0 < len(finished) < len(after)
        if kills == KILLS:
            break
    assert kills == KILLS
    assert midway >= KILLS // 3, "too few kills met the run at work"
