"""Records in parts of a few, each with no other columns than were asked for: as those of a large wave are read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.parts import RecordParts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.parts import InParts


class _Slices:
    def __init__(self, records: Records, rows: int) -> None:
        self._records = records
        firsts = np.flatnonzero(records.firsts)  # the requests of an arrival stay together
        self._edges = sorted(
            {0, len(records), *firsts[np.searchsorted(firsts, range(0, firsts[-1] + 1, rows))].tolist()}
            if len(firsts)
            else {0}
        )
        self.metrics = records.metrics
        self.lengths = np.diff(self._edges).tolist()

    def read(self, part: int, columns: Sequence[str]) -> Records:
        records = self._records.between(*self._edges[part : part + 2])
        return Records(records.table.select(list(columns))) if columns else records


def in_memory(records: InParts) -> Records:
    """The records of a small wave, which are one table."""
    assert isinstance(records, Records)
    return records


def in_parts(records: Records, rows: int = 7) -> RecordParts:
    """The same records in parts of about so many rows."""
    return RecordParts(_Slices(records, rows))


def parted(facts: WaveFacts, rows: int) -> WaveFacts:
    """The same wave with its records, and those of its warm-up, in parts."""
    return replace(
        facts, records=in_parts(in_memory(facts.records), rows), warmup=in_parts(in_memory(facts.warmup), rows)
    )
