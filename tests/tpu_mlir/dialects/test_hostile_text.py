"""Text from anywhere parses to a valid module or is refused with a message; it never ends the process otherwise."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tpu_mlir.dialects.test_ops import ALL, module_of
from tpu_mlir.dialects import adapter
from tpu_mlir.dialects.adapter import IrError

TEXTS = [adapter.print_module(module_of(name)) for name in sorted(ALL)]
NUMBERS = ["0", "-1", "1", "2", "7", "9223372036854775807", "-9223372036854775808", "4294967296"]


def parse_or_refuse(text):
    try:
        module = adapter.parse(text)
    except IrError:
        return
    for function in adapter.functions(module):
        for call in adapter.calls(function):
            assert call.flops >= 0
    assert adapter.print_module(adapter.parse(adapter.print_module(module))) == adapter.print_module(module)


@settings(deadline=None, max_examples=300)
@given(st.integers(0, len(TEXTS) - 1), st.integers(0, 2**32))
def test_other_numbers(which, seed):
    """One number of a valid module becomes another: an attribute, a shape, a segment size."""
    rng = random.Random(seed)
    found = list(re.finditer(r"-?\d+(?!\d*:)", TEXTS[which]))
    place = rng.choice(found)
    parse_or_refuse(TEXTS[which][: place.start()] + rng.choice(NUMBERS) + TEXTS[which][place.end() :])


@settings(deadline=None, max_examples=200)
@given(st.integers(0, len(TEXTS) - 1), st.integers(0, 2**32))
def test_words_taken_from_elsewhere(which, seed):
    """One word of a valid module becomes a word of another one."""
    rng = random.Random(seed)
    words = re.findall(r"[A-Za-z_.]+\d*|\"[^\"]*\"", rng.choice(TEXTS))
    place = rng.choice(list(re.finditer(r"[A-Za-z_.]+\d*|\"[^\"]*\"", TEXTS[which])))
    parse_or_refuse(TEXTS[which][: place.start()] + rng.choice(words) + TEXTS[which][place.end() :])


@settings(deadline=None, max_examples=200)
@given(st.integers(0, len(TEXTS) - 1), st.integers(0, 2**32))
def test_text_cut_short_or_with_a_hole(which, seed):
    rng = random.Random(seed)
    start = rng.randrange(len(TEXTS[which]))
    parse_or_refuse(TEXTS[which][:start] + TEXTS[which][start + rng.choice([1, 5, 10**6]) :])


@pytest.mark.parametrize("name", ["tpu.group", "tpu.yield"])
def test_a_group_without_its_parts_is_refused(name):
    with pytest.raises(IrError):
        adapter.parse(f'func.func @f() {{\n  "{name}"() : () -> ()\n  return\n}}')
