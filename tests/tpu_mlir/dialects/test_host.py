"""Host inference against independent arithmetic: naive loops, closed forms, exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpu_mlir.dialects.catalog import SPECS
from tpu_mlir.dialects.spec import Mismatch
from tpu_mlir.dialects.specs.top_linear import causal_addend, unpack_weight
from tpu_mlir.dialects.types import DType

rng = np.random.default_rng(5)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def compute(name, *operands, **attrs):
    spec = SPECS[name]
    named = {o.name: v for o, v in zip(spec.operands, operands, strict=True)}
    out = spec.compute(named, spec.with_defaults(attrs))
    return out[0] if len(out) == 1 else out


def naive_attention(q, k, v, scale, visible):
    """One query, one head, one key at a time, in f64."""
    batch, rows, heads, dim = q.shape
    out = np.zeros((batch, rows, heads * dim))
    for b in range(batch):
        for i in range(rows):
            for h in range(heads):
                kv = h // (heads // k.shape[2])
                keys = [j for j in range(k.shape[1]) if visible(i, j)]
                scores = [float(np.dot(q[b, i, h].astype(float), k[b, j, kv].astype(float))) * scale for j in keys]
                weights = np.exp(np.array(scores) - max(scores))
                total = sum(w * v[b, j, kv].astype(float) for w, j in zip(weights / weights.sum(), keys, strict=True))
                out[b, i, h * dim : (h + 1) * dim] = total
    return out


def test_attention_with_shared_heads_equals_a_naive_loop():
    q, k, v = floats(2, 3, 4, 5), floats(2, 6, 2, 5), floats(2, 6, 2, 5)
    got = compute("top.attention", q, k, v, None, None, scale=0.4)
    np.testing.assert_allclose(got, naive_attention(q, k, v, 0.4, lambda i, j: True), rtol=1e-4, atol=1e-5)


@settings(deadline=None, max_examples=40)
@given(side=st.integers(2, 6), rows=st.integers(1, 9), history=st.integers(0, 7))
def test_a_small_triangle_stands_for_the_whole_causal_mask(side, rows, history):
    tile = np.triu(np.full((side, side), -1e9, np.float32), 1)
    got = causal_addend(tile, rows, history + rows)
    want = [[0.0 if j <= i + history else -1e9 for j in range(history + rows)] for i in range(rows)]
    np.testing.assert_array_equal(got, np.array(want, np.float32))


def test_causal_attention_over_history_sees_no_later_key():
    q, k, v = floats(1, 4, 2, 4), floats(1, 7, 1, 4), floats(1, 7, 1, 4)
    tile = np.triu(np.full((2, 2), -1e9, np.float32), 1)
    got = compute("top.attention", q, k, v, None, tile, scale=0.5)
    np.testing.assert_allclose(got, naive_attention(q, k, v, 0.5, lambda i, j: j <= i + 3), rtol=1e-4, atol=1e-5)


def test_rope_turns_pairs_and_keeps_lengths():
    x = floats(1, 5, 3, 8)
    angle = np.arange(5)[:, None] / 10.0 ** np.arange(4)[None, :]
    full = np.concatenate((angle, angle), axis=1).reshape(1, 5, 1, 8)
    sin, cos = np.sin(full).astype(np.float32), np.cos(full).astype(np.float32)
    got = compute("top.rope", x, sin, cos)
    turned = (x[..., :4] + 1j * x[..., 4:]) * np.exp(1j * angle).reshape(1, 5, 1, 4)
    np.testing.assert_allclose(got, np.concatenate((turned.real, turned.imag), axis=-1), rtol=1e-4, atol=1e-5)
    pairs = np.repeat(angle, 2, axis=1).reshape(1, 5, 1, 8)
    got = compute("top.rope", x, np.sin(pairs).astype(np.float32), np.cos(pairs).astype(np.float32), mode="interleaved")
    turned = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * angle).reshape(1, 5, 1, 4)
    np.testing.assert_allclose(
        got, np.stack((turned.real, turned.imag), axis=-1).reshape(x.shape), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_conv_equals_a_naive_loop(groups):
    x, w, bias = floats(2, 4, 5, 6), floats(8, 4 // groups, 3, 2), floats(8)
    got = compute("top.conv", x, w, bias, strides=(2, 1), pads=(1, 0, 2, 1), dilations=(1, 2), groups=groups)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 2), (0, 1)))
    want = np.zeros_like(got)
    for n, o, i, j in np.ndindex(*got.shape):
        first = (o // (8 // groups)) * (4 // groups)
        part = padded[n, first : first + 4 // groups, 2 * i : 2 * i + 3, j : j + 3 : 2]
        want[n, o, i, j] = (part * w[o]).sum() + bias[o]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_average_pool_leaves_padding_out_unless_asked():
    x = np.ones((1, 1, 3, 3), np.float32)
    attrs = {"kernel": (2, 2), "strides": (1, 1), "pads": (1, 1, 0, 0)}
    np.testing.assert_array_equal(compute("top.avg_pool", x, **attrs), np.ones((1, 1, 3, 3), np.float32))
    assert compute("top.avg_pool", x, **attrs, count_pad=True)[0, 0, 0, 0] == 0.25


def test_max_pool_of_negative_numbers_ignores_padding():
    x = np.full((1, 1, 2, 2), -3, np.float32)
    got = compute("top.max_pool", x, kernel=(2, 2), strides=(1, 1), pads=(1, 1, 1, 1))
    np.testing.assert_array_equal(got, np.full((1, 1, 3, 3), -3, np.float32))


def test_packed_weights_multiply_as_their_floats():
    codes = rng.integers(0, 16, (6, 32)).astype(np.uint8)
    packed = codes[:, ::2] | (codes[:, 1::2] << 4)
    scale, zero = np.abs(floats(6, 4)), rng.integers(0, 16, (6, 4)).astype(np.uint8)
    full = (codes.astype(float).reshape(6, 4, 8) - zero[..., None]) * scale[..., None].astype(float)
    np.testing.assert_allclose(unpack_weight(packed, scale, zero, bits=4, group_size=8), full.reshape(6, 32), rtol=1e-6)
    x = floats(1, 3, 32)
    got = compute("top.a16_matmul", x, packed, scale, zero, None, bits=4, group_size=8)
    np.testing.assert_allclose(got, x @ full.reshape(6, 32).T, rtol=1e-4, atol=1e-4)
    middle = (codes.astype(float).reshape(6, 4, 8) - 8) * scale[..., None]
    np.testing.assert_allclose(
        unpack_weight(packed, scale, None, bits=4, group_size=8), middle.reshape(6, 32), rtol=1e-6
    )


def test_of_equal_values_topk_takes_the_first():
    values, ids = compute("top.topk", np.array([[1, 3, 3, 2, 3]], np.float32), k=4, axis=1)
    assert values.tolist() == [[3, 3, 3, 2]]
    assert ids.tolist() == [[1, 2, 4, 3]]
    _, ids = compute("top.topk", np.array([[1, 3, 1]], np.float32), k=2, axis=-1, largest=False)
    assert ids.tolist() == [[0, 2]]


def test_activations_do_not_overflow():
    x = np.array([-1e4, -90, 0, 90, 1e4], np.float32)
    for name in ("silu", "sigmoid", "tanh", "gelu"):
        assert np.isfinite(compute(f"top.{name}", x)).all()
    assert np.isfinite(compute("top.softmax", x, axis=0)).all()


def test_a_gather_outside_the_table_is_refused():
    with pytest.raises(Mismatch, match=r"ids reach outside 0\.\.2"):
        compute("top.gather", floats(3, 2), np.array([3], np.int32), axis=0)


ROUND = {
    "half_up": lambda v: (v + Fraction(1, 2)).__floor__(),
    "half_away": lambda v: (1 if v >= 0 else -1) * (abs(v) + Fraction(1, 2)).__floor__(),
    "half_even": lambda v: round(v),
}


@settings(deadline=None, max_examples=150)
@given(
    x=st.integers(-(2**31), 2**31 - 1),
    multiplier=st.integers(0, 2**31 - 1),
    shift=st.integers(0, 62),
    zero_point=st.integers(-128, 127),
    rounding=st.sampled_from(sorted(ROUND)),
    to=st.sampled_from(["si8", "ui8"]),
)
def test_integer_requantisation_equals_exact_fractions(x, multiplier, shift, zero_point, rounding, to):
    got = compute(
        "tpu.requant_int",
        np.array([x], np.int32),
        multipliers=(multiplier,),
        shifts=(shift,),
        zero_point=zero_point,
        rounding=rounding,
        to=to,
    )
    limits = np.iinfo(DType(to).numpy)
    want = ROUND[rounding](Fraction(x * multiplier, 2**shift)) + zero_point
    assert got.tolist() == [min(max(want, limits.min), limits.max)]


@settings(deadline=None, max_examples=60)
@given(numerator=st.integers(-2000, 2000), rounding=st.sampled_from(sorted(ROUND)))
def test_float_requantisation_rounds_ties_as_named(numerator, rounding):
    got = compute("tpu.requant_fp", np.array([numerator], np.float32), scales=(0.125,), rounding=rounding)
    want = ROUND[rounding](Fraction(numerator, 8))
    assert got.tolist() == [min(max(want, -128), 127)]


def test_integer_products_are_exact_where_f32_is_not():
    x, w = np.full((1, 2048), 127, np.int8), np.full((1, 2048), 127, np.int8)
    w[0, 0] = 126
    got = compute("tpu.matmul", x, w, np.array([1], np.int32), right_transpose=True, out="si32")
    assert got.dtype == np.int32
    assert got.tolist() == [[127 * 127 * 2047 + 127 * 126 + 1]]


def test_a_bf16_product_rounds_once_at_the_end():
    x = np.full((1, 256), 1 / 256, DType.BF16.numpy)
    w = np.ones((1, 256), DType.BF16.numpy)
    w[0, 0] = 1.0078125
    got = compute("tpu.matmul", x, w, None, right_transpose=True, out="f32")
    assert float(got[0, 0]) == 1.0 + 0.0078125 / 256
    assert compute("tpu.matmul", x, w, None, right_transpose=True, out="bf16").astype(float).tolist() == [[1.0]]


def test_a_lookup_reads_signed_bytes_by_their_bit_pattern():
    table = np.arange(256).astype(np.uint8).view(np.int8)
    x = np.array([-1, 0, 5, -128], np.int8)
    assert compute("tpu.lut", x, table).tolist() == x.tolist()


def test_f16_overflow_becomes_infinite_and_not_a_warning():
    got = compute("tpu.cast", np.array([1e6, -1e6, 1.0], np.float32), to="f16")
    assert got.tolist() == [np.inf, -np.inf, 1.0]
