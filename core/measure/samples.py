"""What is recorded while timing: samples, pairs and blocks, and the sources that they come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from core.errors import ComplabError
from core.records import Json
from core.sandbox.policy import Sandbox

ARMS = 2
"""Arm 0 is the baseline, arm 1 the candidate; arrays below have the arm as their second axis."""

Clock = Literal["cpu", "wall"]
"""`cpu`: CPU time of the process and, for whole programs, of those that it waited for; `wall`: elapsed time."""

Floats = NDArray[np.float64]


class ArmFailed(ComplabError):
    """One arm did not behave while it was timed: the program's fault, not the machine's.

    Attributes:
        arm: 0 the baseline, 1 the candidate.
        reason: one of the search contract's reason classes.
    """

    def __init__(self, arm: int, reason: Literal["crash", "timeout", "wrong_output", "tampered"], message: str) -> None:
        super().__init__(f"The {('baseline', 'candidate')[arm]} failed while it was timed: {message}")
        self.arm = arm
        self.reason = reason


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockPlan:
    """One block to take: pairs of samples of both arms, timed alternately under one fresh layout."""

    index: int
    """Chooses the link layout; blocks with different indices are independent replications."""
    seed: int
    """Decides the order within each pair and the sizes of the environment."""
    pairs: int
    repeats: int = 1
    """Calls in one sample; always 1 for whole processes."""
    core: int | None = None
    """The core to pin to; None: not pinned."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """The samples of one block; each array has shape (pairs, 2)."""

    index: int
    wall_s: Floats
    """Elapsed time of each sample by the monotonic clock."""
    cpu_s: Floats
    """CPU time of the process (tree), all threads."""
    thread_s: Floats
    """CPU time of the timing thread; equal to `cpu_s` where a sample is a whole process."""
    switches: NDArray[np.int64]
    """Involuntary context switches."""
    extra_threads: bool = False
    """An arm had threads or processes of its own running beside the one that was timed."""

    def times(self, clock: Clock) -> Floats:
        """Return the samples by one clock, in seconds."""
        return self.cpu_s if clock == "cpu" else self.wall_s


class SampleSource(Protocol):
    """Two arms that can be timed. What it is made of decides the mode: processes, shared objects, callables."""

    @property
    def layouts(self) -> int:
        """How many independent link layouts there are; 1: the layout of the link is not varied."""
        ...

    @property
    def repeatable(self) -> bool:
        """Whether a sample may hold several calls."""
        ...

    def describe(self) -> dict[str, Json]:
        """Return what identifies the mode and its parameters (not the arms), for the record."""
        ...

    def take(self, box: Sandbox, plans: Sequence[BlockPlan]) -> list[Block]:
        """Time the planned blocks and return them in order.

        Raises:
            ArmFailed: an arm crashed, hung or gave another output.
            InfraError: the timing itself failed.
        """
        ...
