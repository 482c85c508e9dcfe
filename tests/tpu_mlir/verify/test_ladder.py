"""The ladder finds nothing where there is nothing, and names the program and tensor where there is something."""

import numpy as np
import pytest

from core.errors import BadInput
from tests.tpu_mlir.importers.checkpoints.tiny import CONFIGS, quantised_tensors, random_tensors, write_directory
from tpu_mlir.importers.auto_mode import lowering_for
from tpu_mlir.importers.checkpoints.checkpoint import open_checkpoint
from tpu_mlir.importers.plan import Plan
from tpu_mlir.verify.ladder import climb

PLAN = Plan(seq=16, prefill=6, tile=4)
IDS = [5, 9, 2, 77, 31]


@pytest.fixture(scope="module")
def floats(tmp_path_factory):
    path = write_directory(tmp_path_factory.mktemp("m") / "qwen2", CONFIGS["qwen2"], random_tensors(CONFIGS["qwen2"]))
    return open_checkpoint(path)


@pytest.fixture(scope="module")
def gptq(tmp_path_factory):
    tensors, _ = quantised_tensors(CONFIGS["llama"], "gptq_act_order")
    config = {**CONFIGS["llama"], "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32}}
    return open_checkpoint(write_directory(tmp_path_factory.mktemp("m") / "gptq", config, tensors))


def reports(checkpoint, mode="auto", **options):
    lowering = lowering_for(checkpoint, "bm1684x", mode, options.get("group_size", 32), symmetric=False)
    return {r.net: r for r in climb(checkpoint, IDS, PLAN, lowering)}


def test_every_program_is_compared_tensor_by_tensor(floats):
    found = reports(floats)
    blocks = [f"{kind}_{i}" for i in range(2) for kind in ("block", "block_cache")]
    assert list(found) == ["embedding", "embedding_cache", *blocks, "lm_head"]
    names = [t.name for t in found["block_0"].tensors]
    assert {"model.layers.0.self_attn.q_proj", "model.layers.0.attention", "model.layers.0.mlp_residual"} <= set(names)
    for report in found.values():
        assert report.hint == ""
        assert all(t.cosine > 0.999 for t in report.tensors)
    assert any(t.max_error for t in found["block_0"].tensors)


def test_in_f32_nothing_differs_but_summation_order(floats):
    for report in reports(floats, "f32").values():
        assert all(t.max_error < 1e-4 for t in report.tensors)


def test_fewer_bits_are_worse_and_the_worst_tensor_says_what_to_do(floats):
    eight, four = (reports(floats, mode)["block_1"].worst for mode in ("w8bf16", "w4bf16"))
    assert four.cosine < eight.cosine < 1
    noisy = reports(floats, "w4bf16")["block_0"]
    assert noisy.worst.trouble == "noise"
    assert "more weight bits" in noisy.hint


def test_a_quantised_checkpoint_climbs_in_its_own_mode(gptq):
    assert lowering_for(gptq, "bm1684x", "auto", 64, False).mode == "w4bf16"
    assert all(t.cosine > 0.999 for r in reports(gptq).values() for t in r.tensors)
    with pytest.raises(BadInput, match=r"is quantised .*, mode w8f16 is not"):
        lowering_for(gptq, "bm1684x", "w8f16", 64, False)


def test_overflow_in_f16_is_named(floats):
    """Weights times 3000 leave f16 and not bf16."""
    loud = {**random_tensors(CONFIGS["qwen2"])}
    name = "model.layers.1.mlp.down_proj.weight"
    loud[name] = (loud[name].astype(np.float32) * 3e6).astype(loud[name].dtype)
    path = write_directory(floats.path.parent / "loud", CONFIGS["qwen2"], loud)
    found = reports(open_checkpoint(path), "f16")
    assert found["block_0"].hint == ""
    assert found["block_1"].worst.trouble == "not_finite"
    assert "use a bf16 mode" in found["block_1"].hint


@pytest.mark.parametrize(("ids", "message"), [([1], "1 ids do not fit"), ([1] * 8, "8 ids"), ([1, 96], r"0\.\.95")])
def test_ids_that_do_not_fit_are_refused(floats, ids, message):
    with pytest.raises(BadInput, match=message):
        next(climb(floats, ids, PLAN, lowering_for(floats, "bm1684x", "auto", 32, False)))
