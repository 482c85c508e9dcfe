"""The pictures of a report, as SVG text."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core.search.contract import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {
    "faster": "#1a7f4e",
    "slower": "#b3362b",
    "same": "#5b6675",
    "undecided": "#9a7b1f",
    "rejected": "#b3362b",
    "baseline": "#5b6675",
    "candidate": "#1a7f4e",
}


class _Canvas:
    """Axes to draw on, and the SVG text once drawn."""

    def __init__(self, axes: "Axes") -> None:
        self.axes = axes
        self.svg = ""


@contextmanager
def _figure(width_in: float, height_in: float, label: str) -> Iterator[_Canvas]:
    """Yield a canvas; at exit its SVG is there: text stays text, bytes are the same for the same data."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": label,
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(width_in, height_in), layout="constrained")
        canvas = _Canvas(figure.subplots())
        yield canvas
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Title": label})
    svg = text.getvalue()
    canvas.svg = svg[svg.index("<svg") :]


def _whole_numbers(axes: "Axes") -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def trials_svg(trials: Sequence[Trial]) -> str:
    """Draw the screened ratio of every trial with its interval, in the order of the run."""
    with _figure(8.0, 3.2, "Trials of the run") as canvas:
        axes = canvas.axes
        axes.axhline(1.0, color=COLOURS["baseline"], linewidth=1, linestyle="--")
        for trial in trials:
            if trial.screen is not None:
                c = trial.screen
                axes.errorbar(
                    trial.index,
                    c.ratio,
                    yerr=[[max(0.0, c.ratio - c.low)], [max(0.0, c.high - c.ratio)]],
                    fmt="o",
                    markersize=5,
                    color=COLOURS[c.decision],
                    capsize=2,
                )
            elif not trial.verdict.accepted:
                axes.plot(trial.index, 1.0, marker="x", color=COLOURS["rejected"])
            if trial.proof is not None:
                axes.plot(
                    trial.index, trial.proof.ratio, marker="*", markersize=13, color=COLOURS[trial.proof.decision]
                )
        axes.set_xlabel("trial (0 is the baseline; star: proven on fresh samples; cross: rejected)")
        axes.set_ylabel("baseline time / candidate time")
        _whole_numbers(axes)
    return canvas.svg


def times_svg(times_s: NDArray[np.float64]) -> str:
    """Draw the distributions of both arms' times.

    Args:
        times_s: shape (samples, 2): baseline and candidate, in seconds.
    """
    with _figure(8.0, 2.8, "Times of both arms") as canvas:
        axes = canvas.axes
        low, high = np.quantile(times_s, [0.0, 0.98])
        bins = np.linspace(low, high, 60)
        for arm, name in enumerate(("baseline", "candidate")):
            shown = np.clip(times_s[:, arm], low, high) * 1e3
            axes.hist(shown, bins=list(bins * 1e3), alpha=0.65, color=COLOURS[name], label=name)
            axes.axvline(float(np.median(times_s[:, arm])) * 1e3, color=COLOURS[name], linewidth=1.5)
        axes.set_xlabel("time of one sample in ms (line: median; the slowest 2% are in the last bin)")
        axes.set_ylabel("samples")
        axes.legend(frameon=False)
    return canvas.svg


def blocks_svg(ratios: Sequence[float], low: float, high: float) -> str:
    """Draw the ratio of each block (fresh processes, another layout) with the overall interval."""
    with _figure(8.0, 2.4, "Ratio by block") as canvas:
        axes = canvas.axes
        axes.axhspan(low, high, color=COLOURS["candidate"], alpha=0.15)
        axes.axhline(1.0, color=COLOURS["baseline"], linewidth=1, linestyle="--")
        axes.plot(range(len(ratios)), ratios, "o", color=COLOURS["candidate"])
        axes.set_xlabel("block: fresh processes under another layout (band: the interval of the decision)")
        axes.set_ylabel("ratio")
        _whole_numbers(axes)
    return canvas.svg


def comparison_svg(rows: Sequence[tuple[str, float, float, float, str]]) -> str:
    """Draw one bar a row of (label, ratio, low, high, decision)."""
    with _figure(8.0, 0.7 + 0.42 * len(rows), "Proven ratios") as canvas:
        axes = canvas.axes
        for position, (_, ratio, low, high, decision) in enumerate(rows):
            axes.barh(position, ratio, color=COLOURS[decision], height=0.6)
            axes.errorbar(ratio, position, xerr=[[ratio - low], [high - ratio]], color="black", capsize=3)
        axes.axvline(1.0, color=COLOURS["baseline"], linewidth=1, linestyle="--")
        axes.set_yticks(range(len(rows)), [row[0] for row in rows])
        axes.invert_yaxis()
        axes.set_xlabel("baseline time / candidate time (bar: the decision's interval)")
    return canvas.svg
