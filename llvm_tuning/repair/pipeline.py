"""A pass pipeline as a tree: read from the text that `opt -passes=` takes, edited, and written back exactly."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from core.errors import BadInput

MOST_DEPTH = 8
"""Deepest nesting that is read; -O3's pipeline has five levels."""

_TOKEN = re.compile(r"(?P<mark>[(),])|(?P<name>[^<>(),]+)|(?P<params><[^<>]*>)|(?P<stray>[<>])")

Path = tuple[int, ...]
"""Where an item stands: its index in the pipeline, then in that item's body, and so on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """A pass, or a container such as `function(...)` with the items that it runs."""

    name: str
    params: tuple[str, ...] | None = None
    """What stands between `<` and `>`, split at `;`; None: no brackets. `<>` is one empty parameter."""
    body: tuple["Item", ...] | None = None
    """What stands between the parentheses; None: there are none."""

    def head(self) -> str:
        """Return the item without its body."""
        return self.name if self.params is None else f"{self.name}<{';'.join(self.params)}>"

    def text(self) -> str:
        """Return the item as opt reads it."""
        return self.head() if self.body is None else f"{self.head()}({','.join(i.text() for i in self.body)})"

    def with_param(self, param: str) -> "Item":
        """Return the item with one parameter set, in place of the one it contradicts.

        `x` and `no-x` contradict each other, so do `n=1` and `n=2`, and `O2` and `O3`.
        """
        kept = [p for p in self.params or () if p]
        same = [i for i, p in enumerate(kept) if param_key(p) == param_key(param)]
        if same:
            kept[same[0]] = param
            kept = [p for i, p in enumerate(kept) if i not in same[1:]]
        else:
            kept.append(param)
        return replace(self, params=tuple(kept))


@dataclass(frozen=True, kw_only=True, slots=True)
class Pipeline:
    """An ordered list of items. Edits return a new pipeline.

    Every edit raises BadInput when its path names no item.
    """

    items: tuple[Item, ...]

    def text(self) -> str:
        """Return the text for `opt -passes=`."""
        return ",".join(i.text() for i in self.items)

    def walk(self) -> Iterator[tuple[Path, Item]]:
        """Yield every item with its path, in the order of the text."""
        return _walk(self.items, ())

    def find(self, name: str) -> tuple[Path, ...]:
        """Return the paths of all items of this name."""
        return tuple(path for path, item in self.walk() if item.name == name)

    def get(self, path: Path) -> Item:
        """Return the item at a path."""
        items, item = self.items, None
        for index in path:
            if not 0 <= index < len(items):
                raise _nowhere(path)
            item = items[index]
            items = item.body or ()
        if item is None:
            raise _nowhere(path)
        return item

    def replace(self, path: Path, item: Item) -> "Pipeline":
        """Put an item in the place of another."""
        self.get(path)
        return Pipeline(items=_splice(self.items, path, (item,), over=True))

    def remove(self, path: Path) -> "Pipeline":
        """Take an item out; a container that is left empty goes with it, since opt reads no empty list."""
        self.get(path)
        while len(path) > 1 and len(self.get(path[:-1]).body or ()) == 1:
            path = path[:-1]
        return Pipeline(items=_splice(self.items, path, (), over=True))

    def insert(self, path: Path, item: Item) -> "Pipeline":
        """Put an item before the one at the path; the index after the last one of a list appends."""
        siblings = self.items if len(path) == 1 else self.get(path[:-1]).body
        if siblings is None or not path or not 0 <= path[-1] <= len(siblings):
            raise _nowhere(path)
        return Pipeline(items=_splice(self.items, path, (item,), over=False))

    def move(self, source: Path, target: Path) -> "Pipeline":
        """Take the item at `source` and put it before the one at `target`; both paths are of this pipeline."""
        item = self.get(source)
        if target[: len(source)] == source:
            if target == source:
                return self
            raise BadInput(f"The item at {list(source)} cannot move into itself.", "Name a place outside it.")
        # Where both stand, the later one goes first: it leaves the other's path as it is.
        if target > source:
            return self.insert(target, item).remove(source)
        after = self.insert(target, item)
        depth = len(target) - 1
        shifted = len(source) > depth and source[:depth] == target[:depth] and source[depth] >= target[depth]
        moved = (*source[:depth], source[depth] + 1, *source[depth + 1 :]) if shifted else source
        return after.remove(moved)

    def set_param(self, path: Path, param: str) -> "Pipeline":
        """Set one parameter of the item at a path; see `Item.with_param`."""
        return self.replace(path, self.get(path).with_param(param))


def parse_pipeline(text: str) -> Pipeline:
    """Read a pipeline that opt could read; `parse_pipeline(t).text() == t`.

    Raises:
        BadInput: it is not well formed; the message says where.
    """
    pipeline, faults = read_pipeline(text)
    if faults:
        raise BadInput(f"This is no pass pipeline: {faults[0]}.", "`complab llvm repair` mends it.")
    return pipeline


def read_pipeline(text: str) -> tuple[Pipeline, tuple[str, ...]]:
    """Read any text as a pipeline: brackets are closed, stray marks and white space left out.

    Returns:
        The pipeline, and what was wrong in the text, in its order.
    """
    faults: list[str] = []
    lists: list[list[Item]] = [[]]
    expects = True  # an item is due: at the start, after a comma, after an opening parenthesis
    for token in _TOKEN.finditer(text):
        where = f"at character {token.start() + 1}"
        if token["name"] is not None:
            name = "".join(token["name"].split())
            if name != token["name"]:
                faults.append(f"white space {where}")
            if name:
                if not expects:
                    faults.append(f"a comma is missing {where}")
                lists[-1].append(Item(name=name))
                expects = False
        elif token["params"] is not None:
            inside = "".join(token["params"][1:-1].split())
            if expects or lists[-1][-1].params is not None or lists[-1][-1].body is not None:
                faults.append(f"parameters of no pass {where}")
                continue
            if inside != token["params"][1:-1]:
                faults.append(f"white space {where}")
            lists[-1][-1] = replace(lists[-1][-1], params=tuple(inside.split(";")))
        elif token["mark"] == "(":
            if expects or lists[-1][-1].body is not None:
                faults.append(f"a list of no container {where}")
                lists[-1].append(Item(name=""))
            if len(lists) > MOST_DEPTH:
                faults.append(f"nesting deeper than {MOST_DEPTH} {where}; the rest is not read")
                break
            lists.append([])
            expects = True
        elif token["mark"] == ")":
            if len(lists) == 1:
                faults.append(f"a parenthesis that closes nothing {where}")
                continue
            if expects:
                faults.append(f"an item is missing {where}")
            _close(lists)
            expects = False
        elif token["mark"] == ",":
            if expects:
                faults.append(f"an item is missing {where}")
            expects = True
        else:
            faults.append(f"a stray {token['stray']} {where}")
    if expects and text:
        faults.append("an item is missing at the end")
    if len(lists) > 1:
        faults.append(f"{len(lists) - 1} parentheses are not closed")
    while len(lists) > 1:
        _close(lists)
    return Pipeline(items=tuple(lists[0])), tuple(faults)


def param_key(param: str) -> str:
    """Return what a parameter sets: `x` of `x`, `no-x` and `x=1`; a level for all of `O0` to `Oz`."""
    name = param.partition("=")[0].removeprefix("no-")
    return "O" if re.fullmatch(r"O[0-3sz]", name) else name


def _close(lists: list[list[Item]]) -> None:
    body = tuple(lists.pop())
    lists[-1][-1] = replace(lists[-1][-1], body=body)


def _walk(items: tuple[Item, ...], above: Path) -> Iterator[tuple[Path, Item]]:
    for index, item in enumerate(items):
        yield (*above, index), item
        yield from _walk(item.body or (), (*above, index))


def _splice(items: tuple[Item, ...], path: Path, new: tuple[Item, ...], *, over: bool) -> tuple[Item, ...]:
    """Return the items with `new` at the path: in place of the item there, or before it unless `over`."""
    index = path[0]
    if len(path) == 1:
        return (*items[:index], *new, *items[index + over :])
    inner = _splice(items[index].body or (), path[1:], new, over=over)
    return (*items[:index], replace(items[index], body=inner), *items[index + 1 :])


def _nowhere(path: Path) -> BadInput:
    return BadInput(f"The pipeline has no place {list(path)}.", "Paths count from 0, one index for each nesting.")
