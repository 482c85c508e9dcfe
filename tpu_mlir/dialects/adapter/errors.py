"""What MLIR and our verifiers complain about, as errors for people."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from core.errors import BadInput
from tpu_mlir.dialects.adapter.bindings import Operation, ir


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One complaint of MLIR, or of one of our verifiers: where, and what."""

    location: str
    message: str

    def __str__(self) -> str:
        return f"{self.location}: {self.message}"


class IrError(BadInput):
    """Text or a module that is not valid IR; `diagnostics` has every complaint with its location."""

    def __init__(self, what: str, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__("\n".join((what, *map(str, diagnostics))))
        self.diagnostics = tuple(diagnostics)


@contextmanager
def complaints(what: str) -> Iterator[None]:
    """Turn MLIR's errors inside the block into an IrError that begins with `what`."""
    try:
        yield
    except ir.MLIRError as error:
        found = [Diagnostic(location_text(d.location), d.message) for d in error.error_diagnostics]
        raise IrError(what, found or [Diagnostic("-", error.message)]) from error


def where_of(operation: Operation) -> str:
    """Return an op's location, for messages."""
    return location_text(operation.location)


def location_text(location: Any) -> str:
    """Return a location without the wrapping `loc(...)`."""
    return str(location)[4:-1]
