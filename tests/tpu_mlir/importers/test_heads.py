"""The sample head against the textbook, written with sorted lists."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tpu_mlir.dialects.interpret import run
from tpu_mlir.importers.checkpoints.model_config import ModelConfig, Rope
from tpu_mlir.importers.heads import CANDIDATES, build_greedy_head, build_sample_head

CONFIG = ModelConfig(
    family="llama",
    hidden_size=8,
    intermediate_size=8,
    layers=1,
    heads=1,
    kv_heads=1,
    head_dim=8,
    vocab_size=70,
    max_positions=8,
    norm_eps=1e-6,
    rope=Rope(theta=1e4),
    tied_embeddings=True,
)
SAMPLE = build_sample_head(CONFIG, window=6)
GREEDY = build_greedy_head(CONFIG)


def textbook(logits, window, penalty, temperature, top_k, top_p):
    logits = [float(x) for x in logits]
    for i in set(window):
        logits[i] = logits[i] * penalty if logits[i] < 0 else logits[i] / penalty
    order = sorted(range(len(logits)), key=lambda i: -logits[i])[:CANDIDATES]
    order = order[:top_k]
    e = [np.exp((logits[i] - logits[order[0]]) / temperature) for i in order]
    shares = [x / sum(e) for x in e]
    kept, before = [], 0.0
    for i, share in zip(order, shares, strict=True):
        if before < top_p:
            kept.append((i, share))
        before += share
    total = sum(share for _, share in kept)
    return {i: share / total for i, share in kept}


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    penalty=st.floats(1.0, 2.0),
    temperature=st.floats(0.2, 2.0),
    top_k=st.integers(1, CANDIDATES),
    top_p=st.floats(0.05, 1.0),
)
def test_the_distribution_is_the_textbook_one(seed, penalty, temperature, top_k, top_p):
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((1, 70)).astype(np.float32) * 3
    window = rng.integers(0, 70, (1, 6)).astype(np.int32)
    one = [np.array([[v]], np.float32) for v in (penalty, temperature)]
    given_ = [logits, window, *one, np.array([top_k], np.int32), np.array([[top_p]], np.float32)]
    probabilities, ids = run(SAMPLE, given_, constants=lambda call: None).outputs
    got = {int(i): float(p) for i, p in zip(ids[0], probabilities[0], strict=True) if p > 0}
    want = textbook(logits[0], window[0].tolist(), penalty, temperature, top_k, top_p)
    want = {i: p for i, p in want.items() if p > 0}
    edge = abs(len(got) - len(want)) <= 1  # a running sum that equals top_p up to rounding
    assert edge
    if got.keys() == want.keys():
        np.testing.assert_allclose([got[i] for i in want], list(want.values()), rtol=2e-3, atol=1e-6)
    assert abs(sum(got.values()) - 1) < 1e-5


def test_the_greedy_head_takes_the_largest_and_of_equals_the_first():
    logits = np.zeros((1, 70), np.float32)
    logits[0, [9, 5, 30]] = 2
    assert run(GREEDY, [logits], constants=lambda call: None).outputs[0].tolist() == [[5]]
