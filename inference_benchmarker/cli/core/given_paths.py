"""Which paths a user gave: one of them that is closed is the user's matter, and one that we made is ours.

What a stored result that is read names was given with it: the search in a plan, the factories file of a run.
"""

from __future__ import annotations

import json
from contextlib import suppress
from os.path import abspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.system.files import read_bytes
from inference_benchmarker.words.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WRITTEN = "--output-dir"  # what lies below it we made
_CONFIG = "--config"
_MOST = 16 * MIB  # of a result


def was_given(path: str, arguments: Sequence[str]) -> bool:
    """Tells whether a path, or a folder above it that is read, stands in the arguments, or in files that they name.

    These are the ``--config``, and the results that are read.
    """
    place = Path(abspath(path))  # noqa: PTH100 - resolve() would look into what is closed
    above = {place, *place.parents}
    given = list(_given(arguments))
    return any(each == place or (read and each in above) for each, read in given) or any(
        named in above for each, read in given if read for named in _named_in(each)
    )


def _given(arguments: Sequence[str]) -> Iterator[tuple[Path, bool]]:
    """Each place that a word may name, and whether a command reads what is in it."""
    for flag, word in _words(arguments):
        for text in (word, word.partition("=")[2], word.rpartition("@")[2]):
            if text:
                yield Path(abspath(text)), flag != _WRITTEN  # noqa: PTH100


def _named_in(place: Path) -> Iterator[Path]:
    """The paths that the results in a folder name: from the root on, or from their folder or the current one."""
    for file in [place] if place.suffix == ".json" else place.glob("*.json"):
        with suppress(OSError, ValueError, RecursionError):
            for text in _texts(json.loads(read_bytes(file, _MOST))):
                if "/" in text.strip("/") and "\0" not in text:
                    yield from (Path(abspath(folder / text)) for folder in (file.parent, Path()))  # noqa: PTH100


def _texts(value: Any) -> Iterator[str]:
    """The texts in what JSON holds."""
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(each)


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
