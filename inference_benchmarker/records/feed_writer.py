"""The worker's side of the live feed: requests are added up in cells as they are written, in bulk. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from operator import sub
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from inference_benchmarker.records.histogram import MOST_COUNT, Histogram, tally
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


MOST_ROWS = 256  # requests that are counted in one go: a pause of some 0.1 ms
_OK, _FAILED, _OUTCOME = 0, 1, 0x03
Group = tuple[int, int, int, int]
Places = dict[tuple[int, int], "Sequence[Any]"]
Packed = tuple[int, ...]
"""The fields of a request in the order of ``record.BASE``, which is that of ``RequestFields`` and ``Columns``."""


class RequestFields(NamedTuple):
    """A request's fields by name: ``outcome`` is packed, ``arrival`` its index."""

    arrival: int
    due: int
    sent: int
    done: int
    build_ns: int
    size: int
    label: int
    error: int
    outcome: int


class Columns(NamedTuple):
    """The fields of some requests, a column each. ``arrived``: when their arrivals were due, where that is not ``due``.

    A further attempt is due later than its arrival was.
    """

    arrival: Packed
    due: Packed
    sent: Packed
    done: Packed
    build_ns: Packed
    size: Packed
    label: Packed
    error: Packed
    outcome: Packed
    arrived: Packed | None = None

    @classmethod
    def of(cls, rows: Iterable[Packed]) -> Self:
        """The columns of rows, of which there are some."""
        return cls(*zip(*rows, strict=True))


@dataclass(slots=True)
class OpenCell:
    """A cell that a worker counts in; errors by number, times by ``tally``."""

    counts: Counter[str] = field(default_factory=Counter)
    failed: Counter[int] = field(default_factory=Counter)
    times: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    def to_json(self) -> dict[str, Any]:
        """Its members that are not zero."""
        failed = [number for pair in sorted(self.failed.items()) for number in pair]
        times = {name: Histogram.of_tally(counts).to_json() for name, counts in self.times.items()}
        return {**self.counts, **({"failed": failed} if failed else {}), **times}


class FeedWriter:
    """A worker's side: takes requests as they are written and gives what they came to.

    ``rows``: the fields of requests that were not counted yet, as they are written. ``sendings``: due time and moment
    of those that were sent since. Both are counted in bulk, which costs less than counting each at once; ``on_rows`` is
    called before rows are forgotten. ``open_loop``: only there is a response time.
    """

    def __init__(self, cell: Callable[[], OpenCell] = OpenCell) -> None:
        self.rows: list[Packed] = []
        self.sendings: list[tuple[int, int]] = []
        self.on_rows: Callable[[], object] = lambda: None
        self.open_loop = True
        self.stage_ends: Sequence[int] = ()
        self._cells: defaultdict[tuple[int, int], OpenCell] = defaultdict(cell)

    def set_stages(self, ends_ns: Sequence[int]) -> None:
        """The ends of the stages, nanoseconds after wave start, increasing; may be set again as there come more.

        What was sent or over by now is counted under those known before. An arrival due after the last end is of the
        stage after it.
        """
        self.count()
        self.stage_ends = tuple(ends_ns)

    def add_stage(self, start_ns: int) -> None:
        """Another stage begins then, later than those before."""
        self.set_stages([*self.stage_ends, start_ns])

    def count(self) -> None:
        """Count the rows and sendings that are waiting.

        Where there is no memory for it (MemoryError), they wait on, or are forgotten: none is counted or packed twice.
        """
        places, groups = self._places(self.sendings[:]), self._groups() if self.rows else {}
        if self.rows:
            self.on_rows()
        try:
            self.rows.clear()
            self.sendings.clear()
            self._add(places, groups)
        except BaseException:
            self._forget()
            raise

    def _add(self, places: Places, groups: dict[Group, Columns]) -> None:
        """Count the groups of sendings and of rows, which nobody else has any more."""
        for place, sent in places.items():
            self._count_sent(self._cells[place], sent)
        for (second, stage, outcome, error), columns in groups.items():
            self._count_columns(self._cells[second, stage], columns, outcome, error)
            self._count_ended(stage, columns.sent)

    def _forget(self) -> None:
        """Some requests were counted in part: what a wave shows while it runs may lack them."""

    def stream(self, times: list[int], gaps_us: list[int], tokens: int) -> None:
        """The last row is a stream's: when its pieces came, the gaps between them, and its output tokens.

        Those are at least as many as the pieces.
        """
        arrival, due, sent, done, *_, packed = self.rows[-1]
        outcome = packed & _OUTCOME
        if arrival < 0 or outcome == _FAILED:
            return
        cell = self._cells[done // NS, self._stage(due)]
        if outcome == _OK and tokens > 0:
            cell.counts["tokens"] = min(cell.counts["tokens"] + tokens, MOST_COUNT)
        if times:
            self._tally(cell, "ttft", [times[0] - sent])
            self._tally(cell, "itl", [1000 * gap for gap in gaps_us])
            if outcome == _OK and len(times) > 1:
                self._tally(cell, "tpot", [(times[-1] - times[0]) // (tokens - 1)])

    def repeat(self, arrived: int) -> None:
        """The last row is a further attempt of an arrival that was due then: from there its response time counts."""
        row = RequestFields(*self.rows.pop())
        if row.arrival >= 0:
            columns, stage = Columns.of([row])._replace(arrived=(arrived,)), self._stage(row.due)
            self._count_columns(self._cells[row.done // NS, stage], columns, row.outcome & _OUTCOME, row.error)
            self._count_ended(stage, columns.sent)

    def unreported(self) -> dict[str, Any]:
        """The members of a report about what came since ``mark_reported``; ``feed``: its cells, to be added up."""
        self.count()
        return {"feed": [{"s": second, "n": stage, **cell.to_json()} for (second, stage), cell in self._cells.items()]}

    def mark_reported(self) -> None:
        """Forget what `unreported` returned: a report has it."""
        self._cells.clear()

    def _stage(self, due: int) -> int:
        return bisect_right(self.stage_ends, due) if self.stage_ends else 0

    def _places(self, sendings: list[tuple[int, int]]) -> Places:
        """Sendings by second and stage."""
        if not sendings:
            return {}
        first, last = sendings[0][1] // NS, sendings[-1][1] // NS
        if first == last and not self.stage_ends:
            return {(first, 0): sendings}
        places: defaultdict[tuple[int, int], list[Any]] = defaultdict(list)
        for sending in sendings:
            places[sending[1] // NS, self._stage(sending[0])].append(sending)
        return dict(places)

    def _groups(self) -> dict[Group, Columns]:
        """Columns of the rows by second, stage, outcome and error, without the warm-up's; mostly all are of one."""
        rows = self.rows
        of_all = Columns.of(rows)
        second, last = of_all.done[0] // NS, of_all.done[-1] // NS  # they are written as they end
        is_one_place = second == last and not self._several_stages(of_all.due)
        if is_one_place and min(of_all.arrival) >= 0 and not any(of_all.error):
            outcomes = {packed & _OUTCOME for packed in set(of_all.outcome)}
            if len(outcomes) == 1:
                return {(second, self._stage(of_all.due[0]), outcomes.pop(), 0): of_all}
        groups: defaultdict[Group, list[Packed]] = defaultdict(list)
        for row in rows:
            arrival, due, _, done, _, _, _, error, packed = row
            if arrival >= 0:
                groups[done // NS, self._stage(due), packed & _OUTCOME, error].append(row)
        return {group: Columns.of(some) for group, some in groups.items()}

    def _several_stages(self, dues: Iterable[int]) -> bool:
        return bool(self.stage_ends) and self._stage(min(dues)) != self._stage(max(dues))

    def _count_sent(self, cell: OpenCell, sendings: Sequence[tuple[int, int]]) -> None:
        cell.counts["sent"] += len(sendings)

    def _count_columns(self, cell: OpenCell, columns: Columns, outcome: int, error: int) -> None:
        if outcome == _FAILED:
            cell.failed[error] += len(columns.sent)
        else:
            cell.counts["ok" if outcome == _OK else "abandoned"] += len(columns.sent)
        for name, values in self._times(columns, outcome):
            self._tally(cell, name, values)

    def _count_ended(self, stage: int, sent: Sequence[int]) -> None:
        """Requests that were sent then are over; mostly all of them were in one second."""
        first, last = min(sent) // NS, max(sent) // NS
        for second, ended in ({first: len(sent)} if first == last else Counter(at // NS for at in sent)).items():
            self._cells[second, stage].counts["ended"] += ended

    def _times(self, columns: Columns, outcome: int) -> Iterator[tuple[str, list[int]]]:
        due, sent, done, build = columns.due, columns.sent, columns.done, columns.build_ns
        taken_up = map(sub, sent, build) if any(build) else sent
        yield "lag", list(map(sub, taken_up, due))
        if outcome != _FAILED:
            yield "latency", list(map(sub, done, sent))
            if self.open_loop:
                yield "response_time", list(map(sub, done, due if columns.arrived is None else columns.arrived))

    def _tally(self, cell: OpenCell, name: str, values: list[int]) -> None:
        tally(cell.times[name], values)
