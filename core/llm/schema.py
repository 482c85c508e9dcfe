"""From a pydantic model to the strict JSON-schema subset that servers enforce, and from an answer back to the model."""

import json
from typing import Any, TypeVar

import jsonschema
from pydantic import BaseModel, ValidationError

M = TypeVar("M", bound=BaseModel)

_KEPT = (
    "type",
    "enum",
    "const",
    "description",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
)
_DROPPED = ("title", "default", "discriminator", "examples", "format")
_ANSWER_CAP_CHARS = 1 << 20


class UnfitSchema(ValueError):
    """A model whose answers cannot be bounded or enforced: a mistake of the programmer, not of the user."""


def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a model in the strict subset, references resolved.

    All objects are closed and all their properties required; every string and array is bounded, so that an answer has
    a largest size.

    Raises:
        UnfitSchema: the model has an open object, an unbounded string or array, or refers to itself.
    """
    schema = model.model_json_schema(mode="validation")
    definitions = schema.pop("$defs", {})
    return _strict(schema, definitions, model.__name__, ())


def wire_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without `uniqueItems`, which servers ignore or refuse; it is checked afterwards."""
    wire = {name: value for name, value in schema.items() if name != "uniqueItems"}
    if "properties" in wire:
        wire["properties"] = {name: wire_schema(part) for name, part in wire["properties"].items()}
    if "items" in wire:
        wire["items"] = wire_schema(wire["items"])
    if "anyOf" in wire:
        wire["anyOf"] = [wire_schema(option) for option in wire["anyOf"]]
    return wire


def token_bound(schema: dict[str, Any]) -> int:
    """Return how many tokens an answer may take: every part at its largest, at three characters of text a token."""
    return 16 + _size(schema)


def parse_answer(text: str, model: type[M], schema: dict[str, Any]) -> M:
    """Return the validated instance in an answer, tolerating prose and fences around one JSON object.

    Raises:
        ValueError: no, or more than one, JSON object; or it does not fit. The message is written for the model.
    """
    value = check_json(text, schema)
    try:
        return model.model_validate_json(json.dumps(value))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise ValueError(f"{'/'.join(map(str, first['loc'])) or 'the object'}: {first['msg'][:300]}") from error


def check_json(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON object in an answer, validated against a schema.

    Raises:
        ValueError: as `parse_answer`.
    """
    value = find_json(text)
    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(value))
    if error is not None:
        raise ValueError(f"{'/'.join(map(str, error.path)) or 'the object'}: {error.message[:300]}")
    return value


def find_json(text: str) -> dict[str, Any]:
    """Return the one JSON object in a text. Duplicate names, NaN and infinities are refused.

    Raises:
        ValueError: there is none, or more than one.
    """
    if len(text) > _ANSWER_CAP_CHARS:
        raise ValueError(f"the answer has {len(text)} characters, at most {_ANSWER_CAP_CHARS} are read")
    try:
        whole = _DECODER.decode(text.strip())
    except _Refused as error:
        raise ValueError(str(error)) from error
    except (ValueError, RecursionError):
        whole = None
    if isinstance(whole, dict):
        return whole
    if whole is not None:
        raise ValueError("the answer is JSON, but not an object")
    found: list[dict[str, Any]] = []
    position = text.find("{")
    while position != -1 and len(found) < 2:
        try:
            value, end = _DECODER.raw_decode(text, position)
            found.append(value)
        except _Refused as error:
            raise ValueError(str(error)) from error
        except (ValueError, RecursionError):
            end = position + 1
            if found == [] and text.count("{") > 200:
                break  # a wall of braces would make this quadratic
        position = text.find("{", end)
    if len(found) != 1:
        raise ValueError(
            "the answer holds no complete JSON object" if not found else "the answer holds several JSON objects"
        )
    return found[0]


class _Refused(Exception):
    """Well-formed, but not a value that may be used."""


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) != len(pairs):
        raise _Refused("a name occurs twice in one JSON object")
    return names


def _no_constant(name: str) -> None:
    raise _Refused(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_names, parse_constant=_no_constant)


def _strict(schema: dict[str, Any], definitions: dict[str, Any], path: str, above: tuple[str, ...]) -> dict[str, Any]:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name in above:
            raise UnfitSchema(f"{path} refers to itself: answers have no largest size.")
        return _strict(
            definitions[name] | {k: v for k, v in schema.items() if k != "$ref"}, definitions, path, (*above, name)
        )
    strict = {name: schema[name] for name in _KEPT if name in schema}
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        strict["anyOf"] = [_strict(option, definitions, path, above) for option in options]
    kind = schema.get("type")
    if kind == "object":
        if "properties" not in schema or schema.get("additionalProperties") not in (None, False):
            raise UnfitSchema(f"{path} is an object with free names: give it fields, or use a list of pairs.")
        strict["properties"] = {
            name: _strict(part, definitions, f"{path}.{name}", above) for name, part in schema["properties"].items()
        }
        strict["required"] = list(schema["properties"])
        strict["additionalProperties"] = False
    elif kind == "array":
        if "items" not in schema or "maxItems" not in schema:
            raise UnfitSchema(f"{path} is an array without a largest length: give it max_length.")
        strict["items"] = _strict(schema["items"], definitions, f"{path}[]", above)
    elif kind == "string" and not ({"enum", "const", "maxLength"} & schema.keys()):
        raise UnfitSchema(f"{path} is a string without a largest length: give it max_length, or make it a Literal.")
    elif not (options or kind or "enum" in schema or "const" in schema):
        raise UnfitSchema(f"{path} may be anything: give it a type.")
    unknown = (
        schema.keys()
        - set(_KEPT)
        - set(_DROPPED)
        - {"anyOf", "oneOf", "properties", "required", "additionalProperties", "items", "$ref"}
    )
    if unknown:
        raise UnfitSchema(f"{path} uses {', '.join(sorted(unknown))}, which servers don't enforce.")
    return strict


def _size(schema: dict[str, Any]) -> int:
    if "anyOf" in schema:
        return max(_size(option) for option in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return max(2 + -(-len(json.dumps(value)) // 2) for value in values)
    match schema.get("type"):
        case "object":
            return 2 + sum(4 + -(-len(name) // 2) + _size(part) for name, part in schema["properties"].items())
        case "array":
            return 2 + int(schema["maxItems"]) * (1 + _size(schema["items"]))
        case "string":
            return 2 + -(-int(schema["maxLength"]) // 3)
        case "number" | "integer":
            return 12
        case _:
            return 2
