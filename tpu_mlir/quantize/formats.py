"""What is known about a quantised checkpoint: what its config says, and what its tensors show."""

from typing import Literal

from core.records import Record
from tpu_mlir.quantize.findings import Finding

Packing = Literal["gptq", "awq_gemm", "compressed_tensors"]
ZeroRule = Literal["minus_one", "plain"]
"""GPTQ v1 stores a zero point less one ("minus_one"); v2 and all others store it as it is ("plain")."""


class Declared(Record):
    """What the checkpoint's ``quantization_config`` claims; None where it is silent."""

    method: str
    packing: Packing | None = None
    bits: int | None = None
    group_size: int | None = None
    """-1: one group a row."""
    symmetric: bool | None = None
    act_order: bool | None = None
    zero_rule: ZeroRule | None = None
    refused: str | None = None
    """Name of the claimed format when it is known and not supported."""


class LayerFormat(Record):
    """How one linear layer is stored, read from the shapes of its tensors."""

    layer: str
    packing: Packing
    bits: int
    group_size: int
    inputs: int
    outputs: int


class QuantisedFormat(Record):
    """How a checkpoint's quantised layers are stored, as its tensors show."""

    layers: dict[str, LayerFormat]
    zero_rule: ZeroRule
    symmetric: bool
    findings: tuple[Finding, ...] = ()

    @property
    def name(self) -> str:
        """A short name for people, such as "gptq 4-bit group 128"."""
        packings = sorted({layer.packing for layer in self.layers.values()})
        bits = sorted({layer.bits for layer in self.layers.values()})
        groups = sorted({layer.group_size for layer in self.layers.values()})
        return f"{'/'.join(packings)} {'/'.join(map(str, bits))}-bit group {'/'.join(map(str, groups))}"
