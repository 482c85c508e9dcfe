"""What a pass is, and how one is run: its module is checked before and after, so a fault is found where it is made."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tpu_mlir.dialects.adapter import Module
from tpu_mlir.dialects.state import State, check, set_state


class Pass(Protocol):
    """A change to a module. Implementations are frozen dataclasses whose fields are the pass's options."""

    @property
    def name(self) -> str:
        """How the pass is written in a pipeline."""
        ...

    @property
    def needs(self) -> State:
        """The state of a module that the pass takes."""
        ...

    @property
    def leaves(self) -> State:
        """The state that the module is in afterwards."""
        ...

    def run(self, module: Module) -> None:
        """Change the module in place."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One pass that was run, and how long it took, its checks included."""

    name: str
    wall_s: float


def run_passes(module: Module, passes: Sequence[Pass]) -> tuple[Step, ...]:
    """Run passes one after the other, each between its pre- and post-condition.

    Raises:
        IrError: a module that is not in the state a pass needs, or that a pass left in another one than it states.
    """
    steps: list[Step] = []
    proven: State | None = None
    for one in passes:
        start = time.perf_counter()
        if one.needs is not proven:
            check(module, one.needs)
        one.run(module)
        set_state(module, one.leaves)
        check(module, one.leaves)
        proven = one.leaves
        steps.append(Step(name=one.name, wall_s=time.perf_counter() - start))
    return tuple(steps)
