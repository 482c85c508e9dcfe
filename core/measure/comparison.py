"""The record of one paired comparison."""

from typing import Literal

from core.records import Digest, Record

Decision = Literal["faster", "slower", "same", "undecided"]
Stage = Literal["screen", "prove"]
"""`prove`: fresh samples, fresh processes, hidden inputs, corrected error level."""


class Comparison(Record):
    """A paired measurement of a candidate against a baseline."""

    baseline: Digest
    candidate: Digest
    stage: Stage
    seed: int
    ratio: float
    """baseline time / candidate time: above 1 the candidate is faster."""
    low: float
    high: float
    """The confidence interval of `ratio` at `level`."""
    level: float
    """Confidence level, for example 0.99; the decision has error rate 1 - level under the sequential rule."""
    margin: float
    """`same` means that the interval lies inside [1/(1+margin), 1+margin]."""
    decision: Decision
    rule: str
    """Name and parameters of the statistical rule."""
    pairs: int
    clock: str
    modelled: bool
    samples: Digest | None
    """Blob with the raw samples, when they were stored."""
    environment: Digest
    wall_s: float
    flags: tuple[str, ...] = ()
    """`suspect`, `layout_dependent`, `loaded_machine`, ... each explained in docs/measurement.md."""
