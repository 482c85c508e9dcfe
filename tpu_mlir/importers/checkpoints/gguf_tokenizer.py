"""The tokenizer inside a GGUF file."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ValidationError

from core.errors import BadInput
from core.records import Record
from tpu_mlir.importers.checkpoints.json_values import first_problem

Kind = Literal["gpt2", "llama"]
CONTROL, USER_DEFINED = 3, 4
"""Token types of special tokens."""


class GgufTokenizer(Record):
    """A vocabulary with merges (gpt2: byte-level BPE) or scores (llama: SentencePiece)."""

    kind: Kind
    pretokenizer: str
    """Name of the splitting rule, such as "smollm" or "qwen2"."""
    tokens: tuple[str, ...]
    token_types: tuple[int, ...]
    merges: tuple[str, ...] = ()
    """Pairs, each two pieces with a space between, best first."""
    scores: tuple[float, ...] = ()
    bos_token_id: int | None = None
    eos_token_id: int | None = None
    unknown_token_id: int | None = None
    padding_token_id: int | None = None
    add_bos: bool = False
    add_space_prefix: bool = False
    chat_template: str | None = None

    @property
    def special_tokens(self) -> dict[str, int]:
        """Tokens that text must not be split inside of, with their ids."""
        kinds = zip(self.tokens, self.token_types, strict=True)
        return {token: index for index, (token, kind) in enumerate(kinds) if kind in (CONTROL, USER_DEFINED)}


def read_gguf_tokenizer(metadata: Mapping[str, Any], source: str) -> GgufTokenizer:
    """Return the tokenizer of a GGUF file.

    Raises:
        BadInput: it is of an unknown kind, has no tokens, or is damaged; names the file.
    """

    def key(name: str, default: Any = None) -> Any:
        return metadata.get(f"tokenizer.ggml.{name}", default)

    kind = key("model")
    if kind not in ("gpt2", "llama"):
        raise BadInput(
            f"{source}: tokenizer {kind!r} is not supported.", "Supported: gpt2 (BPE) and llama (SentencePiece)."
        )
    tokens = key("tokens")
    if not isinstance(tokens, list) or not tokens:
        raise BadInput(f"{source}: the tokenizer has no tokens.", "Convert the model again.")
    types = key("token_type") or [1] * len(tokens)
    if not isinstance(types, list) or len(types) != len(tokens):
        raise BadInput(f"{source}: the tokenizer's token_type does not fit its {len(tokens)} tokens.")
    try:
        return GgufTokenizer(
            kind=kind,
            pretokenizer=str(key("pre", "default")),
            tokens=tuple(tokens),
            token_types=tuple(types),
            merges=tuple(key("merges") or ()),
            scores=tuple(key("scores") or ()),
            bos_token_id=key("bos_token_id"),
            eos_token_id=key("eos_token_id"),
            unknown_token_id=key("unknown_token_id"),
            padding_token_id=key("padding_token_id"),
            add_bos=bool(key("add_bos_token", kind == "llama")),
            add_space_prefix=bool(key("add_space_prefix", kind == "llama")),
            chat_template=metadata.get("tokenizer.chat_template"),
        )
    except (ValidationError, TypeError) as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else str(error)
        raise BadInput(f"{source}: the tokenizer is damaged: {problem}.", "Download the file again.") from error
