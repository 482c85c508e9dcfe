"""GGUF files give the same model as the Hugging Face directory they were made from."""

import struct
from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind
from gguf.quants import dequantize, quantize

from core.errors import BadInput
from tests.tpu_mlir.importers.checkpoints.tiny import CONFIGS, HEADS, interleaved, random_tensors, write_gguf
from tpu_mlir.importers.checkpoints.checkpoint import open_checkpoint
from tpu_mlir.importers.checkpoints.gguf_config import parse_gguf_config, parse_gguf_generation
from tpu_mlir.importers.checkpoints.gguf_file import open_gguf
from tpu_mlir.importers.checkpoints.gguf_header import read_gguf_header
from tpu_mlir.importers.checkpoints.gguf_tokenizer import GgufTokenizer, read_gguf_tokenizer
from tpu_mlir.importers.checkpoints.hf_config import parse_model_config
from tpu_mlir.importers.checkpoints.rope_tables import inverse_frequencies

Q = "model.layers.1.self_attn.q_proj.weight"
EXTRA = {"minicpm": {"embedding_scale": 12.0, "residual_scale": 1.4 / 2**0.5, "logit_scale": 4.0}}


@pytest.mark.parametrize("family", CONFIGS)
def test_names_rows_and_configuration_are_those_of_hugging_face(tmp_path: Path, family: str) -> None:
    raw = CONFIGS[family]
    tensors = random_tensors(raw, np.float32)
    checkpoint = open_checkpoint(write_gguf(tmp_path / "m.gguf", raw, tensors, extra=EXTRA.get(family)))
    assert set(checkpoint.weights) == set(tensors)
    for name, tensor in tensors.items():
        assert np.array_equal(checkpoint.weights[name], tensor), name
    expected = parse_model_config(raw, "c").model_copy(update={"weight_type": "float32"})
    assert checkpoint.config.model_copy(update={"residual_scale": expected.residual_scale}) == expected
    assert checkpoint.config.residual_scale == pytest.approx(expected.residual_scale, rel=1e-6)
    assert checkpoint.container == "gguf"
    assert checkpoint.generation.eos_token_ids == (2,)


def test_interleaving_differs_from_the_identity() -> None:
    rows = np.arange(64)
    assert not np.array_equal(interleaved(rows, HEADS), rows)


@pytest.mark.parametrize("kind", [Kind.F16, Kind.BF16])
def test_stored_floats_keep_their_type(tmp_path: Path, kind: Kind) -> None:
    tensors = random_tensors(CONFIGS["qwen2"], np.float32)
    weights, _ = open_gguf(write_gguf(tmp_path / "m.gguf", CONFIGS["qwen2"], tensors, {Q: kind}))
    assert weights.info(Q).stored == kind.name
    assert weights[Q].dtype == weights.info(Q).dtype
    assert weights[Q].dtype.itemsize == 2
    assert np.allclose(weights[Q].astype(np.float32), tensors[Q], rtol=2**-8)


@pytest.mark.parametrize("kind", [Kind.Q8_0, Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1])
def test_quantised_types_are_dequantised_on_access(tmp_path: Path, kind: Kind) -> None:
    tensors = random_tensors(CONFIGS["qwen2"], np.float32)
    weights, _ = open_gguf(write_gguf(tmp_path / "m.gguf", CONFIGS["qwen2"], tensors, {Q: kind}))
    info = weights.info(Q)
    assert (info.stored, info.dtype, info.shape) == (kind.name, np.float32, tensors[Q].shape)
    assert np.array_equal(weights[Q], dequantize(quantize(tensors[Q], kind), kind))
    assert 0 < np.abs(weights[Q] - tensors[Q]).max() < 0.06


@pytest.mark.parametrize(("kind", "block"), [(Kind.Q4_K, 144), (Kind.Q6_K, 210)])
def test_k_types_are_dequantised_by_their_own_definition(tmp_path: Path, kind: Kind, block: int) -> None:
    # The library writes no K types, so a file with four 256-value blocks is made of random bytes and small scales.
    raw = np.random.default_rng(0).integers(0, 256, (4, block), dtype=np.uint8)
    scale = np.frombuffer(np.float16(0.01).tobytes(), np.uint8)
    if kind is Kind.Q4_K:
        raw[:, 0:2], raw[:, 2:4] = scale, scale
        expected = [value for row in raw for value in q4_k(row)]
    else:
        raw[:, 208:210] = scale
        expected = [value for row in raw for value in q6_k(row)]
    file = tmp_path / "k.gguf"
    header = b"GGUF" + struct.pack("<IQQ", 3, 1, 0)
    name = b"output_norm.weight"
    header += struct.pack("<Q", len(name)) + name + struct.pack("<IQQIQ", 2, 256, 4, kind.value, 0)
    file.write_bytes(header + b"\0" * (-len(header) % 32) + raw.tobytes())
    weights, _ = open_gguf(file)
    assert weights.info("model.norm.weight").shape == (4, 256)
    assert np.allclose(weights["model.norm.weight"].reshape(-1), expected, rtol=1e-6, atol=1e-6)


def q4_k(block: np.ndarray) -> list[float]:
    """Values of a Q4_K block, one at a time: 8 sub-blocks with 6-bit scales and minima."""
    d, dmin = (float(block[i : i + 2].view(np.float16)[0]) for i in (0, 2))
    packed, nibbles = [int(x) for x in block[4:16]], [int(x) for x in block[16:]]
    values = []
    for sub in range(8):
        if sub < 4:
            scale, minimum = packed[sub] & 63, packed[sub + 4] & 63
        else:
            scale = (packed[sub + 4] & 15) | ((packed[sub - 4] >> 6) << 4)
            minimum = (packed[sub + 4] >> 4) | ((packed[sub] >> 6) << 4)
        for i in range(32):
            byte = nibbles[sub // 2 * 32 + i]
            code = byte & 15 if sub % 2 == 0 else byte >> 4
            values.append(d * scale * code - dmin * minimum)
    return values


def q6_k(block: np.ndarray) -> list[float]:
    """Values of a Q6_K block, one at a time: 4 low and 2 high bits, 16 signed scales."""
    low, high, scales = block[:128], block[128:192], block[192:208].view(np.int8)
    d = float(block[208:210].view(np.float16)[0])
    values = []
    for i in range(256):
        half, within = divmod(i, 128)
        quarter, lane = divmod(within, 32)
        nibble = int(low[half * 64 + (quarter % 2) * 32 + lane])
        bits = (nibble >> 4 if quarter >= 2 else nibble & 15) | (
            ((int(high[half * 32 + lane]) >> (2 * quarter)) & 3) << 4
        )
        values.append(d * int(scales[i // 16]) * (bits - 32))
    return values


def test_the_tokenizer_and_template_come_along(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "m.gguf", CONFIGS["llama"], random_tensors(CONFIGS["llama"], np.float32))
    tokenizer = open_checkpoint(file).tokenizer
    assert isinstance(tokenizer, GgufTokenizer)
    assert (tokenizer.kind, tokenizer.pretokenizer, tokenizer.chat_template) == ("gpt2", "qwen2", "{{ messages }}")
    assert tokenizer.special_tokens == {"t0": 0, "t1": 1, "t2": 2}
    assert tokenizer.merges == ("t 1", "t 2")
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (1, 2)


def test_minicpm_files_without_scales_are_of_the_first_release(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "m.gguf", CONFIGS["minicpm"], random_tensors(CONFIGS["minicpm"], np.float32))
    config = open_checkpoint(file).config
    assert (config.embedding_scale, config.logit_divisor) == (12, 64 / 256)
    assert config.residual_scale == pytest.approx(1.4 / 2**0.5)


def test_every_truncation_is_named(tmp_path: Path) -> None:
    tensors = random_tensors(CONFIGS["llama"], np.float32)
    whole = write_gguf(tmp_path / "m.gguf", CONFIGS["llama"], tensors).read_bytes()
    cut = tmp_path / "cut.gguf"
    rng = np.random.default_rng(0)
    ends = [0, 3, 23, 24, 40, len(whole) - 1, *rng.integers(0, len(whole), 20), *rng.integers(24, 4000, 20)]
    for end in ends:
        cut.write_bytes(whole[: int(end)])
        with pytest.raises(BadInput, match=r"cut\.gguf (is no GGUF file|is damaged|is truncated)"):
            open_gguf(cut)


def test_random_damage_of_the_header_is_never_a_crash(tmp_path: Path) -> None:
    tensors = random_tensors(CONFIGS["llama"], np.float32)
    file = write_gguf(tmp_path / "m.gguf", CONFIGS["llama"], tensors)
    whole = bytearray(file.read_bytes())
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(150):
        damaged = whole.copy()
        for place in rng.integers(0, 4500, 3):
            damaged[place] = rng.integers(0, 256)
        file.write_bytes(damaged)
        try:
            open_checkpoint(file)
        except BadInput:
            refused += 1
    assert refused > 20


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"PK\3\4" + bytes(40), "is no GGUF file: it begins with"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "is GGUF version 1"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "other byte order"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1 << 60), "is damaged or truncated"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<I", 99), "unknown type 99"),
        (
            b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<IIQ", 9, 0, 1 << 62),
            "damaged or truncated",
        ),
    ],
)
def test_what_is_no_gguf_is_refused(tmp_path: Path, header: bytes, message: str) -> None:
    file = tmp_path / "x.gguf"
    file.write_bytes(header)
    with pytest.raises(BadInput, match=message):
        read_gguf_header(file)


def single(tmp_path: Path, name: bytes, kind: int, key: bytes = b"") -> Path:
    header = b"GGUF" + struct.pack("<IQQ", 3, 1, 1 if key else 0) + key
    header += struct.pack("<Q", len(name)) + name + struct.pack("<IQIQ", 1, 32, kind, 0)
    file = tmp_path / "x.gguf"
    file.write_bytes(header + b"\0" * (-len(header) % 32) + bytes(1024))
    return file


def test_types_names_and_parts_that_are_not_supported_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"output_norm\.weight has type IQ4_NL, which is not supported"):
        open_gguf(single(tmp_path, b"output_norm.weight", Kind.IQ4_NL.value))
    with pytest.raises(BadInput, match="has type type 999"):
        open_gguf(single(tmp_path, b"output_norm.weight", 999))
    with pytest.raises(BadInput, match=r"tensor blk\.0\.ssm_in\.weight is not known"):
        open_gguf(single(tmp_path, b"blk.0.ssm_in.weight", 0))
    with pytest.raises(BadInput, match=r"mixture of experts"):
        open_gguf(single(tmp_path, b"blk.0.ffn_gate_exps.weight", 0))
    split = struct.pack("<Q", 11) + b"split.count" + struct.pack("<IH", 2, 3)
    with pytest.raises(BadInput, match="is one of 3 parts"):
        open_gguf(single(tmp_path, b"output_norm.weight", 0, split))
    with pytest.raises(BadInput, match=r"output_norm\.weight has shape \(32,\), no whole Q4_K blocks"):
        open_gguf(single(tmp_path, b"output_norm.weight", Kind.Q4_K.value))


def test_an_unknown_architecture_is_named(tmp_path: Path) -> None:
    file = write_gguf(
        tmp_path / "m.gguf", {**CONFIGS["llama"], "model_type": "gemma2"}, random_tensors(CONFIGS["qwen2"], np.float32)
    )
    with pytest.raises(BadInput, match="architecture 'gemma2' is an unknown family"):
        open_checkpoint(file)


@pytest.mark.parametrize("family", ["llama", "minicpm"])
def test_odd_metadata_is_refused_and_never_crashes(tmp_path: Path, family: str) -> None:
    file = write_gguf(tmp_path / "m.gguf", CONFIGS[family], random_tensors(CONFIGS[family], np.float32))
    weights, metadata = open_gguf(file)
    more = ("expert_count", "rope.scaling.type", "rope.scaling.factor", "embedding_scale", "logit_scale")
    refused = 0
    for key in [*metadata, *(f"{family}.{name}" for name in more), "tokenizer.ggml.eot_token_id"]:
        for value in (None, "x", -1, 0, 1.5, True, [], [1], ["x"], {}, float("nan"), 10**400):
            odd = {**metadata, key: value}
            try:
                parse_gguf_config(odd, weights, "f")
                parse_gguf_generation(odd, "f")
                read_gguf_tokenizer(odd, "f")
            except BadInput:
                refused += 1
    assert refused > 100


def test_rope_scalings_of_gguf_files(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "m.gguf", CONFIGS["qwen2"], random_tensors(CONFIGS["qwen2"], np.float32))
    weights, metadata = open_gguf(file)
    for kind in ("linear", "yarn"):
        scaled = {
            **metadata,
            "qwen2.rope.scaling.type": kind,
            "qwen2.rope.scaling.factor": 4.0,
            "qwen2.rope.scaling.original_context_length": 64,
        }
        rope = parse_gguf_config(scaled, weights, "f").rope
        raw = {"type": kind, "factor": 4.0, "original_max_position_embeddings": 64}
        assert rope == parse_model_config({**CONFIGS["qwen2"], "rope_scaling": raw}, "c").rope


def test_rope_divisors_of_llama_3_files_give_its_frequencies(tmp_path: Path) -> None:
    scaling = {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 64, "low_freq_factor": 1.0}
    llama3 = parse_model_config({**CONFIGS["llama"], "rope_scaling": scaling}, "c")
    plain = parse_model_config(CONFIGS["llama"], "c")
    frequencies = [inverse_frequencies(config.rope, 16, 100) for config in (plain, llama3)]
    tensors = random_tensors(CONFIGS["llama"], np.float32)
    tensors["rope_freqs.weight"] = (frequencies[0] / frequencies[1]).astype(np.float32)
    config = open_checkpoint(write_gguf(tmp_path / "m.gguf", CONFIGS["llama"], tensors)).config
    assert not np.allclose(frequencies[0], frequencies[1])
    assert np.allclose(inverse_frequencies(config.rope, 16, 100), frequencies[1], rtol=1e-6)
    assert config.rope.attention_factor == 1
