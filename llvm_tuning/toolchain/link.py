"""Links one object under several layouts, so that a lucky placement is never taken for a real gain."""

from collections.abc import Callable, Sequence
from typing import overload

from core.cache import cached_file
from core.errors import InfraError
from core.native.build import build
from core.native.layout import layout_variants
from core.sandbox.policy import Command, Sandbox
from llvm_tuning.program import Program
from llvm_tuning.toolchain.build import COMPILE, said, tool_environment
from llvm_tuning.toolchain.discover import Toolchain

LAYOUT_SEED = 20260620
"""Layouts are the same in every run: they are noise to be averaged over, not something to choose."""

_AT_ONCE = 5
"""Layouts that are linked in one go."""


class LinkFailed(InfraError):
    """The linker refused. Once the baseline has linked, an object that compiled must link, whatever the knobs were."""


class Layouts(Sequence[bytes]):
    """The executables of one object under `count` layouts, linked a few at a time when first looked at.

    Args:
        link: links layouts, given the first one's number and how many.
        count: how many there are.
    """

    def __init__(self, link: Callable[[int, int], tuple[bytes, ...]], count: int) -> None:
        self._link = link
        self._count = count
        self._linked: list[bytes] = []

    def __len__(self) -> int:
        return self._count

    def first(self, count: int) -> "Layouts":
        """Return the first `count` of these layouts; what one view links, the other has."""
        view = Layouts(self._link, min(count, self._count))
        view._linked = self._linked
        return view

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._count))]
        if not -self._count <= index < self._count:
            raise IndexError(index)
        wanted = index % self._count
        while len(self._linked) <= wanted:
            first = len(self._linked)
            # One alone is enough for a correctness check; timing wants them by the handful.
            self._linked += self._link(first, 1 if first == wanted == 0 else min(_AT_ONCE, self._count - first))
        return self._linked[wanted]


def link_layouts(
    box: Sandbox, tools: Toolchain, program: Program, code: bytes, *, first: int, count: int, seed: int = LAYOUT_SEED
) -> tuple[bytes, ...]:
    """Return the program linked under layouts `first` to `first + count - 1`.

    Layouts differ in padding before code and data, and with lld in the order of sections; what the program computes
    is the same.

    Raises:
        LinkFailed: the linker's message is shown.
    """
    variants = layout_variants(first + count, seed, lld=tools.linker is not None)[first:]
    pads = [build(cached_file(v.pad_source.encode(), "pads", "pad.c"), kind="object") for v in variants]
    driver = " ".join([*tools.link_driver(program.language), "-w", *(("-Wl,--threads=1",) if tools.linker else ())])
    links = [
        f'{driver} {" ".join(variant.link_flags)} pad{i}.o unit.o "$@" -o program{i} &'
        for i, variant in enumerate(variants)
    ]
    command = Command(
        argv=("/bin/sh", "-c", "\n".join([*links, "wait"]), "sh", *program.cflags),
        files={"unit.o": code, **{f"pad{i}.o": pad.read_bytes() for i, pad in enumerate(pads)}},
        readonly=tools.readonly,
        outputs=tuple(f"program{i}" for i in range(count)),
        env=tool_environment(tools),
    )
    result = box.run(command, COMPILE)
    programs = tuple(result.files[f"program{i}"] for i in range(count) if f"program{i}" in result.files)
    if len(programs) != count:
        raise LinkFailed(f"{program.name} compiled but did not link:\n{said(result)}", "Check --cflags (-l..., -L...).")
    return programs
