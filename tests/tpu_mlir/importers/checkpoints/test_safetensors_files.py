"""Safetensors files are mapped one tensor at a time, and every kind of damage is named."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from core.errors import BadInput
from tests.tpu_mlir.importers.checkpoints.tiny import CONFIGS, random_tensors, write_directory
from tpu_mlir.importers.checkpoints.safetensors_files import open_safetensors
from tpu_mlir.importers.checkpoints.weights import UnknownTensor, require


@pytest.mark.parametrize("shards", [1, 3])
def test_all_tensors_come_back(tmp_path: Path, shards: int) -> None:
    tensors = random_tensors(CONFIGS["llama"])
    weights = open_safetensors(write_directory(tmp_path, CONFIGS["llama"], tensors, shards))
    assert set(weights) == set(tensors)
    assert len(weights) == len(tensors)
    for name, tensor in tensors.items():
        assert weights[name].dtype == tensor.dtype
        assert np.array_equal(weights[name], tensor)
        assert weights.info(name).shape == tensor.shape
        assert not weights[name].flags.writeable


@pytest.mark.parametrize(
    "dtype",
    [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_],
)
def test_every_type_and_odd_shapes(tmp_path: Path, dtype: type) -> None:
    tensors = {"a": np.ones((3, 5), dtype), "scalar": np.ones((), dtype), "empty": np.ones((0, 4), dtype)}
    save_file(tensors, tmp_path / "model.safetensors")
    weights = open_safetensors(tmp_path)
    for name, tensor in tensors.items():
        assert weights[name].shape == tensor.shape
        assert weights[name].dtype == tensor.dtype
        assert np.array_equal(weights[name], tensor)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_reading_all_tensors_in_turn_needs_the_memory_of_one(tmp_path: Path) -> None:
    size = 8 << 20
    save_file({f"t{i}": np.full(size, i, np.uint8) for i in range(8)}, tmp_path / "model.safetensors")
    weights = open_safetensors(tmp_path)
    before, peak, total = resident_bytes(), 0, 0
    for name in weights:
        tensor = weights[name]
        total += int(tensor.max())
        peak = max(peak, resident_bytes() - before)
    assert total == sum(range(8))
    assert peak < 3 * size


def test_an_unknown_name_is_a_key_error_that_offers_the_closest(tmp_path: Path) -> None:
    weights = open_safetensors(write_directory(tmp_path, {}, {"model.norm.weight": np.ones(4, np.float32)}))
    with pytest.raises(UnknownTensor) as refused:
        weights["model.norms.weight"]
    assert str(refused.value) == "The checkpoint has no tensor model.norms.weight. Did you mean model.norm.weight?"
    assert weights.get("nothing") is None


def test_a_missing_shard_of_an_index_is_named(tmp_path: Path) -> None:
    write_directory(tmp_path, CONFIGS["llama"], random_tensors(CONFIGS["llama"]), shards=3)
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(BadInput, match=r"shards missing: model-00002-of-00003\.safetensors"):
        open_safetensors(tmp_path)
    (tmp_path / "model.safetensors.index.json").unlink()
    with pytest.raises(BadInput, match="is one of 3 shards; missing: 2"):
        open_safetensors(tmp_path)


def test_shards_without_an_index_are_read_when_all_are_there(tmp_path: Path) -> None:
    tensors = random_tensors(CONFIGS["llama"])
    write_directory(tmp_path, CONFIGS["llama"], tensors, shards=3)
    (tmp_path / "model.safetensors.index.json").unlink()
    assert set(open_safetensors(tmp_path)) == set(tensors)


@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_a_truncated_file_is_named(tmp_path: Path, keep: int) -> None:
    write_directory(tmp_path, CONFIGS["llama"], random_tensors(CONFIGS["llama"]))
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(BadInput, match=r"model\.safetensors is damaged or truncated"):
        open_safetensors(tmp_path)


def test_a_huge_header_length_is_no_crash(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(BadInput, match="damaged or truncated"):
        open_safetensors(tmp_path)


def test_a_type_that_numpy_lacks_is_named(tmp_path: Path) -> None:
    header = json.dumps({"x": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]}}).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0")
    with pytest.raises(BadInput, match=r"model\.safetensors(: x has type F4| is damaged)"):
        open_safetensors(tmp_path)


def test_an_index_that_disagrees_with_its_shards_is_named(tmp_path: Path) -> None:
    write_directory(tmp_path, CONFIGS["llama"], random_tensors(CONFIGS["llama"]), shards=2)
    file = tmp_path / "model.safetensors.index.json"
    index = json.loads(file.read_text())
    index["weight_map"]["model.extra.weight"] = "model-00001-of-00002.safetensors"
    file.write_text(json.dumps(index))
    with pytest.raises(BadInput, match=r"model\.extra\.weight is in model-00001-of-00002\.safetensors, which has no"):
        open_safetensors(tmp_path)


@pytest.mark.parametrize("text", ["[]", "{}", "{", '{"weight_map": [1]}'])
def test_an_index_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(BadInput, match="is not a safetensors index"):
        open_safetensors(tmp_path)


def test_an_index_may_not_point_outside_its_directory(tmp_path: Path) -> None:
    inside = tmp_path / "model"
    inside.mkdir()
    save_file({"x": np.ones(1, np.float32)}, tmp_path / "secret.safetensors")
    (inside / "model.safetensors.index.json").write_text('{"weight_map": {"x": "../secret.safetensors"}}')
    with pytest.raises(BadInput, match="names a shard outside its directory"):
        open_safetensors(inside)


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(BadInput, match=r"pytorch_model\.bin, but no safetensors.*Pickled weights can run code"):
        open_safetensors(tmp_path)


def test_an_empty_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no safetensors file"):
        open_safetensors(tmp_path)


def test_a_tensor_in_two_files_is_named(tmp_path: Path) -> None:
    for number in (1, 2):
        save_file({"x": np.ones(2, np.float32)}, tmp_path / f"model-{number:05}-of-00002.safetensors")
    with pytest.raises(BadInput, match=r"x is in model-00001-of-00002\.safetensors and in model-00002"):
        open_safetensors(tmp_path)


def test_several_files_without_an_index_are_not_guessed_among(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save_file({"x": np.ones(2, np.float32)}, tmp_path / f"{name}.safetensors")
    with pytest.raises(BadInput, match=r"several safetensors files \(a\.safetensors, b\.safetensors\)"):
        open_safetensors(tmp_path)
    save_file({"y": np.ones(2, np.float32)}, tmp_path / "model.safetensors")
    assert list(open_safetensors(tmp_path)) == ["y"]


def test_require_names_file_tensor_found_and_expected(tmp_path: Path) -> None:
    write_directory(tmp_path, {}, {"w": np.ones((2, 3), np.int32)})
    weights = open_safetensors(tmp_path)
    with pytest.raises(BadInput, match=r"^model\.safetensors: w has shape \[2, 3\], expected \[3, 2\]"):
        require(weights, "w", (3, 2))
    with pytest.raises(BadInput, match=r"^model\.safetensors: w has type I32, expected a float type"):
        require(weights, "w", (2, 3))
