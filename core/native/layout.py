"""The same objects linked under different layouts.

Where code and data happen to lie can change a program's speed by more than what is being looked for (Mytkowicz et al.,
"Producing Wrong Data Without Doing Anything Obviously Wrong!", 2009). Linking each arm of a comparison several times,
with random padding in front and with functions in random order, makes that luck part of the measured scatter.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from core.cache import cached_file
from core.native.build import Kind, build, compiler

_TEXT_GRAIN_BYTES = 16
"""Compilers align functions to this much, so finer padding would be swallowed."""
_LARGEST_PAD_BYTES = 8192
_SECTIONS = ("text", "rodata", "data", "bss")


@dataclass(frozen=True, kw_only=True, slots=True)
class LayoutVariant:
    """One layout as data, for callers that link by their own means (inside a sandbox, for example)."""

    pad_source: str
    """C source of a padding object; its object comes first on the link line. It defines no symbol."""
    link_flags: tuple[str, ...]
    """Extra flags for the compiler driver that links; with lld they shuffle sections (-ffunction-sections helps)."""


def layout_variants(count: int, seed: int, *, lld: bool) -> list[LayoutVariant]:
    """Return `count` random layouts; the first ones do not depend on `count`.

    Args:
        count: how many.
        seed: decides all of them.
        lld: whether the link is done by lld, which can shuffle sections.
    """
    variants: list[LayoutVariant] = []
    for index in range(count):
        rng = np.random.default_rng([seed, index])
        pads = _TEXT_GRAIN_BYTES * rng.integers(0, _LARGEST_PAD_BYTES // _TEXT_GRAIN_BYTES, size=len(_SECTIONS))
        lines = [_skip(section, int(size)) for section, size in zip(_SECTIONS, pads, strict=True)]
        shuffle_seed = int(rng.integers(1, 1 << 31))
        flags = [f"-Wl,--shuffle-sections=.{section}*={shuffle_seed}" for section in _SECTIONS]
        variants.append(
            LayoutVariant(
                pad_source="\n".join(lines) + "\n",
                link_flags=("-fuse-ld=lld", *flags) if lld else (),
            )
        )
    return variants


def link_layouts(
    objects: Sequence[Path], *, count: int, seed: int, flags: Sequence[str] = (), kind: Kind = "exe"
) -> list[Path]:
    """Link objects of our own `count` times under different layouts, with the compiler that `build` uses.

    Args:
        objects: object files; compile them with -ffunction-sections so that lld can reorder functions.
        count: how many layouts.
        seed: decides all of them.
        flags: further link flags, `-l...` included.
        kind: "exe" or "shared".

    Returns:
        Paths in the cache, in order of the layouts; the programs compute the same.

    Raises:
        ComplabError: the link failed (the linker's message is shown).
    """
    linked: list[Path] = []
    for variant in layout_variants(count, seed, lld=links_with_lld(compiler())):
        pad = build(cached_file(variant.pad_source.encode(), "pads", "pad.c"), kind="object")
        linked.append(build([pad, *objects], (*variant.link_flags, *flags), kind))
    return linked


@lru_cache(maxsize=8)
def links_with_lld(driver: Path) -> bool:
    """Return whether a compiler driver finds an lld that can shuffle sections."""
    command = [str(driver), "-fuse-ld=lld", "-Wl,--shuffle-sections=.text*=1", "-Wl,--version"]
    return subprocess.run(command, capture_output=True).returncode == 0


def _skip(section: str, size: int) -> str:
    # A type says that the section has no content on disk; the others are the assembler's own defaults.
    named = {"rodata": '.section .rodata,\\"a\\"', "bss": '.section .bss,\\"aw\\",%nobits'}.get(section, f".{section}")
    return f'__asm__("{named}\\n\\t.skip {size}\\n\\t.text");'
