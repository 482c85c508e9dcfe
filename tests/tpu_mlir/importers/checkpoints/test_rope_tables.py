"""RoPE tables equal those of the reference implementation for every scaling."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tpu_mlir.importers.checkpoints.tiny import CONFIGS
from tpu_mlir.importers.checkpoints.hf_config import parse_model_config
from tpu_mlir.importers.checkpoints.rope_tables import inverse_frequencies, rope_tables

RECORDED = json.loads((Path(__file__).parent / "data" / "rope_frequencies.json").read_text())
"""float32 frequencies computed by the functions of transformers 5.24.0, head_dim 64."""


def parse(changes: dict[str, Any]) -> Any:
    return parse_model_config({**CONFIGS["llama"], **changes}, "config.json")


@pytest.mark.parametrize(
    "case", RECORDED["cases"], ids=lambda c: f"{c['rope_parameters']['rope_type']}-{c['positions']}"
)
def test_frequencies_equal_the_record(case: dict[str, Any]) -> None:
    head_dim = RECORDED["head_dim"]
    config = parse({"head_dim": head_dim, **{k: case[k] for k in ("rope_parameters", "max_position_embeddings")}})
    frequencies = inverse_frequencies(config.rope, head_dim, case["positions"])
    assert np.allclose(frequencies, case["inverse_frequencies"], rtol=5e-7, atol=0)
    assert config.rope.attention_factor == pytest.approx(case["attention_factor"], rel=1e-12)


def test_the_record_covers_every_scaling() -> None:
    kinds = {case["rope_parameters"]["rope_type"] for case in RECORDED["cases"]}
    assert kinds == {"linear", "dynamic", "llama3", "yarn", "longrope"}


def test_tables_hold_cos_and_sin_of_position_times_frequency() -> None:
    config = parse({})
    cos, sin = rope_tables(config, 40)
    assert cos.shape == sin.shape == (40, 16)
    assert cos.dtype == np.float32
    for position in (0, 1, 39):
        for pair in range(8):
            angle = position / 10000 ** (2 * pair / 16)
            assert cos[position, pair] == cos[position, pair + 8] == pytest.approx(np.cos(angle), abs=1e-7)
            assert sin[position, pair] == sin[position, pair + 8] == pytest.approx(np.sin(angle), abs=1e-7)


def test_the_attention_factor_multiplies_both_tables() -> None:
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
    config = parse({"rope_scaling": scaling})
    cos, sin = rope_tables(config, 8)
    assert np.allclose(cos**2 + sin**2, config.rope.attention_factor**2, rtol=1e-6)
    assert config.rope.attention_factor > 1.1
