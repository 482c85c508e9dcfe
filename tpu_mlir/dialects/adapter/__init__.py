"""The one door to the MLIR bindings: nothing outside this package imports them, and here only `bindings` does.

It projects the op specs on the bindings, so that MLIR parses, prints, verifies and rewrites our dialects, and it
translates between MLIR's objects and the plain types of `types` and `spec`. What the bindings promise is checked by
tests/tpu_mlir/dialects/test_adapter.py, so a new release is accepted or refused in one place.

Facts about the bindings that shape it: dialects load once per context; attributes of a Python-defined op lie in
its dictionary and cannot be optional, so all are written out; op names are lower case; a verifier speaks only through
`Location.emit_error`; a rewrite callback matches when it returns something false, and must be kept alive by its owner;
an op does not keep its module alive, so `Function` and `Call` do.
"""

from tpu_mlir.dialects.adapter.bindings import Module, Operation, Value, Values
from tpu_mlir.dialects.adapter.building import (
    add_function,
    at_end,
    build,
    finish_function,
    replace,
    set_outputs,
    set_type,
)
from tpu_mlir.dialects.adapter.errors import Diagnostic, IrError
from tpu_mlir.dialects.adapter.modules import (
    module_attr,
    new_module,
    parse,
    print_module,
    run_upstream,
    set_module_attr,
    verify,
)
from tpu_mlir.dialects.adapter.projection import fault_of, new_context, shared_context
from tpu_mlir.dialects.adapter.reading import (
    Call,
    Function,
    arguments,
    calls,
    functions,
    name_of,
    outputs,
    producer,
    read,
    use_count,
    users,
)
from tpu_mlir.dialects.adapter.rewriting import Make, Pattern, convert, rewrite_greedily
from tpu_mlir.dialects.adapter.values import address_of, mlir_attr, mlir_type, plain_attr, set_address, tensor_type

__all__ = [
    "Call",
    "Diagnostic",
    "Function",
    "IrError",
    "Make",
    "Module",
    "Operation",
    "Pattern",
    "Value",
    "Values",
    "add_function",
    "address_of",
    "arguments",
    "at_end",
    "build",
    "calls",
    "convert",
    "fault_of",
    "finish_function",
    "functions",
    "mlir_attr",
    "mlir_type",
    "module_attr",
    "name_of",
    "new_context",
    "new_module",
    "outputs",
    "parse",
    "plain_attr",
    "print_module",
    "producer",
    "read",
    "replace",
    "rewrite_greedily",
    "run_upstream",
    "set_address",
    "set_module_attr",
    "set_outputs",
    "set_type",
    "shared_context",
    "tensor_type",
    "use_count",
    "users",
    "verify",
]
