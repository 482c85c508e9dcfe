"""The one form in which quantised linear weights live between a checkpoint and the chip."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
import numpy.typing as npt

from core.errors import BadInput

SCALE_TYPES = tuple(np.dtype(t) for t in (np.float16, ml_dtypes.bfloat16, np.float32))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class GroupQuantised:
    """A linear layer's weight as unsigned codes with one scale and one zero point a group of inputs.

    The value of output n and stored column j is ``(codes[n, j] - zeros[n, j // group_size]) * scales[n, j //
    group_size]``. It belongs to input feature ``permutation[j]``, or j when there is no permutation. Groups are
    always contiguous in stored order: that is what act-order checkpoints are sorted for, and what a kernel needs.

    Raises:
        BadInput: the parts do not fit each other; the message names the layer.
    """

    axis: ClassVar[int] = 1
    """Groups run along the inputs; the matrix is [outputs, inputs], as Hugging Face stores linear weights."""

    layer: str
    codes: npt.NDArray[np.uint8]
    """[outputs, inputs], each below 2**bits."""
    scales: npt.NDArray[Any]
    """[outputs, groups] in f16, bf16 or f32."""
    zeros: npt.NDArray[np.uint8]
    """[outputs, groups], each below 2**bits."""
    bits: int
    """4 or 8."""
    group_size: int
    permutation: npt.NDArray[np.int32] | None = None
    """Input feature of each stored column; None: columns are in the order of the features."""

    def __post_init__(self) -> None:
        """Check that the parts fit."""
        if self.bits not in (4, 8):
            raise BadInput(
                f"{self.layer}: {self.bits}-bit weights are not supported.", "Use a 4-bit or 8-bit checkpoint."
            )
        outputs, inputs = self.codes.shape
        groups = group_count(self.layer, inputs, self.group_size)
        for name, part, expected in (
            ("scales", self.scales, (outputs, groups)),
            ("zeros", self.zeros, (outputs, groups)),
        ):
            if part.shape != expected:
                raise BadInput(f"{self.layer}: {name} have shape {part.shape}, expected {expected}.")
        if self.codes.dtype != np.uint8 or self.zeros.dtype != np.uint8:
            raise BadInput(f"{self.layer}: codes are {self.codes.dtype} and zeros {self.zeros.dtype}, expected uint8.")
        if self.scales.dtype not in SCALE_TYPES:
            raise BadInput(f"{self.layer}: scales are {self.scales.dtype}, expected float16, bfloat16 or float32.")
        if not np.isfinite(self.scales.astype(np.float32)).all():
            raise BadInput(f"{self.layer}: some scales are infinite or NaN.", "The checkpoint is damaged.")
        largest = max(int(self.codes.max(initial=0)), int(self.zeros.max(initial=0)))
        if largest >= 1 << self.bits:
            raise BadInput(f"{self.layer}: a code or zero point is {largest}, more than {self.bits} bits hold.")
        if self.permutation is not None and not np.array_equal(np.sort(self.permutation), np.arange(inputs)):
            raise BadInput(f"{self.layer}: the permutation does not name each of the {inputs} inputs once.")

    @property
    def shape(self) -> tuple[int, int]:
        """Outputs and inputs."""
        outputs, inputs = self.codes.shape
        return outputs, inputs

    @property
    def groups(self) -> int:
        """Groups along the inputs."""
        return int(self.scales.shape[1])

    @property
    def symmetric(self) -> bool:
        """Whether all zero points are the middle of the code range."""
        return bool((self.zeros == 1 << (self.bits - 1)).all())

    def dequantise_stored(self) -> npt.NDArray[np.float32]:
        """Return the float32 matrix with columns in stored order.

        Exact for f16 and bf16 scales: a difference of at most 9 bits times a significand of at most 11 bits fits
        float32. A float32 scale rounds once.
        """
        outputs, inputs = self.shape
        values = self.codes.astype(np.float32).reshape(outputs, self.groups, self.group_size)
        values -= self.zeros.astype(np.float32)[:, :, None]
        values *= self.scales.astype(np.float32)[:, :, None]
        return values.reshape(outputs, inputs)

    def dequantise(self) -> npt.NDArray[np.float32]:
        """Return the float32 matrix [outputs, inputs] with columns in the order of the input features."""
        stored = self.dequantise_stored()
        if self.permutation is None:
            return stored
        values = np.empty_like(stored)
        values[:, self.permutation] = stored
        return values


def group_count(layer: str, inputs: int, group_size: int) -> int:
    """Return the number of groups.

    Raises:
        BadInput: the group size does not divide the inputs; names the layer.
    """
    if group_size < 1 or inputs % group_size:
        raise BadInput(
            f"{layer}: its {inputs} inputs do not divide into groups of {group_size}.",
            "Use a group size that divides them, or -1 for one group a row.",
        )
    return inputs // group_size


def permutation_of(layer: str, group_of: npt.NDArray[np.int32], groups: int) -> npt.NDArray[np.int32] | None:
    """Return the order of inputs that makes act-order groups contiguous, or None when they already are.

    Sorting is stable: inputs keep their order within a group.

    Args:
        layer: for messages.
        group_of: the group of each input feature (``g_idx``).
        groups: how many groups have a scale.

    Raises:
        BadInput: a group number is out of range, or the groups are not of equal size.
    """
    if group_of.min() < 0 or group_of.max() >= groups:
        raise BadInput(
            f"{layer}: g_idx names group {int(group_of.min())} to {int(group_of.max())}, "
            f"but there are scales for groups 0 to {groups - 1}.",
            "The checkpoint is damaged.",
        )
    members = np.bincount(group_of, minlength=groups)
    if (members != members[0]).any():
        raise BadInput(
            f"{layer}: g_idx puts {int(members.min())} inputs in the smallest group and "
            f"{int(members.max())} in the largest.",
            "Groups of unequal size are not supported: quantise again with a group size that divides the inputs.",
        )
    if (group_of[1:] >= group_of[:-1]).all():
        return None
    return np.argsort(group_of, kind="stable").astype(np.int32)


def reorder_outputs(weight: GroupQuantised, order: npt.NDArray[np.int32]) -> GroupQuantised:
    """Return the weight with output n taken from output ``order[n]``.

    A layer whose inputs are permuted needs no gather at run time when the layers that feed it give their outputs in
    that order: gate and up projections may be reordered by the permutation of the down projection.
    """
    return replace(weight, codes=weight.codes[order], scales=weight.scales[order], zeros=weight.zeros[order])
