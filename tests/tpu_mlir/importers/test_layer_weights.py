"""From checkpoints on disk to numbers: packed layers equal their exact floats, and the real model knows its capital."""

import numpy as np
import pytest

from core.errors import BadInput
from tests.tpu_mlir.importers.checkpoints.tiny import CONFIGS, quantised_tensors, write_directory
from tpu_mlir.dialects.interpret import run
from tpu_mlir.importers.checkpoints.checkpoint import open_checkpoint
from tpu_mlir.importers.checkpoints.gguf_file import packaged_smollm2
from tpu_mlir.importers.checkpoints.roles import linear_shapes
from tpu_mlir.importers.constants import RoleConstants
from tpu_mlir.importers.decoder_pieces import pieces
from tpu_mlir.importers.layer_weights import LayerWeights
from tpu_mlir.importers.plan import Plan


def logits_of(checkpoint, plan, ids, read, forms):
    """Prefill on the host, piece by piece, one layer's weights at a time."""
    states = np.zeros((1, plan.prefill), np.int32)
    states[0, : len(ids)] = ids
    positions = np.arange(plan.prefill, dtype=np.int32)[None]
    for piece in pieces(checkpoint.config, plan, sample=True):
        if piece.net.startswith(("embedding_cache", "block_cache", "greedy", "sample")):
            continue
        inputs = {"embedding": [states], "lm_head": [states[:, len(ids) - 1]]}
        given = inputs.get(piece.net, [states, positions])
        states = run(piece.build(forms(piece.weights)), given, RoleConstants(read)).outputs[0]
    return states[0]


@pytest.mark.parametrize("kind", ["gptq", "gptq_act_order", "awq", "compressed_tensors"])
def test_a_packed_checkpoint_computes_what_its_exact_floats_compute(tmp_path, kind):
    tensors, exact = quantised_tensors(CONFIGS["qwen2"], kind)
    checkpoint = open_checkpoint(write_directory(tmp_path / "model", quantised_config(kind), tensors))
    plan = Plan(seq=16, prefill=8, tile=4)
    weights = LayerWeights(checkpoint, plan)
    ids = [5, 9, 2, 77, 31]
    packed = logits_of(checkpoint, plan, ids, weights.read, weights.forms)

    def dense(role):
        module, _, part = role.rpartition(".")
        return exact[module] if part == "weight" and module in exact else weights.read(role)

    plain = logits_of(checkpoint, plan, ids, dense, lambda group: {})
    assert np.abs(plain).max() > 0.1
    np.testing.assert_allclose(packed, plain, rtol=1e-3, atol=1e-4)
    forms = [weights.form(m) for m in linear_shapes(checkpoint.config)]
    assert {f.permuted for f in forms} == {kind == "gptq_act_order"}


def quantised_config(kind):
    method = {"awq": "awq", "compressed_tensors": "compressed-tensors"}.get(kind, "gptq")
    claims = {"quant_method": method, "bits": 4, "group_size": 32}
    if kind == "compressed_tensors":
        group = {
            "targets": ["Linear"],
            "weights": {"num_bits": 4, "type": "int", "group_size": 32, "symmetric": False, "strategy": "group"},
        }
        claims = {
            "quant_method": method,
            "format": "pack-quantized",
            "config_groups": {"group_0": group},
            "ignore": ["lm_head"],
        }
    return {**CONFIGS["qwen2"], "quantization_config": claims}


def test_a_role_that_the_checkpoint_lacks_is_named(tmp_path):
    tensors, _ = quantised_tensors(CONFIGS["qwen2"], "awq")
    weights = LayerWeights(
        open_checkpoint(write_directory(tmp_path / "m", quantised_config("awq"), tensors)), Plan(seq=4, prefill=2)
    )
    with pytest.raises(BadInput, match=r"no tensor model.layers.9.mlp.gate_proj.weight"):
        weights.read("model.layers.9.mlp.gate_proj.weight")
    with pytest.raises(BadInput, match="lm_head is not quantised"):
        weights.read("lm_head.qweight")
    with pytest.raises(BadInput, match="has no permutation"):
        weights.read("model.layers.0.mlp.gate_proj.permutation")


def test_a_plan_longer_than_the_model_is_refused(tmp_path):
    tensors, _ = quantised_tensors(CONFIGS["qwen2"], "awq")
    checkpoint = open_checkpoint(write_directory(tmp_path / "m", quantised_config("awq"), tensors))
    with pytest.raises(BadInput, match=r"257 is longer than the 256 positions"):
        next(pieces(checkpoint.config, Plan(seq=257, prefill=8)))


@pytest.mark.slow
def test_the_graphs_of_smollm2_know_the_capital_of_france():
    checkpoint = open_checkpoint(packaged_smollm2())
    plan = Plan(seq=64, prefill=8)
    weights = LayerWeights(checkpoint, plan)
    tokens = checkpoint.tokenizer.tokens
    ids = [tokens.index(piece) for piece in ("The", "Ġcapital", "Ġof", "ĠFrance", "Ġis")]
    logits = logits_of(checkpoint, plan, ids, weights.read, weights.forms)
    assert tokens[int(logits.argmax())] == "ĠParis"
