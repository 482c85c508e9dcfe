"""Optimization remarks: LLVM's own record of what it did and what it could not do."""

from collections import Counter
from collections.abc import Hashable
from typing import Any

import yaml

from core.records import Json, Record

MAX_REMARKS = 60
"""Cap of the remark channel: the most frequent kinds first."""

_NOISE = {("asm-printer", "InstructionMix"), ("asm-printer", "InstructionCount"), ("prologepilog", "StackSize")}


class Remark(Record):
    """One remark: what a pass did (`Passed`), could not do (`Missed`) or found out (`Analysis`)."""

    kind: str
    compiler_pass: str
    name: str
    function: str
    line: int | None
    message: str
    args: dict[str, str] = {}
    """Named values of the remark, for example Cost, Threshold, VectorizationFactor, UnrollCount."""


class _Loader(yaml.CSafeLoader):
    """A YAML loader that reads LLVM's tagged documents (`--- !Missed`) as plain maps with a `kind`."""


def _tagged(loader: _Loader, suffix: str, node: yaml.Node) -> dict[Hashable, Any]:
    assert isinstance(node, yaml.MappingNode)
    return {**loader.construct_mapping(node, deep=True), "kind": suffix}


_Loader.add_multi_constructor("!", _tagged)


def parse_remarks(text: bytes) -> list[Remark]:
    """Return the remarks of a `-fsave-optimization-record` file.

    Raises:
        ValueError: the text is not what LLVM writes.
    """
    remarks = []
    try:
        documents = list(yaml.load_all(text, Loader=_Loader))
    except yaml.YAMLError as error:
        raise ValueError(f"not an optimization record: {error}") from None
    for document in documents:
        if not isinstance(document, dict) or "Pass" not in document:
            raise ValueError(f"not an optimization remark: {str(document)[:100]}")
        args = [(k, str(v)) for a in document.get("Args") or [] for k, v in a.items() if k != "DebugLoc"]
        where = document.get("DebugLoc") or {}
        remarks.append(
            Remark(
                kind=str(document["kind"]),
                compiler_pass=str(document["Pass"]),
                name=str(document["Name"]),
                function=str(document.get("Function", "")),
                line=where.get("Line"),
                message="".join(v for _, v in args)[:300],
                args={k: v[:80] for k, v in args if k not in ("String", "Inst")},
            )
        )
    return remarks


def summarize(remarks: list[Remark]) -> list[Json]:
    """Return the remarks as evidence: one entry a kind and place, with its count; capped at MAX_REMARKS."""
    seen: Counter[tuple[str, str, str, str, int | None]] = Counter()
    first: dict[tuple[str, str, str, str, int | None], Remark] = {}
    for r in remarks:
        if (r.compiler_pass, r.name) in _NOISE:
            continue
        key = (r.kind, r.compiler_pass, r.name, r.function, r.line)
        seen[key] += 1
        first.setdefault(key, r)
    entries: list[Json] = []
    for key, count in sorted(seen.items(), key=lambda item: (-item[1], str(item[0])))[:MAX_REMARKS]:
        r = first[key]
        entries.append(
            {
                "kind": r.kind,
                "pass": r.compiler_pass,
                "name": r.name,
                "function": r.function,
                "line": r.line,
                "message": r.message,
                "args": dict(r.args),
                "count": count,
            }
        )
    return entries
