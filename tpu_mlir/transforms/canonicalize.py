"""Drops ops that nobody uses and merges equal ones, by MLIR's own passes."""

from dataclasses import dataclass
from typing import ClassVar

from tpu_mlir.dialects import adapter
from tpu_mlir.dialects.adapter import Module
from tpu_mlir.dialects.state import State


@dataclass(frozen=True, kw_only=True)
class Canonicalize:
    """Dead code and common subexpressions, at any state; the state stays."""

    state: State = State.TOP_F32
    name: ClassVar[str] = "canonicalize"

    @property
    def needs(self) -> State:
        """The state of the module."""
        return self.state

    @property
    def leaves(self) -> State:
        """The same."""
        return self.state

    def run(self, module: Module) -> None:
        """Run canonicalize and cse."""
        adapter.run_upstream(module, "canonicalize,cse")
