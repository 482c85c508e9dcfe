"""Python callables as arms: two modules in one sandboxed process, called alternately as the parent commands."""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from core.measure.samples import ARMS, ArmFailed, Block, BlockPlan
from core.records import Json
from core.sandbox.policy import Command, Limits, Policy, Sandbox, Session, SessionEnded

_CHILD = Path(__file__).with_name("callables_child.py")
_CHANNEL_CHILD = Path(__file__).parents[1] / "sandbox" / "channel_child.py"
_EMPTY_CALLS = 5
_LARGEST_PAD = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class Callables:
    """Times `run()` of two Python modules; `output()` is checked before and after. Every block is a fresh process.

    CPU times are read inside the child, where a hostile arm could falsify them. Elapsed time is taken by the parent
    around each command of K calls, less the time of an empty command: an arm that lies about its CPU time contradicts
    it, and the comparison is flagged `suspect`.

    Args:
        baseline: source of the baseline's module: `run()`, `output() -> bytes`, optionally `setup(input: bytes)`.
        candidate: source of the candidate's.
        input: what `setup` gets.
        expected: what `output` must give.
        python: the interpreter.
        readonly: further files and directories that the modules may read.
        env: environment of the child.
        timeout_s: limit of loading one module, and of one command.
        block_s: limit of a whole block.
        limits: of the sandbox; wall and CPU time are set from `block_s`.
    """

    baseline: str
    candidate: str
    input: bytes = b""
    expected: bytes
    python: Path = Path(sys.executable)
    readonly: tuple[Path, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    timeout_s: float = 60.0
    block_s: float = 300.0
    limits: Limits = field(default_factory=Limits)

    @property
    def layouts(self) -> int:
        """Python modules are not linked: what a layout can vary is varied by the fresh process."""
        return 1

    @property
    def repeatable(self) -> bool:
        """A sample may hold many calls."""
        return True

    def describe(self) -> dict[str, Json]:
        """Return the mode."""
        return {"mode": "callables", "layouts": self.layouts}

    def take(self, box: Sandbox, plans: Sequence[BlockPlan]) -> list[Block]:
        """Time each block in a sandboxed process of its own."""
        return [self._block(box, plan) for plan in plans]

    def _block(self, box: Sandbox, plan: BlockPlan) -> Block:
        rng = np.random.default_rng([plan.seed, plan.index])
        command = Command(
            argv=(str(self.python), "-I", "-B", _CHILD.name),
            files={
                _CHILD.name: _CHILD.read_bytes(),
                _CHANNEL_CHILD.name: _CHANNEL_CHILD.read_bytes(),
                "baseline.py": self.baseline.encode(),
                "candidate.py": self.candidate.encode(),
                "input": self.input,
            },
            readonly=self.readonly,
            env={**self.env, "COMPLAB_PAD": "x" * int(rng.integers(1, _LARGEST_PAD))},
            channel=True,
        )
        limits = self.limits.model_copy(update={"wall_s": self.block_s, "cpu_s": self.block_s})
        with box.session(command, Policy(limits=limits)) as session:
            self._ask(session, 0, {"core": plan.core})
            loading = rng.permutation(ARMS)
            for arm in loading:
                self._ask(session, int(arm), {"load": int(arm)})
            self._check(session)
            empty_s = [self._sample(session, int(arm), 0)["wall_s"] for arm in loading for _ in range(_EMPTY_CALLS)]
            overhead_s = float(np.median(empty_s))
            samples: list[dict[str, Any]] = []
            for first in rng.integers(0, ARMS, size=plan.pairs):
                turns = (int(first), 1 - int(first))
                pair = {arm: self._sample(session, arm, plan.repeats) for arm in turns}
                samples += [pair[0], pair[1]]
            self._check(session)

        def column(name: str) -> Any:
            return np.array([sample[name] for sample in samples]).reshape(plan.pairs, ARMS)

        # Never below what the child itself saw pass, which the parent's time contains.
        wall_s = np.maximum(column("wall_s") - overhead_s, column("wall_ns") / 1e9)
        return Block(
            index=plan.index,
            wall_s=wall_s,
            cpu_s=np.maximum(column("cpu_ns"), 1) / 1e9,
            thread_s=np.maximum(column("thread_ns"), 1) / 1e9,
            switches=column("switches"),
            extra_threads=bool(column("threads").max() > 1),
        )

    def _sample(self, session: Session, arm: int, calls: int) -> dict[str, Any]:
        start = time.perf_counter()
        reply = self._ask(session, arm, {"run": arm, "calls": calls})
        wall_s = time.perf_counter() - start
        try:
            return {**{name: int(value) for name, value in json.loads(reply).items()}, "wall_s": wall_s}
        except (ValueError, AttributeError, TypeError) as error:
            raise ArmFailed(arm, "tampered", "the timing child's answer was not one of ours.") from error

    def _check(self, session: Session) -> None:
        for arm in range(ARMS):
            if self._ask(session, arm, {"output": arm}) != self.expected:
                raise ArmFailed(arm, "wrong_output", "its output was not the expected one.")

    def _ask(self, session: Session, arm: int, request: dict[str, Json]) -> bytes:
        """Return the child's answer to a request that concerns one arm, which takes the blame."""
        try:
            reply = session.ask(json.dumps(request).encode(), self.timeout_s)
        except SessionEnded as error:
            reason = {"timeout": "timeout", "tampered": "tampered"}.get(error.result.status, "crash")
            said = error.result.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise ArmFailed(arm, reason, f"{error.what} {said}".strip()) from error  # type: ignore[arg-type]
        if not reply.startswith(b"."):
            raise ArmFailed(arm, "crash", reply[1:].decode(errors="replace"))
        return reply[1:]
