"""How fast a run is recorded and read back."""

import os
import platform
import tempfile
import time
from pathlib import Path

from core.bench import BenchReport, Figure
from core.measure.comparison import Comparison
from core.records import digest_json
from core.runs.journal import Journal, load
from core.search.contract import Candidate, Cost, Proposal, Trial, Verdict

BAR_S = 5.0


def sample_trial(index: int) -> Trial:
    """Return a trial of usual size: 15 fields, a candidate, a screening."""
    digest = digest_json(index)
    comparison = Comparison(
        baseline=digest, candidate=digest, stage="screen", seed=index, ratio=1.01, low=0.99, high=1.03, level=0.99,
        margin=0.01, decision="undecided", rule="sequential", pairs=60, clock="thread_cpu", modelled=False,
        samples=digest, environment=digest, wall_s=1.5,
    )  # fmt: skip
    payload = {f"knob-number-{i}": i * 100 + index for i in range(15)}
    proposal = Proposal(payload={**payload}, rationale="a short reason that a person can read")
    return Trial(
        problem=digest, index=index, round=index // 4, key=digest, advisor="random", proposal=proposal,
        candidate=Candidate(problem=digest, proposal=digest, target="x86-64", artefact=digest), duplicate_of=None,
        verdict=Verdict(accepted=True, checks=3), screen=comparison, cost=Cost(proposals=1, evaluations=1, wall_s=1.5),
    )  # fmt: skip


def run(*, quick: bool) -> BenchReport:
    """Append 10,000 trials (quick: 2,000) to a journal, load them, and report the time against the bar."""
    count = 2_000 if quick else 10_000
    trials = [sample_trial(i) for i in range(count)]
    load_average = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "trials.jsonl"
        started = time.perf_counter()
        journal = Journal(path, Trial)
        for trial in trials:
            journal.append(trial)
        journal.close()
        appended = time.perf_counter()
        loaded = load(path, Trial)
        ended = time.perf_counter()
        size = path.stat().st_size
    if loaded.records != trials:
        raise AssertionError("the journal gave back other trials than it was given")
    per_10k = (ended - started) * 10_000 / count
    return BenchReport(
        name="runs",
        machine={"processor": platform.machine(), "cores": os.cpu_count(), "load_1min": load_average},
        figures=(
            Figure(
                name="append and load 10,000 trials", value=per_10k, unit="s", bar=f"< {BAR_S:g}", holds=per_10k < BAR_S
            ),
            Figure(name="append one trial", value=(appended - started) / count * 1e6, unit="us"),
            Figure(name="load one trial", value=(ended - appended) / count * 1e6, unit="us"),
            Figure(name="size of a trial", value=size / count, unit="bytes"),
        ),
    )
