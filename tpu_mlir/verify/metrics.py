"""How far a tensor is from its reference."""

from typing import Literal

import numpy as np

from core.records import Record
from tpu_mlir.dialects.types import Array

Trouble = Literal["not_finite", "scale", "noise"]


class TensorReport(Record):
    """One tensor against its reference. Similarities are 1 when equal."""

    name: str
    cosine: float
    euclid: float
    """1 - |a - b| / |(a + b) / 2|, with Euclidean norms; may be negative."""
    sqnr_db: float | None
    """Power of the reference, without its mean, over that of the error; None when there is no error."""
    max_ulp: int
    """Largest distance in steps of the tensor's own element type, the reference rounded to it, among the elements that
    are not smaller than the root mean square: near zero, steps say nothing."""
    max_error: float | None
    """Largest absolute error; None where a value is not finite."""

    @property
    def trouble(self) -> Trouble | None:
        """What kind of difference this is, when it is one to look into."""
        if self.max_error is None:
            return "not_finite"
        if self.cosine >= 0.99 and self.euclid >= 0.9:
            return None
        return "scale" if self.cosine >= 0.99 else "noise"


HINTS: dict[Trouble, str] = {
    "not_finite": "values leave the range of the element type: f16 ends at 65504, use a bf16 mode",
    "scale": "the direction is right and the size is not: look for a scale or a zero point",
    "noise": "precision is lost here: use more weight bits, a smaller group, or a wider mode for this layer",
}


def compare(name: str, reference: Array, candidate: Array) -> TensorReport:
    """Compare a tensor with its reference of the same shape.

    Raises:
        ValueError: the shapes differ.
    """
    if reference.shape != candidate.shape:
        raise ValueError(f"{name}: shapes {reference.shape} and {candidate.shape} differ")
    a, b = (x.astype(np.float64).ravel() for x in (reference, candidate))
    if not np.isfinite(b).all() or not np.isfinite(a).all():
        same = bool(np.array_equal(a, b))
        return TensorReport(
            name=name, cosine=float(same), euclid=float(same), sqnr_db=None, max_ulp=0, max_error=0.0 if same else None
        )
    error = a - b
    return TensorReport(
        name=name,
        cosine=_ratio(float(a @ b), float(np.sqrt((a @ a) * (b @ b))), equal=not error.any()),
        euclid=1 - _ratio(float(np.linalg.norm(error)), float(np.linalg.norm((a + b) / 2)), equal=False),
        sqnr_db=_sqnr_db(a, error),
        max_ulp=_max_steps(reference, candidate),
        max_error=float(np.abs(error).max(initial=0)),
    )


def _ratio(part: float, whole: float, *, equal: bool) -> float:
    if whole == 0:
        return 1.0 if equal else float(part != 0)
    return part / whole


def _sqnr_db(reference: Array, error: Array) -> float | None:
    centred_error = error - error.mean() if error.size else error
    noise = float(centred_error @ centred_error)
    if noise == 0:
        return None
    centred = reference - reference.mean()
    power = float(centred @ centred)
    return 10 * float(np.log10(power / noise)) if power > 0 else -999.0


def _max_steps(reference: Array, candidate: Array) -> int:
    size = np.abs(reference.astype(np.float64))
    large = size >= np.sqrt(np.mean(size * size)) if size.size else np.zeros(reference.shape, bool)
    distance = _steps(reference.astype(candidate.dtype)) - _steps(candidate)
    return int(np.abs(distance[large]).max(initial=0))


def _steps(array: Array) -> Array:
    """Return the place of every value in the order of its element type, so that neighbours differ by one."""
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    bits = array.dtype.itemsize * 8
    raw = array.view(f"i{array.dtype.itemsize}").astype(np.int64)
    return np.where(raw < 0, -(raw + (1 << (bits - 1))), raw)
