"""Packs the records of one worker as they come, so that reporting never stalls the pacing."""

from __future__ import annotations

import itertools
from array import array
from collections import defaultdict
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from inference_benchmarker.records.batch import BASE, HAS_STREAM, MAX_TEXT_LENGTH, MAX_TEXTS, STREAM, TURN, joined_batch
from inference_benchmarker.records.error_key import error_key, error_text, storable
from inference_benchmarker.records.feed_writer import MOST_ROWS, FeedWriter
from inference_benchmarker.records.names import MAX_NAME_LENGTH, Names
from inference_benchmarker.records.record import MAX_FINISH_REASONS, NONE
from inference_benchmarker.records.user_metrics import FIRST_ANSWER, METRIC, MetricNumbers
from inference_benchmarker.words.redact import beginning, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

RAW_TEXT_LENGTH = 4 * MAX_TEXT_LENGTH  # of what a worker keeps: more than is shown is searched for credentials
_READ_NAME_LENGTH = 4 * MAX_NAME_LENGTH
MAX_GAP_US = (1 << 32) - 1


class BatchWriter:
    """Collects one worker's records and hands them out as packed batches.

    Error texts in them are bounded and without secrets: those of this process's environment, and ``also``. Credentials
    that are known by their form alone are still there: to search for them is no work for a loop that paces requests
    (see ``redacted``).

    ``turns``: of each request of a wave of sessions, in their order, the fields of ``TURN``. It is appended to right
    after the request was added: the time that was thought before it (``NONE``: it is no turn's first attempt after
    another turn), which turn it was, from 1 on, and whether the session ended with it.
    """

    def __init__(self, also: Iterable[str] = (), feed: FeedWriter | None = None) -> None:
        self._also = tuple(also)
        hide = partial(beginning, limit=_READ_NAME_LENGTH, also=self._also)
        self.labels = Names("", hide=hide)
        self.finish_reasons = Names("", hide=hide, most=MAX_FINISH_REASONS)
        self.errors = Names("", hide=partial(excerpt, limit=_READ_NAME_LENGTH, also=self._also))
        self._base = bytearray()
        self._streams = bytearray()
        self._gaps: array[int] = array("I")
        self._metrics = bytearray()
        self.turns: list[tuple[int, int, int]] = []
        self.metric_numbers = MetricNumbers()
        self._reported_metrics = 0
        self.feed = FeedWriter() if feed is None else feed
        self._rows = self.feed.rows
        self._packed = 0
        if feed is None:
            self.feed.on_rows = self._forget_rows
        self._attempts: list[tuple[int, int]] = []
        self._text_counts: dict[str, int] = defaultdict(int)
        self._texts: list[tuple[str, str]] = []
        self._torn: tuple[int, ...] | None = None  # the beginning of a request that is still to be taken back

    def add(self, *values: int) -> None:
        """Append one request: the fields of ``BASE`` in order, ``NONE`` where there is nothing."""
        if self._torn is not None:
            self._mend()
        rows = self._rows
        if len(rows) >= MOST_ROWS:
            with suppress(MemoryError):  # they are counted later
                self.feed.count()
        rows.append(values)

    def _pack(self) -> None:
        """Pack the rows that came since; in bulk it costs less than each at once, and MOST_ROWS are a short pause."""
        rows = len(self._rows)
        self._base += b"".join(itertools.starmap(BASE.pack, self._rows[self._packed :]))
        self._packed = rows

    def _forget_rows(self) -> None:
        """The feed has counted its rows, and will have none."""
        self._pack()
        self._packed = 0

    def add_stream(self, times: list[int] | None, tokens_in: int, tokens_out: int) -> None:
        """Adds to the request just added with ``HAS_STREAM`` its token arrivals (ns) and token counts or ``NONE``."""
        if not times:
            chunks = NONE if times is None else 0
            self._streams += STREAM.pack(NONE, NONE, chunks, tokens_in, tokens_out, 0)
            self.feed.stream([], [], tokens_out)
            return
        gaps = [(later - earlier) // 1000 for earlier, later in itertools.pairwise(times)]
        if times[-1] - times[0] > MAX_GAP_US * 1000:
            gaps = [min(gap, MAX_GAP_US) for gap in gaps]
        self._streams += STREAM.pack(times[0], times[-1], len(times), tokens_in, tokens_out, len(gaps))
        self._gaps.extend(gaps)
        self.feed.stream(times, gaps, max(tokens_out, len(times)))  # fewer tokens than pieces cannot be

    def add_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Adds to the request just added its metrics; those whose names have no number are left out."""
        row, numbers = self._last_row, self.metric_numbers
        for name, value in metrics.items():
            if (number := numbers.get(name)) is not None:
                self._metrics += METRIC.pack(row, number, value)

    def add_first_answer(self, times: list[int], thought: int) -> None:
        """Says of the stream just added that so many of the first ``times`` of its tokens were of reasoning."""
        after_ns = times[thought] - times[0] if thought < len(times) else -1
        self._metrics += METRIC.pack(self._last_row, FIRST_ANSWER, after_ns)

    @property
    def _last_row(self) -> int:
        return len(self._base) // BASE.size + len(self._rows) - self._packed - 1

    def add_attempt(self, number: int, arrived: int) -> None:
        """Says of the request just added that it was a further attempt, the ``number``-th, from 1 on.

        Its arrival was due at ``arrived``.
        """
        self._pack()
        self._attempts.append((len(self._base) // BASE.size - 1, number))
        self.feed.repeat(arrived)  # which takes its row away
        self._packed = len(self._rows)

    def take_back(self, *begin: int) -> None:
        """Forget the request that begins with these fields of ``BASE``, or as much of it as was added: it is the last.

        Where there is no memory even for that (MemoryError), it is done before anything else is added or reported.
        """
        if self._torn is None:  # else nothing was added since
            self._torn = begin
        self._mend()

    def _mend(self) -> None:
        """Take back what is to be taken back, if anything; each step may be made again."""
        if self._torn is not None:
            self._forget_last(self._torn)
            self._torn = None

    def _forget_last(self, begin: tuple[int, ...]) -> None:
        rows = self._rows
        if rows and rows[-1][: len(begin)] == begin:
            rows.pop()
        self._packed = min(self._packed, len(rows))
        if self._packed_last() == begin:
            del self._base[-BASE.size :]
        self._end_with_rows()

    def _packed_last(self) -> tuple[int, ...]:
        """The first fields of the request that was packed last."""
        return BASE.unpack_from(self._base, len(self._base) - BASE.size)[:4] if self._base else ()

    def _end_with_rows(self) -> None:
        """Cut off what belongs to no row: whatever is added to a request comes after its row."""
        kept, metrics, attempts = self._last_row + 1, self._metrics, self._attempts
        outcomes = self._base[BASE.size - 1 :: BASE.size]  # each row's last byte
        streams = sum(map(HAS_STREAM.__and__, outcomes)) + sum(
            HAS_STREAM & outcome for *_, outcome in self._rows[self._packed :]
        )
        del self._streams[streams // HAS_STREAM * STREAM.size :]
        del self._gaps[sum(gaps for *_, gaps in STREAM.iter_unpack(self._streams)) :]
        while metrics and METRIC.unpack_from(metrics, len(metrics) - METRIC.size)[0] >= kept:
            del metrics[-METRIC.size :]
        del self.turns[kept:]
        while attempts and attempts[-1][0] >= kept:
            attempts.pop()

    def error(self, exception: BaseException, found: Sequence[BaseException] = ()) -> tuple[int, str]:
        """The number and key of an error with its ``causes``; keeps the text of the first few of each key."""
        number = self.errors[error_key(exception, found)]
        key = self.errors.name(number)
        if self._text_counts[key] < MAX_TEXTS:
            self._text_counts[key] += 1
            self._texts.append((key, self._bounded_text(exception)))
        return number, key

    def _bounded_text(self, exception: BaseException) -> str:
        return storable(beginning(error_text(exception), RAW_TEXT_LENGTH, self._also))

    def cut(self, text: str, limit: int) -> str:
        """At most so many characters of a text, without credentials. Not for what every request does."""
        return excerpt(text, limit, self._also)

    def take(self, meta: dict[str, Any]) -> bytes:
        """The batch since the last call, with ``meta`` (ledger, sequence number) beside the records.

        Where there is no memory for it (MemoryError), nothing counts as reported yet, and the next batch has all of it.
        """
        self._mend()
        meta = {
            **meta,
            **self.feed.unreported(),
            "labels": self.labels.unreported(),
            "finish_reasons": self.finish_reasons.unreported(),
            "errors": self.errors.unreported(),
            "texts": self._texts,
        }
        if self._attempts:
            meta["attempts"] = self._attempts
        if names := [*self.metric_numbers][self._reported_metrics :]:
            meta["metrics"] = names
        turns = b"".join(itertools.starmap(TURN.pack, self.turns))
        packed = (self._base, self._streams, self._gaps.tobytes(), self._metrics, turns)
        batch = joined_batch(meta, *map(bytes, packed))
        self._mark_reported()
        return batch

    def _mark_reported(self) -> None:
        """All that came by now is in a batch."""
        for part in (self.feed, self.labels, self.finish_reasons, self.errors):
            part.mark_reported()
        self._texts.clear()
        self._attempts.clear()
        self._reported_metrics = len(self.metric_numbers)
        self._clear_sections()

    def _clear_sections(self) -> None:
        self._base.clear()
        self._streams.clear()
        del self._gaps[:]
        self._metrics.clear()
        self.turns.clear()
