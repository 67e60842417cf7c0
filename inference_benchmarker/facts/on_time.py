"""A wave as it would have been had this client sent nothing late: the same answers, each that much earlier. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from inference_benchmarker.records import arrow
from inference_benchmarker.records.columns import SCHEMA, Records
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Int64
    from inference_benchmarker.records.parts import InParts
    from inference_benchmarker.records.record import RequestRecord

_NEEDED = ("index", "due", "sent", "build_ns")
_AFTER = ("sent", "first_token", "first_answer", "last_token", "done")


class OnTime:
    """The requests without their lag where that is longer than ``least_ns``, ``InParts``.

    What follows in the same arrival, another turn or attempt, is due earlier by as much: it waited for the answer.
    """

    def __init__(self, records: InParts, least_ns: float) -> None:
        self._records, self._least_ns = records, least_ns

    @property
    def metrics(self) -> tuple[str, ...]:
        """As ``InParts`` says."""
        return self._records.metrics

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[RequestRecord]:
        for part in self.parts():
            yield from part

    def parts(self, *columns: str) -> Iterator[Records]:
        """As ``InParts`` says."""
        for part in self._records.parts(*dict.fromkeys((*columns, *_NEEDED) if columns else ())):
            yield _on_time(part, self._least_ns)

    def between(self, first: int, stop: int) -> OnTime:
        """As ``InParts`` says."""
        return OnTime(self._records.between(first, stop), self._least_ns)

    def since(self, start_ns: int) -> OnTime:
        """As ``InParts`` says."""
        return OnTime(self._records.since(start_ns), self._least_ns)


def on_time(facts: WaveFacts, least_s: float) -> WaveFacts:
    """The wave without the lags that are longer than this; requests that were counted are as they were."""
    return replace(facts, records=OnTime(facts.records, least_s * NS))


def lag_ns(part: Records) -> Int64:
    """The lag of each request, without the time that its payload took."""
    return part.int("sent") - part.int("build_ns") - part.int("due")


def _on_time(part: Records, least_ns: float) -> Records:
    own = lag_ns(part)
    own = np.where(own > least_ns, own, 0)
    if not own.any():
        return part
    index, so_far = part.int("index"), np.cumsum(own)
    firsts = np.append(True, index[1:] != index[:-1])
    by = so_far - (so_far - own)[np.flatnonzero(firsts)[np.cumsum(firsts) - 1]]
    table = part.table
    for name in (each for each in ("due", *_AFTER) if each in table.column_names):
        earlier = pc.subtract(table.column(name), arrow.column(by - own if name == "due" else by))
        table = table.set_column(table.column_names.index(name), SCHEMA.field(name), earlier)
    return Records(table)
