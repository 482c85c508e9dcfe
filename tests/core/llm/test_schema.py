"""Every answer has a largest size, and nothing but a value of the model's type comes out of a text."""

import contextlib
import json
from typing import Any, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from core.llm.schema import UnfitSchema, find_json, parse_answer, strict_schema, token_bound, wire_schema


class Pair(BaseModel):
    name: Literal["a", "b"]
    weight: float = Field(ge=0, le=1)


class Answer(BaseModel):
    pairs: list[Pair] = Field(min_length=1, max_length=3)
    note: str | None = Field(default=None, max_length=30)
    tags: set[Literal["x", "y", "z"]] = Field(max_length=3)
    sure: bool = True


def test_references_are_resolved_objects_closed_and_all_fields_required() -> None:
    schema = strict_schema(Answer)
    assert "$defs" not in json.dumps(schema)
    assert schema["required"] == ["pairs", "note", "tags", "sure"]
    assert schema["properties"]["pairs"]["items"]["additionalProperties"] is False
    jsonschema.Draft202012Validator.check_schema(schema)


def test_uniqueness_is_kept_from_the_server_and_checked_afterwards() -> None:
    schema = strict_schema(Answer)
    assert "uniqueItems" in json.dumps(schema)
    assert "uniqueItems" not in json.dumps(wire_schema(schema))
    twice = {"pairs": [{"name": "a", "weight": 0}], "note": None, "tags": ["x", "x"], "sure": True}
    with pytest.raises(ValueError, match=r"tags.*non-unique"):
        parse_answer(json.dumps(twice), Answer, schema)


class Open(BaseModel):
    free: dict[str, int]


class Endless(BaseModel):
    text: str


class Many(BaseModel):
    items: list[int]


class Tree(BaseModel):
    children: "list[Tree]" = Field(max_length=2)


class Anything(BaseModel):
    value: Any


@pytest.mark.parametrize("model", [Open, Endless, Many, Tree, Anything])
def test_a_model_without_a_largest_answer_is_unfit(model: type[BaseModel]) -> None:
    with pytest.raises(UnfitSchema):
        strict_schema(model)


answers = st.fixed_dictionaries(
    {
        "pairs": st.lists(
            st.fixed_dictionaries({"name": st.sampled_from("ab"), "weight": st.floats(0, 1)}), min_size=1, max_size=3
        ),
        "note": st.none() | st.text('abc "\\\n\u00e9', max_size=30),
        "tags": st.lists(st.sampled_from("xyz"), unique=True, max_size=3),
        "sure": st.booleans(),
    }
)


@given(answers, st.sampled_from(["{}", "Sure:\n```json\n{}\n```", "I think {} is best."]))
def test_a_valid_answer_is_read_out_of_any_wrapping(value: dict[str, Any], wrapping: str) -> None:
    text = wrapping.replace("{}", json.dumps(value))
    answer = parse_answer(text, Answer, strict_schema(Answer))
    assert answer.model_dump(mode="json") | {"tags": sorted(answer.tags)} == value | {"tags": sorted(value["tags"])}


@given(answers)
def test_the_token_bound_covers_ordinary_answers(value: dict[str, Any]) -> None:
    assert token_bound(strict_schema(Answer)) >= len(json.dumps(value, ensure_ascii=False)) / 3


@given(st.text('{}[]",:a1 \\', max_size=60))
def test_no_text_makes_the_reader_fail_otherwise_than_by_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(find_json(text), dict)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "3",
        '{"a": 1} {"a": 2}',
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1',
        "{" * 100_000,
        '{"a":' * 100_000,
        "[" * 100_000,
        "x" * (1 << 21),
        '{"a": ' + "9" * 5000 + "}",
    ],
    ids=range(13),
)
def test_what_is_not_one_json_object_is_refused_with_a_short_message(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        find_json(text)
    assert len(str(caught.value)) < 200


def test_numbers_are_not_taken_from_strings_nor_the_other_way_round() -> None:
    schema = strict_schema(Pair)
    with pytest.raises(ValueError, match="weight"):
        parse_answer('{"name": "a", "weight": "0.5"}', Pair, schema)
    with pytest.raises(ValueError, match="name"):
        parse_answer('{"name": 1, "weight": 0.5}', Pair, schema)
