"""The packaged SmolLM2-135M is read as the real model that it is."""

import numpy as np
import numpy.typing as npt
import pytest

from tpu_mlir.importers.checkpoints.checkpoint import Checkpoint, open_checkpoint
from tpu_mlir.importers.checkpoints.gguf_file import packaged_smollm2
from tpu_mlir.importers.checkpoints.gguf_tokenizer import GgufTokenizer
from tpu_mlir.importers.checkpoints.rope_tables import rope_tables

Floats = npt.NDArray[np.float32]


@pytest.fixture(scope="module")
def smollm2() -> Checkpoint:
    return open_checkpoint(packaged_smollm2())


def test_its_configuration(smollm2: Checkpoint) -> None:
    config = smollm2.config
    assert (config.family, config.layers, config.hidden_size, config.intermediate_size) == ("llama", 30, 576, 1536)
    assert (config.heads, config.kv_heads, config.head_dim, config.vocab_size) == (9, 3, 64, 49152)
    assert (config.rope.theta, config.norm_eps, config.max_positions) == (100000.0, 1e-5, 8192)
    assert config.tied_embeddings
    assert smollm2.head == "model.embed_tokens"
    assert smollm2.generation.eos_token_ids == (2,)
    assert smollm2.weights.info("model.layers.0.self_attn.q_proj.weight").stored == "Q4_1"


def test_its_tokenizer(smollm2: Checkpoint) -> None:
    tokenizer = smollm2.tokenizer
    assert isinstance(tokenizer, GgufTokenizer)
    assert (tokenizer.kind, tokenizer.pretokenizer, len(tokenizer.tokens)) == ("gpt2", "smollm", 49152)
    assert tokenizer.special_tokens["<|im_end|>"] == 2
    assert tokenizer.chat_template is not None
    assert "<|im_start|>" in tokenizer.chat_template


def next_token_logits(model: Checkpoint, ids: list[int]) -> Floats:
    """Run the model in float32, layer by layer, as the definition of Llama says."""
    config, weights = model.config, model.weights
    length, size = len(ids), config.head_dim
    cos, sin = (table[:, None] for table in rope_tables(config, length))
    hidden_future = np.triu(np.full((length, length), -np.inf, np.float32), 1)

    def norm(x: Floats, name: str) -> Floats:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + config.norm_eps) * weights[f"{name}.weight"]

    def turn(x: Floats) -> Floats:
        halves = np.concatenate([-x[..., size // 2 :], x[..., : size // 2]], axis=-1)
        return x * cos + halves * sin

    x = model.weights["model.embed_tokens.weight"][ids]
    for layer in range(config.layers):
        name = f"model.layers.{layer}"

        def linear(x: Floats, role: str, name: str = name) -> Floats:
            return x @ weights[f"{name}.{role}.weight"].T

        h = norm(x, f"{name}.input_layernorm")
        q, k, v = (linear(h, f"self_attn.{r}_proj").reshape(length, -1, size) for r in "qkv")
        q, k = turn(q), turn(k)
        k, v = (np.repeat(a, config.heads // config.kv_heads, axis=1) for a in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(size) + hidden_future
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        x = x + linear(np.einsum("hqk,khd->qhd", scores, v).reshape(length, -1), "self_attn.o_proj")
        h = norm(x, f"{name}.post_attention_layernorm")
        gate = linear(h, "mlp.gate_proj")
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(h, "mlp.up_proj"), "mlp.down_proj")
    return norm(x[-1:], "model.norm")[0] @ weights[f"{model.head}.weight"].T


@pytest.mark.slow
def test_it_knows_the_capital_of_france(smollm2: Checkpoint) -> None:
    tokenizer = smollm2.tokenizer
    assert isinstance(tokenizer, GgufTokenizer)
    ids = [tokenizer.tokens.index(piece) for piece in ("The", "Ġcapital", "Ġof", "ĠFrance", "Ġis")]
    logits = next_token_logits(smollm2, ids)
    assert tokenizer.tokens[int(logits.argmax())] == "ĠParis"
    assert np.sort(logits)[-1] - np.sort(logits)[-2] > 1
