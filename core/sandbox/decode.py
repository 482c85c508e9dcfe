"""Turns payloads from confined code into values: schema first, sizes checked before memory is taken, never a pickle."""

import io
import json
import math
import zipfile
from collections.abc import Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np
from pydantic import ValidationError

from core.errors import ComplabError
from core.records import Json, Record

R = TypeVar("R", bound=Record)
Arrays = dict[str, np.ndarray[Any, Any]]

DTYPES = {
    "BOOL": "?", "U8": "<u1", "I8": "<i1", "U16": "<u2", "I16": "<i2", "F16": "<f2", "U32": "<u4", "I32": "<i4",
    "F32": "<f4", "U64": "<u8", "I64": "<i8", "F64": "<f8", "C64": "<c8",
}  # fmt: skip
"""Names of the safetensors format."""
_MAX_DIMENSIONS = 16
_MAX_ARRAYS = 4096


class Malformed(ComplabError):
    """Confined code sent something that is not what was asked for."""


def decode_json(payload: bytes, model: type[R]) -> R:
    """Parse JSON against a model.

    Raises:
        Malformed: it is not JSON, or not of this shape; NaN and infinities are refused.
    """
    return validate(parse_json(payload), model)


def parse_json(payload: bytes) -> Json:
    """Parse strict JSON.

    Raises:
        Malformed: it is not UTF-8 or not JSON, has NaN, or is nested too deeply.
    """
    try:
        value: Json = json.loads(payload.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"The confined code's answer is not JSON ({error}).") from error
    return value


def validate(value: Json, model: type[R]) -> R:
    """Check a JSON value against a model.

    Raises:
        Malformed: it has another shape; the message names the first few places.
    """
    try:
        return model.model_validate_json(json.dumps(value))
    except (ValidationError, RecursionError) as error:
        places = "; ".join(
            f"{'.'.join(map(str, e['loc'])) or 'the answer'}: {e['msg']}" for e in error.errors()[:3]
        ) if isinstance(error, ValidationError) else "nested too deeply"  # fmt: skip
        raise Malformed(f"The confined code's answer does not fit {model.__name__} ({places}).") from error


def decode_npy(payload: bytes) -> np.ndarray[Any, Any]:
    """Read one .npy array.

    Raises:
        Malformed: it is no .npy file, holds objects, or its header claims another size than the data has.
    """
    stream = io.BytesIO(payload)
    try:
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
        if read is None:
            raise ValueError(f"version {version}")
        shape, fortran, dtype = read(stream)
        _check_array(dtype, shape, len(payload) - stream.tell())
        data = np.frombuffer(payload, dtype=dtype, offset=stream.tell())
        return data.reshape(shape, order="F" if fortran else "C").copy()
    except (ValueError, TypeError, SyntaxError, EOFError) as error:
        raise Malformed(f"The confined code's array is not a plain .npy ({error}).") from error


def decode_npz(payload: bytes, cap_bytes: int) -> Arrays:
    """Read the arrays of an .npz.

    Args:
        payload: the zip file.
        cap_bytes: most bytes of all arrays unpacked.

    Raises:
        Malformed: as `decode_npy`, or the archive is broken or unpacks to more than the cap.
    """
    arrays: Arrays = {}
    left = cap_bytes
    try:
        with zipfile.ZipFile(io.BytesIO(payload)) as archive:
            members = archive.infolist()
            if len(members) > _MAX_ARRAYS:
                raise Malformed(f"The confined code's .npz has {len(members)} members; {_MAX_ARRAYS} are allowed.")
            for member in members:
                with archive.open(member) as file:  # what the directory says of sizes is not trusted
                    content = file.read(left + 1)
                left -= len(content)
                if left < 0:
                    raise Malformed(f"The confined code's .npz unpacks to more than {cap_bytes} bytes.")
                arrays[member.filename.removesuffix(".npy")] = decode_npy(content)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise Malformed(f"The confined code's .npz cannot be read ({error}).") from error
    return arrays


def decode_message(payload: bytes) -> tuple[Json, Arrays]:
    """Unpack a safetensors file whose metadata entry `document` is JSON, from a sender that nobody trusts.

    Raises:
        Malformed: header, dtype, shape or offsets do not fit the data to the byte.
    """
    size = int.from_bytes(payload[:8], "little")
    if len(payload) < 8 or size > len(payload) - 8:
        raise Malformed("The confined code's message is cut off in its header.")
    header, body = parse_json(payload[8 : 8 + size]), memoryview(payload)[8 + size :]
    if not isinstance(header, dict) or len(header) > _MAX_ARRAYS:
        raise Malformed("The confined code's message has no usable header.")
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or not isinstance(text := metadata.get("document"), str):
        raise Malformed("The confined code's message has no document.")
    arrays: Arrays = {}
    at = 0
    for name, entry in header.items():
        match entry:
            case {"dtype": str(kind), "shape": list(shape), "data_offsets": [int(start), int(end)]} if kind in DTYPES:
                dtype = np.dtype(DTYPES[kind])
            case _:
                raise Malformed(f"The confined code's array {name[:80]!r} is not described as safetensors does.")
        if start != at or not start <= end <= len(body):
            raise Malformed(f"The confined code's array {name[:80]!r} has offsets outside its data.")
        try:
            _check_array(dtype, shape, end - start)
        except ValueError as error:
            raise Malformed(f"The confined code's array {name[:80]!r} does not fit its data ({error}).") from error
        arrays[name] = np.frombuffer(body[start:end], dtype=dtype).reshape(tuple(shape)).copy()
        at = end
    if at != len(body):
        raise Malformed("The confined code's message has bytes that belong to no array.")
    return parse_json(text.encode()), arrays


def _check_array(dtype: np.dtype[Any], shape: Sequence[Any], size_bytes: int) -> None:
    if dtype.hasobject or dtype.names is not None or dtype.itemsize == 0:
        raise ValueError(f"dtype {dtype} is not a plain number")
    if len(shape) > _MAX_DIMENSIONS or not all(type(n) is int and 0 <= n <= 2**62 for n in shape):
        raise ValueError(f"shape {str(shape)[:80]}")
    if math.prod(shape) * dtype.itemsize != size_bytes:
        raise ValueError(f"shape {shape} of {dtype} needs other than {size_bytes} bytes")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
