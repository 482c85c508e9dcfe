"""The arrays that the roles of a graph name, from a checkpoint, one at a time."""

import numpy as np

from core.errors import BadInput
from tpu_mlir.dialects.types import Array
from tpu_mlir.importers.checkpoints.checkpoint import Checkpoint
from tpu_mlir.importers.checkpoints.roles import linear_shapes
from tpu_mlir.importers.checkpoints.rope_tables import rope_tables
from tpu_mlir.importers.decoder_layer import COS, SIN, TILE
from tpu_mlir.importers.linear import Packed
from tpu_mlir.importers.plan import MASK_FILL, Plan
from tpu_mlir.quantize.chip_packing import ChipWeight, pack_for_chip
from tpu_mlir.quantize.group_quantised import GroupQuantised

_PARTS = ("qweight", "scales", "qzeros", "permutation")


class LayerWeights:
    """Reads the weights of one group of pieces and keeps only the packed layer that was asked for last."""

    def __init__(self, checkpoint: Checkpoint, plan: Plan) -> None:
        self._checkpoint = checkpoint
        self._plan = plan
        self._packed: ChipWeight | None = None

    def forms(self, weights: str) -> dict[str, Packed]:
        """Return the packed modules of one group of pieces, such as `block_3`.

        Raises:
            BadInput: a weight is missing or damaged.
        """
        if not weights.startswith("block_"):
            return {}
        layer = f"model.layers.{weights.removeprefix('block_')}."
        found = {m: self.form(m) for m in linear_shapes(self._checkpoint.config) if m.startswith(layer)}
        return {m: form for m, form in found.items() if form is not None}

    def form(self, module: str) -> Packed | None:
        """Return how a linear module is packed, or None when its weight is of floats.

        Raises:
            BadInput: the weight is missing or damaged.
        """
        quantised = self._checkpoint.quantised
        if quantised is None or module not in quantised.layers:
            return None
        weight = self._checkpoint.linear(module)
        if not isinstance(weight, GroupQuantised):
            return None
        self._packed = pack_for_chip(weight)
        return Packed.of(weight)

    def read(self, role: str) -> Array:
        """Return the array of a role, in the type that the checkpoint stores (constants in f32).

        Raises:
            BadInput: the checkpoint has no such weight.
        """
        if role in (COS, SIN):
            cos, sin = rope_tables(self._checkpoint.config, self._plan.seq)
            return (cos if role == COS else sin)[:, None, :]
        if role == TILE:
            return np.triu(np.full((self._plan.tile, self._plan.tile), MASK_FILL, np.float32), 1)
        module, _, part = role.rpartition(".")
        if part not in _PARTS:
            return self._checkpoint.weights[role]
        packed = self._pack(module)
        array = {
            "qweight": packed.weight,
            "scales": packed.scales,
            "qzeros": packed.zeros,
            "permutation": packed.permutation,
        }[part]
        if array is None:
            raise BadInput(f"{module} has no permutation.")
        return array

    def _pack(self, module: str) -> ChipWeight:
        if self._packed is None or self._packed.layer != module:
            weight = self._checkpoint.linear(module)
            if not isinstance(weight, GroupQuantised):
                raise BadInput(f"{module} is not quantised in the checkpoint.")
            self._packed = pack_for_chip(weight)
        return self._packed
