"""Shared objects as arms: two libraries in one process, called alternately."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from core.errors import BadInput, InfraError
from core.measure.samples import ARMS, ArmFailed, Block, BlockPlan
from core.native.build import build
from core.records import Json
from core.sandbox.policy import Command, Limits, Policy, Sandbox

_SOURCE = Path(__file__).with_name("object_runner.c")
_CHANNEL_HEADER = Path(__file__).parents[1] / "sandbox" / "channel.h"
_OUTCOME = struct.Struct("<IIIi256s")
_SAMPLE = np.dtype([("wall_ns", "<u8"), ("cpu_ns", "<u8"), ("thread_ns", "<u8"), ("switches", "<u8")])
_LARGEST_PAD = 4096
_START_UP_S = 5.0

_Failure = Literal["crash", "timeout", "wrong_output"]
_FAILURES: dict[int, tuple[_Failure, str]] = {
    1: ("crash", "it ended with signal {detail}."),
    2: ("timeout", "the block was not done within {timeout_s:g} s."),
    3: ("wrong_output", "its output was not the expected one."),
    4: ("crash", "it could not be prepared: {message}."),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedObjects:
    """Times two shared objects that export the functions of object_abi.h; outputs are checked before and after.

    The CPU clock is that of the whole process, so work moved to another thread is still counted; a thread that lives on
    raises the flag `suspect`. Every block is a fresh process.

    Args:
        baseline: the baseline's library, linked under one or more layouts.
        candidate: the candidate's, likewise; layout i of both is used in block i modulo the count.
        input: what complab_setup gets.
        expected: what complab_output must give.
        timeout_s: limit of one block.
        limits: of the sandbox; wall and CPU time are set from the timeout.
    """

    baseline: tuple[Path, ...]
    candidate: tuple[Path, ...]
    input: bytes = b""
    expected: bytes
    timeout_s: float = 60.0
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Refuse arms without a library."""
        if not self.baseline or not self.candidate:
            raise BadInput("Each arm needs at least one shared object.", "Give one path a layout.")

    @property
    def layouts(self) -> int:
        """How many pairs of link layouts there are."""
        return min(len(self.baseline), len(self.candidate))

    @property
    def repeatable(self) -> bool:
        """A sample may hold many calls."""
        return True

    def describe(self) -> dict[str, Json]:
        """Return the mode and the number of layouts."""
        return {"mode": "shared_objects", "layouts": self.layouts}

    def take(self, box: Sandbox, plans: Sequence[BlockPlan]) -> list[Block]:
        """Time each block in a sandboxed process of its own."""
        return [self._block(box, plan) for plan in plans]

    def _block(self, box: Sandbox, plan: BlockPlan) -> Block:
        rng = np.random.default_rng([plan.seed, plan.index])
        layout = plan.index % self.layouts
        first = rng.integers(0, ARMS, size=plan.pairs)
        core = -1 if plan.core is None else plan.core
        head = f"{core} {round(self.timeout_s * 1e3)} {plan.repeats} {plan.pairs}"
        # The first one loaded gets other addresses than the second, so who comes first is drawn too.
        swapped = bool(rng.integers(0, 2))
        arms = [self.baseline[layout], self.candidate[layout]]
        loaded = arms[::-1] if swapped else arms
        runner = build(_SOURCE, ("-O2", "-ldl"), "exe", depends=(_CHANNEL_HEADER,))
        budget_s = self.timeout_s + _START_UP_S
        result = box.run(
            Command(
                argv=(str(runner),),
                files={
                    "plan": f"{head}\n{' '.join(map(str, first))}\n".encode(),
                    "objects": b"".join(str(path).encode() + b"\0" for path in loaded),
                    "input": self.input,
                    "expected": self.expected,
                },
                readonly=(runner, *dict.fromkeys(arms)),
                env={"COMPLAB_PAD": "x" * int(rng.integers(1, _LARGEST_PAD))},
                channel=True,
            ),
            Policy(limits=self.limits.model_copy(update={"wall_s": budget_s, "cpu_s": budget_s})),
        )
        report = result.channel
        if not result.ok or report is None or len(report) < _OUTCOME.size:
            raise InfraError(
                f"The timing runner ended with {result.status} {result.exit_code} and no report: "
                f"{result.stderr.decode(errors='replace').strip() or 'no message'}.",
                "A shared object that ends its process or closes its files can cause this, too.",
            )
        status, arm, extra_threads, detail, message = _OUTCOME.unpack_from(report)
        if status:
            reason, text = _FAILURES[status]
            told = message.rstrip(b"\0").decode(errors="replace")
            raise ArmFailed(arm ^ swapped, reason, text.format(detail=detail, message=told, timeout_s=self.timeout_s))
        # `first` counts in the order of loading; samples are put in the order baseline, candidate.
        second_is_baseline = (first == 1) ^ swapped
        turns = np.stack([second_is_baseline, ~second_is_baseline], axis=1).astype(int)
        samples = np.frombuffer(report, _SAMPLE, offset=_OUTCOME.size).reshape(plan.pairs, ARMS)
        pairs = np.take_along_axis(samples, turns, axis=1)
        return Block(
            index=plan.index,
            wall_s=pairs["wall_ns"] / 1e9,
            cpu_s=pairs["cpu_ns"] / 1e9,
            thread_s=pairs["thread_ns"] / 1e9,
            switches=pairs["switches"].astype(np.int64),
            extra_threads=bool(extra_threads),
        )
