"""The live feed: what a worker's requests came to in each second and stage, small enough to be sent while a wave runs.

A worker adds up its requests in cells, one for each second and stage (``FeedWriter``), and sends what came since its
last batch. Whoever follows the wave adds up the cells of all workers (``Feed``). It is for what is shown or decided
while the wave runs; what is stored is computed from the records. Warm-up is not counted. Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from operator import sub
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from inference_benchmarker.records.histogram import MOST_COUNT, Histogram, tally
from inference_benchmarker.words.units import MAX_SECONDS, NS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

MOST_ROWS = 256  # requests that are counted in one go: a pause of some 0.1 ms
KEPT_S = 75  # a view shows a minute, and a worker may be some seconds behind; a second takes up to 60 kB
_MOST_SECOND = 3 * MAX_SECONDS
_MOST_STAGE = 1_000_000
_OK, _FAILED, _OUTCOME = 0, 1, 0x03
_COUNTS = ("sent", "ok", "abandoned", "tokens", "ended")
TIMES = ("latency", "response_time", "lag", "ttft", "itl")
"""Each as in the summary: latency, response time, TTFT and ITL of ok and abandoned requests, lag of all."""

_Group = tuple[int, int, int, int]
Packed = tuple[int, ...]
"""The fields of a request in the order of ``record.BASE``, which is that of ``Row`` and ``Columns``."""


class Row(NamedTuple):
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
class Cell:
    """Counts and times of some requests: sent then, of which ``ended`` are over, or over then; ``failed`` by error."""

    sent: int = 0
    ok: int = 0
    abandoned: int = 0
    tokens: int = 0
    ended: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    times: defaultdict[str, Histogram] = field(default_factory=lambda: defaultdict(Histogram))

    @property
    def errors(self) -> int:
        """Failed requests."""
        return self.failed.total()

    @property
    def in_flight(self) -> int:
        """By how many it raised the number in flight."""
        return self.sent - self.ok - self.abandoned - self.errors

    def merge(self, other: Cell) -> None:
        """Count what another one counted, too."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.failed.update(other.failed)
        for name, histogram in other.times.items():
            self.times[name].merge(histogram)


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
        """The ends of the stages, nanoseconds after wave start, increasing; may be told again as there come more.

        What was sent or over by now is counted under those known before. An arrival due after the last end is of the
        stage after it.
        """
        self.count()
        self.stage_ends = tuple(ends_ns)

    def add_stage(self, start_ns: int) -> None:
        """Another stage begins then, later than those before."""
        self.set_stages([*self.stage_ends, start_ns])

    def count(self) -> None:
        """Count the rows and sendings that are waiting."""
        for place, sent in self._places(self.sendings).items():
            self._count_sent(self._cells[place], sent)
        self.sendings.clear()
        if self.rows:
            self.on_rows()
            for (second, stage, outcome, error), columns in self._groups().items():
                self._count_columns(self._cells[second, stage], columns, outcome, error)
                self._count_ended(stage, columns.sent)
            self.rows.clear()

    def stream(self, times: list[int], gaps_us: list[int], tokens: int) -> None:
        """The last row is a stream's: when its pieces came, the gaps between them, and its output tokens."""
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

    def repeat(self, arrived: int) -> None:
        """The last row is a further attempt of an arrival that was due then: from there its response time counts."""
        row = Row(*self.rows.pop())
        if row.arrival >= 0:
            columns, stage = Columns.of([row])._replace(arrived=(arrived,)), self._stage(row.due)
            self._count_columns(self._cells[row.done // NS, stage], columns, row.outcome & _OUTCOME, row.error)
            self._count_ended(stage, columns.sent)

    def take(self) -> list[dict[str, Any]]:
        """The cells to which something came since the last call, as JSON; whoever reads them adds them up."""
        self.count()
        cells = [{"s": second, "n": stage, **cell.to_json()} for (second, stage), cell in self._cells.items()]
        self._cells.clear()
        return cells

    def _stage(self, due: int) -> int:
        return bisect_right(self.stage_ends, due) if self.stage_ends else 0

    def _places(self, sendings: list[tuple[int, int]]) -> dict[tuple[int, int], Sequence[Any]]:
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

    def _groups(self) -> dict[_Group, Columns]:
        """Columns of the rows by second, stage, outcome and error, without the warm-up's; mostly all are of one."""
        rows = self.rows
        of_all = Columns.of(rows)
        second, last = of_all.done[0] // NS, of_all.done[-1] // NS  # they are written as they end
        is_one_place = second == last and not self._several_stages(of_all.due)
        if is_one_place and min(of_all.arrival) >= 0 and not any(of_all.error):
            outcomes = {packed & _OUTCOME for packed in set(of_all.outcome)}
            if len(outcomes) == 1:
                return {(second, self._stage(of_all.due[0]), outcomes.pop(), 0): of_all}
        groups: defaultdict[_Group, list[Packed]] = defaultdict(list)
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


class Feed:
    """All workers' cells added up: each of the last ``KEPT_S`` seconds by stage, and the whole of each stage.

    ``newest`` is the last second of which something came, ``in_flight`` what was sent and is not over, ``failed`` the
    failed requests by error, ``waiting`` the requests in flight by the second in which they were sent. Its memory does
    not grow with the length of the wave.
    """

    def __init__(self) -> None:
        self.newest = -1
        self.in_flight = 0
        self.failed: Counter[str] = Counter()
        self.waiting: Counter[int] = Counter()
        self._seconds: dict[int, dict[int, Cell]] = {}
        self._stages: dict[int, Cell] = {}
        self._lags: dict[int, dict[str, Histogram]] = {}

    def merge(self, data: Any, errors: Sequence[str], host: str | None = None) -> None:
        """Add a worker's cells; ``errors`` are the names of its error numbers. ValueError where they are none.

        ``host``: that of the worker, where the wave has any.
        """
        for second, stage, cell in read_cells(data, errors):
            if host is not None and "lag" in cell.times:
                self._lags.setdefault(stage, {}).setdefault(host, Histogram()).merge(cell.times["lag"])
            self._stages.setdefault(stage, Cell()).merge(cell)
            self.newest = max(self.newest, second)
            self.in_flight += cell.in_flight
            self.failed.update(cell.failed)
            self.waiting[second] += cell.sent - cell.ended
            if not self.waiting[second]:
                del self.waiting[second]
            if second > self.newest - KEPT_S:
                self._seconds.setdefault(second, {}).setdefault(stage, Cell()).merge(cell)
        if len(self._seconds) > KEPT_S:
            self._seconds = {second: of for second, of in self._seconds.items() if second > self.newest - KEPT_S}

    def second(self, second: int) -> Cell:
        """A second of all stages, not to be changed; an empty one for a second that is not kept."""
        cells = list(self._seconds.get(second, {}).values())
        return cells[0] if len(cells) == 1 else _sum(cells)

    def over(self, first: int, stop: int, stage: int | None = None) -> Cell:
        """The seconds from ``first`` to before ``stop``, of those that are kept; of one stage if it is given."""
        return _sum(
            cell
            for second in range(max(first, self.newest - KEPT_S), min(stop, self.newest + 1))
            for number, cell in self._seconds.get(second, {}).items()
            if stage in (None, number)
        )

    def stage(self, number: int) -> Cell:
        """The whole of a stage so far, from the first one's 0 on; without stages all is the first one's."""
        return _sum([self._stages[number]] if number in self._stages else [])

    def lags(self, number: int) -> Mapping[str, Histogram]:
        """The schedule lag in a stage by host; empty for a wave without hosts."""
        return self._lags.get(number, {})

    def total(self) -> Cell:
        """Everything so far."""
        return _sum(self._stages.values())


def read_cells(data: Any, errors: Sequence[str] | None = None) -> Iterator[tuple[int, int, Cell]]:
    """Second, stage and cell of each that a worker sent; ValueError where they are none. They may be anybody's.

    Without ``errors``, which are the names of the worker's error numbers, the numbers are their names.
    """
    if type(data) is not list or not all(type(each) is dict for each in data):
        raise ValueError("a feed that is no list of cells")
    for each in data:
        yield _number(each.get("s"), _MOST_SECOND), _number(each.get("n"), _MOST_STAGE), _cell(each, errors)


def _cell(data: dict[str, Any], errors: Sequence[str] | None) -> Cell:
    pairs = data.get("failed", [])
    if type(pairs) is not list or len(pairs) % 2:
        raise ValueError("a feed whose failures are no pairs")
    failed: Counter[str] = Counter()
    for error, count in zip(pairs[::2], pairs[1::2], strict=True):
        number = _number(error, None if errors is None else len(errors) - 1)
        failed[str(number) if errors is None else errors[number]] += _number(count)
    sent, ok, abandoned, tokens, ended = (_number(data.get(name, 0)) for name in _COUNTS)
    cell = Cell(sent, ok, abandoned, tokens, ended, failed)
    cell.times.update({name: Histogram.from_json(data[name]) for name in TIMES if name in data})
    return cell


def _number(value: Any, most: int | None = None) -> int:
    if type(value) is not int or not 0 <= value <= (MOST_COUNT if most is None else most):
        raise ValueError("a feed with a number out of bounds")
    return value


def _sum(cells: Iterable[Cell]) -> Cell:
    total = Cell()
    for cell in cells:
        total.merge(cell)
    return total
