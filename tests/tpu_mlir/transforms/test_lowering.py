"""Lowered modules against the recorded ones: their op counts, their numbers, and what a target cannot do."""

from collections import Counter

import numpy as np
import pytest

from core.errors import BadInput
from tests.tpu_mlir.dialects.test_ops import ALL, arrays_for, module_of
from tests.tpu_mlir.importers.test_decoder_numerics import (
    S,
    floats,
    forms_of,
    recorded,
    recorded_config,
    recorded_roles,
)
from tests.tpu_mlir.importers.test_layer_ops import RECORDED, build
from tpu_mlir.chips.chip import CHIPS
from tpu_mlir.dialects import adapter
from tpu_mlir.dialects.adapter import IrError
from tpu_mlir.dialects.build import FunctionWriter
from tpu_mlir.dialects.interpret import run
from tpu_mlir.dialects.types import DType, Tensor
from tpu_mlir.importers.constants import RoleConstants
from tpu_mlir.importers.decoder_pieces import pieces
from tpu_mlir.importers.plan import Plan
from tpu_mlir.transforms.fold_casts import FoldCasts
from tpu_mlir.transforms.lower_to_tpu import LowerToTpu
from tpu_mlir.transforms.lowering.target import Target
from tpu_mlir.transforms.mode import MODES, mode_named
from tpu_mlir.transforms.passes import run_passes
from tpu_mlir.transforms.strip_io_casts import StripIoCasts

MODE = {"bf16": "bf16", "gptq": "w4f16"}
FILL = {"bf16": -9984.0, "gptq": -10000.0}
COSINE = {"bf16": 0.9999, "gptq": 0.99999}


def lower(module, mode, chip="bm1684x", **options):
    run_passes(module, (LowerToTpu(chip=chip, mode=mode, **options), FoldCasts(), StripIoCasts()))
    return module


def names(module):
    (function,) = adapter.functions(module)
    return Counter(call.spec.vendor for call in adapter.calls(function))


@pytest.mark.parametrize(
    ("model", "net"),
    [(m, n) for m in ("tiny_qwen2_bf16", "tiny_qwen2_gptq", "tiny_llama_bf16") for n in RECORDED[m]["tpu_level"]],
)
def test_a_lowered_net_has_the_recorded_ops(model, net):
    """Without what layer groups and the chip's scratch space add, and with no more casts than recorded.

    The recorded bf16 decode nets have their two residual additions inside the products before them; ours stand alone.
    """
    mode = "w4f16" if "GPTQ" in RECORDED[model]["quant"] else "bf16"
    got = names(lower(build(model, net), mode, pack_floats=False))
    want = Counter(RECORDED[model]["tpu_level"][net]["op_counts"])
    for grouping in ("Group", "Yield", "Load", "Store", "Buffer"):
        del want[grouping]
    casts, allowed = got.pop("Cast", 0), want.pop("Cast", 0)
    for ours in ("Input", "Weight"):
        del got[ours]
    if model.endswith("bf16") and net.startswith("block_cache"):
        want["Add"] += 2
    assert got == want
    assert casts <= allowed


@pytest.mark.parametrize("name", ["bf16", "gptq"])
def test_lowered_prefill_and_decode_equal_the_recorded_simulator(name):
    """Each net gets the simulator's own input; the recorded numbers of its output must come out."""
    config = recorded_config(name)
    plan = Plan(seq=S, prefill=64, mask="input")
    act = mode_named(MODE[name]).activations
    made = {p.net: lower(p.build(forms_of(name)), MODE[name], pack_floats=False) for p in pieces(config, plan)}
    constants = RoleConstants(recorded_roles(name, config, plan))
    n, rows = 41, 64

    def narrow(array):
        return array.astype(act.numpy)

    def padded(array, length):
        return narrow(np.pad(array, ((0, 0), (0, length - array.shape[1]), *((0, 0),) * (array.ndim - 2))))

    positions = np.where(np.arange(rows) < n, np.arange(rows), 0).astype(np.int32)[None]
    seen = np.tril(np.ones((rows, rows), bool))
    seen[n:] = False
    mask = narrow(np.where(seen, 0, FILL[name]).astype(np.float32)[None, None])
    at = "pad41/prefill"
    states = floats(name, f"{at}/input_states")
    cache = []
    for layer in range(2):
        got = run(made[f"block_{layer}"], [padded(states, rows), positions, mask], constants).outputs
        for array, part in zip(got, ("output_states", "k_cache", "v_cache"), strict=True):
            assert array.dtype == act.numpy
            alike(name, array[:, :n], floats(name, f"{at}/block_{layer}/{part}"))
        states = floats(name, f"{at}/block_{layer}/output_states")
        cache.append([padded(floats(name, f"{at}/block_{layer}/{part}"), S) for part in ("k_cache", "v_cache")])
    (token,) = run(made["lm_head"], [narrow(states[:, n - 1])], constants).outputs
    assert int(token[0, 0]) == int(recorded(name)[f"{at}/token_id"])
    for step in range(3):
        at = f"pad41/decode{step}"
        position = int(recorded(name)[f"{at}/position"])
        token = np.array([[recorded(name)[f"{at}/input_id"]]], np.int32)
        (states,) = run(made["embedding_cache"], [token], constants).outputs
        mask = np.full((1, 1, 1, S + 1), FILL[name], np.float32)
        mask[..., :position] = mask[..., -1] = 0
        for layer in range(2):
            given = [states, np.array([[position]], np.int32), narrow(mask), *cache[layer]]
            got = run(made[f"block_cache_{layer}"], given, constants).outputs
            for array, part in zip(got, ("output_states", "k_cache", "v_cache"), strict=True):
                alike(name, array, floats(name, f"{at}/block_cache_{layer}/{part}"))
            states = narrow(floats(name, f"{at}/block_cache_{layer}/output_states"))
            for stored, part in zip(cache[layer], ("k_cache", "v_cache"), strict=True):
                stored[:, position] = floats(name, f"{at}/block_cache_{layer}/{part}")[:, 0]
        (token,) = run(made["lm_head"], [states[:, 0]], constants).outputs
        assert int(token[0, 0]) == int(recorded(name)[f"{at}/token_id"])


def alike(name, got, want):
    a, b = got.astype(np.float64).ravel(), want.astype(np.float64).ravel()
    assert a @ b / np.sqrt((a @ a) * (b @ b)) >= COSINE[name]


@pytest.mark.parametrize("mode", ["f32", "bf16", "f16"])
@pytest.mark.parametrize(
    "name", sorted(n for n in ALL if n.startswith("top.") and n not in ("top.weight", "top.a16_matmul"))
)
def test_every_op_is_lowered_and_computes_the_same(name, mode):
    arrays = arrays_for(name)
    want = run(module_of(name), arrays, constants=lambda call: None).outputs
    module = lower(module_of(name), mode)
    (function,) = adapter.functions(module)
    kinds = [adapter.tensor_type(a).dtype for a in adapter.arguments(function)]
    given = [a.astype(k.numpy) for a, k in zip(arrays, kinds, strict=True)]
    got = run(module, given, constants=lambda call: None).outputs
    tolerance = {"f32": 1e-6, "f16": 2**-8, "bf16": 2**-5}[mode]
    for a, b in zip(got, want, strict=True):
        if name == "top.topk" and not np.issubdtype(b.dtype, np.floating):
            assert mode != "f32" or (a == b).all()
        elif name in ("top.compare", "top.compare_const") and mode != "f32":
            assert (a.astype(np.float32) != b).mean() < 0.2
        else:
            np.testing.assert_allclose(a.astype(np.float64), b, rtol=tolerance, atol=tolerance)


def linear(inputs, outputs=8):
    write = FunctionWriter("f", {"x": Tensor((1, 4, inputs), DType.F32)})
    weight = write.weight("mlp.up_proj.weight", (outputs, inputs))
    return write.finish(write.op("top.matmul", write["x"], weight, None, name="mlp.up_proj", right_transpose=True))


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("mode", ["w4bf16", "w8f16"])
def test_float_weights_are_packed_in_the_packing_modes(mode, symmetric):
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((8, 64)).astype(np.float32)
    x = rng.standard_normal((1, 4, 64)).astype(np.float32)
    module = lower(linear(64), mode, group_size=16, symmetric=symmetric)
    assert names(module)["A16MatMul"] == 1
    act = mode_named(mode).activations
    (got,) = run(module, [x.astype(act.numpy)], RoleConstants({"mlp.up_proj.weight": weight}.__getitem__)).outputs
    want = x @ weight.T
    error = np.abs(got.astype(np.float32) - want).max() / np.abs(want).max()
    assert error < (0.15 if "w4" in mode else 0.02)
    assert error > 0


def test_groups_that_do_not_divide_a_layer_are_named_early():
    with pytest.raises(IrError, match=r'"mlp\.up_proj": its 48 inputs do not divide into groups of 64'):
        lower(linear(48), "w4bf16")


def test_a_checkpoint_of_another_width_is_named():
    module = build("tiny_qwen2_gptq", "block_0")
    with pytest.raises(IrError, match=r"q_proj.*has 4 bits in the checkpoint, which is not mode bf16") as caught:
        lower(module, "bf16")
    assert len(caught.value.diagnostics) == 7


def test_a_chip_without_the_format_is_refused_before_anything_is_changed():
    """The published compiler ends in an unreachable-code abort here."""
    chip = CHIPS["bm1684x"].model_copy(
        update={"name": "small", "formats": (DType.BF16, DType.SI8), "weight_bits": (8,)}
    )

    def able(mode):
        return Target(chip=chip, mode=MODES[mode], group_size=64, symmetric=False, pack_floats=True)

    with pytest.raises(BadInput, match=r"small cannot compute in mode f16\. It can in bf16, w8bf16\."):
        able("f16").check(linear(64))
    with pytest.raises(BadInput, match="w4bf16"):
        able("w4bf16").check(linear(64))
    able("w8bf16").check(linear(64))


def test_unknown_chips_and_modes_are_named():
    with pytest.raises(BadInput, match=r"no chip 'bm9999'\. There are bm1684x"):
        lower(linear(64), "bf16", chip="bm9999")
    with pytest.raises(BadInput, match=r"no mode 'int3'\. There are f32"):
        lower(linear(64), "int3")


def test_lowering_is_the_same_for_every_chip_but_for_its_name():
    texts = {adapter.print_module(lower(linear(64), "w4f16", chip=c)).replace(c, "chip") for c in CHIPS}
    assert len(texts) == 1
