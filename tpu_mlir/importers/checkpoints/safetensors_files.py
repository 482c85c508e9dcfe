"""Safetensors checkpoints: one file, or shards with an index."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from safetensors import SafetensorError, safe_open

from core.errors import BadInput
from tpu_mlir.importers.checkpoints.weights import Array, TensorInfo, Weights

INDEX = "model.safetensors.index.json"
DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype(np.float64),
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "I64": np.dtype(np.int64),
    "I32": np.dtype(np.int32),
    "I16": np.dtype(np.int16),
    "I8": np.dtype(np.int8),
    "U8": np.dtype(np.uint8),
    "BOOL": np.dtype(np.bool_),
}


@dataclass(frozen=True, slots=True)
class _Place:
    info: TensorInfo
    offset_bytes: int


class SafetensorsWeights(Weights):
    """Tensors of one or several safetensors files, each memory mapped on access."""

    def __init__(self, places: dict[str, _Place]) -> None:
        super().__init__({name: place.info for name, place in places.items()})
        self._places = places

    def __getitem__(self, name: str) -> Array:
        """Map a tensor into memory, read only."""
        info = self.info(name)
        if 0 in info.shape:
            return np.empty(info.shape, dtype=info.dtype)
        # A scalar's shape () needs a detour: memmap has no zero-dimensional arrays.
        mapped = np.memmap(
            info.file, dtype=info.dtype, mode="r", offset=self._places[name].offset_bytes, shape=info.shape or (1,)
        )
        return np.asarray(mapped).reshape(info.shape)


def open_safetensors(directory: Path) -> SafetensorsWeights:
    """Open the safetensors files of a Hugging Face directory.

    Raises:
        BadInput: there are none, a shard is missing or truncated, an index does not agree with its shards, or a tensor
            has a type that is not known; names the file.
    """
    index = directory / INDEX
    if index.is_file():
        return _open_index(index)
    files = sorted(directory.glob("*.safetensors"))
    numbered = [
        (file, match) for file in files if (match := re.fullmatch(r"(.*)-(\d+)-of-(\d+)\.safetensors", file.name))
    ]
    for file, match in numbered:
        total = int(match[3])
        present = {int(other[2]) for _, other in numbered if other[1] == match[1]}
        missing = sorted(set(range(1, total + 1)) - present)
        if missing:
            raise BadInput(
                f"{directory}: {file.name} is one of {total} shards; missing: {', '.join(map(str, missing))}.",
                "Download the checkpoint again.",
            )
    if not files:
        other = next(iter(sorted([*directory.glob("*.bin"), *directory.glob("*.pt"), *directory.glob("*.pth")])), None)
        if other is not None:
            raise BadInput(
                f"{directory} has {other.name}, but no safetensors file.",
                "Pickled weights can run code and are not read: convert them to safetensors.",
            )
        raise BadInput(
            f"{directory} has no safetensors file.", "Give a Hugging Face checkpoint directory or a .gguf file."
        )
    if not numbered and len(files) > 1:
        single = directory / "model.safetensors"
        if single not in files:
            names = ", ".join(file.name for file in files)
            raise BadInput(
                f"{directory} has several safetensors files ({names}) and no {INDEX}.", "Keep one, or add the index."
            )
        files = [single]
    return SafetensorsWeights(_merged(files))


def _open_index(index: Path) -> SafetensorsWeights:
    try:
        weight_map = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        shards = {name: str(shard) for name, shard in weight_map.items()}
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise BadInput(f"{index} is not a safetensors index: {error!r}.", "Download it again.") from error
    names = sorted(set(shards.values()))
    outside = [name for name in names if Path(name).name != name]
    if outside:
        raise BadInput(f"{index} names a shard outside its directory: {outside[0]}.", "Only plain file names are read.")
    missing = [name for name in names if not (index.parent / name).is_file()]
    if missing:
        raise BadInput(f"{index.parent}: shards missing: {', '.join(missing)}.", "Download the checkpoint again.")
    places = _merged([index.parent / name for name in names])
    for name, shard in shards.items():
        if name not in places or places[name].info.file.name != shard:
            raise BadInput(
                f"{index} says that {name} is in {shard}, which has no such tensor.", "The shards do not match."
            )
    return SafetensorsWeights(places)


def _merged(files: list[Path]) -> dict[str, _Place]:
    places: dict[str, _Place] = {}
    for file in files:
        for name, place in _read_header(file).items():
            if name in places:
                raise BadInput(
                    f"{name} is in {places[name].info.file.name} and in {file.name}.", "Remove one of the files."
                )
            places[name] = place
    return places


def _read_header(file: Path) -> dict[str, _Place]:
    # The library checks the header (bounds, overlaps, file size); the offsets, which it keeps to itself, are read
    # after it.
    try:
        with safe_open(file, framework="numpy"):
            pass
    except (SafetensorError, OSError) as error:
        raise BadInput(f"{file} is damaged or truncated: {error}.", "Download it again.") from error
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(length))
    places = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in DTYPES:
            raise BadInput(
                f"{file}: {name} has type {entry['dtype']}, which is not supported.", f"Known: {', '.join(DTYPES)}."
            )
        info = TensorInfo(
            name=name, shape=tuple(entry["shape"]), dtype=DTYPES[entry["dtype"]], stored=entry["dtype"], file=file
        )
        places[name] = _Place(info, 8 + length + entry["data_offsets"][0])
    return places
