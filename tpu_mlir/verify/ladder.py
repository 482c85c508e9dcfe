"""Runs a model on the host at both dialect levels and compares every tensor: top in f32, tpu as the chip rounds.

Each lowered program gets the inputs that its `top` counterpart had, so an error is found in the program that makes it.
Layers are streamed: one layer's weights are in memory at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from core.errors import BadInput
from core.records import Record
from tpu_mlir.dialects import adapter
from tpu_mlir.dialects.interpret import Trace, run
from tpu_mlir.dialects.types import Array
from tpu_mlir.importers.checkpoints.checkpoint import Checkpoint
from tpu_mlir.importers.constants import RoleConstants
from tpu_mlir.importers.decoder_pieces import Piece, pieces
from tpu_mlir.importers.layer_weights import LayerWeights
from tpu_mlir.importers.plan import MASK_FILL, Plan
from tpu_mlir.transforms.fold_casts import FoldCasts
from tpu_mlir.transforms.lower_to_tpu import LowerToTpu
from tpu_mlir.transforms.passes import run_passes
from tpu_mlir.transforms.strip_io_casts import StripIoCasts
from tpu_mlir.verify.metrics import HINTS, TensorReport, compare


class NetReport(Record):
    """One program: all its tensors at the lower level against the higher one."""

    net: str
    tensors: tuple[TensorReport, ...]

    @property
    def worst(self) -> TensorReport:
        """The tensor with the least cosine."""
        return min(self.tensors, key=lambda t: (t.max_error is not None, t.cosine, t.euclid))

    @property
    def hint(self) -> str:
        """What to do about the worst tensor; empty when there is nothing to do."""
        return "" if self.worst.trouble is None else HINTS[self.worst.trouble]


@dataclass
class _Run:
    """Where the reference stands: hidden states of the prefilled rows and of the one decoded token."""

    ids: Sequence[int]
    plan: Plan
    prefill: Array = field(init=False)
    decode: Array = field(init=False)
    cache: list[Array] = field(init=False)

    def inputs(self, piece: Piece) -> list[Array]:
        """Return the inputs of a program, in f32 and si32."""
        rows, n = self.plan.prefill, len(self.ids) - 1
        if piece.net == "embedding":
            return [np.array([[*self.ids[:-1], *[0] * (rows - n)]], np.int32)]
        if piece.net == "embedding_cache":
            return [np.array([[self.ids[-1]]], np.int32)]
        if piece.net.startswith("block_cache_"):
            length = self.plan.seq
            mask = np.full((1, 1, 1, length + 1), MASK_FILL, np.float32)
            mask[..., :n] = mask[..., -1] = 0
            return [self.decode, np.array([[n]], np.int32), mask, *self.cache]
        if piece.net.startswith("block_"):
            return [self.prefill, np.arange(rows, dtype=np.int32)[None]]
        return [self.decode[:, 0]]

    def advance(self, piece: Piece, outputs: Sequence[Array]) -> None:
        """Take the reference's outputs as the next programs' inputs."""
        if piece.net == "embedding" or (piece.net.startswith("block_") and "cache" not in piece.net):
            self.prefill = outputs[0]
            self.cache = [self._stored(rows) for rows in outputs[1:]]
        elif piece.net == "embedding_cache" or piece.net.startswith("block_cache_"):
            self.decode = outputs[0]

    def _stored(self, rows: Array) -> Array:
        n = len(self.ids) - 1
        stored = np.zeros((1, self.plan.seq, *rows.shape[2:]), rows.dtype)
        stored[:, :n] = rows[:, :n]
        return stored


def climb(checkpoint: Checkpoint, ids: Sequence[int], plan: Plan, lowering: LowerToTpu) -> Iterator[NetReport]:
    """Yield a report for every program: ids but the last are prefilled, the last is decoded.

    Raises:
        BadInput: fewer than two ids, more than the plan holds, ids outside the vocabulary, or what importing and
            lowering refuse.
    """
    if not 2 <= len(ids) <= plan.prefill + 1 or plan.history or plan.decode or plan.mask != "tile":
        raise BadInput(f"{len(ids)} ids do not fit a prefill of {plan.prefill} rows and one decoded token.")
    if not all(0 <= i < checkpoint.config.vocab_size for i in ids):
        raise BadInput(f"Ids must lie in 0..{checkpoint.config.vocab_size - 1}.")
    weights = LayerWeights(checkpoint, plan)
    constants = RoleConstants(weights.read)
    state = _Run(ids=ids, plan=plan)
    for piece in pieces(checkpoint.config, plan):
        forms = weights.forms(piece.weights)
        given = state.inputs(piece)
        reference = run(piece.build(forms), given, constants)
        lowered = piece.build(forms)
        run_passes(lowered, (lowering, FoldCasts(), StripIoCasts()))
        (function,) = adapter.functions(lowered)
        kinds = [adapter.tensor_type(a).dtype.numpy for a in adapter.arguments(function)]
        candidate = run(lowered, [a.astype(k) for a, k in zip(given, kinds, strict=True)], constants)
        yield NetReport(net=piece.net, tensors=_compared(reference, candidate))
        state.advance(piece, reference.outputs)


def _compared(reference: Trace, candidate: Trace) -> tuple[TensorReport, ...]:
    """Compare the tensors that both levels name and that are not constants."""
    names = [n for n in reference.tensors if n in candidate.tensors]
    pairs = ((n, reference.tensors[n], candidate.tensors[n]) for n in names)
    return tuple(compare(n, a, b) for n, a, b in pairs if a.shape == b.shape)
