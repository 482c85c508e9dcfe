"""Named tensors that are read one at a time."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from core.errors import BadInput

Array = npt.NDArray[Any]
Other = TypeVar("Other")
FLOATS = ("float16", "bfloat16", "float32", "float64")
"""Types that weights may have."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorInfo:
    """What is known of a tensor without reading it."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    """The type of the array that reading gives."""
    stored: str
    """The type in the file, such as BF16 or Q4_1."""
    file: Path


class UnknownTensor(BadInput, KeyError):
    """No such tensor. A KeyError too, as a mapping promises."""

    def __str__(self) -> str:
        return Exception.__str__(self)


class Weights(Mapping[str, Array]):
    """Tensors by Hugging Face name. Each access reads that tensor alone and keeps nothing.

    Tensors stored as they are come memory mapped: their pages leave memory with the array. Tensors that must be
    converted are converted on access. Peak memory is that of the tensors the caller holds.
    """

    def __init__(self, infos: Mapping[str, TensorInfo]) -> None:
        self._infos = dict(infos)

    @abstractmethod
    def __getitem__(self, name: str) -> Array:
        """Read a tensor.

        Raises:
            UnknownTensor: there is none of that name.
        """

    def __iter__(self) -> Iterator[str]:
        """Iterate over names in file order."""
        return iter(self._infos)

    def __len__(self) -> int:
        """Count tensors."""
        return len(self._infos)

    def __contains__(self, name: object) -> bool:
        """Tell whether there is such a tensor, without reading it."""
        return name in self._infos

    def info(self, name: str) -> TensorInfo:
        """Return what is known of a tensor without reading it.

        Raises:
            UnknownTensor: there is none of that name.
        """
        if name not in self._infos:
            close = get_close_matches(name, self._infos, n=1)
            raise UnknownTensor(f"The checkpoint has no tensor {name}.", f"Did you mean {close[0]}?" if close else "")
        return self._infos[name]

    @overload
    def get(self, name: str, /) -> Array | None: ...
    @overload
    def get(self, name: str, default: Array, /) -> Array: ...
    @overload
    def get(self, name: str, default: Other, /) -> Array | Other: ...
    def get(self, name: str, default: object = None, /) -> object:
        """Read a tensor if it is there; unlike the inherited method, without making an error of a missing one."""
        if name not in self:
            return default
        return self[name]


def require(weights: Weights, name: str, shape: tuple[int, ...]) -> None:
    """Check that there is a tensor of floats of that shape, without reading it.

    Raises:
        BadInput: the tensor is missing, or its shape or type is another; names file, tensor, what was found and
            expected.
    """
    info = weights.info(name)
    if info.shape != shape:
        raise BadInput(
            f"{info.file.name}: {name} has shape {list(info.shape)}, expected {list(shape)}.",
            "The weights do not belong to this configuration.",
        )
    if info.dtype.name not in FLOATS:
        raise BadInput(f"{info.file.name}: {name} has type {info.stored}, expected a float type.")
