"""A wave's records, gone through part by part: of a wave of any size only a part is in memory. Pure.

``Records`` is one table in memory. Whoever computes on a wave takes its ``parts``, names the columns that are needed,
and adds up what each part tells; the same code then serves a thousand requests and a hundred million.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

from inference_benchmarker.system.progress import tell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.records.columns import Records
    from inference_benchmarker.records.record import RequestRecord

PART = 1 << 17
"""About as many records are in memory at a time: a column of whole numbers of them takes 1 MiB."""


class InParts(Protocol):
    """The records of a wave, or of a stretch of it, sorted by arrival index, then by turn, then by attempt.

    The requests of one arrival are in one part. ``parts`` gives ``Records`` that have the columns that were named, and
    maybe others; without names, all. ``arrived``, ``begun`` and ``lasts`` need ``ROW_KEY`` and ``due``.
    """

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the users' metrics that their requests reported."""

    def __len__(self) -> int:
        """The number of records."""

    def __iter__(self) -> Iterator[RequestRecord]:
        """Each of them."""

    def parts(self, *columns: str) -> Iterator[Records]:
        """Parts of about ``PART`` records, one after the other; none that is empty."""

    def between(self, first: int, stop: int) -> InParts:
        """The records at these places."""

    def since(self, start_ns: int) -> InParts:
        """The same records on a clock that begins that much later."""


class Source(Protocol):
    """A place that parts are read from, again and again."""

    @property
    def lengths(self) -> Sequence[int]:
        """The number of records in each part."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the users' metrics in any part."""

    def read(self, part: int, columns: Sequence[str]) -> Records:
        """The records of a part, with some columns of them; without names, with all."""


class RecordParts:
    """Records that stay where they are, ``InParts``, and are read when somebody goes through them."""

    def __init__(self, source: Source, first: int = 0, stop: int | None = None, start_ns: int = 0) -> None:
        self._source = source
        self._edges = [0, *accumulate(source.lengths)]
        self._first, self._stop = first, self._edges[-1] if stop is None else stop
        self._start_ns = start_ns

    @property
    def metrics(self) -> tuple[str, ...]:
        """As ``InParts`` says."""
        return self._source.metrics

    def __len__(self) -> int:
        return self._stop - self._first

    def __iter__(self) -> Iterator[RequestRecord]:
        for part in self.parts():
            yield from part

    def parts(self, *columns: str) -> Iterator[Records]:
        """As ``InParts`` says."""
        what = f"Going through {len(self):,} requests"
        try:
            for number, (begin, end) in enumerate(zip(self._edges[:-1], self._edges[1:], strict=True)):
                first, stop = max(self._first, begin), min(self._stop, end)
                if first < stop:
                    part = self._source.read(number, columns)
                    if (first, stop) != (begin, end):
                        part = part.between(first - begin, stop - begin)
                    yield part.since(self._start_ns) if self._start_ns else part
                    del part  # or it would be in memory beside the next
                    tell(what, stop - self._first, len(self))
        finally:
            tell(what, len(self), len(self))

    def between(self, first: int, stop: int) -> RecordParts:
        """As ``InParts`` says; places that are not there are left out."""
        first, stop = (min(max(place, 0), len(self)) + self._first for place in (first, stop))
        return RecordParts(self._source, first, max(first, stop), self._start_ns)

    def since(self, start_ns: int) -> RecordParts:
        """As ``InParts`` says."""
        return RecordParts(self._source, self._first, self._stop, self._start_ns + start_ns)
