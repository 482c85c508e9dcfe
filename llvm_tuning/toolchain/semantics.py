"""What an option may do to a program's results."""

from typing import Literal

from core.search.contract import Exactness

Semantics = Literal["exact", "fp_reordering", "unsafe"]
"""Nothing; round floating-point results another way; worse. Each class includes the one before."""

SEMANTICS: tuple[Semantics, ...] = ("exact", "fp_reordering", "unsafe")

EXACTNESS: dict[Semantics, Exactness] = {
    "exact": "exact",
    "fp_reordering": "reordered",
    "unsafe": "reduced_precision",
}
"""What a candidate is labelled with."""
