"""Modules as text and as a whole."""

from typing import Any

from tpu_mlir.dialects.adapter.bindings import Module, ir, passmanager
from tpu_mlir.dialects.adapter.errors import complaints
from tpu_mlir.dialects.adapter.projection import shared_context
from tpu_mlir.dialects.adapter.values import mlir_attr, plain_attr
from tpu_mlir.dialects.spec import AttrValue


def parse(text: str, context: Any = None) -> Module:
    """Parse and verify a module.

    Raises:
        IrError: text that is no module, or an op that its verifier refuses.
    """
    with complaints("The text is not a valid module."):
        return ir.Module.parse(text, context or shared_context())


def print_module(module: Module, *, names: bool = False) -> str:
    """Return the module as text that `parse` and any MLIR tool read; with names, locations are written too."""
    return str(module.operation.get_asm(enable_debug_info=names))


def verify(module: Module) -> None:
    """Run all verifiers.

    Raises:
        IrError: an op that its verifier refuses.
    """
    with complaints("The module is not valid."):
        module.operation.verify()


def new_module(context: Any = None) -> Module:
    """Return an empty module."""
    with context or shared_context(), ir.Location.unknown():
        return ir.Module.create()


def module_attr(module: Module, name: str) -> AttrValue | None:
    """Return an attribute of a module, or None.

    Raises:
        Mismatch: a kind of attribute that we never write.
    """
    attributes = module.operation.attributes
    return plain_attr(name, attributes[name]) if name in attributes else None


def set_module_attr(module: Module, name: str, value: AttrValue) -> None:
    """Write an attribute of a module; its name has the form `dialect.name`."""
    with module.context:
        module.operation.attributes[name] = mlir_attr(value)


def run_upstream(module: Module, pipeline: str) -> None:
    """Run MLIR's own passes, named as in `mlir-opt --pass-pipeline`.

    Raises:
        IrError: an unknown pass, or one that failed.
    """
    with module.context, complaints(f"The passes {pipeline} failed."):
        passmanager.PassManager.parse(f"builtin.module({pipeline})").run(module.operation)
