"""Whole processes as arms: two programs with the same arguments, input and expected output."""

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

_SOURCE = Path(__file__).with_name("process_runner.c")
_CHANNEL_HEADER = Path(__file__).parents[1] / "sandbox" / "channel.h"
_OUTCOME = struct.Struct("<IIii")
_SAMPLE = np.dtype([("wall_ns", "<u8"), ("cpu_ns", "<u8"), ("switches", "<u8")])
_LARGEST_PAD = 8192
_START_UP_S = 10.0

_Failure = Literal["crash", "timeout", "wrong_output", "tampered"]
_FAILURES: dict[int, tuple[_Failure, str]] = {
    1: ("crash", "it ended with {how} instead of exit code {exit_code}."),
    2: ("timeout", "it ran longer than {timeout_s:g} s."),
    3: ("wrong_output", "its standard output was not the expected one."),
    4: ("tampered", "it ended without waiting for a process that it had started, whose time is not counted."),
    5: ("crash", "it could not be started (error {detail})."),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeProcesses:
    """Times two programs from start to exit; what they print and their exit code are checked in every run.

    The CPU clock is the kernel's account of the process and of all descendants that it waited for, start-up included.

    Args:
        baseline: the baseline's executable, linked under one or more layouts (paths or content).
        candidate: the candidate's, likewise; layout i of both is used in block i modulo the count.
        args: arguments after the program's name (which is "program" for both arms).
        env: environment; a variable COMPLAB_PAD of random length is added to move the stack.
        stdin: standard input.
        files: what the programs find in their working directory, by relative name.
        expected: standard output, byte for byte.
        exit_code: the exit code of a run that went well.
        timeout_s: limit of one run.
        limits: of the sandbox; wall and CPU time are set from the plan.
    """

    baseline: Sequence[Path | bytes]
    candidate: Sequence[Path | bytes]
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    files: dict[str, bytes] = field(default_factory=dict)
    expected: bytes
    exit_code: int = 0
    timeout_s: float = 10.0
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Refuse arms without a program and texts that cannot be passed on."""
        if not self.baseline or not self.candidate:
            raise BadInput("Each arm needs at least one executable.", "Give one path (or its content) a layout.")
        if any("\0" in text for text in (*self.args, *self.env, *self.env.values())) or "" in self.env:
            raise BadInput("Arguments and environment hold a NUL character or a variable without a name.", "Drop it.")

    @property
    def layouts(self) -> int:
        """How many pairs of link layouts there are."""
        return min(len(self.baseline), len(self.candidate))

    @property
    def repeatable(self) -> bool:
        """A process runs once."""
        return False

    def describe(self) -> dict[str, Json]:
        """Return the mode and the number of layouts."""
        return {"mode": "processes", "layouts": self.layouts}

    def take(self, box: Sandbox, plans: Sequence[BlockPlan]) -> list[Block]:
        """Run all planned blocks in one sandboxed runner; every sample is a fresh process."""
        programs: list[Path | bytes] = []
        lines: list[str] = []
        order: list[int] = []
        for plan in plans:
            rng = np.random.default_rng([plan.seed, plan.index])
            layout = plan.index % self.layouts
            first_program = len(programs)
            programs += [self.baseline[layout], self.candidate[layout]]
            for first in rng.integers(0, ARMS, size=plan.pairs):
                for arm in (int(first), 1 - int(first)):
                    order.append(arm)
                    lines.append(f"{first_program + arm} {rng.integers(0, _LARGEST_PAD)}")
        names = [str(p) if isinstance(p, Path) else f"program{i}" for i, p in enumerate(programs)]
        contents = {name: p for name, p in zip(names, programs, strict=True) if isinstance(p, bytes)}
        core = plans[0].core
        head = f"{-1 if core is None else core} {round(self.timeout_s * 1e3)} {self.exit_code} {len(lines)}"
        runner = build(_SOURCE, ("-O2",), "exe", depends=(_CHANNEL_HEADER,))
        budget_s = len(lines) * self.timeout_s + _START_UP_S
        result = box.run(
            Command(
                argv=(str(runner),),
                files={
                    **self.files,
                    **contents,
                    "plan": "\n".join([head, *lines, ""]).encode(),
                    "programs": _joined(names),
                    "arguments": _joined(self.args),
                    "variables": _joined([f"{name}={value}" for name, value in self.env.items()]),
                    "input": self.stdin,
                    "expected": self.expected,
                },
                executables=tuple(contents),
                readonly=(runner, *{p for p in programs if isinstance(p, Path)}),
                channel=True,
            ),
            Policy(limits=self.limits.model_copy(update={"wall_s": budget_s, "cpu_s": budget_s})),
        )
        report = result.channel
        if not result.ok or report is None or len(report) < _OUTCOME.size:
            raise InfraError(
                f"The timing runner ended with {result.status} {result.exit_code}: "
                f"{result.stderr.decode(errors='replace').strip() or 'no message'}."
            )
        status, runs, detail, _ = _OUTCOME.unpack_from(report)
        samples = np.frombuffer(report, _SAMPLE, offset=_OUTCOME.size)
        if status:
            reason, text = _FAILURES[status]
            how = f"signal {detail & 0x7F}" if detail & 0x7F else f"exit code {detail >> 8}"
            message = text.format(how=how, detail=detail, exit_code=self.exit_code, timeout_s=self.timeout_s)
            raise ArmFailed(order[runs], reason, message)
        return _blocks(plans, order, samples)


def _joined(texts: Sequence[str]) -> bytes:
    return b"".join(text.encode() + b"\0" for text in texts)


def _blocks(plans: Sequence[BlockPlan], order: Sequence[int], samples: np.ndarray) -> list[Block]:
    """Sort the samples of each pair by arm and cut them into blocks."""
    arms = np.asarray(order).reshape(-1, ARMS)
    pairs = np.take_along_axis(samples.reshape(-1, ARMS), np.argsort(arms, axis=1), axis=1)
    blocks: list[Block] = []
    start = 0
    for plan in plans:
        part = pairs[start : start + plan.pairs]
        start += plan.pairs
        cpu_s = part["cpu_ns"] / 1e9
        blocks.append(
            Block(
                index=plan.index,
                wall_s=part["wall_ns"] / 1e9,
                cpu_s=cpu_s,
                thread_s=cpu_s,
                switches=part["switches"].astype(np.int64),
            )
        )
    return blocks
