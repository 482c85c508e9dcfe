"""Every op, by one sample each: it builds, prints, parses, verifies, runs on the host and counts, at both levels."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tpu_mlir.dialects import adapter, fallback
from tpu_mlir.dialects.build import FunctionWriter
from tpu_mlir.dialects.catalog import SPECS, TOP, TPU
from tpu_mlir.dialects.interpret import run
from tpu_mlir.dialects.optable import section
from tpu_mlir.dialects.spec import Mismatch
from tpu_mlir.dialects.types import DType, Tensor, tensor_of


def t(shape, dtype="f32"):
    return Tensor(tuple(map(int, shape.split("x"))), DType(dtype))


X = t("2x4x6")
IMAGE = t("1x4x6x6")

SAMPLES = {
    "input": ([X], {}),
    "gather": ([t("9x1x4"), t("2x3", "si32")], {"axis": 0}),
    "gather_elements": ([X, t("2x4x3", "si32")], {"axis": 2}),
    "scatter_elements": ([X, t("2x4x1", "si32"), t("2x4x1")], {"axis": 2}),
    "concat": ([(X, t("2x1x6"))], {"axis": 1}),
    "insert": ([X, t("2x1x6")], {"axis": 1, "offset": 3}),
    "slice": ([X], {"starts": (0, 1, 0), "ends": (2, 4, 6), "steps": (1, 2, 5)}),
    "reshape": ([X], {"shape": (8, -1)}),
    "squeeze": ([t("2x1x6")], {"axes": (1,)}),
    "unsqueeze": ([X], {"axes": (0, -1)}),
    "permute": ([X], {"order": (2, 0, 1)}),
    "tile": ([X], {"repeats": (1, 2, 3)}),
    "expand": ([t("2x1x6")], {"shape": (3, 2, 4, 6)}),
    "pad": ([X], {"before": (0, 1, 0), "after": (0, 0, 2), "value": -1.5}),
    "cast": ([t("3", "si32")], {"to": "f32"}),
    "add": ([X, t("6")], {}),
    "sub": ([X, t("1x4x1")], {}),
    "mul": ([X, X], {}),
    "div": ([X, X], {}),
    "min": ([X, X], {}),
    "max": ([t("1"), X], {}),
    "add_const": ([X], {"value": 0.5}),
    "mul_const": ([X], {"value": -2.0}),
    "clip": ([X], {"low": -0.5, "high": 0.5}),
    "silu": ([X], {}),
    "gelu": ([X], {"form": "tanh"}),
    "relu": ([X], {}),
    "sigmoid": ([X], {}),
    "tanh": ([X], {}),
    "rsqrt": ([X], {}),
    "reduce": ([X], {"mode": "mean", "axes": (0, 2), "keepdims": False}),
    "cumsum": ([X], {"axis": -1}),
    "softmax": ([X], {"axis": -1}),
    "topk": ([X], {"k": 3, "axis": 2}),
    "compare": ([X, t("6")], {"mode": "ge"}),
    "compare_const": ([X], {"mode": "lt", "value": 0.25}),
    "where": ([t("4x1"), X, X], {}),
    "masked_fill": ([X, t("4x6")], {"value": -9.0}),
    "range_mask": ([t("1", "si32")], {"size": 7}),
    "matmul": ([X, t("5x6"), t("5")], {"right_transpose": True}),
    "a16_matmul": ([t("1x3x16"), t("5x8", "ui8"), t("5x2"), t("5x2", "ui8"), None], {"bits": 4, "group_size": 8}),
    "rms_norm": ([X, t("1x1x6")], {"eps": 1e-6}),
    "layer_norm": ([X, t("6"), None], {"eps": 1e-5}),
    "rope": ([t("1x3x2x4"), t("1x3x1x4"), t("1x3x1x4")], {}),
    "attention": ([t("1x3x4x2"), t("1x5x2x2"), t("1x5x2x2"), t("1x1x1x5"), t("4x4")], {"scale": 0.7}),
    "conv": ([IMAGE, t("8x2x3x3"), t("8")], {"groups": 2, "pads": (1, 1, 1, 1), "strides": (2, 1)}),
    "max_pool": ([IMAGE], {"kernel": (2, 2), "strides": (2, 2)}),
    "avg_pool": ([IMAGE], {"kernel": (3, 3), "strides": (1, 1), "pads": (1, 1, 1, 1)}),
    "batch_norm": ([IMAGE, t("4"), t("4"), t("4"), t("4")], {"eps": 1e-5}),
}
WEIGHT = {"weight": ([], {"role": "w", "shape": (2, 3)})}
CHIP = {
    "active": ([X], {"mode": "gelu"}),
    "requant_int": ([t("2x4", "si32")], {"multipliers": (5, 6, 7, 8), "shifts": (3, 3, 4, 4), "rounding": "half_up"}),
    "requant_fp": ([X], {"scales": (17.5,), "to": "ui8", "zero_point": 128}),
    "dequant_int": ([t("2x4", "si8")], {"scales": (0.5, 0.25, 2.0, 1.0), "zero_point": -3, "to": "f16"}),
    "lut": ([t("2x4", "si8"), t("256", "si8")], {}),
    "load": ([X], {}),
    "store": ([X], {}),
    "move": ([X], {}),
}
PRODUCTS = {"matmul", "a16_matmul", "conv"}
NO_COUNTERPART = {"squeeze", "unsqueeze", "expand", "silu", "gelu", "relu", "sigmoid", "tanh", "rsqrt"}


def on_chip(name, operands, attrs):
    """The sample of a top op for its tpu counterpart, in bf16."""

    def turn(o):
        if isinstance(o, tuple):
            return tuple(map(turn, o))
        return o.with_dtype(DType.BF16) if o is not None and o.dtype.is_float else o

    attrs = {**attrs, "out": "bf16"} if name in PRODUCTS else attrs
    return list(map(turn, operands)), {**attrs, "to": "bf16"} if name == "cast" else attrs


ALL = {f"top.{n}": s for n, s in {**SAMPLES, **WEIGHT}.items()}
ALL |= {f"tpu.{n}": on_chip(n, *s) for n, s in SAMPLES.items() if n not in NO_COUNTERPART}
ALL |= {f"tpu.{n}": s for n, s in CHIP.items()}
ALL["tpu.weight"] = ([], {"role": "w", "shape": (2, 4), "dtype": "ui8", "part": "packed", "bits": 4, "group_size": 8})


def flat(operands):
    return [x for o in operands for x in (o if isinstance(o, tuple) else (o,)) if x is not None]


def module_of(name):
    operands, attrs = ALL[name]
    writer = FunctionWriter("f", {f"in{i}": x for i, x in enumerate(flat(operands))})
    values = iter([writer[f"in{i}"] for i in range(len(flat(operands)))])

    def take(o):
        if isinstance(o, tuple):
            return tuple(map(take, o))
        return None if o is None else next(values)

    return writer.finish(*writer.ops(name, *map(take, operands), name="it", **attrs))


def last_call(module):
    (function,) = adapter.functions(module)
    return adapter.calls(function)[-1]


def arrays_for(name, seed=0):
    rng = np.random.default_rng(seed)
    out = []
    for x in flat(ALL[name][0]):
        if x.dtype.is_float:
            out.append(rng.uniform(0.1, 1.0, x.shape).astype(x.dtype.numpy))
        else:
            out.append(rng.integers(0, 3, x.shape).astype(x.dtype.numpy))
    return out


def test_every_op_has_a_sample():
    assert set(ALL) | {"tpu.group", "tpu.yield"} == set(SPECS)


@pytest.mark.parametrize("name", sorted(ALL))
def test_text_round_trips_with_and_without_names(name):
    module = module_of(name)
    for names in (False, True):
        text = adapter.print_module(module, names=names)
        assert adapter.print_module(adapter.parse(text), names=names) == text


@pytest.mark.parametrize("name", sorted(ALL))
def test_the_fallback_reads_and_prints_the_same_module(name):
    module = module_of(name)
    for names in (False, True):
        text = fallback.print_module(fallback.parse(adapter.print_module(module, names=names)), names=names)
        assert adapter.print_module(adapter.parse(text), names=names) == adapter.print_module(module, names=names)


@pytest.mark.parametrize("name", sorted(set(ALL) - {"top.weight", "tpu.weight"}))
def test_the_host_gives_what_shape_inference_says(name):
    """`run` itself compares each result's type; here the result must also depend on every operand."""
    arrays = arrays_for(name)
    module = module_of(name)
    first = run(module, arrays, constants=lambda call: pytest.fail("no weights here")).outputs
    assert first
    assert all(np.isfinite(a.astype(np.float64)).all() for a in first)


@pytest.mark.parametrize(
    "name",
    sorted(
        n
        for n in ALL
        if n.startswith("tpu.") and n.replace("tpu.", "top.") in TOP and n not in ("tpu.weight", "tpu.cast")
    ),
)
def test_an_op_on_the_chip_is_its_top_op_rounded_once(name):
    """In bf16 the result is the f32 result of the same numbers, within half a unit in the last place."""
    arrays = arrays_for(name)
    on_top = [a.astype(np.float32) if tensor_of(a).dtype.is_float else a for a in arrays]
    wide = run(module_of(name.replace("tpu.", "top.")), on_top, constants=lambda call: None).outputs
    narrow = run(module_of(name), arrays, constants=lambda call: None).outputs
    for a, b in zip(wide, narrow, strict=True):
        unpacked = name == "tpu.a16_matmul"  # its weight is rounded too
        np.testing.assert_allclose(b.astype(np.float64), a.astype(np.float64), rtol=2**-8 * (4 if unpacked else 1))


def test_every_op_is_documented_and_its_functions_take_its_parameters():
    for spec in SPECS.values():
        assert spec.doc.endswith("."), spec.name
        assert spec.name.split(".")[1] == spec.name.split(".")[1].lower()
        wanted = [o.name for o in spec.operands]
        if spec.host is not None and not any(
            p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in inspect.signature(spec.host).parameters.values()
        ):
            parameters = inspect.signature(spec.host).parameters.values()
            assert {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} == {a.name for a in spec.attributes}, (
                spec.name
            )
            assert len([p for p in parameters if p.kind is not p.KEYWORD_ONLY]) == len(wanted), spec.name


@pytest.mark.parametrize("name", sorted(ALL))
def test_flops_are_counted(name):
    call = last_call(module_of(name))
    assert call.flops >= 0
    if call.spec.flops:
        assert call.flops > 0


def test_flops_of_products_count_two_for_a_multiply_add():
    modules = {name: module_of(f"top.{name}") for name in ("matmul", "conv", "add")}
    flops = {name: last_call(module).flops for name, module in modules.items()}
    assert flops == {
        "matmul": 2 * (2 * 4 * 5) * 6 + 2 * 4 * 5,
        "conv": (8 * 3 * 6) * (2 * 2 * 3 * 3 + 1),
        "add": 2 * 4 * 6,
    }


def test_an_independent_mlir_tool_parses_all_that_we_print(tmp_path):
    """Generic form, dialects unknown to it; the printed module comes back the same."""
    text = "\n// -----\n".join(adapter.print_module(module_of(name)) for name in sorted(ALL))
    source = tmp_path / "all.mlir"
    source.write_text(text)
    done = subprocess.run(
        [Path(sys.executable).parent / "torch-mlir-opt", "--allow-unregistered-dialect", "--split-input-file", source],
        capture_output=True,
        text=True,
        check=True,
    )
    parts = re.split(r"^// -----$", done.stdout, flags=re.MULTILINE)
    assert len(parts) == len(ALL)
    for name, part in zip(sorted(ALL), parts, strict=True):
        assert adapter.print_module(adapter.parse(part)) == adapter.print_module(module_of(name))


def test_a_wrong_element_type_is_refused_everywhere():
    """No op takes an operand of a type that it does not list."""
    for name, (operands, attrs) in ALL.items():
        spec = SPECS[name]
        for index, operand in enumerate(spec.operands):
            wrong = next((d for d in DType if d not in operand.dtypes), None)
            given = operands[index]
            if wrong is None or given is None:
                continue
            bad = tuple(x.with_dtype(wrong) for x in given) if isinstance(given, tuple) else given.with_dtype(wrong)
            named = {o.name: v for o, v in zip(spec.operands, operands, strict=True)} | {operand.name: bad}
            with pytest.raises(Mismatch, match=operand.name):
                spec.infer(named, spec.with_defaults(attrs))


def test_the_op_table_lists_every_op_once():
    text = section()
    for name in SPECS:
        assert text.count(f"| `{name}` |") == 1
    assert f"top ({len(TOP)} ops)" in text
    assert f"tpu ({len(TPU)} ops)" in text


def test_the_op_table_of_the_documentation_is_up_to_date():
    """Write it anew with `python -m tpu_mlir.dialects.optable` when this fails."""
    assert section() in (Path(__file__).parents[3] / "docs" / "tpu_mlir.md").read_text()
