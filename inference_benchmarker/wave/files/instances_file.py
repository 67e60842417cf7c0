"""``instances.jsonl``: the server's instances as they were followed, a line as it comes, read back whoever wrote it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.json_file import UNREADABLE, foreign
from inference_benchmarker.data.json_text import parse_json
from inference_benchmarker.facts.instances import gathered
from inference_benchmarker.system.files import add_text, read_bytes, replace_file
from inference_benchmarker.words.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from inference_benchmarker.facts.instances import Followed

MOST_BYTES, _MOST_LINES, _MOST_FOLLOWED, _MOST_EVENTS = 64 * MIB, 600_000, 1_000, 5_000
"""A count every five seconds for a month is most of the lines. ``_MOST_TOLD``: events and remarks of one server."""
_MOST_OF_A_LINE = 10_000


def add_line(path: Path, line: dict[str, Any]) -> bool:
    """Add a line at once, so that it outlives us; False where the file does not take it."""
    return add_text(path, _text(line))


def write_instances(path: Path, followed: Iterable[Followed]) -> None:
    """Write the file anew. OSError where it cannot be."""
    replace_file(path, "".join(_text(line) for each in followed for line in each.lines()))


def read_instances(path: Path) -> tuple[Followed, ...]:
    """The file's content, nothing where there is none. BenchmarkError for a damaged one; its end may be cut off."""
    if not os.path.lexists(path):
        return ()
    try:
        whole, _, _ = read_bytes(path, MOST_BYTES).rpartition(b"\n")
        lines = whole.split(b"\n") if whole else []
        _check_lines(lines)
        found = gathered(map(parse_json, lines))
        if len(found) > _MOST_FOLLOWED:
            raise ValueError(f"has {len(found):,} servers")
        if (most := max((len(each.events) + len(each.remarks) for each in found), default=0)) > _MOST_EVENTS:
            raise ValueError(f"has {most:,} events and remarks of one server")
    except (OSError, *UNREADABLE) as error:
        raise foreign(path, error) from None
    return found


def _check_lines(lines: list[bytes]) -> None:
    if len(lines) > _MOST_LINES:
        raise ValueError(f"has {len(lines):,} lines")
    if (longest := max(map(len, lines), default=0)) > _MOST_OF_A_LINE:
        raise ValueError(f"has a line of {longest:,} bytes")


def _text(line: dict[str, Any]) -> str:
    return json.dumps(line, allow_nan=False) + "\n"
