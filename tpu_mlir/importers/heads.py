"""What turns the last hidden row into a token: the head, the greedy choice, the sampler's distribution."""

from tpu_mlir.dialects.adapter import Module, Value
from tpu_mlir.dialects.build import FunctionWriter
from tpu_mlir.dialects.types import DType, Tensor
from tpu_mlir.importers.checkpoints.model_config import ModelConfig
from tpu_mlir.importers.linear import Forms, LinearWriter

CANDIDATES = 50
"""Tokens that the sample head keeps: the largest top-k that can be asked for."""


def build_lm_head(config: ModelConfig, module: str, forms: Forms, *, choose: bool) -> Module:
    """Return the program from a normed hidden row [1, hidden] to a token id [1, 1], or to logits [1, vocabulary].

    The weight stands on the left of the product, so that the vocabulary lies along the lanes of the chip.

    Args:
        config: the model.
        module: whose weight it is: the embedding's when tied.
        forms: packed linear modules.
        choose: end in the largest logit's id.
    """
    write = FunctionWriter("lm_head", {"hidden_states": Tensor((1, config.hidden_size), DType.F32)})
    hidden = write["hidden_states"]
    if config.logit_divisor != 1.0:
        hidden = write.op("top.mul_const", hidden, name="scaled_states", value=1.0 / config.logit_divisor)
    if module in forms:
        logits = LinearWriter(write, forms)(hidden, module, (config.vocab_size, config.hidden_size))
    else:
        weight = write.weight(f"{module}.weight", (config.vocab_size, config.hidden_size))
        column = write.op("top.matmul", weight, hidden, None, name="logits_column", right_transpose=True)
        logits = write.op("top.reshape", column, name="logits", shape=(1, config.vocab_size))
    return write.finish(_largest(write, logits) if choose else logits)


def build_greedy_head(config: ModelConfig) -> Module:
    """Return the program from logits [1, vocabulary] to the id of the largest [1, 1]."""
    write = FunctionWriter("greedy_head", {"logits": Tensor((1, config.vocab_size), DType.F32)})
    return write.finish(_largest(write, write["logits"]))


def _largest(write: FunctionWriter, logits: Value) -> Value:
    return write.ops("top.topk", logits, name="token", k=1, axis=1)[1]


def build_sample_head(config: ModelConfig, window: int) -> Module:
    """Return the program from logits to the probabilities and ids of the candidates; the host draws one.

    In order: the repetition penalty on the ids of the window (unused places repeat any id of it), temperature, top-k,
    top-p (a candidate stays while the probability before it is below top-p, so the first always does), and
    normalisation.

    Args:
        config: the model.
        window: how many of the last ids are penalised.
    """
    one = Tensor((1, 1), DType.F32)
    count = min(CANDIDATES, config.vocab_size)
    write = FunctionWriter(
        "sample_head",
        {
            "logits": Tensor((1, config.vocab_size), DType.F32),
            "input_ids": Tensor((1, window), DType.SI32),
            "penalty": one,
            "temperature": one,
            "top_k": Tensor((1,), DType.SI32),
            "top_p": one,
        },
    )
    logits, ids = write["logits"], write["input_ids"]
    seen = write.op("top.gather_elements", logits, ids, name="seen", axis=1)
    negative = write.op("top.compare_const", seen, name="negative", mode="lt", value=0.0)
    raised = write.op("top.mul", seen, write["penalty"], name="raised")
    lowered = write.op("top.div", seen, write["penalty"], name="lowered")
    penalised = write.op("top.where", negative, raised, lowered, name="penalised")
    logits = write.op("top.scatter_elements", logits, ids, penalised, name="penalised_logits", axis=1)
    values, chosen = write.ops("top.topk", logits, name="candidates", k=count, axis=1)
    cooled = write.op("top.div", values, write["temperature"], name="cooled")
    within = write.op("top.range_mask", write["top_k"], name="within_top_k", size=count)
    outside = write.op("top.compare_const", within, name="outside_top_k", mode="eq", value=0.0)
    cooled = write.op("top.masked_fill", cooled, outside, name="top_k_logits", value=-10000.0)
    shares = write.op("top.softmax", cooled, name="shares", axis=1)
    running = write.op("top.cumsum", shares, name="running", axis=1)
    before = write.op("top.sub", running, shares, name="before")
    kept = write.op("top.compare", before, write["top_p"], name="within_top_p", mode="lt")
    shares = write.op("top.mul", shares, kept, name="kept_shares")
    total = write.op("top.reduce", shares, name="total", mode="sum", axes=(1,))
    return write.finish(write.op("top.div", shares, total, name="probabilities"), chosen)
