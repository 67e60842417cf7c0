"""Rows of a CSV file whose texts are foreign: no secrets, and nothing that a spreadsheet or a terminal obeys. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from inference_benchmarker.words.redact import excerpt
from inference_benchmarker.words.text import plain_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_LENGTH = 10_000
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last four are the same, full width


class Rows(Protocol):
    """Takes rows, as ``csv.writer`` makes one."""

    def writerow(self, row: Iterable[Any], /) -> Any:
        """Write one row."""


class CleanRows:
    """Hands rows on to a writer, their texts made clean."""

    def __init__(self, rows: Rows, also: Iterable[str] = ()) -> None:
        self._rows = rows
        also = tuple(also)
        # the same few texts come again every second
        self._clean = lru_cache(maxsize=4096)(lambda text: no_formula(plain_lines(excerpt(text, MAX_LENGTH, also))))

    def writerow(self, row: Iterable[Any], /) -> Any:
        """Write one row."""
        return self._rows.writerow([self._clean(cell) if isinstance(cell, str) else cell for cell in row])


def no_formula(text: str) -> str:
    """The text, with an apostrophe before what a spreadsheet would take for a formula; a number stays one."""
    if not text.startswith(("\t", "\r")) and not text.lstrip().startswith(_FORMULA):
        return text
    return text if _is_number(text) else f"'{text}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
