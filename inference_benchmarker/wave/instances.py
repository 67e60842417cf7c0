"""``instances.jsonl``: the server's instances as they were followed, a line as it comes, read back whoever wrote it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from inference_benchmarker.facts.instances import gathered
from inference_benchmarker.files import read_bytes, replace_file
from inference_benchmarker.json_file import UNREADABLE, foreign
from inference_benchmarker.json_text import parse_json
from inference_benchmarker.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from inference_benchmarker.facts.instances import Followed

MOST_BYTES, _MOST_FOLLOWED = 64 * MIB, 1_000
"""A count every five seconds for a month is a good half of it."""


def add_line(path: Path, line: dict[str, Any]) -> bool:
    """Add a line at once, so that it outlives us; False where the file does not take it."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(_text(line))
    except OSError:
        return False
    return True


def write_instances(path: Path, followed: Iterable[Followed]) -> None:
    """Write the file anew. OSError where it cannot be."""
    replace_file(path, "".join(_text(line) for each in followed for line in each.lines()))


def read_instances(path: Path) -> tuple[Followed, ...]:
    """The file's content, nothing where there is none. BenchmarkError for a damaged one; its end may be cut off."""
    if not os.path.lexists(path):
        return ()
    try:
        whole, _, _ = read_bytes(path, MOST_BYTES).rpartition(b"\n")
        found = gathered(parse_json(line) for line in whole.splitlines())
        if len(found) > _MOST_FOLLOWED:
            raise ValueError(f"has {len(found):,} servers")
    except (OSError, *UNREADABLE) as error:
        raise foreign(path, error) from None
    return found


def _text(line: dict[str, Any]) -> str:
    return json.dumps(line, allow_nan=False) + "\n"
