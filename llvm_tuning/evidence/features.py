"""Static counts over the baseline's optimised LLVM IR: what kind of work a program does."""

import re

PATTERNS = {
    "functions": r"^define ",
    "branches": r"^\s+br i1 ",
    "calls": r"\bcall\b(?! void @llvm\.)",
    "selects": r"= select ",
    "loads": r"= load ",
    "stores": r"^\s+store ",
    "narrow_loads": r"= load (?:<\d+ x )?i(?:8|16)\b",
    "vector_loads": r"= load <",
    "fp_adds": r"= f(?:add|sub) ",
    "fp_muls": r"= fmul ",
    "int_muls": r"= mul ",
    "widenings": r"= [sz]ext (?:nneg )?(?:<\d+ x )?i(?:8|16)\b",
    "phis": r"= phi ",
}
"""Feature -> pattern of one line of LLVM IR."""


def ir_features(text: bytes) -> dict[str, int]:
    """Return how often each pattern occurs in textual LLVM IR."""
    ir = text.decode(errors="replace")
    return {name: len(re.findall(pattern, ir, flags=re.MULTILINE)) for name, pattern in PATTERNS.items()}
