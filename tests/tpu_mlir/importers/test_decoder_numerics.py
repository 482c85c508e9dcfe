"""The graphs compute what the model computes: against recorded float references, and against themselves, cut."""

import functools
import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tpu_mlir.dialects.interpret import run
from tpu_mlir.importers.checkpoints.model_config import ModelConfig, Rope
from tpu_mlir.importers.checkpoints.rope_tables import rope_tables
from tpu_mlir.importers.constants import RoleConstants
from tpu_mlir.importers.decoder_layer import COS, SIN, TILE
from tpu_mlir.importers.decoder_pieces import pieces
from tpu_mlir.importers.linear import Packed
from tpu_mlir.importers.plan import MASK_FILL, Plan

GOLDENS = Path(__file__).parents[1] / "goldens"
S = 128


@functools.cache
def recorded(name):
    with np.load(GOLDENS / f"numerics_tiny_qwen2_{name}.npz") as file:
        return {k: file[k] for k in file.files}


def floats(name, key):
    data = recorded(name)
    if f"{key}.bf16" in data:
        return data[f"{key}.bf16"].view(ml_dtypes.bfloat16).astype(np.float32)
    return data[key].astype(np.float32)


def meta(name):
    return json.loads(str(recorded(name)["meta_json"]))


def recorded_config(name):
    c = meta(name)["config"]
    return ModelConfig(
        family="qwen2",
        hidden_size=c["hidden_size"],
        intermediate_size=c["intermediate_size"],
        layers=c["num_hidden_layers"],
        heads=c["num_attention_heads"],
        kv_heads=c["num_key_value_heads"],
        head_dim=meta(name)["head_dim"],
        vocab_size=c["vocab_size"],
        max_positions=c["max_position_embeddings"],
        norm_eps=c["rms_norm_eps"],
        rope=Rope(theta=meta(name)["rope_theta"]),
        tied_embeddings=False,
        qkv_bias=True,
    )


def gptq_part(role):
    """A GPTQ v1 layer of the recorded file in the chip's packing, unpacked and packed again by plain arithmetic."""
    module, _, part = role.rpartition(".")
    data = recorded("gptq")
    shifts = np.arange(0, 32, 4, dtype=np.uint32)
    if part == "scales":
        return floats("gptq", f"w/{role}").T
    words = data[f"w/{module}.{part}"].view(np.uint32)
    if part == "qzeros":
        return ((words[..., None] >> shifts) & 15).reshape(words.shape[0], -1).T.astype(np.uint8) + 1
    codes = ((words[:, None, :] >> shifts[None, :, None]) & 15).reshape(-1, words.shape[1]).T.astype(np.uint8)
    return codes[:, ::2] | (codes[:, 1::2] << 4)


def recorded_roles(name, config, plan):
    def read(role):
        if role in (COS, SIN):
            return rope_tables(config, plan.seq)[role == SIN][:, None, :]
        if role == TILE:
            return np.triu(np.full((plan.tile, plan.tile), MASK_FILL, np.float32), 1)
        packed = name == "gptq" and role.endswith(("qweight", "qzeros", "scales"))
        return gptq_part(role) if packed else floats(name, f"w/{role}")

    return read


def forms_of(name):
    form = Packed(bits=4, group_size=64, symmetric=False, permuted=False)
    modules = {k.removeprefix("w/").rsplit(".", 1)[0] for k in recorded(name) if k.endswith(".qweight")}
    return dict.fromkeys(modules, form)


@pytest.mark.parametrize("mask", ["tile", "input"])
@pytest.mark.parametrize("name", ["bf16", "gptq"])
def test_prefill_and_decode_equal_the_recorded_float_reference(name, mask):
    config, plan = recorded_config(name), Plan(seq=S, prefill=64, mask=mask, tile=32)
    made = {p.net: p.build(forms_of(name)) for p in pieces(config, plan)}
    constants = RoleConstants(recorded_roles(name, config, plan))
    n, rows = 41, 64
    positions = np.where(np.arange(rows) < n, np.arange(rows), 0).astype(np.int32)[None]
    ids = np.zeros((1, rows), np.int32)
    ids[0, :n] = recorded(name)["pad41/input_ids"]
    (states,) = run(made["embedding"], [ids], constants).outputs
    np.testing.assert_array_equal(states[:, :n], floats(name, "pad41/prefill/input_states"))
    causal = np.where(np.tril(np.ones((rows, rows), bool)), 0, MASK_FILL).astype(np.float32)[None, None]
    caches = []
    for layer in range(2):
        given = [states, positions] + [causal] * (mask == "input")
        states, *cache_rows = run(made[f"block_{layer}"], given, constants).outputs
        caches.append([np.concatenate((c[:, :n], np.zeros((1, S - n, 2, 32), np.float32)), axis=1) for c in cache_rows])
        key = f"pad41/prefill/ref_block_{layer}"
        close(states[:, :n], floats(name, f"{key}/output_states"))
        close(cache_rows[0][:, :n], floats(name, f"{key}/k_cache"))
        close(cache_rows[1][:, :n], floats(name, f"{key}/v_cache"))
    token = run(made["lm_head"], [states[:, n - 1]], constants).outputs[0]
    assert int(token[0, 0]) == int(recorded(name)["pad41/prefill/ref_token_id"])
    for step in range(3):
        at = f"pad41/decode{step}"
        position = int(recorded(name)[f"{at}/position"])
        (states,) = run(
            made["embedding_cache"], [np.array([[recorded(name)[f"{at}/input_id"]]], np.int32)], constants
        ).outputs
        hidden = np.full((1, 1, 1, S + 1), MASK_FILL, np.float32)
        hidden[..., :position] = hidden[..., -1] = 0
        for layer in range(2):
            given = [states, np.array([[position]], np.int32), hidden, *caches[layer]]
            states, k, v = run(made[f"block_cache_{layer}"], given, constants).outputs
            close(states, floats(name, f"{at}/ref_block_cache_{layer}/output_states"))
            close(k, floats(name, f"{at}/ref_block_cache_{layer}/k_cache"))
            close(v, floats(name, f"{at}/ref_block_cache_{layer}/v_cache"))
            for stored, row in zip(caches[layer], (k, v), strict=True):
                stored[:, position] = row[:, 0]
        token = run(made["lm_head"], [states[:, 0]], constants).outputs[0]
        assert int(token[0, 0]) == int(recorded(name)[f"{at}/ref_token_id"])


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-5)


def family(name):
    special = {
        "llama": {},
        "qwen2": {"qkv_bias": True},
        "qwen3": {"qk_norm": True},
        "minicpm": {"embedding_scale": 12.0, "residual_scale": 0.7, "logit_divisor": 4.0},
    }[name]
    return ModelConfig(
        family=name,
        hidden_size=48,
        intermediate_size=80,
        layers=2,
        heads=6,
        kv_heads=2,
        head_dim=8,
        vocab_size=64,
        max_positions=64,
        norm_eps=1e-6,
        rope=Rope(theta=1000.0),
        tied_embeddings=name == "minicpm",
        **special,
    )


def random_roles(config, plan):
    def read(role, shape):
        if role in (COS, SIN):
            return rope_tables(config, plan.seq)[role == SIN][:, None, :]
        if role == TILE:
            return np.triu(np.full((plan.tile, plan.tile), MASK_FILL, np.float32), 1)
        rng = np.random.default_rng(list(role.encode()))
        return (rng.standard_normal(shape) * 0.15 + ("norm" in role)).astype(np.float32)

    return read


class Model:
    """Runs all pieces of a plan on the host, as a runtime would; weights are random, by role."""

    def __init__(self, config, plan):
        self.config, self.plan = config, plan
        self.nets = {p.net: p.build({}) for p in pieces(config, plan, sample=True)}
        read = random_roles(config, plan)
        self.constants = lambda call: read(call.attrs["role"], call.attrs["shape"])
        kind = (1, plan.seq, config.kv_heads, config.head_dim)
        self.cache = [[np.zeros(kind, np.float32) for _ in "kv"] for _ in range(config.layers)]
        self.length = 0

    def net(self, name, *given):
        return run(self.nets[name], given, self.constants).outputs

    def feed(self, ids, kind):
        """Feed tokens through one stage; return the logits after the last."""
        rows = 1 if kind == "block_cache" else self.plan.prefill
        n = len(ids)
        padded = np.zeros((1, rows), np.int32)
        padded[0, :n] = ids
        positions = np.zeros((1, rows), np.int32)
        positions[0, :n] = self.length + np.arange(n)
        (states,) = self.net("embedding_cache" if rows == 1 else "embedding", padded)
        mask = np.zeros((1, 1, 1, self.plan.seq + rows), np.float32)
        mask[..., self.length : self.plan.seq] = MASK_FILL
        for layer, cache in enumerate(self.cache):
            extra = [] if kind == "block" else [mask, *cache]
            states, *new = self.net(f"{kind}_{layer}", states, positions, *extra)
            for stored, rows_ in zip(cache, new, strict=True):
                stored[:, self.length : self.length + n] = rows_[:, :n]
        self.length += n
        return self.net("lm_head", states[:, n - 1])[0]


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3", "minicpm"])
def test_a_prompt_cut_anywhere_gives_the_same_logits(name):
    """prefill(n) == prefill(k) + prefill_kv(n - k) == n decodes, up to f32 summation order."""
    config, plan = family(name), Plan(seq=24, prefill=10, history=True, tile=4)
    ids = np.random.default_rng(3).integers(0, 64, 10)
    whole = Model(config, plan).feed(ids, "block")
    for cut in (1, 4, 9):
        model = Model(config, plan)
        model.feed(ids[:cut], "block")
        np.testing.assert_allclose(model.feed(ids[cut:], "block_kv"), whole, rtol=1e-4, atol=1e-4)
    model = Model(config, plan)
    for one in ids:
        last = model.feed([one], "block_cache")
    np.testing.assert_allclose(last, whole, rtol=1e-4, atol=1e-4)


def test_what_stands_in_padded_rows_does_not_matter():
    config, plan = family("qwen3"), Plan(seq=24, prefill=10, tile=4)
    (block,) = [p.build({}) for p in pieces(config, plan) if p.net == "block_0"]
    constants = Model(config, plan).constants
    rng = np.random.default_rng(0)
    states, positions = rng.standard_normal((1, 10, 48)).astype(np.float32), np.arange(10, dtype=np.int32)[None]
    first = run(block, [states, positions], constants).outputs
    states = states.copy()
    states[:, 6:] = 1e3
    second = run(block, [states, positions], constants).outputs
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a[:, :6], b[:, :6])


def test_an_act_order_layer_multiplies_the_right_columns():
    """The published compiler ignores g_idx; here a permuted layer equals its unpermuted floats."""
    from tpu_mlir.dialects.build import FunctionWriter
    from tpu_mlir.dialects.types import DType, Tensor
    from tpu_mlir.importers.linear import LinearWriter
    from tpu_mlir.quantize.chip_packing import pack_for_chip
    from tpu_mlir.quantize.group_quantised import GroupQuantised

    rng = np.random.default_rng(1)
    weight = GroupQuantised(
        layer="m",
        codes=rng.integers(0, 16, (6, 32)).astype(np.uint8),
        scales=rng.uniform(0.1, 1, (6, 4)).astype(np.float32),
        zeros=rng.integers(0, 16, (6, 4)).astype(np.uint8),
        bits=4,
        group_size=8,
        permutation=rng.permutation(32).astype(np.int32),
    )
    write = FunctionWriter("f", {"x": Tensor((1, 3, 32), DType.F32)})
    module = write.finish(LinearWriter(write, {"m": Packed.of(weight)})(write["x"], "m", (6, 32)))
    chip = pack_for_chip(weight)
    parts = {
        "m.qweight": chip.weight,
        "m.scales": chip.scales,
        "m.qzeros": chip.zeros,
        "m.permutation": chip.permutation,
    }
    x = rng.standard_normal((1, 3, 32)).astype(np.float32)
    (got,) = run(module, [x], RoleConstants(parts.__getitem__)).outputs
    np.testing.assert_allclose(got, x @ weight.dequantise().T, rtol=1e-4, atol=1e-4)
