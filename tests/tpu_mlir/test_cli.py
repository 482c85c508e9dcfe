"""The commands do what they say, and say what is wrong."""

import json

import pytest
from click.testing import CliRunner

from core.errors import BadInput
from tests.tpu_mlir.importers.checkpoints.tiny import CONFIGS, random_tensors, write_directory
from tpu_mlir.cli import tpu
from tpu_mlir.dialects import adapter
from tpu_mlir.dialects.state import State, check

IR = """module attributes {tpu.state = "top_f32"} {
  func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = "top.input"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %1 = "top.reshape"(%0) {shape = array<i64: 2, 3>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    config = CONFIGS["qwen3"]
    return str(write_directory(tmp_path_factory.mktemp("m") / "qwen3", config, random_tensors(config)))


def run(*arguments, text=None, code=0):
    done = CliRunner().invoke(tpu, list(arguments), input=text)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done.output


def test_opt_runs_passes_on_text():
    assert "top.reshape" in run("opt", "-", text=IR)
    out = run("opt", "-", "--passes", "fold-reshapes, lower-to-tpu{chip=bm1688 mode=f16}", text=IR)
    assert "top." not in out
    check(adapter.parse(out), State.LOWERED)


def test_ir_lists_programs_and_prints_one_at_each_level(model):
    listed = run("ir", model, "--seq", "32", "--prefill", "8", "--history", "--sample").split()
    assert listed[:4] == ["embedding", "embedding_cache", "block_0", "block_kv_0"]
    assert listed[-2:] == ["greedy_head", "sample_head"]
    top = run("ir", model, "--net", "block_0", "--seq", "32")
    assert adapter.print_module(adapter.parse(top), names=True) == top
    low = run(
        "ir", model, "--net", "block_0", "--seq", "32", "--level", "tpu", "--quant", "w8bf16", "--group-size", "32"
    )
    assert low.count('"tpu.a16_matmul"') == 7
    check(adapter.parse(low), State.LOWERED)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--net", "block_9"], "no program 'block_9'. There are embedding"),
        (["--seq", "4", "--prefill", "8"], "prefill 8 is longer than seq 4"),
        (["--seq", "1"], "seq"),
        (["--seq", "300"], "300 is longer than the 256 positions"),
        (["--chip", "tpu9"], "no chip 'tpu9'"),
        (["--net", "block_0", "--level", "tpu", "--quant", "w4"], "no mode 'w4'"),
        (
            ["--net", "block_0", "--level", "tpu", "--quant", "w4f16", "--group-size", "48"],
            "groups of 48",
        ),
    ],
)
def test_what_cannot_be_built_is_named(model, arguments, message):
    with pytest.raises(BadInput) as caught:
        run("ir", model, *([] if "--seq" in arguments else ["--seq", "32"]), *arguments)
    assert message in str(caught.value)


def test_check_prints_the_worst_tensor_of_every_program_and_fails_when_one_is_wrong(model):
    out = run("check", model, "--ids", "1,2,3,4").splitlines()
    assert [line.split()[0] for line in out[1:]] == [
        "embedding",
        "embedding_cache",
        "block_0",
        "block_cache_0",
        "block_1",
        "block_cache_1",
        "lm_head",
    ]
    text = run("check", model, "--ids", "1,2,3,4", "--json", "--quant", "w4bf16", "--group-size", "32", code=1)
    assert any(t["cosine"] < 0.99 for net in json.loads(text)["programs"] for t in net["tensors"])
    with pytest.raises(BadInput, match="--ids is '1,x'"):
        run("check", model, "--ids", "1,x")


def test_ops_prints_the_tables():
    assert "| `top.rope` |" in run("ops")
