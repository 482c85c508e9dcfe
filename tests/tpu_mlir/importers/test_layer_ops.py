"""Our graphs against the recorded ones of the published compiler: same ops in the same order on the same tensors.

Three things are written differently, and translated here: our linear weights keep the checkpoint's [outputs, inputs]
with right_transpose set, our vectors have one axis, and attributes that follow from shapes are not repeated.
"""

import json
from pathlib import Path

import pytest

from tpu_mlir.dialects import adapter
from tpu_mlir.importers.checkpoints.model_config import ModelConfig, Rope
from tpu_mlir.importers.decoder_pieces import pieces
from tpu_mlir.importers.linear import Packed
from tpu_mlir.importers.plan import Plan

RECORDED = json.loads((Path(__file__).parents[1] / "goldens" / "layer_ops.json").read_text())
NETS = [(model, net) for model, found in RECORDED.items() for net in found["nets"]]


def config_of(model):
    c = RECORDED[model]["config"]
    return ModelConfig(
        family=c["family"],
        hidden_size=c["hidden"],
        intermediate_size=c["inter"],
        layers=c["layers"],
        heads=c["heads"],
        kv_heads=c["kv_heads"],
        head_dim=c["head_dim"],
        vocab_size=c["vocab"],
        max_positions=128,
        norm_eps=next(o["attrs"]["eps"] for o in RECORDED[model]["nets"]["block_0"]["ops"] if o["op"] == "RMSNorm"),
        rope=Rope(theta=10000.0),
        tied_embeddings=False,
        qkv_bias=c["qkv_bias"],
        qk_norm=c["qk_norm"],
    )


def build(model, net):
    found = RECORDED[model]
    history = found["history_kv"]
    plan = Plan(
        seq=found["seq_length"],
        prefill=found["chunk_length"] if history else found["prefill_length"],
        decode=(32, 64) if history else (),
        history=history,
        mask="tile" if history else "input",
    )
    form = Packed(bits=4, group_size=64, symmetric=False, permuted=False)
    made = {p.net: p for p in pieces(config_of(model), plan)}
    roles = ("q_proj", "k_proj", "v_proj", "o_proj")
    names = [f"self_attn.{r}" for r in roles] + [f"mlp.{r}" for r in ("gate_proj", "up_proj", "down_proj")]
    forms = {f"model.layers.{i}.{n}": form for i in range(2) for n in names} if "GPTQ" in found["quant"] else {}
    return made[net].build(forms)


def short(role):
    parts = role.removeprefix("model.").split(".")
    return ".".join(parts[2:] if parts[0] == "layers" else parts)


def ours(module):
    """Our ops in the recorded form: published name, operands by producer, output shape, attributes."""
    (function,) = adapter.functions(module)
    producers, ops = {}, []
    for index, argument in enumerate(adapter.arguments(function)):
        producers[argument] = ("arg", index)
    for call in adapter.calls(function):
        if call.spec.name == "top.weight":
            producers[call.results[0]] = ("weight", short(call.attrs["role"]))
            continue
        operands = [v for o in call.operands.values() for v in (o if isinstance(o, tuple) else (o,))]
        entries = [None if v is None else (*producers[v], squeezed(adapter.tensor_type(v).shape)) for v in operands]
        if call.spec.vendor == "MatMul" and entries[0][0] == "op":
            kind, name, (outputs, inputs) = entries[1]
            assert call.attrs["right_transpose"]
            entries[1] = (kind, name, (inputs, outputs))
        if call.spec.vendor == "FAttention":
            *qkv, mask, tile = entries
            entries = [*qkv, tile or mask]
        for value in call.results:
            producers[value] = ("op", len(ops))
        ops.append((call.spec.vendor, entries, adapter.tensor_type(call.results[0]).shape, dict(call.attrs)))
    return ops, [producers[v][1] for v in adapter.outputs(function)]


def squeezed(shape):
    """Leading ones do not count: the recorded vectors are [1, 1, n]."""
    shape = tuple(shape)
    while len(shape) > 1 and shape[0] == 1:
        shape = shape[1:]
    return shape


def recorded(model, net):
    found = RECORDED[model]["nets"][net]
    ops = []
    for op in found["ops"]:
        entries = [
            None if e is None else next((k, e[k], squeezed(e["shape"])) for k in ("op", "arg", "weight") if k in e)
            for e in op["in"]
        ]
        if op["op"] == "FAttention":
            assert entries.pop() is None  # scratch space
        ops.append((op["op"], entries, tuple(op["out"][0]["shape"]), op.get("attrs", {})))
    return ops, found["returns"]


def without_row_mask(ops, returns):
    """Our block_kv is static, so a row hides unused history; drop that input (argument 2) and renumber."""
    (gone,) = [i for i, (_, entries, _, _) in enumerate(ops) if entries and entries[0] and entries[0][:2] == ("arg", 2)]

    def renumber(entry):
        if entry is None:
            return None
        kind, place, shape = entry
        return (kind, place - (place > (gone if kind == "op" else 2)) if kind in ("op", "arg") else place, shape)

    kept = [(n, [renumber(e) for e in es], s, a) for i, (n, es, s, a) in enumerate(ops) if i != gone]
    return kept, [r - (r > gone) for r in returns]


@pytest.mark.parametrize(("model", "net"), NETS, ids=lambda v: v)
def test_a_net_has_the_recorded_structure(model, net):
    got, got_returns = ours(build(model, net))
    want, want_returns = recorded(model, net)
    if net.startswith("block_kv"):
        got, got_returns = without_row_mask(got, got_returns)
    assert [op[0] for op in got] == [op[0] for op in want]
    assert got_returns == want_returns
    for mine, theirs in zip(got, want, strict=True):
        name, entries, shape, attrs = mine
        assert entries == theirs[1], name
        assert shape == theirs[2], name
        assert same_attributes(name, attrs, theirs[3], entries), (name, attrs, theirs[3])


def same_attributes(name, mine, theirs, entries):
    match name:
        case "RMSNorm":
            return mine["eps"] == theirs["eps"]
        case "Gather" | "Concat" | "TopK":
            same_k = mine.get("k", 1) == theirs.get("K", 1)
            return mine["axis"] == theirs["axis"] and same_k
        case "Rope":
            return mine["mode"] == theirs["rope_mode"]
        case "A16MatMul":
            return (mine["bits"], mine["group_size"]) == (theirs["weight_bits"], theirs["q_group_size"])
        case "FAttention":
            (heads, dim), (keys, kv_heads, _) = entries[0][2][-2:], entries[1][2]
            tile = entries[3][2][0] if entries[3][0] == "weight" else 0
            wanted = {
                "dim": dim,
                "q_head": heads,
                "kv_head": kv_heads,
                "mk": keys,
                "mask_size": tile,
                "scale": mine["scale"],
            }
            return all(theirs[k] == pytest.approx(v) for k, v in wanted.items())
    return True


def test_the_comparison_can_fail():
    got, _ = ours(build("tiny_qwen2_bf16", "block_0"))
    want, _ = recorded("tiny_llama_bf16", "block_0")
    assert [op[1] for op in got] != [op[1] for op in want]


def test_every_recorded_net_is_built():
    assert len(NETS) == 31
