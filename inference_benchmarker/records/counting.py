"""A worker's side of a wave whose requests are counted: no row is reported but those of the slowest.

Beside what the live feed reports, its cells then have all that the summary of such a wave is made from: when in their
second requests were sent and over, sums of their times, and the times of failed and abandoned ones apart. What is
of no second (labels, finish reasons, the first instant of an error) is counted once for the wave. Pure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from heapq import heapify, heappush, heappushpop
from itertools import pairwise
from operator import itemgetter, or_, sub
from typing import TYPE_CHECKING, Any

from inference_benchmarker.records.batch import BASE, FINISH_MASK, FINISH_SHIFT, OUTCOME
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.feed_writer import (
    Columns,
    FeedWriter,
    Group,
    OpenCell,
    Packed,
    Places,
    RequestFields,
)
from inference_benchmarker.records.histogram import Histogram, halves, tally
from inference_benchmarker.records.record import ABANDONED, FAILED, NONE, OK, OUTCOMES
from inference_benchmarker.records.response import MOST_TOKENS
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

MOST_SLOWEST = 1_000
MOST_TIMED_LABELS = 1_000
"""Labels of a worker whose times are counted; of those that come later only the requests are."""
BINS = 50
BIN_NS = NS // BINS
"""Instants are counted to 20 ms."""
WARMUP = -1
"""The stage of the warm-up's requests."""

LABEL_SHIFT = 16
"""A label's number stands above the upper half of a float by which its times are counted."""
_MOST_TIMED_KEY = MOST_TIMED_LABELS + 1 << LABEL_SHIFT


@dataclass(slots=True)
class _CountCell(OpenCell):
    """``bins``: when something happened, in 20 ms after wave start, and how often."""

    bins: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    def to_json(self) -> dict[str, Any]:
        """As of its base, and each bin as its place within the second."""
        bins = {
            name: Histogram({each % BINS: count for each, count in found.items()}).to_json()
            for name, found in self.bins.items()
        }
        return {**OpenCell.to_json(self), **bins}


class CountFeed(FeedWriter):
    """Takes requests as the live feed does, and counts all that is reported of them.

    ``warmup``: there are requests of a warm-up, which are counted apart. ``on_forget`` is called where there was no
    memory to count some requests: of what came since ``mark_reported`` nothing is counted then.
    """

    def __init__(self, *, warmup: bool = False) -> None:
        super().__init__(_CountCell)
        self._warmup = warmup
        self._warmup_rows: list[RequestFields] = []
        self._label_outcomes: defaultdict[int, Counter[int]] = defaultdict(Counter)
        self._label_times: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._halves: dict[str, list[int]] = {}
        self._finish: Counter[int] = Counter()
        self._first: dict[int, int] = {}
        self._reported_errors = 0
        self._last_due = self._last_done = 0
        self.on_forget: Callable[[], object] = lambda: None

    def count(self) -> None:
        """Count the rows and sendings that are waiting, as its base does."""
        self._warmup_rows = (
            [row for row in map(RequestFields._make, self.rows) if row.arrival < 0] if self._warmup else []
        )
        super().count()

    def _add(self, places: Places, groups: dict[Group, Columns]) -> None:
        super()._add(places, groups)
        for row in self._warmup_rows:
            self._count_warmup(row)

    def _forget(self) -> None:
        """All that came since the last report is forgotten with requests that were counted in part."""
        for error in [*self._first][self._reported_errors :]:
            del self._first[error]
        self.mark_reported()
        self.on_forget()

    def usage(self, times: list[int] | None, tokens_in: int, tokens_out: int) -> None:
        """The last row has these token arrivals and token counts, as ``BatchWriter.add_stream`` says."""
        arrival, due, sent, done, *_, packed = self.rows[-1]
        outcome = packed & OUTCOME
        cell = self._cells[done // NS, self._stage(due) if arrival >= 0 else WARMUP]
        if outcome == ABANDONED and times is not None:
            tally(cell.times["stream_age"], [done - sent])
            tally(cell.times["token_age" if times else "first_age"], [done - (times[-1] if times else sent)])
        if outcome == OK:
            cell.counts["streams"] += times is not None
        if arrival < 0:
            self._warmup_stream(cell, times, sent, outcome)
        elif outcome == OK:
            if reason := packed >> FINISH_SHIFT & FINISH_MASK:
                self._finish[reason] += 1
            if tokens_in != NONE:
                self._tally(cell, "tokens_in", [tokens_in])
            self._output_tokens(cell, NONE if times is None else len(times), tokens_out)

    def _warmup_stream(self, cell: OpenCell, times: list[int] | None, sent: int, outcome: int) -> None:
        if times and outcome != FAILED:
            self._tally(cell, "ttft", [times[0] - sent])
            self._tally(cell, "itl", [(later - earlier) // 1000 * 1000 for earlier, later in pairwise(times)])

    def _output_tokens(self, cell: OpenCell, pieces: int, value: int) -> None:
        """As ``request_times.output_tokens``: what the server reported where it can be, else the pieces that came."""
        if value != NONE and pieces <= value <= MOST_TOKENS:
            cell.counts["usage"] += 1
            self._tally(cell, "tokens_out", [value])
            return
        cell.counts["impossible"] += value != NONE
        if pieces != NONE:
            self._tally(cell, "tokens_out", [pieces])

    def unreported(self) -> dict[str, Any]:
        """As of its base; ``warmup``: the cells of the warm-up; ``totals``: the counts that are of no second."""
        cells = super().unreported()["feed"]
        warmup = [
            {name: counts for name, counts in cell.items() if name != "n"} for cell in cells if cell["n"] == WARMUP
        ]
        return {
            "feed": [cell for cell in cells if cell["n"] != WARMUP],
            "warmup": warmup,
            "totals": self._totals(),
        }

    def mark_reported(self) -> None:
        """Forget what `unreported` returned: a report has it."""
        super().mark_reported()
        self._reported_errors = len(self._first)
        for counts in (self._label_outcomes, self._label_times, self._finish):
            counts.clear()

    def _totals(self) -> dict[str, Any]:
        """The requests without a label are the rest of all."""
        first = list(self._first.items())[self._reported_errors :]
        return {
            "labels": {OUTCOMES[outcome]: _pairs(found) for outcome, found in self._label_outcomes.items()},
            "label_times": {name: _pairs(found) for name, found in self._label_times.items()},
            "finish": _pairs(self._finish),
            "first": [number for pair in first for number in pair],
            "last_due": self._last_due,
            "last_done": self._last_done,
        }

    def _count_warmup(self, row: RequestFields) -> None:
        begun = self._cells[row.sent // NS, WARMUP]
        assert isinstance(begun, _CountCell)
        begun.counts["sent"] += 1
        begun.bins["sent_at"][row.sent // BIN_NS] += 1
        columns = Columns.of([row])
        self._count_all(self._cells[row.done // NS, WARMUP], columns, row.outcome & OUTCOME, row.error)

    def _count_sent(self, cell: OpenCell, sendings: Sequence[tuple[int, int]]) -> None:
        super()._count_sent(cell, sendings)
        assert isinstance(cell, _CountCell)
        _count_bins(cell.bins["sent_at"], sendings, itemgetter(1))

    def _count_columns(self, cell: OpenCell, columns: Columns, outcome: int, error: int) -> None:
        self._count_all(cell, columns, outcome, error)
        due = max(columns.due)
        self._last_due = max(self._last_due, due)
        if outcome != ABANDONED:
            self._last_done = max(self._last_done, columns.done[-1])  # they are written as they end
        if outcome == FAILED:
            self._first.setdefault(error, columns.done[0])
        if any(columns.label):
            self._count_labels(columns.label, outcome)

    def _count_all(self, cell: OpenCell, columns: Columns, outcome: int, error: int) -> None:
        super()._count_columns(cell, columns, outcome, error)
        assert isinstance(cell, _CountCell)
        _count_bins(cell.bins[f"{OUTCOMES[outcome]}_at"], columns.done)

    def _times(self, columns: Columns, outcome: int) -> Iterator[tuple[str, list[int]]]:
        yield from super()._times(columns, outcome)
        due, sent, done = columns.due, columns.sent, columns.done
        if any(columns.build_ns):
            yield "build", [each for each in columns.build_ns if each > 0]
        if outcome == FAILED:
            yield "failed_latency", list(map(sub, done, sent))
        elif outcome == ABANDONED:
            yield "age", list(map(sub, done, sent))
            if self.open_loop:
                yield "response_age", list(map(sub, done, due))

    def _tally(self, cell: OpenCell, name: str, values: list[int]) -> None:
        found = self._halves[name] = halves(values)
        cell.times[name].update(found)
        cell.counts[f"{name}_sum"] += sum(values)

    def _count_labels(self, labels: Packed, outcome: int) -> None:
        """Count by label the requests whose times were counted last, and their times by label and bucket at once."""
        self._label_outcomes[outcome].update(labels)
        if outcome == FAILED:
            return
        shifted = [label << LABEL_SHIFT for label in labels]
        few = max(labels) <= MOST_TIMED_LABELS
        for name in ("latency", "response_time")[: 1 + self.open_loop]:
            found = map(or_, shifted, self._halves[name])
            self._label_times[name].update(found if few else (key for key in found if key < _MOST_TIMED_KEY))


def _count_bins(counts: Counter[int], instants: Sequence[Any], key: Callable[[Any], int] = int) -> None:
    """Count instants, in order, by their 20 ms; ``key``: the instant of each."""
    begin = 0
    while begin < len(instants):
        place = key(instants[begin]) // BIN_NS
        end = bisect_left(instants, (place + 1) * BIN_NS, begin + 1, key=key)
        counts[place] += end - begin
        begin = end


def _pairs(counts: Counter[int]) -> list[int]:
    return [number for pair in counts.items() for number in pair]


@dataclass(slots=True)
class _Slow:
    """A request that was among the slowest when it was over, as it is packed."""

    base: bytes
    stream: bytes = b""
    gaps: bytes = b""
    metrics: Mapping[str, Any] = field(default_factory=dict)


class CountingBatchWriter(BatchWriter):
    """Counts one worker's requests, and keeps the rows of the slowest of them; a batch has those that came anew.

    The slowest are those of the highest latency, whatever became of them; of equal ones, the first.
    """

    def __init__(self, also: Iterable[str] = (), *, warmup: bool = False) -> None:
        self._counts = CountFeed(warmup=warmup)
        self._counts.on_forget = self._forget
        super().__init__(also, self._counts)
        self._slowest: list[tuple[int, int, _Slow]] = []
        self._least = -1
        self._taken = self._number = 0
        self._last: _Slow | None = None

    def add(self, *values: int) -> None:
        """Count one request: the fields of ``BASE`` in order, ``NONE`` where there is nothing."""
        super().add(*values)
        arrival, _, sent, done, _, _, _, _, _ = values
        took = done - sent
        if took > self._least and arrival >= 0:
            self._keep(took, values)
        else:
            self._last = None

    def add_stream(self, times: list[int] | None, tokens_in: int, tokens_out: int) -> None:
        """Adds to the request just added with ``HAS_STREAM`` its token arrivals (ns) and token counts or ``NONE``."""
        super().add_stream(times, tokens_in, tokens_out)
        self._counts.usage(times, tokens_in, tokens_out)
        if self._last is not None:
            self._last.stream, self._last.gaps = bytes(self._streams), self._gaps.tobytes()
        self._streams.clear()
        del self._gaps[:]

    def add_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Adds to the request just added its metrics, where its row is kept."""
        if self._last is not None:
            self._last.metrics = metrics

    def _forget_last(self, begin: tuple[int, ...]) -> None:
        """Of what the request's stream was, some may be counted."""
        rows = self._rows
        if rows and rows[-1][: len(begin)] == begin:
            rows.pop()
        self._clear_sections()
        self._keep_slowest([entry for entry in self._slowest if BASE.unpack(entry[2].base)[: len(begin)] != begin])

    def _forget(self) -> None:
        """None of the requests since the last batch is among the slowest: they are not counted."""
        self._keep_slowest([entry for entry in self._slowest if -entry[1] < self._taken])

    def _keep_slowest(self, kept: list[tuple[int, int, _Slow]]) -> None:
        self._slowest = kept
        heapify(self._slowest)
        if len(self._slowest) < MOST_SLOWEST:
            self._least = -1

    def take(self, meta: dict[str, Any]) -> bytes:
        """The batch since the last call, with ``meta`` (ledger, sequence number) beside the counts."""
        self._mend()
        self._counts.count()  # all rows, so that those added below number from 0
        new = [entry for entry in self._slowest if -entry[1] >= self._taken]
        try:
            for *_, slow in sorted(new, key=itemgetter(1), reverse=True):
                self._base += slow.base
                self._streams += slow.stream
                self._gaps.frombytes(slow.gaps)
                super().add_metrics(slow.metrics)
            batch = super().take(meta)
        finally:
            self._clear_sections()
        self._taken = self._number
        return batch

    def _keep(self, took: int, values: Packed) -> None:
        """The numbers go down, so that of equal ones the last goes first."""
        self._last = _Slow(BASE.pack(*values))
        entry = (took, -self._number, self._last)
        self._number += 1
        if len(self._slowest) < MOST_SLOWEST:
            heappush(self._slowest, entry)
        else:
            heappushpop(self._slowest, entry)
        if len(self._slowest) == MOST_SLOWEST:
            self._least = self._slowest[0][0]
