"""What a score is computed from: one grade a graph, and how errors of each class are tolerated."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from core.records import Record

ErrorClass = Literal["accuracy", "mismatch", "runtime", "compile", "reference"]
"""`mismatch`: NaN, Inf, dtype or shape differ. `reference`: the reference itself failed."""


class Grade(Record):
    """How one graph fared.

    A graph is correct at tolerance t when every output lies within its dtype's thresholds at t. These grow with t, so
    one number says at which tolerances it is correct.
    """

    speedup: float | None = Field(default=None, gt=0)
    """Baseline time / candidate time; None: it did not run to its end."""
    correct_from: int | None = None
    """The least tolerance at which it is correct; None: at none."""
    error: ErrorClass | None = None
    """What is wrong below `correct_from`; None stands for `accuracy`."""

    @model_validator(mode="after")
    def _correct_ran(self) -> Self:
        if self.correct_from is not None and self.speedup is None:
            raise ValueError("a graph that is correct at some tolerance has a speedup")
        return self

    def correct(self, t: int) -> bool:
        """Return whether it is correct at t. Above t = 1 correctness stays what it is at 1."""
        return self.correct_from is not None and min(t, 1) >= self.correct_from

    def error_class(self, t: int) -> ErrorClass | None:
        """Return the class of its error at t; None when it is correct there."""
        return None if self.correct(t) else self.error or "accuracy"


class Classification(Record):
    """From which tolerance on an error of each class is forgiven; a class that is left out never is."""

    name: str
    forgiven_from: Mapping[ErrorClass, int]
    tolerances: tuple[int, ...]
    """The tolerances that the published curves run over."""

    def forgives(self, error: ErrorClass, t: int) -> bool:
        """Return whether an error counts as 1 (no gain) instead of as a failure at t."""
        return error in self.forgiven_from and t >= self.forgiven_from[error]


REPORT = Classification(
    name="report",
    forgiven_from={"accuracy": 1, "mismatch": 2, "runtime": 2, "compile": 3},
    tolerances=tuple(range(-10, 5)),
)
"""GraphNet technical report (arXiv 2510.24035). It names no class for mismatches: they count as runtime errors."""

DEFAULT = Classification(
    name="default",
    forgiven_from={"accuracy": 1, "mismatch": 3, "runtime": 3, "compile": 3},
    tolerances=tuple(range(-10, 5)),
)
"""What the public code of PassNet does unless told otherwise."""

EXTENDED = Classification(
    name="mismatch_extended",
    forgiven_from={"accuracy": 1, "mismatch": 2, "runtime": 3, "compile": 4},
    tolerances=tuple(range(-10, 6)),
)
"""PassNet's classification that tells mismatches from crashes."""
