"""Which passes of -O3 changed something: what stands in for `-stats`, which release builds leave empty."""

import re

MAX_PASSES = 60
"""Cap of the channel: the passes that changed most come first."""

_DUMP = re.compile(
    rb"^\*\*\* IR Dump After (\w+)(?:<[^\n]*?>)? on [^\n]*?( omitted because no change)? \*\*\*", re.MULTILINE
)


def parse_passes(text: bytes) -> dict[str, dict[str, int]]:
    """Return pass -> how often it ran and how often it changed the IR, from `opt -print-changed`."""
    counts: dict[str, dict[str, int]] = {}
    for name, omitted in _DUMP.findall(text):
        seen = counts.setdefault(name.decode(), {"runs": 0, "changed": 0})
        seen["runs"] += 1
        seen["changed"] += not omitted
    ordered = sorted(counts.items(), key=lambda item: (-item[1]["changed"], -item[1]["runs"], item[0]))
    return dict(ordered[:MAX_PASSES])
