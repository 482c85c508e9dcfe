"""What of a winning proposal is needed: fields are dropped as long as the candidate stays the same."""

from collections.abc import Callable, Mapping

from core.records import Json, Record

FILE = "minimal.json"
"""Where a run keeps it."""


class Minimal(Record):
    """A kept proposal without what changes nothing. It makes the same artefact, so the proof holds for it."""

    payload: dict[str, Json]
    dropped: tuple[str, ...]
    """Fields of the proposal that were not needed, in the order in which they were dropped."""


def minimise(
    payload: Mapping[str, Json], default: Mapping[str, Json], same: Callable[[dict[str, Json]], bool]
) -> Minimal:
    """Drop one field after another, until each that is left is needed.

    Args:
        payload: the kept proposal's.
        default: the baseline's; its fields are put back to what they are there.
        same: whether a payload makes the same candidate as the whole one.
    """
    kept, dropped = dict(payload), list[str]()
    changed = True
    while changed:
        changed = False
        for name in list(kept):
            fewer = {k: v for k, v in kept.items() if k != name}
            if name in default:
                fewer[name] = default[name]
            if fewer != kept and same(fewer):
                kept, changed = fewer, True
                dropped.append(name)
    return Minimal(payload=kept, dropped=tuple(dropped))
