"""The static programs of a model, each its own module: embedding, blocks by stage, heads."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tpu_mlir.dialects.adapter import Module
from tpu_mlir.dialects.build import FunctionWriter
from tpu_mlir.dialects.types import DType, Tensor
from tpu_mlir.importers.checkpoints.model_config import ModelConfig
from tpu_mlir.importers.checkpoints.roles import EMBEDDING, HEAD
from tpu_mlir.importers.decoder_layer import TILE, LayerGraph, LayerInputs
from tpu_mlir.importers.heads import build_greedy_head, build_lm_head, build_sample_head
from tpu_mlir.importers.linear import Forms
from tpu_mlir.importers.plan import Plan


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """One static program, built only when it is asked for.

    Pieces of one layer have the same `weights`: they share one weight file. `build` takes the packed modules of that
    file, which are known once the layer's weights have been read.
    """

    net: str
    weights: str
    build: Callable[[Forms], Module]


def pieces(config: ModelConfig, plan: Plan, *, sample: bool = False) -> Iterator[Piece]:
    """Yield the programs of a model, those that share weights one after the other.

    Args:
        config: the model.
        plan: its lengths.
        sample: end in logits and a sample head besides the greedy head, instead of in a fused greedy choice.

    Raises:
        BadInput: a plan that the model was not made for.
    """
    plan.check(config)
    for net, rows in (("embedding", plan.prefill), ("embedding_cache", 1)):
        yield Piece(net=net, weights="embedding", build=_embedding(config, net, rows))
    for layer in range(config.layers):
        group = f"block_{layer}"
        yield Piece(net=group, weights=group, build=_block(config, plan, layer))
        if plan.history:
            yield Piece(net=f"block_kv_{layer}", weights=group, build=_block_kv(config, plan, layer))
        for index, length in enumerate((plan.seq, *reversed(plan.decode))):
            net = f"block_cache_{layer}" + (f"_{index}" if index else "")
            yield Piece(net=net, weights=group, build=_block_cache(config, plan, layer, length, net))
    head = EMBEDDING if config.tied_embeddings else HEAD
    weights = "embedding" if config.tied_embeddings else "lm_head"
    yield Piece(
        net="lm_head", weights=weights, build=lambda forms: build_lm_head(config, head, forms, choose=not sample)
    )
    if sample:
        yield Piece(net="greedy_head", weights="none", build=lambda _: build_greedy_head(config))
        yield Piece(net="sample_head", weights="none", build=lambda _: build_sample_head(config, plan.seq))


def _embedding(config: ModelConfig, net: str, rows: int) -> Callable[[Forms], Module]:
    def build(_: Forms) -> Module:
        write = FunctionWriter(net, {"input_ids": Tensor((1, rows), DType.SI32)})
        table = write.weight(f"{EMBEDDING}.weight", (config.vocab_size, config.hidden_size))
        states = write.op("top.gather", table, write["input_ids"], name=EMBEDDING, axis=0)
        if config.embedding_scale != 1.0:
            states = write.op("top.mul_const", states, name=f"{EMBEDDING}.scaled", value=config.embedding_scale)
        return write.finish(states)

    return build


def _block(config: ModelConfig, plan: Plan, layer: int) -> Callable[[Forms], Module]:
    rows = plan.prefill
    inputs = _inputs(config, rows)
    if plan.mask == "input":
        inputs["attention_mask"] = Tensor((1, 1, rows, rows), DType.F32)
    return _layer(config, plan, layer, f"block_{layer}", rows, inputs)


def _block_kv(config: ModelConfig, plan: Plan, layer: int) -> Callable[[Forms], Module]:
    rows = plan.prefill
    mask_rows = 1 if plan.mask == "tile" else rows
    inputs = _inputs(config, rows)
    inputs["attention_mask"] = Tensor((1, 1, mask_rows, plan.seq + rows), DType.F32)
    return _layer(config, plan, layer, f"block_kv_{layer}", rows, inputs | _history(config, plan.seq))


def _block_cache(config: ModelConfig, plan: Plan, layer: int, length: int, net: str) -> Callable[[Forms], Module]:
    inputs = _inputs(config, 1)
    inputs["attention_mask"] = Tensor((1, 1, 1, length + 1), DType.F32)
    return _layer(config, plan, layer, net, 1, inputs | _history(config, length))


def _inputs(config: ModelConfig, rows: int) -> dict[str, Tensor]:
    return {
        "input_states": Tensor((1, rows, config.hidden_size), DType.F32),
        "position_ids": Tensor((1, rows), DType.SI32),
    }


def _history(config: ModelConfig, rows: int) -> dict[str, Tensor]:
    kind = Tensor((1, rows, config.kv_heads, config.head_dim), DType.F32)
    return {"history_k": kind, "history_v": kind}


def _layer(
    config: ModelConfig, plan: Plan, layer: int, net: str, rows: int, inputs: dict[str, Tensor]
) -> Callable[[Forms], Module]:
    def build(forms: Forms) -> Module:
        write = FunctionWriter(net, inputs)
        causal = plan.mask == "tile" and rows > 1
        given = LayerInputs(
            states=write["input_states"],
            positions=write["position_ids"],
            mask=write["attention_mask"] if "attention_mask" in inputs else None,
            tile=write.weight(TILE, (plan.tile, plan.tile)) if causal else None,
            history=(write["history_k"], write["history_v"]) if "history_k" in inputs else None,
        )
        graph = LayerGraph(writer=write, config=config, layer=layer, seq=plan.seq, rows=rows, forms=forms)
        return write.finish(*graph.write(given))

    return build
