"""The canonical form is exact, checks itself, and does not care in which order inputs or outputs are stored."""

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BadInput
from tpu_mlir.quantize.chip_packing import pack_for_chip, unpack_from_chip
from tpu_mlir.quantize.group_quantised import GroupQuantised, permutation_of, reorder_outputs


def random_weight(bits: int, outputs: int, groups: int, size: int, seed: int, moved: bool = False) -> GroupQuantised:
    rng = np.random.default_rng(seed)
    return GroupQuantised(
        layer="l",
        codes=rng.integers(0, 1 << bits, (outputs, groups * size), dtype=np.uint8),
        scales=rng.normal(size=(outputs, groups)).astype(rng.choice([np.float16, ml_dtypes.bfloat16])),
        zeros=rng.integers(0, 1 << bits, (outputs, groups), dtype=np.uint8),
        bits=bits,
        group_size=size,
        permutation=rng.permutation(groups * size).astype(np.int32) if moved else None,
    )


cases = st.builds(
    random_weight,
    bits=st.sampled_from([4, 8]),
    outputs=st.integers(1, 6),
    groups=st.integers(1, 4),
    size=st.sampled_from([2, 32, 64]),
    seed=st.integers(0, 999),
    moved=st.booleans(),
)


@settings(max_examples=40, deadline=None)
@given(cases)
def test_dequantisation_is_exact(weight: GroupQuantised) -> None:
    exact = weight.codes.astype(np.float64).reshape(weight.shape[0], weight.groups, -1)
    exact = (exact - weight.zeros[:, :, None]) * weight.scales.astype(np.float64)[:, :, None]
    assert np.array_equal(weight.dequantise_stored().astype(np.float64), exact.reshape(weight.shape))


@settings(max_examples=40, deadline=None)
@given(cases, st.integers(0, 99))
def test_a_product_does_not_depend_on_the_stored_order(weight: GroupQuantised, seed: int) -> None:
    x = np.random.default_rng(seed).integers(-8, 8, weight.shape[1]).astype(np.float64)
    gathered = x if weight.permutation is None else x[weight.permutation]
    stored = weight.dequantise_stored().astype(np.float64) * gathered
    original = weight.dequantise().astype(np.float64) * x
    assert np.array_equal(np.sort(stored, axis=1), np.sort(original, axis=1))


@settings(max_examples=30, deadline=None)
@given(cases, st.integers(0, 99))
def test_reordering_outputs_reorders_rows(weight: GroupQuantised, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(weight.shape[0]).astype(np.int32)
    assert np.array_equal(reorder_outputs(weight, order).dequantise(), weight.dequantise()[order])


def test_a_permutation_can_be_folded_into_the_layer_before() -> None:
    up, down = random_weight(4, 64, 1, 32, 0), random_weight(4, 8, 2, 32, 1, moved=True)
    assert down.permutation is not None
    x = np.random.default_rng(2).integers(-4, 4, 32).astype(np.float64)
    plain = down.dequantise().astype(np.float64) @ (up.dequantise().astype(np.float64) @ x)
    folded = reorder_outputs(up, down.permutation).dequantise().astype(np.float64) @ x
    assert np.allclose(down.dequantise_stored().astype(np.float64) @ folded, plain, rtol=1e-12)


@settings(max_examples=40, deadline=None)
@given(cases)
def test_chip_packing_inverts(weight: GroupQuantised) -> None:
    packed = pack_for_chip(weight)
    back = unpack_from_chip(packed)
    assert np.array_equal(back.codes, weight.codes)
    assert np.array_equal(back.dequantise(), weight.dequantise())
    assert packed.weight.shape == (weight.shape[0], weight.shape[1] * weight.bits // 8)


def test_the_chip_reads_even_inputs_in_low_halves() -> None:
    weight = GroupQuantised(
        layer="l",
        codes=np.array([[1, 2, 3, 15]], np.uint8),
        scales=np.ones((1, 2), np.float16),
        zeros=np.array([[8, 7]], np.uint8),
        bits=4,
        group_size=2,
    )
    packed = pack_for_chip(weight)
    assert packed.weight.tolist() == [[0x21, 0xF3]]
    assert packed.zeros.tolist() == [[8, 7]]
    assert packed.nbytes == 2 + 4 + 2


def test_an_odd_number_of_4_bit_inputs_has_no_chip_layout() -> None:
    weight = random_weight(4, 2, 1, 97, 0)
    with pytest.raises(BadInput, match=r"^l: 97 inputs of 4 bits do not fill whole bytes"):
        pack_for_chip(weight)


@settings(max_examples=40, deadline=None)
@given(groups=st.integers(1, 5), size=st.integers(1, 9), seed=st.integers(0, 999))
def test_act_order_sorting_makes_groups_contiguous_and_is_stable(groups: int, size: int, seed: int) -> None:
    group_of = np.repeat(np.arange(groups), size).astype(np.int32)
    np.random.default_rng(seed).shuffle(group_of)
    permutation = permutation_of("l", group_of, groups)
    order = np.arange(groups * size) if permutation is None else permutation
    assert np.array_equal(group_of[order], np.arange(groups * size) // size)
    for group in range(groups):
        members = order[group * size : (group + 1) * size]
        assert np.array_equal(members, np.sort(members))


BAD: list[tuple[dict[str, Any], str]] = [
    ({"bits": 3}, "3-bit"),
    ({"group_size": 24}, "64 inputs do not divide into groups of 24"),
    ({"scales": np.ones((4, 3), np.float16)}, r"scales have shape \(4, 3\), expected \(4, 2\)"),
    ({"zeros": np.zeros((4, 1), np.uint8)}, r"zeros have shape \(4, 1\), expected \(4, 2\)"),
    ({"zeros": np.zeros((4, 2), np.int32)}, "zeros int32, expected uint8"),
    ({"scales": np.ones((4, 2), np.int32)}, "scales are int32"),
    ({"scales": np.full((4, 2), np.nan, np.float16)}, "infinite or NaN"),
    ({"codes": np.full((4, 64), 16, np.uint8)}, "is 16, more than 4 bits hold"),
    ({"permutation": np.zeros(64, np.int32)}, "does not name each of the 64 inputs once"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[message for _, message in BAD])
def test_parts_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=rf"^l: .*{message}"):
        replace(random_weight(4, 4, 2, 32, 0), **change)
