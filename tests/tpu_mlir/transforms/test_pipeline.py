"""Pipelines are read as written, and what cannot be read is named."""

import pytest

from core.errors import BadInput
from tpu_mlir.dialects import adapter
from tpu_mlir.dialects.state import State, check, state_of
from tpu_mlir.transforms.canonicalize import Canonicalize
from tpu_mlir.transforms.fold_reshapes import FoldReshapes
from tpu_mlir.transforms.pipeline import PASSES, parse_pipeline


def test_names_and_options_become_passes():
    found = parse_pipeline(" fold-reshapes , canonicalize{state=lowered},canonicalize ")
    assert found == (FoldReshapes(), Canonicalize(state=State.LOWERED), Canonicalize())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fold-reshape", "There is no pass fold-reshape"),
        ("canonicalize{stat=lowered}", "no option stat"),
        ("canonicalize{state=low}", "Option state of the pass canonicalize cannot be 'low'"),
        ("canonicalize{state=lowered", "cannot be read from here"),
        ("canonicalize canonicalize", "cannot be read from here"),
    ],
)
def test_what_cannot_be_read_is_named(text, message):
    with pytest.raises(BadInput, match=message):
        parse_pipeline(text)


def test_passes_are_frozen_values_with_a_state_before_and_after():
    for kind in PASSES.values():
        assert kind.__dataclass_params__.frozen
        assert isinstance(kind.name, str)


def test_a_module_without_a_state_is_refused():
    module = adapter.parse("module {}")
    with pytest.raises(BadInput, match=r"tpu\.state is None"):
        state_of(module)
    with pytest.raises(BadInput, match=r"tpu\.state is 'raw'"):
        check(adapter.parse('module attributes {tpu.state = "raw"} {}'), State.TOP_F32)
