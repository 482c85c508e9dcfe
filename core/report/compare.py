"""Several runs side by side: who found what, and whether the difference means anything."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from core.files import make_directory, write_whole
from core.measure.comparison import Comparison
from core.records import Record
from core.report.page import decision_text, render
from core.report.plots import comparison_svg
from core.search.contract import Outcome


class Found(Record):
    """What one run found."""

    problem: str
    advisor: str
    outcome: Outcome
    setting: str
    run: str


def differs(a: Comparison | None, b: Comparison | None) -> bool:
    """Return whether two proven ratios over the same baseline differ beyond doubt.

    A missing proof stands for the baseline itself, a ratio of exactly 1. Intervals that do not overlap are a stricter
    test than a comparison of both at the same level: equal programs are called different more rarely than it says.
    """
    low_a, high_a = (a.low, a.high) if a is not None else (1.0, 1.0)
    low_b, high_b = (b.low, b.high) if b is not None else (1.0, 1.0)
    return low_a > high_b or low_b > high_a


def remarks(entries: Sequence[Found]) -> list[str]:
    """Return a sentence for each pair of advisors on the same problem."""
    lines = []
    for a, b in combinations(entries, 2):
        if a.problem == b.problem:
            first, second = sorted((a, b), key=lambda e: -_ratio(e))
            if differs(a.outcome.proof, b.outcome.proof):
                lines.append(f"{a.problem}: {first.advisor} found a faster program than {second.advisor}.")
            else:
                lines.append(f"{a.problem}: {first.advisor} against {second.advisor}: no significant difference.")
    return lines


def write_comparison(title: str, entries: Sequence[Found], target: Path) -> Path:
    """Write an HTML page with a bar and a row a run, and return its path.

    Raises:
        BadInput: the page cannot be written there.
    """
    from markupsafe import Markup

    bars = [(f"{e.problem}, {e.advisor}", *_bar(e.outcome.proof)) for e in entries]
    rows = [
        {
            "problem": e.problem,
            "advisor": e.advisor,
            "result": decision_text(e.outcome.proof) if e.outcome.proof else f"baseline kept: {e.outcome.fallback}",
            "setting": e.setting,
            "spent": e.outcome.spent,
            "report": f"../{Path(e.run).relative_to(target.parent.parent)}/report/index.html",
        }
        for e in entries
    ]
    page = render(
        "compare.html.j2", title=title, picture=Markup(comparison_svg(bars)), rows=rows, remarks=remarks(entries)
    )
    make_directory(target.parent)
    write_whole(target, page.encode(), durable=False)
    return target


def _ratio(entry: Found) -> float:
    return entry.outcome.proof.ratio if entry.outcome.proof is not None else 1.0


def _bar(proof: Comparison | None) -> tuple[float, float, float, str]:
    return (1.0, 1.0, 1.0, "same") if proof is None else (proof.ratio, proof.low, proof.high, proof.decision)
