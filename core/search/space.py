"""What may be proposed: named fields, each with a domain, and rules between fields, all as data."""

import math
from collections.abc import Iterator, Mapping
from random import Random
from typing import Literal, Self

from pydantic import Field, model_validator

from core.errors import ComplabError
from core.records import Json, Record
from core.search.domain import Choice, Domain, IntRange, Order, Subset, Text, near, same, shown

__all__ = ["Choice", "Condition", "Domain", "IntRange", "Order", "Payload", "Rule", "Space", "Subset", "Text"]

Payload = dict[str, Json]

_TRIES = 1000
"""Rejection sampling gives up after so many draws: rules that leave less than 0.1% of the space need a better space."""


class Condition(Record):
    """A comparison of a field with a value or with another field. It is false of a field that is left out.

    `present` and `absent` need neither `value` nor `other`; `contains` asks a list field for an item.
    """

    field: str
    op: Literal["eq", "ne", "lt", "le", "gt", "ge", "in", "contains", "present", "absent"]
    value: Json = None
    other: str | None = None

    def holds(self, payload: Mapping[str, Json]) -> bool:
        """Return whether the condition is true of a payload whose fields are each valid."""
        if self.op in ("present", "absent"):
            return (self.field in payload) is (self.op == "present")
        if self.field not in payload or (self.other is not None and self.other not in payload):
            return False
        left, right = payload[self.field], self.value if self.other is None else payload[self.other]
        match self.op:
            case "eq" | "ne":
                return same(left, right) is (self.op == "eq")
            case "in":
                return isinstance(right, list) and any(same(left, item) for item in right)
            case "contains":
                return isinstance(left, list) and right in left
        if not isinstance(left, int | float) or not isinstance(right, int | float):
            return False
        return {"lt": left < right, "le": left <= right, "gt": left > right, "ge": left >= right}[self.op]

    def __str__(self) -> str:
        if self.op in ("present", "absent"):
            return f"{self.field} is {self.op}"
        words = {"eq": "=", "ne": "is not", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
        return (
            f"{self.field} {words.get(self.op, self.op)} {self.other if self.other is not None else shown(self.value)}"
        )


class Rule(Record):
    """When all of `when` holds, all of `then` must hold."""

    when: tuple[Condition, ...] = ()
    then: tuple[Condition, ...] = Field(min_length=1)
    why: str
    """The reason, as people and models read it."""

    def broken(self, payload: Mapping[str, Json]) -> bool:
        """Return whether a payload breaks the rule."""
        return all(c.holds(payload) for c in self.when) and not all(c.holds(payload) for c in self.then)

    def __str__(self) -> str:
        then = " and ".join(map(str, self.then))
        return f"{' and '.join(map(str, self.when))} requires {then}" if self.when else then


class Space(Record):
    """The fields that a proposal may set. All randomness comes from the generator that the caller hands in."""

    fields: dict[str, Domain]
    requires: tuple[Rule, ...] = ()
    set_at_once: int | None = Field(default=None, ge=1)
    """Optional fields that a sample sets on average, where there are many; None: half of them."""

    @model_validator(mode="after")
    def _rules_name_fields(self) -> Self:
        for rule in self.requires:
            for condition in (*rule.when, *rule.then):
                for name in (condition.field, condition.other):
                    if name is not None and name not in self.fields:
                        raise ValueError(f"rule {str(rule)!r} names the unknown field {name!r}")
        return self

    def errors(self, payload: Mapping[str, Json]) -> tuple[str, ...]:
        """Return all that is wrong with a payload, each with the field, the value and near names; () when valid."""
        found = []
        for name in payload:
            if name not in self.fields:
                found.append(f"unknown field {shown(name)}: {near(name, list(self.fields))}")
        for name, domain in self.fields.items():
            if name not in payload:
                if not domain.optional:
                    found.append(f"field {name!r} is missing")
            elif (error := domain.error(payload[name])) is not None:
                found.append(f"field {name!r}: {error}")
        if found:
            return tuple(found)
        return tuple(f"{rule} ({rule.why})" for rule in self.requires if rule.broken(payload))

    def canonical(self, payload: Mapping[str, Json]) -> Payload:
        """Return a valid payload in its one form: fields in the space's order, subsets in their items' order."""
        return {
            name: domain.canonical(payload[name]) if isinstance(domain, Subset) else payload[name]
            for name, domain in self.fields.items()
            if name in payload
        }

    def sample(self, rng: Random) -> Payload:
        """Return one valid payload. An optional field is left out half of the time.

        Raises:
            ComplabError: a required field is Text, or the rules leave too little of the space.
        """
        for name, domain in self.fields.items():
            if isinstance(domain, Text) and not domain.optional:
                raise ComplabError(
                    f"Field {name!r} is text, which cannot be sampled.", "Use an advisor that writes it: expert or llm."
                )
        free = sum(domain.optional and not isinstance(domain, Text) for domain in self.fields.values())
        share = 0.5 if self.set_at_once is None or free == 0 else min(0.5, self.set_at_once / free)
        for _ in range(_TRIES):
            payload: Payload = {}
            for name, domain in self.fields.items():
                if isinstance(domain, Text) or (domain.optional and rng.random() < 1 - share):
                    continue
                payload[name] = domain.sample(rng)
            if not any(rule.broken(payload) for rule in self.requires):
                return payload
        raise ComplabError(
            f"No valid payload in {_TRIES} draws: the rules leave too little of the space.",
            "Make the domains narrower, so that rules are the exception.",
        )

    def moves(self, payload: Mapping[str, Json], name: str) -> Iterator[Payload]:
        """Yield the valid payloads that differ from a valid one in one field, smallest steps first."""
        domain = self.fields[name]
        if isinstance(domain, Text):
            return
        if name in payload:
            values = domain.moves(payload[name])
            others = [{**payload, name: value} for value in values]
            if domain.optional:
                others.append({k: v for k, v in payload.items() if k != name})
        else:
            others = [{**payload, name: value} for value in _first_values(domain)]
        for other in others:
            if not any(rule.broken(other) for rule in self.requires):
                yield self.canonical(other)

    def neighbours(self, payload: Mapping[str, Json]) -> Iterator[Payload]:
        """Yield all valid payloads one step from a valid one, in the order of the fields; never text."""
        for name in self.fields:
            yield from self.moves(payload, name)

    def vary(self, payload: Mapping[str, Json], rng: Random) -> Payload:
        """Return a valid payload that differs from a valid one in one field: small steps and jumps, never text.

        Raises:
            ComplabError: no field can change.
        """
        names = list(self.fields)
        rng.shuffle(names)
        for name in names:
            others = list(self.moves(payload, name))
            domain = self.fields[name]
            if others and not isinstance(domain, Text):
                jump = self.canonical({**payload, name: domain.sample(rng)})
                if jump != dict(payload) and not self.errors(jump) and rng.random() < 0.25:
                    return jump
                return rng.choice(others)
        raise ComplabError(
            "No field of this proposal can be varied.", "Use an advisor that writes text: expert or llm."
        )

    def json_schema(self) -> dict[str, Json]:
        """Return the JSON schema of a payload, as models are constrained by it. Rules appear as descriptions."""
        properties: dict[str, Json] = {}
        for name, domain in self.fields.items():
            schema = domain.json_schema()
            properties[name] = {**schema, "description": domain.about} if domain.about else schema
        whole: dict[str, Json] = {
            "type": "object",
            "properties": properties,
            "required": [name for name, domain in self.fields.items() if not domain.optional],
            "additionalProperties": False,
        }
        if self.requires:
            whole["description"] = "Rules: " + "; ".join(f"{rule} ({rule.why})" for rule in self.requires)
        return whole

    @property
    def size(self) -> int | None:
        """Number of payloads before rules; None when a field is text."""
        sizes = []
        for domain in self.fields.values():
            if (size := domain.size) is None:
                return None
            sizes.append(size + domain.optional)
        return math.prod(sizes)


def _first_values(domain: Choice | IntRange | Subset | Order) -> Iterator[Json]:
    """Yield the values that a left-out field may start from: every choice, a range's spread, a list's smallest."""
    match domain:
        case Choice():
            yield from domain.values
        case IntRange():
            yield domain.low
            yield from domain.moves(domain.low)
        case Subset() | Order():
            first: Json = list(domain.items[: domain.least])
            yield first
            yield from domain.moves(first)
