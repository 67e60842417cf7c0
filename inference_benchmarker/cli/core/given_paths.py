"""Which paths a user gave: one of them that is closed is the user's matter, and one that we made is ours."""

from __future__ import annotations

from contextlib import suppress
from os.path import abspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WRITTEN = "--output-dir"  # what lies below it we made
_CONFIG = "--config"


def was_given(path: str, arguments: Sequence[str]) -> bool:
    """Tells whether a path, or a folder above it that is read, stands in the arguments or in their ``--config``."""
    place = Path(abspath(path))  # noqa: PTH100 - resolve() would look into what is closed
    return any(place == given or (read and given in place.parents) for given, read in _given(arguments))


def _given(arguments: Sequence[str]) -> Iterator[tuple[Path, bool]]:
    """Each place that a word may name, and whether a command reads what is in it."""
    for flag, word in _words(arguments):
        for text in (word, word.partition("=")[2], word.rpartition("@")[2]):
            if text:
                yield Path(abspath(text)), flag != _WRITTEN  # noqa: PTH100


def _words(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each word with the flag before it; so are those of a configuration file."""
    flag = ""
    for argument in arguments:
        name, equals, value = argument.partition("=") if argument.startswith("--") else (flag, "", argument)
        if not equals and argument.startswith("--"):
            flag = name
            continue
        yield name, value
        if name == _CONFIG:
            yield from _configured(Path(value))
        flag = ""


def _configured(path: Path) -> Iterator[tuple[str, str]]:
    from inference_benchmarker.toml_text import read_toml

    data: dict[str, Any] = {}
    with suppress(OSError, ValueError, RecursionError):
        data = read_toml(path)
    for key, value in data.items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str):
                yield f"--{key.replace('_', '-')}", each
