"""Goes through a wave's records once for all that are to be added up. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.records.columns import Int64, Records
    from inference_benchmarker.records.parts import InParts


class Gatherer(Protocol):
    """Something that is added up: what it needs of the records' columns, and how a part of them is taken in."""

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns."""

    def add(self, part: Records) -> None:
        """Take in some more records."""


def gather(records: InParts, *gatherers: Gatherer | None) -> None:
    """Show each part of the records to each of the gatherers that are not None."""
    wanted = [each for each in gatherers if each is not None]
    columns = dict.fromkeys(name for each in wanted for name in each.columns)
    for part in records.parts(*columns):
        for each in wanted:
            each.add(part)


class Numbering:
    """Numbers for names, from 0, whatever codes stand for them in each part's dictionary."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    @property
    def names(self) -> list[str]:
        """Each name, in the order of their numbers."""
        return list(self._numbers)

    def of(self, codes: Int64, names: Sequence[str]) -> Int64:
        """The number of each row's name, of no name that of ``""``; from ``Records.coded``."""
        lines = ("",) if len(codes) and codes.min() < 0 else ()
        numbers = [self._numbers.setdefault(name, len(self._numbers)) for name in (*names, *lines)]
        found: Int64 = np.array(numbers, np.int64)[codes]
        return found


def summed(counts: Int64, more: Int64) -> Int64:
    """Two rows of counts as one, however long each is."""
    longer, shorter = (counts, more) if len(counts) > len(more) else (more, counts)
    both = longer.copy()
    both[: len(shorter)] += shorter
    return both
