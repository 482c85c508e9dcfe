import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from core.score.es import AS_WEIGHTS, aggregate_score, es_curve, es_t_macro, es_t_micro, s_t, summarise
from core.score.grades import DEFAULT, EXTENDED, REPORT, Grade

with (Path(__file__).parent / "goldens" / "es_tables.csv").open(newline="") as file:
    ROWS = list(csv.DictReader(file))

speedups = st.floats(0.05, 20)
errors = st.sampled_from([None, "accuracy", "mismatch", "runtime", "compile", "reference"])
grades = st.lists(
    st.one_of(
        st.builds(Grade, speedup=speedups, correct_from=st.integers(-10, 3), error=errors),
        st.builds(Grade, speedup=st.none() | speedups, error=errors),
    ),
    min_size=1,
    max_size=20,
)
classes = st.sampled_from([REPORT, DEFAULT, EXTENDED])
tolerances = st.integers(-10, 5)
exponents = st.sampled_from([0.0, 0.1, 1.0])
bases = st.sampled_from([0.1, 0.001, 1.0])


def test_there_are_45_published_rows():
    assert len(ROWS) == 45


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['set']}@{row['t']}")
def test_a_published_row_is_reproduced(row):
    alpha, beta, lambda_, eta = (float(row[name]) for name in ("alpha", "beta", "lambda", "eta"))
    assert es_t_macro(alpha, beta, lambda_, eta, float(row["gamma"]), 0.0) == pytest.approx(
        float(row["ES_t"]), abs=0.002
    )
    if row["S_t"]:
        assert es_t_macro(alpha, beta, lambda_, eta, 0.1, 0.0) == pytest.approx(float(row["S_t"]), abs=0.002)


@given(grades, tolerances, exponents, bases, classes)
def test_micro_equals_macro(records, t, p, b, kind):
    macro = summarise(records, t, b=b, classes=kind)
    expected = es_t_macro(macro.alpha, macro.beta, macro.lambda_, macro.eta, macro.gamma, p)
    assert es_t_micro(records, t, p=p, b=b, classes=kind) == pytest.approx(expected, rel=1e-9)


@given(grades, st.integers(-10, 0), exponents, bases, classes)
def test_no_error_is_forgiven_below_tolerance_one(records, t, p, b, kind):
    assert es_t_micro(records, t, p=p, b=b, classes=kind) == pytest.approx(s_t(records, t, p=p, b=b))


@given(grades, tolerances, exponents, bases, classes)
def test_forgiving_never_lowers_a_score(records, t, p, b, kind):
    assert es_t_micro(records, t, p=p, b=b, classes=kind) >= s_t(records, t, p=p, b=b) * (1 - 1e-12)


@given(grades, st.randoms(), tolerances)
def test_the_order_of_records_does_not_matter(records, random, t):
    shuffled = records[:]
    random.shuffle(shuffled)
    one, other = (es_t_micro(x, t, p=0.1, b=0.1, classes=DEFAULT) for x in (records, shuffled))
    assert one == pytest.approx(other)


def test_correctness_is_frozen_at_tolerance_one():
    grade = Grade(speedup=2.0, correct_from=2)
    assert [grade.correct(t) for t in (1, 2, 4)] == [False] * 3
    assert Grade(speedup=2.0, correct_from=1).correct(4)


@pytest.mark.parametrize(
    ("error", "kind", "first"),
    [
        ("accuracy", REPORT, 1), ("runtime", REPORT, 2), ("compile", REPORT, 3), ("reference", REPORT, None),
        ("accuracy", DEFAULT, 1), ("mismatch", DEFAULT, 3), ("runtime", DEFAULT, 3), ("compile", DEFAULT, 3),
        ("accuracy", EXTENDED, 1), ("mismatch", EXTENDED, 2), ("runtime", EXTENDED, 3), ("compile", EXTENDED, 4),
        ("reference", EXTENDED, None),
    ],
)  # fmt: skip
def test_an_error_is_forgiven_from_its_class_on(error, kind, first):
    values = {t: es_t_micro([Grade(error=error)], t, p=0, b=0.1, classes=kind) for t in kind.tolerances}
    expected = {t: 1.0 if first is not None and t >= first else 0.1 for t in kind.tolerances}
    assert values == pytest.approx(expected)


CRASH, WRONG = Grade(error="runtime"), Grade(speedup=1.0, error="accuracy")


@pytest.mark.parametrize(
    ("records", "p", "b", "expected"),
    [
        ([Grade(error="reference")], 0, 0.1, 0.100),
        ([CRASH], 0, 0.1, 0.1107),
        ([WRONG], 0, 0.1, 0.1472),
        ([Grade(speedup=1.2, correct_from=-5)], 0, 0.1, 1.1975),
        ([Grade(speedup=0.8, correct_from=-5)], 1, 0.1, 0.6390),
        ([CRASH] + [Grade(speedup=1.2, correct_from=-5)] * 9, 0, 0.1, 0.9438),
        ([CRASH], 0, 0.001, 0.00136),
    ],
)
def test_as_matches_known_values(records, p, b, expected):
    assert aggregate_score(es_curve(records, p=p, b=b, classes=DEFAULT)) == pytest.approx(expected, abs=0.0001)


def test_as_weights_are_the_published_ones():
    assert sum(AS_WEIGHTS.values()) == pytest.approx(5.957424)


def test_as_with_other_weights_and_with_gaps():
    curve = {-1: 2.0, 0: 0.5}
    assert aggregate_score(curve, {-1: 3, 0: 1}) == pytest.approx(2**0.5)
    with pytest.raises(ValueError, match=r"lacks the weighted tolerances \[1\]"):
        aggregate_score(curve, {1: 1.0})
    with pytest.raises(ValueError, match="must not be negative"):
        aggregate_score(curve, {-1: 1.0, 0: -0.5})


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(ValueError, match="at least one grade"):
        s_t([], 0, p=0, b=0.1)
    with pytest.raises(ValueError, match="value of a failure"):
        s_t([CRASH], 0, p=0, b=0)
    with pytest.raises(ValidationError, match="has a speedup"):
        Grade(correct_from=0)
