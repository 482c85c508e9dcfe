"""Imported programs compute what PyTorch computes, before and after lowering. Needs the torch extra as well."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim, export

from core.errors import BadInput
from tpu_mlir.dialects import adapter
from tpu_mlir.dialects.interpret import run
from tpu_mlir.importers.constants import RoleConstants
from tpu_mlir.importers.torch_export.importer import import_exported
from tpu_mlir.transforms.fold_casts import FoldCasts
from tpu_mlir.transforms.fold_reshapes import FoldReshapes
from tpu_mlir.transforms.lower_to_tpu import LowerToTpu
from tpu_mlir.transforms.passes import run_passes
from tpu_mlir.transforms.strip_io_casts import StripIoCasts

pytestmark = pytest.mark.torch


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
        self.plain_norm = nn.BatchNorm2d(8, affine=False)
        self.pool = nn.MaxPool2d(2)
        self.mean = nn.AvgPool2d(3, stride=1, padding=1)
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        x = x + nn.functional.silu(self.plain_norm(self.depthwise(x)))
        x = self.mean(self.pool(x))
        x = torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1)
        return torch.softmax(self.head(self.dropout(x)), -1)


class Block(nn.Module):
    def __init__(self, width=32, heads=4, causal=False):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.heads, self.causal = heads, causal

    def forward(self, x):
        batch, rows, width = x.shape
        apart = self.qkv(self.first(x)).reshape(batch, rows, 3, self.heads, width // self.heads)
        q, k, v = apart.permute(2, 0, 3, 1, 4).unbind(0)
        joined = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(joined.transpose(1, 2).reshape(batch, rows, width))
        return x + self.down(nn.functional.gelu(self.up(self.second(x)), approximate="tanh"))


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 32))
        self.places = nn.Parameter(torch.randn(1, 17, 32))
        self.block, self.norm, self.head = Block(), nn.LayerNorm(32), nn.Linear(32, 5)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.norm(self.block(x))[:, 0])


class Odds(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 12)
        self.register_buffer("scale", torch.rand(12))

    def forward(self, ids):
        x = self.table(ids) * self.scale
        a, b, c = x.split([2, 4, 6], dim=-1)
        d, e = c.chunk(2, dim=-1)
        y = torch.cat([a * 2 - 1, b / 4 + 3, torch.tanh(d), torch.sigmoid(e).unsqueeze(0).squeeze(0)], -1)
        scores = torch.matmul(y, y.transpose(-1, -2)).softmax(-1)
        return (scores @ x)[:, 1:4:2].mean(1), torch.add(x, y, alpha=0.5).mean((0, 2), keepdim=True)


def sample(model, *inputs):
    torch.manual_seed(0)
    model = model().eval() if isinstance(model, type) else model.eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    program = export(model, inputs)
    wanted = model(*inputs)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    return import_exported(program, "main"), [w.detach().numpy() for w in wanted]


IMAGE = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 3, 16, 16)).astype(np.float32))
ROWS = torch.from_numpy(np.random.default_rng(1).standard_normal((2, 7, 32)).astype(np.float32))
IDS = torch.tensor([[3, 7, 7, 19, 0]])
CASES = {
    "cnn": (Cnn, IMAGE),
    "vit": (Vit, IMAGE),
    "causal": (Block(causal=True), ROWS),
    "odds": (Odds, IDS),
}


def as_input(tensor):
    array = tensor.numpy()
    return array.astype(np.int32) if array.dtype == np.int64 else array


@pytest.mark.parametrize("case", CASES)
def test_an_imported_program_computes_what_pytorch_computes(case):
    model, given = CASES[case]
    imported, wanted = sample(model, given)
    before = run(imported.module, [as_input(given)], imported.constants).outputs
    run_passes(imported.module, (FoldReshapes(),))
    after = run(imported.module, [as_input(given)], imported.constants).outputs
    for want, first, second in zip(wanted, before, after, strict=True):
        np.testing.assert_allclose(first, want, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(second, first)


@pytest.mark.parametrize("case", CASES)
def test_a_lowered_import_is_close(case):
    model, given = CASES[case]
    imported, wanted = sample(model, given)
    lowering = LowerToTpu(chip="bm1684x", mode="f16")
    run_passes(imported.module, (FoldReshapes(), lowering, FoldCasts(), StripIoCasts()))
    (function,) = adapter.functions(imported.module)
    kinds = [adapter.tensor_type(a).dtype.numpy for a in adapter.arguments(function)]
    array = as_input(given).astype(kinds[0])
    got = run(imported.module, [array], RoleConstants(imported.weights.__getitem__)).outputs
    for want, have in zip(wanted, got, strict=True):
        np.testing.assert_allclose(have.astype(np.float32), want, rtol=2e-2, atol=1e-2)


def test_the_permutes_around_attention_fold_away():
    imported, _ = sample(*CASES["vit"])
    (function,) = adapter.functions(imported.module)

    def permutes():
        return sum(call.spec.name == "top.permute" for call in adapter.calls(function))

    before = permutes()
    run_passes(imported.module, (FoldReshapes(),))
    assert permutes() < before


def test_an_update_in_place_is_seen_by_later_uses():
    class InPlace(nn.Module):
        def forward(self, x):
            y = x * 1.0
            torch.relu_(y)
            y.add_(2)
            return y

    imported, (want,) = sample(InPlace, ROWS)
    (got,) = run(imported.module, [ROWS.numpy()], imported.constants).outputs
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_operators_that_cannot_be_imported_are_all_named():
    class Strange(nn.Module):
        def forward(self, x):
            return torch.sort(torch.sin(x))[0]

    with pytest.raises(BadInput, match=r"aten\.sin\.default \(as sin\), aten\.sort\.default \(as sort\)"):
        import_exported(export(Strange(), (IMAGE,)), "main")


def test_dynamic_shapes_are_refused():
    program = export(Block().eval(), (ROWS,), dynamic_shapes={"x": {1: Dim("rows", min=2, max=64)}})
    with pytest.raises(BadInput, match="Input x has the dynamic shape"):
        import_exported(program, "main")


def test_a_model_that_is_training_is_refused():
    with pytest.raises(BadInput, match=r"changes norm\.num_batches_tracked, .* Export the model in eval mode"):
        import_exported(export(Cnn().train(), (IMAGE,)), "main")
