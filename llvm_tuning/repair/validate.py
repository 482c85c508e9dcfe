"""Makes any text a legal pipeline by fixed rules, and says what was changed or dropped; nothing runs here."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import groupby

from core.records import Record
from llvm_tuning.repair.catalogue import (
    CONTAINERS,
    KEEPS_MEMORY_SSA,
    LEVELS,
    NEEDS_MEMORY_SSA,
    Level,
    PassCatalogue,
    Signature,
)
from llvm_tuning.repair.pipeline import Item, Pipeline, read_pipeline
from llvm_tuning.toolchain.routes import DEFAULT

SIMILAR = 0.8
"""Least likeness (difflib's ratio) at which an unknown pass is taken for a legal one; below it the pass is dropped."""

MOST_TEXT = 32 << 10
"""Characters of a pipeline that are read; that of -O3 has under 5 thousand."""

RANGES = {"bonus-inst-threshold": (0, 64), "full-unroll-max": (0, 4096), "max-iterations": (1, 8), "devirt": (1, 8)}
"""Least and greatest value of each number; without an entry `OTHER_RANGE` holds. Wider ones only make opt slow."""

OTHER_RANGE = (0, 1024)


MOST_PASSES = 400
"""Passes that are read; -O3 has about 130."""


class Dropped(Record):
    """Something of the text that is not in the pipeline."""

    item: str
    why: str


class Changed(Record):
    """Something of the text that stands in the pipeline in another form."""

    item: str
    became: str
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Repaired:
    """A legal pipeline and how it differs from what was given. It may be empty: then nothing of it was usable."""

    pipeline: Pipeline
    dropped: tuple[Dropped, ...]
    changed: tuple[Changed, ...]


def repair(text: str, legal: PassCatalogue) -> Repaired:
    """Return the legal pipeline nearest to a text, whoever wrote it.

    Brackets are closed; a pass in a list of the wrong level gets its container or leaves it; an unknown pass becomes
    the nearest legal name, or goes; an unknown parameter goes (it is never guessed); numbers are clamped;
    `instcombine` does not insist on a fixpoint, which opt would abort on.
    """
    mender = _Mender(legal=legal)
    if len(text) > MOST_TEXT:
        mender.drop(f"{text[MOST_TEXT : MOST_TEXT + 40]}...", f"only {MOST_TEXT} characters are read")
    read, faults = read_pipeline(text[:MOST_TEXT])
    mender.changed += [Changed(item="the text", became="well-formed text", why=fault) for fault in faults]
    items = tuple(item for _, item in mender.fit(read.items, "module"))
    return Repaired(pipeline=Pipeline(items=items), dropped=tuple(mender.dropped), changed=tuple(mender.changed))


Piece = tuple[Level, Item]
"""A legal item, and the level of the list that it must stand in."""


@dataclass(kw_only=True, slots=True)
class _Mender:
    """One repair: its rules need the catalogue and a place to note what they did."""

    legal: PassCatalogue
    dropped: list[Dropped] = field(default_factory=list)
    changed: list[Changed] = field(default_factory=list)
    seen: int = 0

    def drop(self, item: str, why: str) -> None:
        self.dropped.append(Dropped(item=item[:200], why=why))

    def change(self, item: str, became: str, why: str) -> None:
        self.changed.append(Changed(item=item[:200], became=became[:200], why=why))

    def fit(self, items: Iterable[Item], level: Level) -> list[Piece]:
        """Return legal pieces for a list of this level: each stands in it, or in a list further out."""
        pieces = [piece for item in items for piece in self.pieces(item, level)]
        return [self.wrapped(piece, level) for piece in pieces]

    def pieces(self, item: Item, level: Level) -> list[Piece]:
        if item.name in CONTAINERS:
            return self.container(item, level)
        if item.head() == DEFAULT:
            self.change(DEFAULT, "its passes", "it is spelled out, so that edits can name them")
            return self.fit(self.legal.default.items, "module")
        own = self.single(item, level)
        if item.body is None:
            return own
        self.drop(f"{item.head()}(", "it is no container; what it holds stays")
        return own + [piece for inner in item.body for piece in self.pieces(inner, level)]

    def container(self, item: Item, level: Level) -> list[Piece]:
        """Return a container's legal form: split where an item inside belongs further out, gone when left empty."""
        inside = CONTAINERS[item.name]
        if item.body is None:
            self.drop(item.head(), "a container without a list does nothing")
            return []
        body = self.fit(item.body, inside)
        if not body:
            self.drop(f"{item.head()}()", "nothing legal is left in it")
            return []
        head = self.header(item, self.home(item.name, level))
        pieces: list[Piece] = []
        for (stays, name), group in groupby(body, key=lambda piece: (piece[0] == inside, _flavour(piece, item.name))):
            held = list(group)
            if not stays:
                pieces += held
            else:
                shell = head if name == item.name else Item(name=name)
                pieces.append((self.home(name, level), replace(shell, body=tuple(i for _, i in held))))
        if len(pieces) > 1:
            became = ",".join(piece.head() for _, piece in pieces)
            self.change(f"{item.head()}(...)", became, "not all that it holds may stand in one such list")
        elif pieces[0][1].name != item.name:
            self.change(f"{item.head()}(...)", pieces[0][1].head(), "what it holds runs only there")
        return pieces

    def home(self, name: str, level: Level) -> Level:
        """Return the level of the list that a container stands in, as near to `level` as opt allows."""
        if name == "devirt":
            return "cgscc"
        if name == "loop-mssa":
            return "function"
        inside = CONTAINERS[name]
        if name == "loop":
            return "loop" if level == "loop" else "function"
        return level if LEVELS.index(level) <= LEVELS.index(inside) else inside

    def header(self, item: Item, home: Level) -> Item:
        """Return a container with the parameters that it may have where it stands, without its body."""
        if item.name == "devirt":
            return replace(item, params=(self.number(item, "devirt", (item.params or ("4",))[0]) or "4",), body=None)
        allowed = {"eager-inv"} | ({"no-rerun"} if home == "cgscc" else set()) if item.name == "function" else set()
        kept = tuple(dict.fromkeys(p for p in item.params or () if p in allowed))
        for param in item.params or ():
            if param and param not in allowed:
                self.drop(f"{item.name}<{param}>", "the container has no such parameter here")
        return Item(name=item.name, params=kept or None)

    def single(self, item: Item, level: Level) -> list[Piece]:
        """Return the legal form of one pass, or nothing."""
        if item.name in ("require", "invalidate"):
            if item.head() in self.legal.directives:
                return [("module" if item.head() in _OF_MODULE else "function", replace(item, body=None))]
            self.drop(item.head(), "-O3 has no such directive")
            return []
        self.seen += 1
        if self.seen > MOST_PASSES:
            self.drop(item.head(), f"only {MOST_PASSES} passes are read")
            return []
        name = self.known(item)
        if name is None:
            return []
        signature = self.legal.passes[name]
        params = self.params(replace(item, name=name), signature)
        if name == "instcombine":
            params = self.without_fixpoint(params)
        at = level if level in signature.levels else signature.levels[0]
        return [(at, Item(name=name, params=params))]

    def known(self, item: Item) -> str | None:
        if item.name in self.legal.passes:
            return item.name
        near = difflib.get_close_matches(item.name[:80], self.legal.passes, n=1, cutoff=SIMILAR)
        if near:
            self.change(item.name, near[0], "the nearest legal pass")
            return near[0]
        if item.name:
            self.drop(item.name, "no legal pass has this name or one near it")
        return None

    def params(self, item: Item, signature: Signature) -> tuple[str, ...] | None:
        if item.params is None:
            return None
        kept = []
        for param in item.params:
            key, equals, value = param.partition("=")
            if (equals and key in signature.numbers) or param in signature.flags:
                number = self.number(item, key, value) if equals else None
                kept += [param] if not equals else [f"{key}={number}"] if number is not None else []
            elif param:
                self.drop(f"{item.name}<{param}>", f"{item.name} has no such parameter")
        if item.params[-1] == "" and (kept or len(item.params) == 1):
            kept.append("")  # as -O3's own text has it: `gvn<>`, `loop-vectorize<...;>`
        return tuple(kept) or None

    def number(self, item: Item, key: str, value: str) -> str | None:
        """Return the number within its range, or None (noted) when the value is none."""
        if not re.fullmatch(r"-?[0-9]{1,18}", value):
            self.drop(f"{item.name}<{key}={value}>", "its value is no number")
            return None
        least, most = RANGES.get(key, OTHER_RANGE)
        number = str(min(max(int(value), least), most))
        if number != value:
            self.change(f"{item.name}<{key}={value}>", f"{key}={number}", f"it ranges from {least} to {most}")
        return number

    def without_fixpoint(self, params: tuple[str, ...] | None) -> tuple[str, ...]:
        if "no-verify-fixpoint" in (params or ()) and "verify-fixpoint" not in (params or ()):
            return params or ()
        item = Item(name="instcombine", params=tuple(p for p in params or () if p != "verify-fixpoint"))
        after = item.with_param("no-verify-fixpoint").params or ()
        self.change(
            Item(name="instcombine", params=params).head(), f"instcombine<{';'.join(after)}>", "opt aborts on it"
        )
        return after

    def wrapped(self, piece: Piece, level: Level) -> Piece:
        """Return a piece that fits the list: in containers if it belongs further in, as it is if further out."""
        at, item = piece
        while LEVELS.index(at) > LEVELS.index(level):
            if at == "loop":
                outer = Item(name=_flavour(piece, "loop"), body=(item,))
                at = "function"
            elif at == "function":
                outer = Item(name="function", body=(item,))
                at = "cgscc" if level == "cgscc" else "module"
            else:
                outer = Item(name="cgscc", body=(item,))
                at = "module"
            self.change(item.head(), f"{outer.head()}({item.head()})", "a pass runs in a list of its own level")
            item = outer
        return at, item


_OF_MODULE = frozenset({"require<globals-aa>", "require<profile-summary>"})
"""Directives that stand in module lists; the others of -O3 stand in function lists."""


def _flavour(piece: Piece, name: str) -> str:
    """Return the container in which a piece may run: for a loop pass that with or without MemorySSA, as it demands."""
    level, item = piece
    if level != "loop" or CONTAINERS[name] != "loop":
        return name
    if item.name in NEEDS_MEMORY_SSA:
        return "loop-mssa"
    return name if item.name in KEEPS_MEMORY_SSA else "loop"
