"""The requests of a spool, put together part by part: of a wave of any size only a part is in memory.

A worker reports what was done in half a second or a whole one, so a batch has requests of a few thousand arrivals that
lie together, and of some earlier ones that took long. Which stretches of arrivals it has requests of is noted while the
spool is read through; a part is then put together of those batches alone that have some of its arrivals.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from inference_benchmarker.plan.retries import MOST_RETRIES
from inference_benchmarker.records.batch import packed_sections, split_batch
from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.packed import WorkerColumns, unpacked
from inference_benchmarker.records.parts import PART
from inference_benchmarker.system.files import most_in_memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from inference_benchmarker.wave.spool.spool import SpoolFrames

    Int64 = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

MOST_BYTES = 1 << 25
"""Bytes of the reports that a part is put together of, where no stretch alone has more: streams have many gaps."""
MOST_AT_ONCE = 8 * MOST_BYTES
"""Bytes of the reports of a wave that is held in memory as a whole, where it has no more requests than a part."""
_IN_TABLE = 6  # a part in memory, its columns beside its reports, takes about so many times what was reported
_MOST_READ = 64  # times that a spool is read again: a batch is read for each part that has some of its requests


class Batch(NamedTuple):
    """A batch of so many bytes: the number of its spool, where it stands there, and of which worker it is.

    ``repeats``: how many of its requests were not the first of their arrival.
    """

    spool: int
    place: int
    worker: int
    repeats: int
    size: int


@dataclass(frozen=True, slots=True)
class Reporter:
    """A worker, with all the names that the numbers in its reports mean."""

    worker: int
    labels: list[str]
    errors: list[str]
    finish_reasons: list[str]
    metrics: list[str]

    def columns(self, sections: Sequence[memoryview], attempts: Int64) -> WorkerColumns:
        """Reports of the worker, with its names."""
        return WorkerColumns(
            worker=self.worker,
            labels=self.labels,
            errors=self.errors,
            finish_reasons=self.finish_reasons,
            attempts=attempts,
            metric_names=self.metrics,
            **unpacked(sections),
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """The arrivals from ``first`` on, before ``stop``: the number of their requests, and the batches that have some."""

    first: int
    stop: int
    rows: int
    batches: Int64


class BatchIndex:
    """The batches of a spool: their places, and how many requests of which stretches of arrivals each has."""

    def __init__(self, part: int = PART) -> None:
        self._part = part
        self._stretch = max(part // 8, 1)
        self._batches = array("q")  # of each ``_Batch``'s fields
        self._touched = array("q")  # a stretch, a batch, its requests of that stretch, their bytes
        self._most_turns = 1
        self.rows = 0
        self.bytes = 0

    def add(self, index: Int64, batch: Batch, most_turns: int = 1) -> None:
        """Note a batch with the requests of these arrivals, of so many turns at most."""
        if not len(index):
            return
        self._most_turns = max(self._most_turns, most_turns)
        number, size = len(self._batches) // len(batch), batch.size
        self._batches.extend(batch)
        for stretch, rows in _rows_by_stretch(index, self._stretch):
            self._touched.extend((stretch, number, rows, size * rows // len(index)))
        self.rows += len(index)
        self.bytes += size

    def batch(self, number: int) -> Batch:
        """A batch by its number, from 0 on, in the order of ``add``."""
        width = len(Batch._fields)
        return Batch(*self._batches[width * number : width * (number + 1)])

    def parts(self) -> list[_Part]:
        """The parts in which the requests can be held one after the other. ValueError where that cannot be.

        An arrival's requests are in one of them, the warm-up's arrivals and the window's in different ones.
        """
        if not self.rows:
            return [_Part(0, 0, 0, np.zeros(0, np.int64))]
        touched = np.array(self._touched, np.int64).reshape(-1, 4)
        touched = touched[np.argsort(touched[:, 0], kind="stable")]
        stretches, begins = np.unique(touched[:, 0], return_index=True)
        ends = np.append(begins[1:], len(touched))
        rows, sizes = (np.add.reduceat(touched[:, column], begins) for column in (2, 3))
        self._check_stretches(rows, sizes)
        spans = [(0, len(rows))] if self._is_one_part else self._spans(stretches < 0, rows, sizes)
        parts = [
            _Part(
                int(stretches[begin]) * self._stretch,
                (int(stretches[end - 1]) + 1) * self._stretch,
                int(rows[begin:end].sum()),
                np.unique(touched[begins[begin] : ends[end - 1], 1]),
            )
            for begin, end in spans
        ]
        sizes = np.array(self._batches, np.int64).reshape(-1, len(Batch._fields))[:, -1]
        if sum(int(sizes[part.batches].sum()) for part in parts) > _MOST_READ * self.bytes:
            raise ValueError("its reports have requests of arrivals that are far from each other")
        return parts

    @property
    def _is_one_part(self) -> bool:
        return self.rows <= self._part and self.bytes <= MOST_AT_ONCE

    def _spans(self, warmup: Mask, rows: Int64, sizes: Int64) -> Iterator[tuple[int, int]]:
        """The stretches of each part, the first and the one after the last.

        Of half as many requests as a part of a file may have: their reports are in memory beside their columns.
        """
        begin, in_part, taken = 0, 0, 0
        for number, (more, size) in enumerate(zip(rows.tolist(), sizes.tolist(), strict=True)):
            full = in_part + more > self._part // 2 or taken + size > MOST_BYTES or warmup[number] != warmup[begin]
            if full and number > begin:
                yield begin, number
                begin, in_part, taken = number, 0, 0
            in_part, taken = in_part + more, taken + size
        yield begin, len(rows)

    def _check_stretches(self, rows: Int64, sizes: Int64) -> None:
        if (most := int(rows.max())) > self._stretch * (1 + MOST_RETRIES) * self._most_turns:
            raise ValueError(f"{most:,} requests were reported of {self._stretch:,} arrivals")
        if int(sizes.max()) * _IN_TABLE > most_in_memory():
            raise ValueError(f"a part of {int(sizes.max()):,} bytes does not fit in this machine's memory")


class SpoolSource:
    """Reads the parts of a wave from its spools, which stay open as long as somebody has it; a ``Source``."""

    def __init__(self, frames: Sequence[SpoolFrames | None], index: BatchIndex, reporters: Sequence[Reporter]) -> None:
        self._frames, self._index, self._reporters = frames, index, reporters
        self._parts = index.parts()
        self.lengths = [part.rows for part in self._parts]
        self.metrics = tuple(sorted({name for reporter in reporters for name in reporter.metrics}))

    def read(self, part: int, columns: Sequence[str]) -> Records:
        """Put a part together; ValueError where the spool is not what it was."""
        chosen = self._parts[part]
        records = Records.of_workers(self._reported(chosen))
        if len(records) != chosen.rows:
            raise ValueError("a part of it changed")
        return Records(records.table.select(list(columns))) if columns else records

    def _reported(self, part: _Part) -> Iterator[WorkerColumns]:
        batches: dict[int, list[Batch]] = {}
        for batch in map(self._index.batch, part.batches.tolist()):
            batches.setdefault(batch.worker, []).append(batch)
        for reporter in self._reporters:
            own = (self._columns(reporter, batch) for batch in batches.get(reporter.worker, ()))
            yield _together(reporter, (columns.between(part.first, part.stop) for columns in own))

    def _columns(self, reporter: Reporter, batch: Batch) -> WorkerColumns:
        frames = self._frames[batch.spool]
        assert frames is not None, "it was read before"
        data = frames.data(batch.place)
        repeats = split_batch(data)[0]["attempts"] if batch.repeats else []
        return reporter.columns(packed_sections(data), np.array(repeats, np.int64).reshape(-1, 2))


def _together(reporter: Reporter, batches: Iterable[WorkerColumns]) -> WorkerColumns:
    """A worker's batches as one."""
    sections: list[list[memoryview]] = []
    attempts, rows = [np.zeros((0, 2), np.int64)], 0
    for batch in batches:
        metrics = batch.metrics.copy() if rows else batch.metrics
        if rows:
            metrics["row"] += rows
        packed = (batch.base, batch.streams, batch.gaps, metrics, batch.turns)
        sections.append([each.view(np.uint8).data for each in packed])
        attempts.append(batch.attempts + np.array((rows, 0)))
        rows += len(batch.base)
    joined = [memoryview(b"".join(own)) for own in zip(*sections, strict=True)] or [memoryview(b"")] * 5
    return reporter.columns(joined, np.concatenate(attempts))


def _rows_by_stretch(index: Int64, stretch: int) -> Iterable[tuple[int, int]]:
    """The stretches that these arrivals are in, and how many of them in each."""
    first, last = int(index.min()) // stretch, int(index.max()) // stretch
    if first == last:
        return [(first, len(index))]
    stretches, counts = np.unique(index // stretch, return_counts=True)
    return zip(stretches.tolist(), counts.tolist(), strict=True)
