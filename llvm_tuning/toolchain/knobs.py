"""The options that the tuner may set, as data: values, defaults, meaning; checked against the installed compiler."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import yaml

from core.records import Json, Record
from core.search.contract import Exactness
from core.search.space import Choice, Domain, Space, Text
from llvm_tuning.toolchain.semantics import EXACTNESS, SEMANTICS, Semantics

Group = Literal[
    "inline", "unroll", "vectorizer", "slp", "loops", "scalar", "lsr", "codegen", "x86", "aarch64", "driver"
]
Stage = Literal["pipeline", "passes", "codegen", "driver"]
"""Who reads it: the builder of the pass pipeline, an IR pass, code generation, or clang's driver and front end."""

PIPELINE = "pipeline"
"""The field of a payload that holds a pass pipeline; with it, a candidate takes the opt route."""

SET_AT_ONCE = 5
"""Knobs that a random sample sets on average: of many at once, nobody can tell which one helped."""

_TARGET_GROUPS: dict[Group, str] = {"x86": "x86_64", "aarch64": "aarch64"}


class Knob(Record):
    """One option of LLVM, or of clang's driver."""

    name: str
    group: Group
    stage: Stage
    default: str | None
    """The value that -O3 has; None: the option has none of its own, the target or the pass decides."""
    values: tuple[str, ...]
    about: str
    semantics: Semantics = "exact"
    spelling: str = "-{name}={value}"
    implies: tuple[str, ...] = ()
    """Options that must go with it, so that its semantics are as said."""

    @property
    def type(self) -> Literal["switch", "number", "word"]:
        """What its values are."""
        known = {*self.values, *([self.default] if self.default is not None else [])}
        if known <= {"0", "1"} or known <= {"on", "off"}:
            return "switch"
        return "number" if all(value.lstrip("-").isdigit() for value in known) else "word"

    def options(self, value: str) -> tuple[str, ...]:
        """Return the options that set this knob to `value`."""
        return (self.spelling.format(name=self.name, value=value), *self.implies)


KNOBS: tuple[Knob, ...] = tuple(
    Knob.model_validate(entry) for entry in yaml.safe_load(Path(__file__).with_name("knobs.yaml").read_text())
)


def available(
    options: Mapping[str, str | None], semantics: Semantics = "exact", target: str = "x86_64"
) -> tuple[tuple[Knob, ...], dict[str, str]]:
    """Return the knobs of a target that the compiler accepts, and the missing ones with the reason.

    Args:
        options: the compiler's LLVM options (`Toolchain.options`).
        semantics: the most that a knob may do to results.
        target: architecture; other architectures' own knobs are left out in silence.
    """
    allowed = SEMANTICS[: SEMANTICS.index(semantics) + 1]
    wanted = [k for k in KNOBS if k.semantics in allowed and _TARGET_GROUPS.get(k.group, target) == target]
    missing = {
        k.name: "the installed compiler has no such option"
        for k in wanted
        if k.stage != "driver" and k.name not in options
    }
    return tuple(k for k in wanted if k.name not in missing), missing


def drift(options: Mapping[str, str | None]) -> dict[str, str]:
    """Return the knobs whose default in the installed compiler is not the catalogue's, with both."""
    return {
        k.name: f"the catalogue says {k.default}, the installed compiler {options[k.name]}"
        for k in KNOBS
        if k.name in options and options[k.name] != k.default
    }


def space(knobs: Sequence[Knob], *, pipeline: bool = False) -> Space:
    """Return the search space over these knobs; a knob that is left out stays as -O3 has it.

    Args:
        knobs: what may be set.
        pipeline: whether a pass pipeline may be proposed too (it takes opt).
    """
    fields: dict[str, Domain] = {k.name: Choice(values=k.values, about=k.about, optional=True) for k in knobs}
    if pipeline:
        fields[PIPELINE] = Text(optional=True, language="opt -passes", about="pass pipeline instead of default<O3>")
    return Space(fields=fields, set_at_once=SET_AT_ONCE)


def flags(knobs: Sequence[Knob], payload: Mapping[str, Json]) -> tuple[str, ...]:
    """Return clang's arguments for a payload: driver options, then LLVM's, in catalogue order, none twice."""
    llvm = dict.fromkeys(o for k, value in _set(knobs, payload) if k.stage != "driver" for o in k.options(value))
    return (*driver_flags(knobs, payload), *(word for option in llvm for word in ("-mllvm", option)))


def driver_flags(knobs: Sequence[Knob], payload: Mapping[str, Json]) -> tuple[str, ...]:
    """Return those arguments alone that clang's driver and front end read."""
    return tuple(dict.fromkeys(o for k, value in _set(knobs, payload) if k.stage == "driver" for o in k.options(value)))


def opt_flags(knobs: Sequence[Knob], payload: Mapping[str, Json]) -> tuple[str, ...]:
    """Return opt's arguments for a payload: the options that the pipeline's builder and IR passes read."""
    read = [(k, value) for k, value in _set(knobs, payload) if k.stage in ("pipeline", "passes")]
    return tuple(dict.fromkeys(o for k, value in read for o in k.options(value)))


def exactness(knobs: Sequence[Knob], payload: Mapping[str, Json]) -> Exactness:
    """Return what a payload may do to results: the most that one of its knobs may."""
    worst = max((SEMANTICS.index(k.semantics) for k, _ in _set(knobs, payload)), default=0)
    return EXACTNESS[SEMANTICS[worst]]


def _set(knobs: Sequence[Knob], payload: Mapping[str, Json]) -> Iterator[tuple[Knob, str]]:
    return ((k, str(payload[k.name])) for k in knobs if k.name in payload)
