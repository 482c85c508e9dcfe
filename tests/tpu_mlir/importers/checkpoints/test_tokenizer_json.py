"""The tokenizer of a GGUF file, given to the tokenizers library, cuts texts as llama.cpp does."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from core.errors import BadInput
from tpu_mlir.importers.checkpoints.checkpoint import open_checkpoint
from tpu_mlir.importers.checkpoints.gguf_file import packaged_smollm2
from tpu_mlir.importers.checkpoints.gguf_tokenizer import GgufTokenizer
from tpu_mlir.importers.checkpoints.tokenizer_json import SPLITS, tokenizer_json

RECORDED = json.loads((Path(__file__).parent / "data" / "smollm2_tokens.json").read_text())
"""Texts and their token ids in SmolLM2, computed by llama.cpp."""


def tiny(pretokenizer: str = "default", add_bos: bool = False, kind: str = "gpt2") -> GgufTokenizer:
    letters = ["<s>", *"abcdefghijklmnopqrstuvwxyz0123456789", "Ġ", "ab"]
    return GgufTokenizer(
        kind=kind,
        pretokenizer=pretokenizer,
        tokens=tuple(letters),
        token_types=(3,) + (1,) * (len(letters) - 1),
        merges=("a b",),
        bos_token_id=0,
        add_bos=add_bos,
    )


def test_smollm2_cuts_texts_as_recorded_and_puts_them_together_again() -> None:
    source = open_checkpoint(packaged_smollm2()).tokenizer
    assert isinstance(source, GgufTokenizer)
    tokenizer = Tokenizer.from_str(tokenizer_json(source))
    for row in RECORDED:
        assert tokenizer.encode(row["text"]).ids == row["ids"], row["text"]
        assert tokenizer.decode(row["ids"], skip_special_tokens=False) == row["text"]


@pytest.mark.parametrize("rule", SPLITS)
def test_every_rule_is_a_valid_tokenizer(rule: str) -> None:
    tokenizer = Tokenizer.from_str(tokenizer_json(tiny(rule)))
    assert tokenizer.encode("ab 12").tokens == ["ab", "Ġ", "1", "2"]
    assert tokenizer.decode(tokenizer.encode("ab 12").ids) == "ab 12"


def test_digits_are_cut_by_the_rule() -> None:
    words = {
        rule: [
            piece for piece, _ in Tokenizer.from_str(tokenizer_json(tiny(rule))).pre_tokenizer.pre_tokenize_str("12345")
        ]
        for rule in ("gpt-2", "qwen2", "llama-bpe", "smollm")
    }
    assert words["gpt-2"] == ["12345"]
    assert words["llama-bpe"] == ["123", "45"]
    assert words["qwen2"] == words["smollm"] == ["1", "2", "3", "4", "5"]


def test_the_first_token_is_added_when_the_file_says_so() -> None:
    assert Tokenizer.from_str(tokenizer_json(tiny(add_bos=True))).encode("ab").tokens == ["<s>", "ab"]
    assert Tokenizer.from_str(tokenizer_json(tiny())).encode("ab").tokens == ["ab"]


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(BadInput, match="splits by the rule 'tekken', which is not known"):
        tokenizer_json(tiny("tekken"))
    with pytest.raises(BadInput, match="SentencePiece"):
        tokenizer_json(tiny(kind="llama"))
