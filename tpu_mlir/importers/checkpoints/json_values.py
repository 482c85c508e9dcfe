"""Typed access to the values of a parsed JSON file; what has the wrong type is an error that names file and key."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from core.errors import BadInput

Json = Mapping[str, Any]
LARGEST = 2**31 - 1


def read_json(file: Path) -> dict[str, Any]:
    """Return a JSON object from a file.

    Raises:
        BadInput: the file is missing or holds no JSON object; names it.
    """
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BadInput(f"{file} is missing.", "Give a complete Hugging Face checkpoint directory.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{file} cannot be read as JSON: {error}.", "Download it again.") from error
    if not isinstance(value, dict):
        raise BadInput(f"{file} holds {type(value).__name__}, expected a JSON object.")
    return value


def integer(raw: Json, key: str, source: str, default: int | None = None, least: int = 1) -> int:
    """Return an integer of at least ``least``; the default when the key is absent, null or (if it may not be) 0.

    Raises:
        BadInput: the value is no such integer, or is absent without a default.
    """
    value = raw.get(key)
    if default is not None and (value is None or (value == 0 and least > 0)):
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= LARGEST:
        kind = {0: "an integer from 0", 1: "a positive integer"}[least]
        raise BadInput(f"{source}: {key} is {_short(value)}, expected {kind}.")
    return value


def number(raw: Json, key: str, source: str, default: float) -> float:
    """Return a finite positive number, the default when the key is absent or null.

    Raises:
        BadInput: the value is no such number.
    """
    value = raw.get(key)
    if value is None:
        return default
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e30 or math.isnan(value):
        raise BadInput(f"{source}: {key} is {_short(value)}, expected a positive number.")
    return float(value)


def numbers(raw: Json, key: str, source: str) -> tuple[float, ...]:
    """Return a list of finite positive numbers, empty when the key is absent or null.

    Raises:
        BadInput: the value is no list of such numbers.
    """
    value = raw.get(key)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise BadInput(f"{source}: {key} is {_short(value)}, expected a list of numbers.")
    return tuple(number({key: item}, key, source, math.nan) for item in value if item is not None)


def flag(raw: Json, key: str, source: str, default: bool = False) -> bool:
    """Return true or false, the default when the key is absent or null.

    Raises:
        BadInput: the value is neither.
    """
    value = raw.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise BadInput(f"{source}: {key} is {_short(value)}, expected true or false.")
    return value


def json_object(raw: Json, key: str, source: str) -> dict[str, Any]:
    """Return an object, empty when the key is absent or null.

    Raises:
        BadInput: the value is no object.
    """
    value = raw.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadInput(f"{source}: {key} is {_short(value)}, expected an object.")
    return value


def first_problem(error: ValidationError) -> str:
    """Return the first problem of a record that could not be made, with its field."""
    problem = error.errors()[0]
    where = ".".join(map(str, problem["loc"]))
    return f"{where}: {problem['msg']}" if where else str(problem["msg"])


def _short(value: Any) -> str:
    # Digits of huge integers can't be printed, and no message needs them.
    huge = isinstance(value, int) and abs(value) > 10**30
    return "a huge integer" if huge else repr(value)[:80]
