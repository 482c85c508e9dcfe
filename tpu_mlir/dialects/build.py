"""Writes a module op by op: operands by position, attributes by keyword, types inferred, every tensor named."""

from collections.abc import Mapping, Sequence

from tpu_mlir.dialects import adapter
from tpu_mlir.dialects.adapter import Module, Value, Values
from tpu_mlir.dialects.catalog import SPECS
from tpu_mlir.dialects.spec import AttrValue
from tpu_mlir.dialects.state import State, set_state
from tpu_mlir.dialects.types import DType, Tensor


class FunctionWriter:
    """Writes one function of a new `top` module.

    writer = FunctionWriter("lm_head", {"states": Tensor((1, 64), DType.F32)})
    w = writer.weight("lm_head.weight", (100, 64))
    logits = writer.op("top.matmul", writer["states"], w, None, name="logits", right_transpose=True)
    module = writer.finish(logits)
    """

    def __init__(self, name: str, inputs: Mapping[str, Tensor]) -> None:
        self._module = adapter.new_module()
        set_state(self._module, State.TOP_F32)
        self._function = adapter.add_function(self._module, name, inputs)
        self._point = adapter.at_end(self._function)
        self._weights: dict[str, Value] = {}
        self._inputs = {
            n: self.op("top.input", argument, name=n)
            for n, argument in zip(inputs, adapter.arguments(self._function), strict=True)
        }

    def __getitem__(self, name: str) -> Value:
        """Return an input by name."""
        return self._inputs[name]

    def weight(self, name: str, shape: Sequence[int], dtype: DType = DType.F32) -> Value:
        """Return a constant of the checkpoint; the same name gives the same value."""
        if name not in self._weights:
            self._weights[name] = self.op("top.weight", name=name, role=name, shape=tuple(shape), dtype=dtype.value)
        return self._weights[name]

    def op(self, op_name: str, *operands: Values, name: str, **attrs: AttrValue) -> Value:
        """Add an op and return its first result.

        Args:
            op_name: `top.softmax` and the like.
            operands: in declaration order; None for an absent one, a tuple for a variadic one.
            name: the tensor's name.
            attrs: the op's attributes.

        Raises:
            IrError: the op does not take these operands or attributes.
        """
        return self.ops(op_name, *operands, name=name, **attrs)[0]

    def ops(self, op_name: str, *operands: Values, name: str, **attrs: AttrValue) -> tuple[Value, ...]:
        """Add an op and return all its results; arguments as of `op`."""
        spec = SPECS[op_name]
        named = {o.name: v for o, v in zip(spec.operands, operands, strict=False)}
        return adapter.build(spec, named, attrs, name, self._point)

    def finish(self, *outputs: Value) -> Module:
        """Return the outputs from the function, and the verified module."""
        adapter.finish_function(self._function, outputs)
        adapter.verify(self._module)
        return self._module
