"""Where the tokenizer of a Hugging Face directory is."""

from pathlib import Path

from core.records import Record


class TokenizerFiles(Record):
    """Paths of tokenizer files; None where there is none. Nothing is parsed here."""

    fast: Path | None = None
    """tokenizer.json, which the tokenizers library reads."""
    config: Path | None = None
    """tokenizer_config.json: special tokens, often the chat template."""
    chat_template: Path | None = None
    """chat_template.jinja (or .json), in newer checkpoints."""
    sentencepiece: Path | None = None
    vocabulary: Path | None = None
    merges: Path | None = None


def find_tokenizer_files(directory: Path) -> TokenizerFiles:
    """Return the tokenizer files that a directory has."""

    def first(*names: str) -> Path | None:
        return next((directory / name for name in names if (directory / name).is_file()), None)

    return TokenizerFiles(
        fast=first("tokenizer.json"),
        config=first("tokenizer_config.json"),
        chat_template=first("chat_template.jinja", "chat_template.json"),
        sentencepiece=first("tokenizer.model"),
        vocabulary=first("vocab.json"),
        merges=first("merges.txt"),
    )
