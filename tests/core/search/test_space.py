import json
from random import Random

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from core.errors import ComplabError
from core.search.advisors.adversarial import HOSTILE_TEXTS
from core.search.space import Choice, Condition, IntRange, Order, Rule, Space, Subset, Text
from tests.core.search.toy import DEFAULT, SPACE

names = st.sampled_from(["a", "b", "c", "d"])
items = st.lists(st.sampled_from("vwxyz"), min_size=1, unique=True).map(tuple)


@st.composite
def domains(draw):
    optional = draw(st.booleans())
    match draw(st.sampled_from(["choice", "int", "subset", "order"])):
        case "choice":
            values = st.one_of(st.booleans(), st.integers(-9, 9), st.floats(-1, 1), st.sampled_from(["on", "off"]))
            unique = st.lists(values, min_size=1, max_size=5, unique_by=lambda v: (type(v), v))
            return Choice(values=tuple(draw(unique)), optional=optional)
        case "int":
            low = draw(st.integers(-50, 50))
            high = low + draw(st.integers(0, 300))
            scale = draw(st.sampled_from(["linear", "log"]))
            return IntRange(low=low, high=high, step=draw(st.integers(1, 7)), scale=scale, optional=optional)
        case "subset":
            chosen = draw(items)
            least = draw(st.integers(0, len(chosen)))
            most = draw(st.integers(least, len(chosen)))
            return Subset(items=chosen, least=least, most=most, optional=optional)
        case _:
            chosen, repeats = draw(items), draw(st.booleans())
            least = draw(st.integers(0, len(chosen)))
            most = draw(st.integers(least, len(chosen) + 2 * repeats))
            return Order(items=chosen, least=least, most=most, repeats=repeats, optional=optional)


spaces = st.dictionaries(names, domains(), min_size=1).map(lambda fields: Space(fields=fields))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(spaces, st.integers(0, 2**31))
def test_samples_are_valid_canonical_and_fit_the_json_schema(space, seed):
    payload = space.sample(Random(seed))
    assert space.errors(payload) == ()
    assert space.canonical(payload) == payload
    jsonschema.validate(payload, space.json_schema())
    assert space.sample(Random(seed)) == payload


@given(spaces, st.integers(0, 2**31))
def test_varying_gives_another_valid_payload_in_one_field(space, seed):
    rng = Random(seed)
    payload = space.sample(rng)
    if space.size == 1:
        with pytest.raises(ComplabError, match="can be varied"):
            space.vary(payload, rng)
        return
    other = space.vary(payload, rng)
    assert space.errors(other) == ()
    # As JSON, because Python takes False for 0 and 1.0 for 1.
    assert sum(as_json(payload, n) != as_json(other, n) for n in space.fields) == 1


def as_json(payload, name):
    return json.dumps(payload[name]) if name in payload else None


@given(spaces, st.integers(0, 2**31))
def test_neighbours_are_valid_and_never_the_payload_itself(space, seed):
    payload = space.sample(Random(seed))
    near = list(space.neighbours(payload))
    assert all(space.errors(other) == () for other in near)
    texts = [json.dumps(other) for other in near]
    assert json.dumps(payload) not in texts


@given(spaces)
def test_a_space_survives_json(space):
    assert Space.model_validate_json(space.model_dump_json()) == space


@given(spaces, st.dictionaries(names | st.text(max_size=3), json_values))
def test_any_json_is_either_valid_by_the_schema_too_or_told_why_not(space, payload):
    errors = space.errors(payload)
    assert all(isinstance(e, str) and len(e) < 400 for e in errors)
    if not errors:
        jsonschema.validate(payload, space.json_schema())


def test_the_size_counts_every_payload():
    space = Space(
        fields={
            "c": Choice(values=(1, 2), optional=True),
            "s": Subset(items=("x", "y", "z"), least=1, most=2),
            "o": Order(items=("p", "q"), most=2),
            "r": IntRange(low=0, high=10, step=5),
        }
    )
    seen, frontier = set(), [space.sample(Random(0))]
    while frontier:
        payload = frontier.pop()
        if (key := json.dumps(payload, sort_keys=True)) not in seen:
            seen.add(key)
            frontier += space.neighbours(payload)
    assert len(seen) == space.size == 3 * 6 * 5 * 3
    assert Space(fields={"t": Text()}).size is None


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("unroll", 9, "field 'unroll': 9 is outside 0..8"),
        ("unroll", True, "field 'unroll': True is not an integer"),
        ("unroll", 2.0, "field 'unroll': 2.0 is not an integer"),
        ("width", "8", "field 'width': '8' is not one of its values: known: 1, 2, 4, 8"),
        ("width", True, "field 'width': True is not one of its values: known: 1, 2, 4, 8"),
        ("passes", ["lic"], "field 'passes': 'lic' is not one of its items: did you mean 'licm'?"),
        ("passes", ["gvn", "gvn"], "field 'passes': ['gvn', 'gvn'] names an item twice"),
        ("order", ["a"], "field 'order': 1 items are named; 3 to 3 are allowed"),
        ("order", "abc", "field 'order': 'abc' is not a list"),
        ("widht", 4, "unknown field 'widht': did you mean 'width'?"),
    ],
)
def test_errors_name_field_value_and_near_names(field, value, message):
    assert SPACE.errors({**DEFAULT.payload, field: value}) == (message,)


def test_a_missing_field_and_a_broken_rule_are_named():
    payload = dict(DEFAULT.payload)
    del payload["order"]
    assert SPACE.errors(payload) == ("field 'order' is missing",)
    (error,) = SPACE.errors({**DEFAULT.payload, "width": 8, "unroll": 5})
    assert error == "width = 8 requires unroll <= 4 (eight lanes leave few registers)"


def test_rules_compare_fields_with_each_other_and_see_absent_ones():
    space = Space(
        fields={
            "low": IntRange(low=0, high=9),
            "high": IntRange(low=0, high=9),
            "mode": Choice(values=("x",), optional=True),
        },
        requires=(
            Rule(then=(Condition(field="low", op="le", other="high"),), why="a range is not empty"),
            Rule(
                when=(Condition(field="mode", op="present"),),
                then=(Condition(field="low", op="in", value=[1, 2]),),
                why="mode x starts at 1 or 2",
            ),
        ),
    )
    assert space.errors({"low": 3, "high": 3}) == ()
    assert space.errors({"low": 4, "high": 3}) == ("low <= high (a range is not empty)",)
    assert len(space.errors({"low": 4, "high": 5, "mode": "x"})) == 1
    assert all(not space.errors(space.sample(Random(i))) for i in range(50))


def test_a_rule_about_an_unknown_field_is_refused():
    with pytest.raises(ValidationError, match="names the unknown field 'nope'"):
        Space(fields={}, requires=(Rule(then=(Condition(field="nope", op="present"),), why=""),))


def test_impossible_rules_are_an_error_not_a_hang():
    space = Space(
        fields={"a": IntRange(low=0, high=9)}, requires=(Rule(then=(Condition(field="a", op="gt", value=9),), why=""),)
    )
    with pytest.raises(ComplabError, match="rules leave too little"):
        space.sample(Random(0))


def test_text_is_never_sampled_or_varied():
    space = Space(fields={"code": Text(), "n": IntRange(low=0, high=1)})
    with pytest.raises(ComplabError, match="'code' is text"):
        space.sample(Random(0))
    assert [p["code"] for p in space.neighbours({"code": "x", "n": 0})] == ["x"]
    assert Space(fields={"code": Text(optional=True)}).sample(Random(0)) == {}


@pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=range(len(HOSTILE_TEXTS)))
def test_hostile_values_are_refused_in_short_messages(text):
    for name in SPACE.fields:
        (error,) = SPACE.errors({**DEFAULT.payload, name: text})
        assert len(error) < 300
    (error,) = SPACE.errors({**DEFAULT.payload, text: 1})
    assert len(error) < 300
    assert error.isprintable()


def test_two_listings_of_one_subset_are_one_payload():
    a = SPACE.canonical({**DEFAULT.payload, "passes": ["gvn", "licm"]})
    assert a == SPACE.canonical({**DEFAULT.payload, "passes": ["licm", "gvn"]})


def test_a_logarithmic_range_prefers_small_values():
    domain = IntRange(low=0, high=1000, scale="log")
    draws = sorted(domain.sample(Random(i)) for i in range(500))
    assert draws[250] < 60
    assert draws[-1] > 800
