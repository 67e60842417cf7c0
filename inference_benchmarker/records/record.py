"""One request's record: its instants, its outcome, and the compact form in which workers report it.

All instants are nanoseconds after wave start on the host's one monotonic clock; warm-up lies below zero.
A batch is packed as it grows, a fixed few tens of bytes a request, so reporting never stalls the pacing.
"""

from __future__ import annotations

import itertools
import operator
import struct
from array import array
from collections import defaultdict, deque
from dataclasses import dataclass, field, fields
from functools import partial
from json import dumps  # by its name: the user's code may put another function into the module
from typing import TYPE_CHECKING, Any, NamedTuple

from inference_benchmarker.data.json_text import parse_json
from inference_benchmarker.records.error_key import error_key, error_text, storable
from inference_benchmarker.records.feed import read_cells
from inference_benchmarker.records.feed_writer import MOST_ROWS, FeedWriter
from inference_benchmarker.records.names import MAX_NAME_LENGTH, Names
from inference_benchmarker.records.user_metrics import METRIC, MetricNumbers, check_metric_names
from inference_benchmarker.words.redact import beginning, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

OK, FAILED, ABANDONED = 0, 1, 2
OUTCOMES = ("ok", "failed", "abandoned")
NONE = -(1 << 63)  # stands for None in a packed int64
MAX_FINISH_REASONS = 31  # with "(other)", what the bits have room for
MAX_TEXTS = 3
MAX_TEXT_LENGTH = 500
RAW_TEXT_LENGTH = 4 * MAX_TEXT_LENGTH  # of what a worker keeps: more than is shown is searched for credentials
_READ_NAME_LENGTH = 4 * MAX_NAME_LENGTH
MAX_GAP_US = (1 << 32) - 1

# A packed outcome: two bits are the outcome, five the number of the finish reason, 0 where none was told.
HAS_STREAM = 0x80  # set when an entry of STREAM belongs to the request
OUTCOME = 0x03
FINISH_SHIFT, FINISH_MASK = 2, 0x1F
# index, due, sent, done, build_ns, bytes, label, error, outcome
BASE = struct.Struct("<qqqqqqHHB")
# first_token, last_token, chunks, tokens_in, tokens_out, number of gaps
STREAM = struct.Struct("<qqqqqI")
# think_ns, turn, how the session ended: of each request of a session, in the order of ``BASE``
TURN = struct.Struct("<qHB")
ENDINGS = ("completed", "failed", "raised")
"""The ways in which a session ends: its generator was done, a turn of it failed, or its own code raised."""
COMPLETED, TURN_FAILED, RAISED = 1, 2, 3  # in a packed turn; 0 where more is to come, or nobody saw the end
MOST_TURN = (1 << 16) - 1
_SECTIONS = struct.Struct("<IIII")
_WITH_TURNS = struct.Struct("<4sIIIII")
_TURNED = b"\xff" * 4  # no description is as long, so it tells a batch with turns from others
_ROW_SIZES = (BASE.size, STREAM.size, 4, METRIC.size, TURN.size)


class RequestRecord(NamedTuple):
    """The facts of one request: an arrival's first one, or a further ``attempt`` of a client that tries again.

    Derived times (latency, lag) are computed from them, never stored. Of a ``session``, whose number is its arrival's:
    its ``turn``, from 1 on; of the first attempt of each later one the time that its user thought before it; and, where
    the session ended with this request, one of ``ENDINGS``.
    """

    index: int  # type: ignore[assignment]  # the place in the wave, not tuple.index
    worker: int
    due: int
    sent: int
    done: int
    outcome: str = "ok"
    label: str = ""
    error: str | None = None
    build_ns: int = 0
    first_token: int | None = None
    last_token: int | None = None
    chunks: int | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    bytes: int | None = None
    gaps: tuple[int, ...] | None = None
    finish_reason: str | None = None
    attempt: int = 0
    metrics: Mapping[str, float] | None = None
    session: int | None = None
    turn: int | None = None
    think_ns: int | None = None
    ended: str | None = None

    @property
    def place(self) -> tuple[int, int, int]:
        """Its place among all requests of a wave: by arrival, then by turn, then by attempt."""
        return self.index, self.turn or 0, self.attempt


_ALWAYS = frozenset(("scheduled", "sent", "dropped", "lost", "ok", "failed", "abandoned"))
_OF_SESSIONS = (
    "later_turns",
    "dropped_turns",
    "not_begun",
    "sessions_completed",
    "sessions_failed",
    "sessions_raised",
)


@dataclass(slots=True)
class Ledger:
    """A count of every arrival, by where it went.

    ``scheduled + later_turns + repeated = sent + dropped + lost`` and ``sent = ok + failed + abandoned + in_flight``:
    ``sent`` counts requests, ``repeated`` those that were not the first of their arrival's turn, ``later_turns`` the
    turns after the first that were sent. ``late_changes`` counts changes of the rate that a worker heard of when they
    were in force already, or not at all.

    Where arrivals are sessions: ``arrivals = sessions_completed + sessions_failed + sessions_raised + sessions_open``.
    Of turns that sessions had ready, ``dropped_turns`` found no slot, and ``not_begun`` were due after the end.
    """

    scheduled: int = 0
    sent: int = 0
    dropped: int = 0
    lost: int = 0
    ok: int = 0
    failed: int = 0
    abandoned: int = 0
    late_changes: int = 0
    repeated: int = 0
    later_turns: int = 0
    dropped_turns: int = 0
    not_begun: int = 0
    sessions_completed: int = 0
    sessions_failed: int = 0
    sessions_raised: int = 0

    @property
    def arrivals(self) -> int:
        """Arrivals of which at least one request was sent."""
        return self.turns - self.later_turns

    @property
    def turns(self) -> int:
        """Turns of which at least one request was sent; an arrival that is no session has one."""
        return self.sent - self.repeated

    @property
    def sessions_open(self) -> int:
        """Sessions that were begun and not seen to end."""
        return self.arrivals - self.sessions_completed - self.sessions_failed - self.sessions_raised

    @property
    def in_flight(self) -> int:
        """Sent and not yet over."""
        return self.sent - self.ok - self.failed - self.abandoned

    @property
    def completed(self) -> int:
        """Answered: ok or failed."""
        return self.ok + self.failed

    @property
    def balanced(self) -> bool:
        """Tells whether every scheduled arrival is accounted for."""
        balanced = self.scheduled == self.arrivals + self.dropped + self.lost and self.in_flight >= 0
        return balanced and self.later_turns >= 0 and self.sessions_open >= 0

    def end_session(self, ended: int) -> None:
        """Count a session that ended, as its packed turn says."""
        name = f"sessions_{ENDINGS[ended - 1]}"
        setattr(self, name, getattr(self, name) + 1)

    def __add__(self, other: Ledger) -> Ledger:
        return Ledger(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def to_json(self) -> dict[str, int]:
        """The counts, in_flight included; those of sessions where there were any."""
        of_sessions = any(getattr(self, name) for name in _OF_SESSIONS)
        told = [f.name for f in fields(self) if of_sessions or f.name not in _OF_SESSIONS]
        return {**{name: getattr(self, name) for name in told}, "in_flight": self.in_flight}

    @classmethod
    def from_json(cls, data: dict[str, int]) -> Ledger:
        """The ledger that ``to_json`` described; an older one lacks counts that it had none of."""
        return cls(**{f.name: data[f.name] if f.name in _ALWAYS else data.get(f.name, 0) for f in fields(cls)})


class BatchWriter:
    """Collects one worker's records and hands them out as packed batches.

    Error texts in them are bounded and without secrets: those of this process's environment, and ``also``. Credentials
    that are known by their form alone are still there: to search for them is no work for a loop that paces requests
    (see ``redacted``).
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
        self._turns: list[tuple[int, int, int]] = []
        self.metric_numbers = MetricNumbers()
        self._told_metrics = 0
        self.feed = FeedWriter() if feed is None else feed
        self._rows = self.feed.rows
        self._packed = 0
        if feed is None:
            self.feed.on_rows = self._forget_rows
        self._attempts: list[tuple[int, int]] = []
        self._text_counts: dict[str, int] = defaultdict(int)
        self._texts: list[tuple[str, str]] = []

    def add(self, *values: int) -> None:
        """Append one request: the fields of ``BASE`` in order, ``NONE`` where there is nothing."""
        rows = self._rows
        if len(rows) >= MOST_ROWS:
            self.feed.count()
        rows.append(values)

    def _pack(self) -> None:
        """Pack the rows that came since; in bulk it costs less than each at once, and MOST_ROWS are a short pause."""
        self._base += b"".join(itertools.starmap(BASE.pack, self._rows[self._packed :]))
        self._packed = len(self._rows)

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
        row, numbers = len(self._base) // BASE.size + len(self._rows) - self._packed - 1, self.metric_numbers
        for name, value in metrics.items():
            if (number := numbers.get(name)) is not None:
                self._metrics += METRIC.pack(row, number, value)

    def add_attempt(self, number: int, arrived: int) -> None:
        """Says of the request just added that it was a further attempt, the ``number``-th, from 1 on.

        Its arrival was due at ``arrived``.
        """
        self._pack()
        self._attempts.append((len(self._base) // BASE.size - 1, number))
        self.feed.repeat(arrived)  # which takes its row away
        self._packed = len(self._rows)

    def add_turn(self, number: int, think_ns: int, ended: int) -> None:
        """Says of the request just added which turn of its session it was, from 1 on.

        Its user thought so long before it (``NONE``: it is no turn's first attempt after another turn), and whether the
        session ended with it. Each request of a wave of sessions has it.
        """
        self._turns.append((think_ns, number, ended))

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
        """The batch since the last call, with ``meta`` (ledger, sequence number) beside the records."""
        texts, self._texts = self._texts, []
        meta = {
            **meta,
            "labels": self.labels.take_new(),
            "finish_reasons": self.finish_reasons.take_new(),
            "errors": self.errors.take_new(),
            "texts": texts,
            "feed": self.feed.take(),
        }
        if self._attempts:
            meta["attempts"], self._attempts = self._attempts, []
        if names := [*self.metric_numbers][self._told_metrics :]:
            meta["metrics"], self._told_metrics = names, len(self.metric_numbers)
        turns = b"".join(itertools.starmap(TURN.pack, self._turns))
        packed = (self._base, self._streams, self._gaps.tobytes(), self._metrics, turns)
        batch = joined_batch(meta, *map(bytes, packed))
        self._base.clear()
        self._streams.clear()
        self._gaps = array("I")
        self._metrics.clear()
        self._turns.clear()
        return batch


def split_batch(data: bytes) -> tuple[dict[str, Any], memoryview, memoryview, memoryview, memoryview, memoryview]:
    """A batch's meta object and its five ``packed_sections``. ValueError where it is none."""
    meta, base, streams, gaps, metrics, turns = _parts(data)
    return parse_json(bytes(meta)), base, streams, gaps, metrics, turns


def packed_sections(data: bytes) -> list[memoryview]:
    """A batch's requests, streams, gaps, metrics and turns, as views of it. ValueError where it is none."""
    return _parts(data)[1:]


def _parts(data: bytes) -> list[memoryview]:
    has_turns = data[:4] == _TURNED
    header = _WITH_TURNS if has_turns else _SECTIONS
    if len(data) < header.size:
        raise ValueError(f"a batch of {len(data)} bytes")
    head, sizes = header.size, header.unpack_from(data)[has_turns:]
    sizes = (*sizes, len(data) - head - sum(sizes))  # what is left are turns, else metrics, which older versions lack
    if sizes[-1] < 0 or any(map(operator.mod, sizes[1:], _ROW_SIZES)):
        raise ValueError(f"a batch of {len(data)} bytes with sections of {sizes}")
    ends, whole = list(itertools.accumulate(sizes, initial=head)), memoryview(data)
    parts = [whole[begin:end] for begin, end in itertools.pairwise(ends)]
    return parts if len(parts) > len(_ROW_SIZES) else [*parts, whole[:0]]


@dataclass(frozen=True, slots=True)
class Report:
    """A worker's batch says of itself: from whom, the how many-th, whether the last, and the ledger by then.

    ``at``: when it was written, in ns after wave start on the worker's own clock.
    ``batch`` is fit for a file: its error texts are as ``redacted`` leaves them.
    """

    worker: int
    sequence: int
    final: bool
    ledger: Ledger
    batch: bytes = field(repr=False)
    at: int

    @classmethod
    def of(cls, batch: bytes) -> Report:
        """Reads a batch. Raises ValueError where it is none, so that no reader of a spool meets such a one."""
        meta, *sections = split_batch(batch)
        try:
            ledger = Ledger.from_json(meta["ledger"])
            names = [*meta["labels"], *meta["finish_reasons"], *meta["errors"]]
            names += [name for key, text in meta["texts"] for name in (key, text)]
            check_metric_names(meta.get("metrics", []))
            deque(read_cells(meta.get("feed", [])), maxlen=0)
        except (KeyError, TypeError) as error:
            raise ValueError(f"a batch whose description lacks something: {error!r}") from None
        numbers = [
            meta.get("worker"),
            meta.get("sequence"),
            meta.get("at"),
            *(getattr(ledger, name) for name in ledger.__slots__),
        ]
        if {type(number) for number in numbers} != {int} or type(meta.get("final")) is not bool:
            raise ValueError("a batch whose counts are no whole numbers")
        if not all(isinstance(name, str) for name in names) or not isinstance(meta.get("use", {}), dict):
            raise ValueError("a batch whose names are no texts")
        fit = _redacted(meta, sections) if meta["texts"] else batch
        return cls(meta["worker"], meta["sequence"], meta["final"], ledger, fit, meta["at"])


def redacted(batch: bytes) -> bytes:
    """A worker's batch with its error texts fit for a file: no credential of any form, cut to what is shown."""
    meta, *sections = split_batch(batch)
    return _redacted(meta, sections) if meta["texts"] else batch


def _redacted(meta: dict[str, Any], sections: Iterable[memoryview]) -> bytes:
    texts = [(key, excerpt(text, MAX_TEXT_LENGTH)) for key, text in meta["texts"]]
    return joined_batch({**meta, "texts": texts}, *sections)


def joined_batch(meta: dict[str, Any], *sections: bytes | memoryview) -> bytes:
    """A batch as it is stored: the lengths of its parts, and the parts."""
    parts = (dumps(meta, separators=(",", ":")).encode(), *sections)
    if len(sections) < len(_ROW_SIZES) or not sections[-1]:
        return _SECTIONS.pack(*map(len, parts[:4])) + b"".join(parts)
    return _WITH_TURNS.pack(_TURNED, *map(len, parts[:5])) + b"".join(parts)
