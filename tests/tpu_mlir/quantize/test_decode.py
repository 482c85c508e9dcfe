"""Packed layers of every format come out as they were packed, whatever their shape."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BadInput
from tests.tpu_mlir.quantize.packers import (
    awq_layer,
    compressed_tensors_layer,
    gptq_layer,
    pack_columns,
    pack_rows,
    random_layer,
    under,
)
from tpu_mlir.quantize.bit_packing import unpack_words
from tpu_mlir.quantize.decode import decode_layer
from tpu_mlir.quantize.detect import detect
from tpu_mlir.quantize.formats import ZeroRule
from tpu_mlir.quantize.group_quantised import GroupQuantised


def decoded(tensors: dict[str, np.ndarray], rule: ZeroRule | None = None) -> GroupQuantised:
    found = detect(tensors, None)
    assert found is not None
    (layer,) = found.layers.values()
    return decode_layer(tensors, layer, rule or found.zero_rule)


def reference(codes: np.ndarray, zeros: np.ndarray, scales: np.ndarray, group_of: np.ndarray) -> np.ndarray:
    """Dequantised [outputs, inputs], from the definition."""
    result = np.empty(codes.shape[::-1], dtype=np.float32)
    for k in range(codes.shape[0]):
        for n in range(codes.shape[1]):
            result[n, k] = np.float32(int(codes[k, n]) - int(zeros[group_of[k], n])) * np.float32(
                scales[group_of[k], n]
            )
    return result


shapes = st.tuples(
    st.sampled_from([4, 8]),
    st.sampled_from([8, 32, 64, 128, -1]),
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(0, 99),
)


@settings(max_examples=40, deadline=None)
@given(shape=shapes, version=st.sampled_from([1, 2]), symmetric=st.booleans(), act_order=st.booleans())
def test_gptq(shape: tuple[int, int, int, int, int], version: int, symmetric: bool, act_order: bool) -> None:
    bits, group_size, groups, outputs, seed = shape
    size, groups = (96, 1) if group_size == -1 else (group_size, groups)
    codes, zeros, scales = random_layer(size * groups, outputs * 8, bits, size, seed, symmetric)
    group_of = np.arange(size * groups) // size
    if act_order:
        np.random.default_rng(seed).shuffle(group_of)
    rule: ZeroRule = "minus_one" if version == 1 else "plain"
    weight = decoded(under("l", gptq_layer(codes, zeros, scales, bits, version, group_of)), rule)
    assert np.array_equal(weight.dequantise(), reference(codes, zeros, scales, group_of))
    assert weight.group_size == size


@settings(max_examples=25, deadline=None)
@given(
    group_size=st.sampled_from([32, 64, 128]),
    groups=st.integers(1, 3),
    outputs=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_awq(group_size: int, groups: int, outputs: int, seed: int) -> None:
    codes, zeros, scales = random_layer(group_size * groups, outputs * 8, 4, group_size, seed)
    weight = decoded(under("l", awq_layer(codes, zeros, scales)))
    assert np.array_equal(weight.dequantise(), reference(codes, zeros, scales, np.arange(len(codes)) // group_size))


@settings(max_examples=40, deadline=None)
@given(
    shape=shapes, odd=st.integers(0, 7), symmetric=st.booleans(), packed_zeros=st.booleans(), act_order=st.booleans()
)
def test_compressed_tensors(
    shape: tuple[int, int, int, int, int], odd: int, symmetric: bool, packed_zeros: bool, act_order: bool
) -> None:
    bits, group_size, groups, outputs, seed = shape
    # One group a row need not fill its last word: 97 inputs of 4 bits.
    size, groups = (97, 1) if group_size == -1 else (group_size, groups)
    codes, zeros, scales = random_layer(size * groups, outputs * 8 + odd, bits, size, seed, symmetric)
    group_of = np.arange(size * groups) // size
    if act_order:
        np.random.default_rng(seed).shuffle(group_of)
    tensors = under(
        "l",
        compressed_tensors_layer(
            codes.T,
            None if symmetric else zeros.T,
            scales.T,
            bits,
            packed_zeros,
            group_of if act_order else None,
        ),
    )
    weight = decoded(tensors)
    assert np.array_equal(weight.dequantise(), reference(codes, zeros, scales, group_of))


def test_compressed_tensors_with_one_scale_for_all() -> None:
    codes, _, _ = random_layer(64, 8, 4, 64, 0, symmetric=True)
    weight = decoded(under("l", compressed_tensors_layer(codes.T, None, np.array([0.5], dtype=np.float16), 4)))
    assert np.array_equal(weight.dequantise(), (codes.T.astype(np.float32) - 8) * 0.5)


def test_compressed_tensors_with_one_scale_and_one_zero_point_for_all() -> None:
    codes, _, _ = random_layer(64, 8, 4, 64, 0)
    parts = compressed_tensors_layer(codes.T, None, np.array([0.5], dtype=np.float16), 4)
    parts["weight_zero_point"] = np.array([-3], np.int8)
    assert np.array_equal(decoded(under("l", parts)).dequantise(), (codes.T.astype(np.float32) - 5) * 0.5)


def test_an_uninitialised_g_idx_of_compressed_tensors_means_in_order() -> None:
    codes, _, scales = random_layer(64, 8, 4, 32, 0, symmetric=True)
    tensors = under("l", compressed_tensors_layer(codes.T, None, scales.T, 4, g_idx=np.full(64, -1)))
    assert decoded(tensors).permutation is None


@settings(max_examples=40, deadline=None)
@given(bits=st.sampled_from([4, 8]), words=st.integers(1, 4), rows=st.integers(1, 5), seed=st.integers(0, 999))
def test_unpacking_inverts_packing(bits: int, words: int, rows: int, seed: int) -> None:
    codes = np.random.default_rng(seed).integers(0, 1 << bits, size=(rows, words * 32 // bits), dtype=np.uint8)
    assert np.array_equal(unpack_words(pack_rows(codes, bits), bits, axis=1), codes)
    assert np.array_equal(unpack_words(pack_columns(codes.T, bits), bits, axis=0), codes.T)


def test_a_version_1_zero_point_of_all_ones_is_zero() -> None:
    codes, zeros, scales = random_layer(64, 8, 4, 64, 3)
    zeros[:] = 0
    weight = decoded(under("l", gptq_layer(codes, zeros, scales, 4)), "minus_one")
    assert (weight.zeros == 0).all()
    assert np.array_equal(weight.dequantise(), codes.T * scales.astype(np.float32).T)


@pytest.mark.parametrize(
    ("g_idx", "message"),
    [
        (np.arange(64) // 31, "g_idx names group 0 to 2"),
        (np.zeros(64, dtype=int), "0 inputs in the smallest group and 64 in the largest"),
        (np.arange(64) // 32 - 1, "group -1"),
    ],
)
def test_a_g_idx_that_makes_no_sense_is_refused_by_layer(g_idx: np.ndarray, message: str) -> None:
    codes, zeros, scales = random_layer(64, 8, 4, 32, 0)
    with pytest.raises(BadInput, match=r"model\.layers\.3\.mlp\.up_proj") as refused:
        decoded(under("model.layers.3.mlp.up_proj", gptq_layer(codes, zeros, scales, 4, 1, g_idx)), "minus_one")
    assert message in str(refused.value)


def test_infinite_scales_are_refused_by_layer() -> None:
    codes, zeros, scales = random_layer(64, 8, 4, 32, 0)
    scales[1, 2] = np.inf
    with pytest.raises(BadInput, match=r"^blk: some scales are infinite"):
        decoded(under("blk", awq_layer(codes, zeros, scales)))


def test_packed_int8_zero_points_of_a_wrong_shape_are_refused_by_layer() -> None:
    codes, zeros, scales = random_layer(64, 8, 4, 32, 0)
    parts = compressed_tensors_layer(codes.T, zeros.T, scales.T, 4, packed_zeros=False)
    parts["weight_zero_point"] = parts["weight_zero_point"][:3]
    with pytest.raises(BadInput, match=r"blk\.weight_zero_point is int8 \(3, 2\), expected int32 \(1, 2\)"):
        decoded(under("blk", parts))


def damaged(part: np.ndarray) -> list[np.ndarray]:
    variants = [
        part[:0],
        part[:-1],
        np.concatenate([part, part]),
        part.astype(np.float32),
        part.reshape(-1),
        part[None],
    ]
    if part.ndim == 2:
        variants += [part[:, :0], part[:, :-1], np.concatenate([part, part], axis=1), part.T.copy()]
    if part.dtype.kind == "i":
        variants += [part.astype(np.int64), np.full_like(part, -1), np.full_like(part, np.iinfo(part.dtype).max), -part]
    return variants


def test_parts_of_any_wrong_shape_type_or_value_are_refused_and_never_crash() -> None:
    codes, zeros, scales = random_layer(64, 16, 4, 32, 0)
    group_of = np.arange(64) // 32
    layers = [
        gptq_layer(codes, zeros, scales, 4, 1, group_of),
        awq_layer(codes, zeros, scales),
        compressed_tensors_layer(codes.T, zeros.T, scales.T, 4, True, group_of),
        compressed_tensors_layer(codes.T, zeros.T, scales.T, 4, False, group_of),
    ]
    refused = 0
    for layer in layers:
        for name, part in layer.items():
            for variant in damaged(part):
                try:
                    decoded(under("l", {**layer, name: variant}))
                except BadInput:
                    refused += 1
    assert refused > 100
