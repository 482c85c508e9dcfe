"""All ops, found in the modules that declare them."""

from collections.abc import Iterable
from types import MappingProxyType, ModuleType

from tpu_mlir.dialects.spec import OpSpec
from tpu_mlir.dialects.specs import top_data, top_linear, top_math, top_vision, tpu_compute, tpu_data


def _ops(*modules: ModuleType, more: Iterable[OpSpec] = ()) -> MappingProxyType[str, OpSpec]:
    found = [value for module in modules for value in vars(module).values() if isinstance(value, OpSpec)]
    return MappingProxyType({spec.name: spec for spec in (*found, *more)})


TOP = _ops(top_data, top_math, top_linear, top_vision)
"""The `top` ops by name."""

TPU = _ops(tpu_data, tpu_compute, more=tpu_compute.LOWERED)
"""The `tpu` ops by name."""

SPECS = MappingProxyType({**TOP, **TPU})
"""All ops by name."""
