"""Turns an exported PyTorch program into a `top` module and its weights."""

import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import BadInput
from tpu_mlir.dialects.adapter import Call, Module
from tpu_mlir.dialects.build import FunctionWriter
from tpu_mlir.dialects.types import Array, DType, Tensor
from tpu_mlir.importers.torch_export.graph import Graph, Item
from tpu_mlir.importers.torch_export.operators import OPERATORS

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """A program as a module, and the arrays of its weights by role (the parameter's name in the model)."""

    module: Module
    weights: Mapping[str, Array]

    def constants(self, call: Call) -> Array:
        """Return the array of a `top.weight` op, for running the module on the host."""
        return self.weights[str(call.attrs["role"])]


def import_exported(program: "ExportedProgram", name: str) -> Imported:
    """Return an exported program as a module with one function.

    Args:
        program: from `torch.export.export`, of a model in eval mode, with static shapes.
        name: of the function.

    Raises:
        BadInput: operators that are not supported (all of them are named), dynamic shapes, or element types other
            than floats and integers.
    """
    program = _functional(program)
    nodes = list(program.graph.nodes)
    signature = program.graph_signature
    if signature.buffers_to_mutate or signature.user_inputs_to_mutate:
        changed = sorted({*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()})
        raise BadInput(f"The exported program changes {', '.join(changed)}.", "Export the model in eval mode.")
    user_inputs = [str(i) for i in signature.user_inputs]
    inputs = {n.name: _tensor(n) for n in nodes if n.op == "placeholder" and n.name in user_inputs}
    _check_operators(nodes)
    stored = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    lifted = signature.inputs_to_lifted_tensor_constants
    arrays = {n: program.state_dict.get(fqn, program.constants.get(fqn)) for n, fqn in stored.items()}
    arrays |= {n: program.constants[fqn] for n, fqn in lifted.items()}
    roles = {**stored, **lifted}
    graph = Graph(FunctionWriter(name, inputs))
    env: dict[str, Item] = {n: graph.writer[n] for n in inputs}
    used = {n.name for n in nodes if n.op == "placeholder" and n.users}
    for node_name in sorted(used & roles.keys()):
        env[node_name] = graph.constant(roles[node_name], _array(arrays[node_name]))
    outputs: Sequence[Any] = ()
    for node in nodes:
        if node.op == "output":
            outputs = [_look_up(env, n) for n in node.args[0]]
        elif node.op == "call_function" and node.users:
            graph.name = node.name
            env[node.name] = _translate(node, env, graph)
    return Imported(module=graph.writer.finish(*outputs), weights=graph.arrays)


def _functional(program: "ExportedProgram") -> "ExportedProgram":
    """Return the program with updates in place written as new tensors; its operators stay."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch warns of its own internals here
        changed: ExportedProgram = program.run_decompositions({})
    return changed


def _check_operators(nodes: Sequence[Any]) -> None:
    calls = [n for n in nodes if n.op == "call_function" and n.target is not operator.getitem]
    unknown = sorted({f"{n.target} (as {n.name})" for n in calls if _name(n.target) not in OPERATORS})
    if unknown:
        raise BadInput(
            f"The exported program uses operators that cannot be imported: {', '.join(unknown)}.",
            f"Supported are {', '.join(sorted(OPERATORS))}.",
        )


def _name(target: Any) -> str:
    """Return an operator's name without namespace and overload."""
    packet = getattr(target, "overloadpacket", None)
    return str(packet).rpartition(".")[2] if packet is not None else str(target)


def _translate(node: Any, env: Mapping[str, Item], graph: Graph) -> Item:
    if node.target is operator.getitem:
        items = env[node.args[0].name]
        return items[node.args[1]] if isinstance(items, tuple) else items
    function: Callable[..., Item] = OPERATORS[_name(node.target)]
    given: dict[str, Any] = {}
    for index, argument in enumerate(node.target._schema.arguments):
        if index < len(node.args):
            given[argument.name] = node.args[index]
        elif argument.name in node.kwargs:
            given[argument.name] = node.kwargs[argument.name]
        else:
            given[argument.name] = argument.default_value
    return function(graph, **{k: _look_up(env, v) for k, v in given.items()})


def _look_up(env: Mapping[str, Item], value: Any) -> Any:
    """Replace the exporter's nodes by our values, inside lists too."""
    if isinstance(value, list | tuple):
        return [_look_up(env, v) for v in value]
    return env[value.name] if hasattr(value, "op") and hasattr(value, "users") else value


def _tensor(node: Any) -> Tensor:
    value = node.meta["val"]
    if any(not isinstance(d, int) for d in value.shape):
        raise BadInput(f"Input {node.name} has the dynamic shape {tuple(value.shape)}.", "Export with static shapes.")
    if value.dtype.is_floating_point:
        return Tensor(tuple(value.shape), DType.F32)
    if str(value.dtype) in ("torch.int64", "torch.int32"):
        return Tensor(tuple(value.shape), DType.SI32)
    raise BadInput(f"Input {node.name} has elements of {value.dtype}.", "Floats and integers can be imported.")


def _array(tensor: "torch.Tensor") -> Array:
    array: Array = tensor.detach().float().numpy() if tensor.is_floating_point() else tensor.numpy().astype(np.int32)
    return array
