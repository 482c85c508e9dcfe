"""The IR in docs/tpu_mlir.md is what the compiler prints today."""

from pathlib import Path

from tpu_mlir.dialects import adapter
from tpu_mlir.importers.checkpoints.model_config import ModelConfig, Rope
from tpu_mlir.importers.decoder_pieces import pieces
from tpu_mlir.importers.plan import Plan
from tpu_mlir.transforms.passes import run_passes
from tpu_mlir.transforms.pipeline import parse_pipeline

DOCUMENT = Path(__file__).parents[2] / "docs" / "tpu_mlir.md"
PIPELINE = "lower-to-tpu{chip=bm1684x mode=bf16}, fold-casts, strip-io-casts"


def layer():
    """The decode program of a small Qwen3 layer: 64 channels, 4 heads on 2 key/value heads, 128 cached rows."""
    config = ModelConfig(
        family="qwen3",
        hidden_size=64,
        intermediate_size=128,
        layers=2,
        heads=4,
        kv_heads=2,
        head_dim=16,
        vocab_size=96,
        max_positions=128,
        norm_eps=1e-6,
        rope=Rope(theta=1e6),
        tied_embeddings=True,
        qk_norm=True,
    )
    return {p.net: p for p in pieces(config, Plan(seq=128, prefill=64))}["block_cache_0"].build({})


def test_the_layer_is_documented_at_both_levels():
    module = layer()
    text = DOCUMENT.read_text()
    assert adapter.print_module(module) in text
    run_passes(module, parse_pipeline(PIPELINE))
    assert adapter.print_module(module) in text
    assert PIPELINE in text
