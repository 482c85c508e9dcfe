"""The rule that divides the shipped suite into dev and test. It looks at names and domains, never at a result."""

import hashlib
from collections.abc import Iterable

from core.records import Record
from llvm_tuning.suite.catalogue import Split, SuiteProgram

SEEN_BEFORE_THE_SPLIT = frozenset({"matmul_int8", "two_matmuls"})
"""Programs that rules were tried on before there was a split: they may never be test."""


class Place(Record):
    """Where a program stands."""

    split: Split
    core12: bool


def assign(programs: Iterable[SuiteProgram]) -> dict[str, Place]:
    """Return each program's place.

    Within a domain the programs are ordered by the sha256 of their name. The last one that nobody had tuned before
    is test, the others are dev; the first dev program stands for its domain in core12, so that tables of advisors
    can be looked at during development without spending the test split.
    """
    domains: dict[str, list[str]] = {}
    for program in programs:
        domains.setdefault(program.domain, []).append(program.name)
    places: dict[str, Place] = {}
    for names in domains.values():
        ordered = sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
        test = [name for name in ordered if name not in SEEN_BEFORE_THE_SPLIT][-1]
        first = next(name for name in ordered if name != test)
        for name in ordered:
            places[name] = Place(split="test" if name == test else "dev", core12=name == first)
    return places
