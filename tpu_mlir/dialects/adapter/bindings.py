"""The bindings themselves; the one place that imports them."""

import sys
from typing import TypeAlias

from core.errors import ComplabError

if "llvmlite" in sys.modules:
    raise ComplabError(
        "llvmlite is loaded in this process, and it cannot share one with torch-mlir.", "Start another process."
    )
try:
    from torch_mlir import ir, passmanager, rewrite
    from torch_mlir.dialects import ext, func
except ImportError as missing:
    raise ComplabError(
        f"torch-mlir cannot be imported: {missing}.", "Install it: pip install 'complab[mlir]'"
    ) from missing

Module: TypeAlias = ir.Module
Value: TypeAlias = ir.Value
Operation: TypeAlias = ir.Operation
Values: TypeAlias = Value | tuple[Value, ...] | None

__all__ = ["Module", "Operation", "Value", "Values", "ext", "func", "ir", "passmanager", "rewrite"]
