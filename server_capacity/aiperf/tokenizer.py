"""The tokenizer that aiperf counts with: which one that is, and whether it can be loaded, before any load is sent."""

from __future__ import annotations

import json
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from inference_benchmarker.words.redact import excerpt, redact, secret_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from server_capacity.aiperf.arguments import Value

BUILTIN = "builtin"
ADVICE = 'Give the folder of one: --aiperf-args \'{"tokenizer": "FOLDER"}\'.'
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
_TOKENIZED = ("chat", "completions", "embeddings")
LOAD_S = 90.0
TELL_S = (2.0, 10.0)
_LONGEST = 200
_CANNOT = 9

# The program that aiperf's own Python runs; whatever else goes wrong in it is no verdict on the tokenizer. For a model
# whose name is a placeholder aiperf takes a tokenizer of its own, "builtin", and fetches its vocabulary once.
_LOADER = f"""
import json, sys
name, is_model, revision, trusted = json.load(sys.stdin)
from aiperf.common.exceptions import TokenizerError
from aiperf.common.tokenizer import AmbiguousTokenizerNameError, Tokenizer
from aiperf.common.tokenizer_fake_names import is_fake_model_name
if is_model and is_fake_model_name(name):
    name = "{BUILTIN}"
try:
    Tokenizer.from_pretrained(name, trust_remote_code=trusted, revision=revision)
except (TokenizerError, AmbiguousTokenizerNameError, OSError) as error:
    print(name, error, sep=chr(10))
    sys.exit({_CANNOT})
"""


def missing_folder(name: str) -> str | None:
    """The problem of a tokenizer that is given by its path, where nothing is there; None for a name on a hub."""
    path = Path(name)
    is_path = name.startswith((".", "~")) or path.is_absolute() or len(path.parts) > 2 or path.is_file()
    if not is_path or path.is_dir():
        return None
    wrong = "this is a file" if path.is_file() else "there is no such folder"
    return f"tokenizer {name}: {wrong}; give the folder of the model's tokenizer.json and tokenizer_config.json."


def environment_for(tokenizer: str | None, environment: Mapping[str, str]) -> dict[str, str]:
    """The user's; for a folder not offline, because aiperf 0.13 would then take it for a name on the hub."""
    local = tokenizer is not None and Path(tokenizer).is_dir()
    return {name: value for name, value in environment.items() if not (local and name in _OFFLINE)}


def in_log(text: str) -> str | None:
    """The tokenizer that was aiperf's undoing, by what it logged."""
    found = re.search(r"Failed to load tokenizer '([^']*)'", text)
    return None if found is None else found[1]


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A tokenizer's name or folder, and how it is loaded. ``is_model``: only the model is named."""

    name: str
    is_model: bool
    revision: str
    trusted: bool

    @classmethod
    def of(cls, flags: Mapping[str, Value]) -> Self | None:
        """The one that aiperf will load for these flags; None where that is not certain."""
        tokenizer = flags.get("tokenizer")
        name = tokenizer or flags.get("model")
        if not isinstance(name, str) or "," in name or flags.get("endpoint-type", "chat") not in _TOKENIZED:
            return None
        revision = str(flags.get("tokenizer-revision") or "main")
        return cls(name, not tokenizer, revision, bool(flags.get("tokenizer-trust-remote-code")))

    def problem(self, python: Path, environment: Mapping[str, str], say: Callable[[str], None]) -> str | None:
        """Why it cannot be loaded; None where it can, or where nobody knows.

        It takes a second or two, and almost a minute where no hub can be reached. What comes from a hub is kept in its
        cache, from where aiperf takes it.
        """
        with subprocess.Popen(
            [python, "-P", "-c", _LOADER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment_for(self.name, environment),
        ) as process:
            try:
                said = self._wait(process, say)
            finally:
                process.kill()
        if said is None or process.returncode != _CANNOT:
            return None
        return self._failure_text(redact(said.decode(errors="replace"), secret_values(environment)))

    def _wait(self, process: subprocess.Popen[bytes], say: Callable[[str], None]) -> bytes | None:
        """Its output, once it has ended; None where that takes too long."""
        line: bytes | None = json.dumps([self.name, self.is_model, self.revision, self.trusted]).encode()
        begun = time.monotonic()
        wait_s, next_s = TELL_S
        while (spent_s := time.monotonic() - begun) < LOAD_S:
            try:
                return process.communicate(line, timeout=wait_s)[0]
            except subprocess.TimeoutExpired:
                say(f"aiperf: loading the tokenizer {self.name!r} ... {spent_s + wait_s:.0f} s")
                line, wait_s = None, next_s
        return None

    def _failure_text(self, said: str) -> str:
        name, _, text = said.partition("\n")
        reason = " ".join(text.split()).removeprefix(f"Failed to load tokenizer '{name}': ")
        return f"aiperf cannot load the tokenizer {name!r}{self._whose(name)}: {excerpt(reason, _LONGEST)}"

    def _whose(self, name: str) -> str:
        if name == BUILTIN:
            why = f", which it takes for the placeholder {self.name!r} as the model's name," if self.is_model else ""
            return f"{why} and fetches from the network once" if why else ", which it fetches from the network once"
        whose = "the model's name; " if self.is_model else ""
        return "" if Path(name).is_dir() else f" ({whose}there is no folder of that name)"
