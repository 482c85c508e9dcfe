"""S_t, ES_t and AS: speed and correctness in one number, at a tolerance and over all.

Notation as in the GraphNet report: alpha, the geometric mean speedup of the correct graphs; beta, that of the correct
graphs that are slower; lambda, the share of correct graphs; eta, the share of slower ones among them; gamma, what an
error is worth; p, the exponent that punishes slowdowns further; b, the value of a failure. Published texts disagree on
p and b (the tables hold for p = 0, b = 0.1), so both are always given.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from core.records import Record
from core.score.grades import Classification, Grade
from core.score.means import geomean


class Summary(Record):
    """The macro quantities of a set of grades at one tolerance."""

    alpha: float
    beta: float
    lambda_: float
    eta: float
    gamma: float


def es_t_macro(alpha: float, beta: float, lambda_: float, eta: float, gamma: float, p: float) -> float:
    """Return ES_t from its macro quantities; with gamma = b it is S_t."""
    return float(alpha**lambda_ * beta ** (lambda_ * eta * p) * gamma ** (1 - lambda_))


def summarise(grades: Sequence[Grade], t: int, *, b: float, classes: Classification) -> Summary:
    """Return the macro quantities of grades at tolerance t. Empty sets give alpha = beta = 1, eta = 0, gamma = b.

    Raises:
        ValueError: there are no grades.
    """
    _require(grades, b)
    correct = [_speedup(grade) for grade in grades if grade.correct(t)]
    slower = [s for s in correct if s < 1]
    errors = Counter(error for grade in grades if (error := grade.error_class(t)) is not None)
    failing = sum(count for error, count in errors.items() if not classes.forgives(error, t))
    return Summary(
        alpha=geomean(correct) if correct else 1.0,
        beta=geomean(slower) if slower else 1.0,
        lambda_=len(correct) / len(grades),
        eta=len(slower) / len(correct) if correct else 0.0,
        gamma=b ** (failing / errors.total()) if errors else b,
    )


def es_t_micro(grades: Sequence[Grade], t: int, *, p: float, b: float, classes: Classification) -> float:
    """Return ES_t as the geometric mean of what each graph is worth at tolerance t.

    Raises:
        ValueError: there are no grades.
    """
    _require(grades, b)
    return geomean([_worth(grade, t, p=p, b=b, classes=classes) for grade in grades])


def s_t(grades: Sequence[Grade], t: int, *, p: float, b: float) -> float:
    """Return S_t: as ES_t, with every error a failure.

    Raises:
        ValueError: there are no grades.
    """
    strict = Classification(name="strict", forgiven_from={}, tolerances=(t,))
    return es_t_micro(grades, t, p=p, b=b, classes=strict)


def es_curve(grades: Sequence[Grade], *, p: float, b: float, classes: Classification) -> dict[int, float]:
    """Return ES_t at every tolerance of a classification."""
    return {t: es_t_micro(grades, t, p=p, b=b, classes=classes) for t in classes.tolerances}


AS_WEIGHTS: Mapping[int, float] = {
    **dict.fromkeys(range(-10, -5), 0.001),
    **dict.fromkeys((-5, -4, -3), 1.0),
    **{-2: 0.8, -1: 0.64, 0: 0.512, 1: 0.4096, 2: 0.32768, 3: 0.262144, 4: 0.001},
}
"""PassNet's raw weights of the tolerances in AS; they are normalised where they are used."""


def aggregate_score(curve: Mapping[int, float], weights: Mapping[int, float] = AS_WEIGHTS) -> float:
    """Return AS: the weighted geometric mean of ES_t over the tolerances.

    Args:
        curve: ES_t by tolerance; tolerances without a weight do not count.
        weights: not negative, their sum positive; normalised here.

    Raises:
        ValueError: a weighted tolerance is missing from the curve, or the weights are none.
    """
    missing = sorted(t for t, w in weights.items() if w > 0 and t not in curve)
    if missing:
        raise ValueError(f"the curve lacks the weighted tolerances {missing}")
    total = math.fsum(weights.values())
    if total <= 0 or min(weights.values()) < 0:
        raise ValueError("weights must not be negative, and one must be positive")
    return math.exp(math.fsum(w * math.log(curve[t]) for t, w in weights.items() if w > 0) / total)


def _worth(grade: Grade, t: int, *, p: float, b: float, classes: Classification) -> float:
    error = grade.error_class(t)
    if error is not None:
        return 1.0 if classes.forgives(error, t) else b
    speedup = _speedup(grade)
    return speedup if speedup >= 1 else float(speedup ** (1 + p))


def _speedup(grade: Grade) -> float:
    assert grade.speedup is not None  # Grade itself sees to it
    return grade.speedup


def _require(grades: Sequence[Grade], b: float) -> None:
    if not grades:
        raise ValueError("a score needs at least one grade")
    if not 0 < b <= 1:
        raise ValueError(f"the value of a failure must lie in (0, 1], not {b}")
