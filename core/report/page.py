"""The HTML page of one run, from its files alone."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from core.files import make_directory, write_whole
from core.measure.calibrate import Calibration
from core.measure.comparison import Comparison
from core.records import Json
from core.report.plots import blocks_svg, times_svg, trials_svg
from core.runs.journal import load
from core.runs.run import Described, read_info, read_record
from core.runs.store import Store
from core.search.contract import Cost, Outcome, Trial
from core.search.minimal import FILE, Minimal


def write_report(directory: Path) -> Path:
    """Write `report/index.html` of a run and return its path.

    Raises:
        BadInput: the directory holds no run, or cannot be written.
        ComplabError: a file of the run is damaged.
    """
    info = read_info(directory)
    latest = {(t.problem, t.index): t for t in load(directory / "trials.jsonl", Trial).records}
    trials = [latest[key] for key in sorted(latest)]
    outcome = read_record(directory / "outcome.json", Outcome)
    store = Store(directory / "blobs")
    problems = []
    for file in sorted((directory / "problems").glob("*.json")):
        described = read_record(file, Described)
        assert described is not None
        own = [t for t in trials if t.problem == described.view.problem]
        problems.append(_problem(described, own, outcome, store))
    page = render(
        "run.html.j2",
        title=info.name,
        info=info,
        advisor=next((t.advisor for t in trials if t.index > 0), "none"),
        problems=problems,
        costs=_costs(trials, outcome),
        needed=_needed(read_record(directory / FILE, Minimal)),
        control=read_record(directory / "aa.json", Calibration),
        environment=json.dumps(json.loads((directory / "env.json").read_bytes()), indent=1),
        directory=str(directory),
    )
    make_directory(directory / "report")
    target = directory / "report" / "index.html"
    write_whole(target, page.encode(), durable=False)
    return target


def render(template: str, **values: Any) -> str:
    """Return a template of this package filled in; every value but our own SVG is escaped."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("core.report"), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    return environment.get_template(template).render(**values)


def decision_text(comparison: Comparison) -> str:
    """Return a comparison in words: ratio, interval, decision."""
    c = comparison
    return f"{c.ratio:.3f}x [{c.low:.3f}, {c.high:.3f}] at {c.level:.1%}: {c.decision}"


def sentence(outcome: Outcome | None) -> str:
    """Return what a run came to, in one sentence."""
    if outcome is None:
        return "Not finished: the same command goes on from here."
    if outcome.proof is None:
        return f"The baseline is kept: {outcome.fallback}."
    p = outcome.proof
    return f"Proven {p.ratio:.3f} times as fast as the baseline ({p.level:.1%} interval {p.low:.3f} to {p.high:.3f})."


def _problem(described: Described, trials: Sequence[Trial], outcome: Outcome | None, store: Store) -> dict[str, Any]:
    from markupsafe import Markup

    view = described.view
    mine = outcome if outcome is not None and outcome.chosen.problem == view.problem else None
    proof = mine.proof if mine is not None else None
    kept = next((t for t in trials if mine is not None and t.index == mine.trial), None)
    pictures = {"times_svg": "", "blocks_svg": ""}
    if proof is not None and proof.samples is not None and store.has(proof.samples):
        with np.load(io.BytesIO(store.get(proof.samples)), allow_pickle=False) as samples:
            times_s, blocks = samples[f"{proof.clock}_s"], samples["block"]
        ratios = np.log(times_s[:, 0] / times_s[:, 1])
        medians = [float(np.exp(np.median(ratios[blocks == b]))) for b in np.unique(blocks)]
        pictures = {
            "times_svg": Markup(times_svg(times_s)),
            "blocks_svg": Markup(blocks_svg(medians, proof.low, proof.high)),
        }
    return {
        "name": described.name,
        "proof": proof,
        "sentence": sentence(mine),
        "settings": _setting(kept.proposal.payload) if kept is not None else None,
        "trials_svg": Markup(trials_svg(trials)),
        **pictures,
        "rows": [_row(t, kept) for t in trials],
        "evidence": view.evidence.channels,
        "missing": view.evidence.missing,
        "evidence_text": json.dumps(view.evidence.channels, indent=1, ensure_ascii=False),
    }


def _needed(minimal: Minimal | None) -> str | None:
    """Return the fields that a kept proposal needs, when it could do with fewer than it has."""
    return _setting(minimal.payload) if minimal is not None and minimal.dropped else None


def _row(trial: Trial, kept: Trial | None) -> dict[str, Json]:
    verdict = trial.hidden or trial.verdict
    words = f"accepted, {verdict.checks} checks" if verdict.accepted else f"{verdict.reason}: {verdict.message}"
    if trial.duplicate_of is not None:
        words = f"same as trial {trial.duplicate_of}"
    style = "kept" if kept is not None and trial.index == kept.index else "" if verdict.accepted else "rejected"
    return {
        "index": trial.index,
        "setting": _setting(trial.proposal.payload) or "baseline",
        "rationale": trial.proposal.rationale,
        "verdict": words,
        "screen": decision_text(trial.screen) if trial.screen is not None else "",
        "proof": decision_text(trial.proof) if trial.proof is not None else "",
        "style": style,
    }


def _setting(payload: dict[str, Json]) -> str:
    return " ".join(f"{name}={value}" for name, value in payload.items())


def _costs(trials: Sequence[Trial], outcome: Outcome | None) -> list[tuple[str, Cost]]:
    charged = sum((t.cost for t in trials), Cost()) if outcome is None else outcome.spent
    free = sum((t.free for t in trials), Cost()) if outcome is None else outcome.free
    return [("charged to the advisor", charged), ("baseline and proofs (free to every advisor)", free)]
