"""The kinds of value that a field of a space may take, and how each is checked, sampled and varied."""

import math
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from random import Random
from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from core.records import Json, Record

Scalar = StrictBool | StrictInt | StrictFloat | StrictStr

_SHOWN = 60
"""Characters of a hostile value that a message repeats."""


def shown(value: object) -> str:
    """Return a value as a message shows it: its repr, cut short."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def near(word: object, words: Sequence[Scalar]) -> str:
    """Return a hint that names the words most like `word`, or the first few words when none is."""
    texts = [w for w in words if isinstance(w, str)]
    found = get_close_matches(word[:_SHOWN], texts, n=3) if isinstance(word, str) else []
    if found:
        return f"did you mean {' or '.join(map(repr, found))}?"
    return f"known: {', '.join(map(repr, words[:8]))}{', ...' if len(words) > 8 else ''}"


def same(a: Json, b: Json) -> bool:
    """Return whether two JSON values are the same, without Python's `1 == True == 1.0`."""
    return type(a) is type(b) and a == b


class _Domain(Record):
    """What all domains have."""

    optional: bool = False
    """May be left out of a payload: the compiler's own default then holds."""
    about: str = ""
    """One line for people and models: what the field does, with its unit."""


class Choice(_Domain):
    """One of a few scalars."""

    kind: Literal["choice"] = "choice"
    values: tuple[Scalar, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if len({(type(v), v) for v in self.values}) != len(self.values):
            raise ValueError("the values of a choice must differ")
        return self

    def error(self, value: Json) -> str | None:
        """Return what is wrong with a value, or None."""
        if any(same(value, v) for v in self.values):
            return None
        return f"{shown(value)} is not one of its values: {near(value, self.values)}"

    def sample(self, rng: Random) -> Json:
        """Return one value, uniformly."""
        return rng.choice(self.values)

    def moves(self, value: Json) -> Iterator[Json]:
        """Yield all other values."""
        return (v for v in self.values if not same(v, value))

    def json_schema(self) -> dict[str, Json]:
        """Return the JSON schema of a value."""
        return {"enum": list(self.values)}

    @property
    def size(self) -> int | None:
        """Number of values."""
        return len(self.values)


class IntRange(_Domain):
    """Integers low, low + step, ... up to high."""

    kind: Literal["int"] = "int"
    low: StrictInt
    high: StrictInt
    step: StrictInt = Field(default=1, ge=1)
    scale: Literal["linear", "log"] = "linear"
    """`log`: small values are sampled more densely (thresholds, sizes)."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")
        return self

    @property
    def _steps(self) -> int:
        return (self.high - self.low) // self.step

    def error(self, value: Json) -> str | None:
        """Return what is wrong with a value, or None."""
        if isinstance(value, bool) or not isinstance(value, int):
            return f"{shown(value)} is not an integer"
        if not self.low <= value <= self.high:
            return f"{shown(value)} is outside {self.low}..{self.high}"
        if (value - self.low) % self.step:
            return f"{value} is not {self.low} plus a multiple of {self.step}"
        return None

    def sample(self, rng: Random) -> Json:
        """Return one value: uniform, or uniform in the logarithm of the distance from `low`."""
        if self.scale == "linear":
            return self.low + self.step * rng.randint(0, self._steps)
        position = math.exp(rng.random() * math.log(self._steps + 1)) - 1
        return self.low + self.step * min(self._steps, round(position))

    def moves(self, value: Json) -> Iterator[Json]:
        """Yield the values 1, 2, 4, ... steps away and both ends, nearest first."""
        assert isinstance(value, int)
        at, seen = (value - self.low) // self.step, {(value - self.low) // self.step}
        distances = (1 << k for k in range(self._steps.bit_length()))
        for position in [p for d in distances for p in (at - d, at + d)] + [0, self._steps]:
            if 0 <= position <= self._steps and position not in seen:
                seen.add(position)
                yield self.low + self.step * position

    def json_schema(self) -> dict[str, Json]:
        """Return the JSON schema of a value."""
        schema: dict[str, Json] = {"type": "integer", "minimum": self.low, "maximum": self.high}
        if self.step > 1 and self.low % self.step == 0:
            schema["multipleOf"] = self.step
        return schema

    @property
    def size(self) -> int | None:
        """Number of values."""
        return self._steps + 1


class _Items(_Domain):
    """Lists over named items."""

    items: tuple[StrictStr, ...] = Field(min_length=1)
    least: int = Field(default=0, ge=0)
    most: int | None = None
    """Bounds of the number of items; None: all items."""
    repeats: bool = False

    @model_validator(mode="after")
    def _bounds(self) -> Self:
        if len(set(self.items)) != len(self.items):
            raise ValueError("the items must differ")
        if self.least > self._most or (self._most > len(self.items) and not self.repeats):
            raise ValueError(f"cannot take {self.least}..{self._most} of {len(self.items)} items")
        return self

    @property
    def _most(self) -> int:
        return len(self.items) if self.most is None else self.most

    def error(self, value: Json) -> str | None:
        """Return what is wrong with a value, or None."""
        if not isinstance(value, list):
            return f"{shown(value)} is not a list"
        for item in value:
            if not isinstance(item, str) or item not in self.items:
                return f"{shown(item)} is not one of its items: {near(item, self.items)}"
        if not self.repeats and len(set(map(str, value))) != len(value):
            return f"{shown(value)} names an item twice"
        if not self.least <= len(value) <= self._most:
            return f"{len(value)} items are named; {self.least} to {self._most} are allowed"
        return None

    def json_schema(self) -> dict[str, Json]:
        """Return the JSON schema of a value."""
        schema: dict[str, Json] = {
            "type": "array",
            "items": {"enum": list(self.items)},
            "minItems": self.least,
            "maxItems": self._most,
        }
        if not self.repeats:
            schema["uniqueItems"] = True
        return schema


class Subset(_Items):
    """A set of named items: a list without repeats whose order means nothing."""

    kind: Literal["subset"] = "subset"
    repeats: Literal[False] = False

    def canonical(self, value: Json) -> Json:
        """Return the value in the order of `items`: two listings of one set are one value."""
        assert isinstance(value, list)
        return [item for item in self.items if item in value]

    def sample(self, rng: Random) -> Json:
        """Return one subset, uniform in its number of items."""
        return self.canonical(list(rng.sample(self.items, rng.randint(self.least, self._most))))

    def moves(self, value: Json) -> Iterator[Json]:
        """Yield the subsets with one item more, fewer or, where the number is fixed, exchanged."""
        assert isinstance(value, list)
        inside: list[Json] = [item for item in self.items if item in value]
        outside: list[Json] = [item for item in self.items if item not in value]
        if len(inside) > self.least:
            yield from ([i for i in inside if i != item] for item in inside)
        if len(inside) < self._most:
            yield from (self.canonical([*inside, item]) for item in outside)
        if self.least == self._most:
            yield from (self.canonical([i for i in inside if i != x] + [y]) for x in inside for y in outside)

    @property
    def size(self) -> int | None:
        """Number of subsets."""
        return sum(math.comb(len(self.items), k) for k in range(self.least, self._most + 1))


class Order(_Items):
    """A sequence of named items, such as a pass pipeline."""

    kind: Literal["order"] = "order"

    def sample(self, rng: Random) -> Json:
        """Return one sequence, uniform in its length."""
        length = rng.randint(self.least, self._most)
        return list(rng.choices(self.items, k=length) if self.repeats else rng.sample(self.items, length))

    def moves(self, value: Json) -> Iterator[Json]:
        """Yield the sequences with one neighbour pair swapped, or one item removed, added or replaced."""
        assert isinstance(value, list)
        n = len(value)
        for i in range(n - 1):
            if value[i] != value[i + 1]:
                yield [*value[:i], value[i + 1], value[i], *value[i + 2 :]]
        fresh = [item for item in self.items if self.repeats or item not in value]
        if n > self.least:
            yield from ([*value[:i], *value[i + 1 :]] for i in range(n))
        if n < self._most:
            yield from ([*value[:i], item, *value[i:]] for i in range(n + 1) for item in fresh)
        yield from ([*value[:i], item, *value[i + 1 :]] for i in range(n) for item in fresh if item != value[i])

    @property
    def size(self) -> int | None:
        """Number of sequences."""
        n = len(self.items)
        return sum(n**k if self.repeats else math.perm(n, k) for k in range(self.least, self._most + 1))


class Text(_Domain):
    """Free text such as source code. Only a model or a person writes it: it is never sampled or varied."""

    kind: Literal["text"] = "text"
    most_bytes: int = Field(default=64 << 10, ge=1)
    language: str = ""

    def error(self, value: Json) -> str | None:
        """Return what is wrong with a value, or None."""
        if not isinstance(value, str):
            return f"{shown(value)} is not text"
        try:
            length = len(value.encode())
        except UnicodeEncodeError as error:
            return f"it is not valid Unicode ({error.reason} at character {error.start})"
        if "\0" in value:
            return "it holds a NUL character"
        return f"{length} bytes are more than the {self.most_bytes} allowed" if length > self.most_bytes else None

    def moves(self, value: Json) -> Iterator[Json]:
        """Yield nothing."""
        return iter(())

    def json_schema(self) -> dict[str, Json]:
        """Return the JSON schema of a value."""
        return {"type": "string", "maxLength": self.most_bytes}

    @property
    def size(self) -> int | None:
        """None: not countable in any useful sense."""
        return None


Domain = Annotated[Choice | IntRange | Subset | Order | Text, Field(discriminator="kind")]
