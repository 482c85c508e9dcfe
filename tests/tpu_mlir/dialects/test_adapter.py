"""The contract with the MLIR bindings: what the adapter relies on, so that a new release is judged here."""

import gc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tpu_mlir
from core.errors import ComplabError
from tpu_mlir.dialects import adapter
from tpu_mlir.dialects.adapter import IrError, Pattern
from tpu_mlir.dialects.build import FunctionWriter
from tpu_mlir.dialects.types import DType, Tensor

F32_4 = Tensor((1, 4), DType.F32)


def silu_of_x():
    writer = FunctionWriter("f", {"x": F32_4})
    return writer.finish(writer.op("top.silu", writer["x"], name="y"))


def ops_of(module):
    return [call.spec.name for f in adapter.functions(module) for call in adapter.calls(f)]


def test_dialects_load_in_every_context():
    text = adapter.print_module(silu_of_x())
    assert {adapter.print_module(adapter.parse(text, adapter.new_context())) for _ in range(3)} == {text}


def test_a_verifier_runs_when_text_is_parsed_and_its_message_names_op_and_location():
    text = """func.func @f(%x: tensor<1x4xf32>) {
      %y = "top.silu"(%x) : (tensor<1x4xf32>) -> tensor<1x5xf32> loc("y")
      return
    }"""
    with pytest.raises(IrError) as caught:
        adapter.parse(text)
    first = caught.value.diagnostics[0]
    assert first.location == '"y"'
    assert first.message == "top.silu: out is tensor<1x5xf32>, inferred tensor<1x4xf32>"


def test_an_unknown_op_of_our_dialects_is_refused():
    with pytest.raises(IrError, match=r"top\.sillu"):
        adapter.parse(adapter.print_module(silu_of_x()).replace("top.silu", "top.sillu"))


def test_text_that_is_no_module_is_refused_with_its_place():
    with pytest.raises(IrError) as caught:
        adapter.parse("module {\n  what\n}")
    assert caught.value.diagnostics[0].location.startswith('"-":2')


def test_a_name_survives_printing_and_parsing():
    again = adapter.parse(adapter.print_module(silu_of_x(), names=True))
    (function,) = adapter.functions(again)
    assert [call.name for call in adapter.calls(function)] == ["x", "y"]


def test_a_name_with_quotes_and_brackets_survives():
    writer = FunctionWriter("f", {'a "quoted) name': F32_4})
    module = writer.finish(writer['a "quoted) name'])
    again = adapter.parse(adapter.print_module(module, names=True))
    assert adapter.print_module(again, names=True) == adapter.print_module(module, names=True)


def test_a_greedy_pattern_replaces_an_op_and_dead_ops_go():
    module = silu_of_x()
    adapter.rewrite_greedily(module, [Pattern("top.silu", lambda call, make: (make("top.relu", call.operands["x"]),))])
    assert ops_of(module) == ["top.input", "top.relu"]
    adapter.verify(module)


def test_a_pattern_that_returns_none_leaves_the_op():
    module = silu_of_x()
    adapter.rewrite_greedily(module, [Pattern("top.silu", lambda call, make: None)])
    assert ops_of(module) == ["top.input", "top.silu"]


def test_every_one_of_many_patterns_is_called_for_its_own_op():
    """The bindings do not keep callbacks alive; the adapter must."""
    names = ["relu", "silu", "sigmoid", "tanh", "rsqrt"]
    writer = FunctionWriter("f", {"x": F32_4})
    value = writer["x"]
    for name in names:
        value = writer.op(f"top.{name}", value, name=name)
    module = writer.finish(value)
    called = []

    def note(call, make):
        called.append((call.spec.name, call.name))

    adapter.rewrite_greedily(module, [Pattern(f"top.{name}", lambda call, make: note(call, make)) for name in names])
    assert sorted(set(called)) == sorted((f"top.{n}", n) for n in names)


def test_an_exception_in_a_pattern_reaches_the_caller():
    def fail(call, make):
        raise ZeroDivisionError("inside")

    with pytest.raises(ZeroDivisionError, match="inside"):
        adapter.rewrite_greedily(silu_of_x(), [Pattern("top.silu", fail)])
    with pytest.raises(ZeroDivisionError, match="inside"):
        adapter.convert(silu_of_x(), [Pattern("top.silu", fail), Pattern("top.input", fail)], "tpu")


def test_full_conversion_names_every_op_without_a_pattern():
    with pytest.raises(IrError) as caught:
        adapter.convert(silu_of_x(), [Pattern("top.input", lambda call, make: None)], "tpu")
    assert [(d.location, d.message) for d in caught.value.diagnostics] == [('"y"', "top.silu has no lowering")]


def test_full_conversion_fails_when_a_pattern_declines():
    patterns = [Pattern("top.input", lambda call, make: (make("tpu.input", call.operands["x"]),))]
    with pytest.raises(IrError) as caught:
        adapter.convert(silu_of_x(), [*patterns, Pattern("top.silu", lambda call, make: None)], "tpu")
    assert caught.value.diagnostics[0].location == '"y"'
    assert "top.silu" in caught.value.diagnostics[0].message


def test_upstream_passes_see_our_ops_as_pure():
    writer = FunctionWriter("f", {"x": F32_4})
    writer.op("top.silu", writer["x"], name="dead")
    twice = [writer.op("top.relu", writer["x"], name=n) for n in "ab"]
    module = writer.finish(writer.op("top.add", *twice, name="sum"))
    adapter.run_upstream(module, "canonicalize,cse")
    assert ops_of(module) == ["top.input", "top.relu", "top.add"]


def test_an_unknown_upstream_pass_is_an_error():
    with pytest.raises((IrError, ValueError)):
        adapter.run_upstream(silu_of_x(), "no-such-pass")


def test_an_address_is_kept_in_the_type_and_in_the_text():
    module = silu_of_x()
    (function,) = adapter.functions(module)
    value = adapter.calls(function)[0].results[0]
    assert adapter.address_of(value) is None
    adapter.set_address(value, 1 << 32)
    again = adapter.parse(adapter.print_module(module))
    (function,) = adapter.functions(again)
    assert adapter.address_of(adapter.calls(function)[0].results[0]) == 1 << 32


def test_a_call_keeps_its_module_alive():
    """The bindings do not: an op whose module is gone reads freed memory."""
    found = [adapter.calls(adapter.functions(silu_of_x())[0])[1] for _ in range(20)]
    gc.collect()
    filler = [adapter.print_module(silu_of_x()) for _ in range(20)]
    assert {(call.spec.name, str(call.types["x"])) for call in found} == {("top.silu", "tensor<1x4xf32>")}
    assert len(filler) == 20


def test_llvmlite_in_the_process_is_refused():
    code = "import sys, types; sys.modules['llvmlite'] = types.ModuleType('llvmlite'); import tpu_mlir.dialects.adapter"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode != 0
    assert "cannot share one with torch-mlir" in done.stderr


def test_only_the_adapter_imports_the_bindings():
    sources = {p: p.read_text() for p in Path(tpu_mlir.__file__).parent.rglob("*.py")}
    users = [p for p, text in sources.items() if re.search(r"^\s*(import|from) torch_mlir", text, re.MULTILINE)]
    assert [p.name for p in users] == ["bindings.py"]


def test_building_an_op_wrongly_names_it():
    writer = FunctionWriter("f", {"x": F32_4})
    with pytest.raises(IrError, match=r'"bad": top\.softmax: axis 7 is out of range for 1x4'):
        writer.op("top.softmax", writer["x"], name="bad", axis=7)
    with pytest.raises(IrError, match="needs attribute axis"):
        writer.op("top.softmax", writer["x"], name="bad")
    with pytest.raises(IrError, match="has no attribute axes"):
        writer.op("top.softmax", writer["x"], name="bad", axes=1)
    with pytest.raises(IrError, match="operand y is missing"):
        writer.op("top.add", writer["x"], name="bad")


def test_errors_are_for_people():
    assert issubclass(IrError, ComplabError)


def test_the_bindings_do_not_search_for_a_module_at_every_op():
    """They would import `torch_mlir.dialects.top` in vain for each: half of the time of all passes."""
    searched = []

    class Finder:
        @staticmethod
        def find_spec(name, path, target=None):
            searched.append(name)

    module = silu_of_x()
    sys.meta_path.insert(0, Finder)
    try:
        adapter.verify(module)
        adapter.parse(adapter.print_module(module))
    finally:
        sys.meta_path.remove(Finder)
    assert not [name for name in searched if name.endswith((".top", ".tpu"))]
