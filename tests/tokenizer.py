"""A tokenizer small enough for a test and made without a network: a token for each word, and for each sign."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_UNKNOWN = "[UNK]"


def save_tokenizer(folder: Path) -> Path:
    """Write its two files into a new folder and return that."""
    folder.mkdir()
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    vocabulary = {_UNKNOWN: 0, **{str(number): number + 1 for number in range(100)}}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [{"id": 0, "content": _UNKNOWN, **special}],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": _UNKNOWN},
    }
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": _UNKNOWN}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder
