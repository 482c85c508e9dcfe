import xml.etree.ElementTree as ET

import numpy as np
import pytest

from core.errors import BadInput
from core.measure.comparison import Comparison
from core.report.compare import Found, differs, remarks, write_comparison
from core.report.page import write_report
from core.report.plots import blocks_svg, comparison_svg, times_svg
from core.search.contract import Candidate, Cost, Outcome


def comparison(ratio, low, high):
    return Comparison(
        baseline="0" * 64, candidate="1" * 64, stage="prove", seed=1, ratio=ratio, low=low, high=high, level=0.99,
        margin=0.01, decision="faster", rule="r", pairs=9, clock="cpu", modelled=False, samples=None,
        environment="0" * 64, wall_s=1.0,
    )  # fmt: skip


def outcome(proof):
    chosen = Candidate(problem="0" * 64, proposal="0" * 64, target="t", artefact="0" * 64)
    why = None if proof else "nothing was proposed"
    return Outcome(chosen=chosen, trial=1 if proof else None, fallback=why, proof=proof, spent=Cost())


def test_pictures_are_xml_and_the_same_for_the_same_data():
    times = np.random.default_rng(0).gamma(9, 1e-3, size=(60, 2))
    for draw in (
        lambda: times_svg(times),
        lambda: blocks_svg([1.1, 1.2, 1.15], 1.05, 1.25),
        lambda: comparison_svg([("<b>&", 1.2, 1.1, 1.3, "faster")]),
    ):
        assert ET.fromstring(draw()).tag.endswith("svg")
        assert draw() == draw()


def test_text_in_a_picture_stays_text():
    assert "&lt;b&gt;" in comparison_svg([("<b>", 1.2, 1.1, 1.3, "faster")])


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (comparison(1.5, 1.4, 1.6), comparison(1.2, 1.1, 1.3), True),
        (comparison(1.5, 1.2, 1.8), comparison(1.3, 1.1, 1.5), False),
        (comparison(1.5, 1.4, 1.6), None, True),
        (None, None, False),
    ],
)
def test_ratios_differ_only_when_intervals_do_not_touch(a, b, expected):
    assert differs(a, b) is differs(b, a) is expected


def test_a_comparison_page_says_who_is_not_better_and_escapes_names(tmp_path):
    found = [
        Found(problem="p", advisor="<script>", outcome=outcome(comparison(1.5, 1.2, 1.8)), setting="-x", run="r/a"),
        Found(problem="p", advisor="random", outcome=outcome(comparison(1.4, 1.1, 1.7)), setting="-y", run="r/b"),
        Found(problem="q", advisor="random", outcome=outcome(None), setting="", run="r/c"),
    ]
    found = [f.model_copy(update={"run": str(tmp_path / f.run)}) for f in found]
    page = write_comparison("t", found, tmp_path / "demo" / "index.html").read_text()
    assert "no significant difference" in page
    assert "<script>" not in page
    assert "nothing was proposed" in page
    assert len(remarks(found)) == 1


def test_a_directory_without_a_run_is_bad_input(tmp_path):
    with pytest.raises(BadInput, match="not a run"):
        write_report(tmp_path)
