"""A GGUF tokenizer as the tokenizer.json that the tokenizers library reads."""

import json
from typing import Any

from core.errors import BadInput
from tpu_mlir.importers.checkpoints.gguf_tokenizer import CONTROL, GgufTokenizer

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
SPLITS: dict[str, tuple[str, ...]] = {
    "default": (GPT2,),
    "gpt-2": (GPT2,),
    "smollm": (r"\p{N}", GPT2),
    "qwen2": (CL100K + r"\p{N}" + TAIL,),
    "llama-bpe": (CL100K + r"\p{N}{1,3}" + TAIL,),
}
"""Patterns that cut a text into words, one after the other, by the name of the rule in GGUF files."""


def tokenizer_json(tokenizer: GgufTokenizer) -> str:
    """Return the tokenizer as the text of a tokenizer.json.

    Raises:
        BadInput: it is of the SentencePiece kind, or its splitting rule is not known.
    """
    if tokenizer.kind != "gpt2":
        raise BadInput(
            "The GGUF file has a SentencePiece tokenizer, which is not converted.",
            "Use the Hugging Face directory of the model: its tokenizer.json is read as it is.",
        )
    if tokenizer.pretokenizer not in SPLITS:
        raise BadInput(
            f"The GGUF file's tokenizer splits by the rule {tokenizer.pretokenizer!r}, which is not known.",
            f"Known: {', '.join(SPLITS)}. Or use the Hugging Face directory of the model.",
        )
    pieces = [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        for pattern in SPLITS[tokenizer.pretokenizer]
    ]
    bytes_to_letters = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [_added(tokenizer, token, index) for token, index in tokenizer.special_tokens.items()],
            "normalizer": {"type": "NFC"} if tokenizer.pretokenizer == "qwen2" else None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*pieces, bytes_to_letters]},
            "post_processor": _bos(tokenizer),
            "decoder": bytes_to_letters,
            "model": {
                "type": "BPE",
                "vocab": {token: index for index, token in enumerate(tokenizer.tokens)},
                "merges": [merge.split(" ", 1) for merge in tokenizer.merges],
                "ignore_merges": tokenizer.pretokenizer == "llama-bpe",
            },
        }
    )


def _added(tokenizer: GgufTokenizer, token: str, index: int) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": index, "content": token, "special": tokenizer.token_types[index] == CONTROL, **flags}


def _bos(tokenizer: GgufTokenizer) -> dict[str, Any] | None:
    if not tokenizer.add_bos or tokenizer.bos_token_id is None:
        return None
    token = tokenizer.tokens[tokenizer.bos_token_id]
    first = {"SpecialToken": {"id": token, "type_id": 0}}
    return {
        "type": "TemplateProcessing",
        "single": [first, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [first, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {token: {"id": token, "ids": [tokenizer.bos_token_id], "tokens": [token]}},
    }
