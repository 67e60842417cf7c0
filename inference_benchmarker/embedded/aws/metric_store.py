"""The metrics that CloudWatch received, cut into buckets. Pure: the present comes in as an argument.

Instants are seconds since the epoch. A cell is what one publication said of one metric: its raw values as long as
they are kept, and their summary for ever. ``EXACT_VALUES`` raw values are kept at 8 bytes each; beyond that the
oldest cells keep their summary only, and have no percentiles any more. A metric keeps its newest ``CELLS`` cells.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, deque
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter, mul
from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.embedded.aws.statistics import Samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

EXACT_VALUES = 8_000_000
CELLS = 50_000
SUB_MINUTE = (1, 5, 10, 20, 30)
_HOUR, _DAY = 3600, 86_400
_AT = attrgetter("timestamp")


class Metric(NamedTuple):
    """A metric's identity: the dimensions are a set, and another set is another metric."""

    namespace: str
    name: str
    dimensions: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Summary:
    """The count, sum, least and largest of samples without their values."""

    count: float
    total: float
    low: float
    high: float


class Cell:
    """One publication: ``values`` occurred ``counts`` times (None: once each), or only a summary of them.

    The summary of values is made when it is first asked for: a publication has to cost next to nothing.
    """

    __slots__ = ("_summary", "counts", "timestamp", "unit", "values", "visible_at")

    def __init__(
        self,
        timestamp: float,
        visible_at: float,
        unit: str,
        values: Sequence[float] | Summary,
        counts: Sequence[float] | None = None,
    ) -> None:
        self.timestamp = timestamp
        self.visible_at = visible_at
        self.unit = unit
        self._summary: Summary | None = None
        self.values: Sequence[float] | None = None
        self.counts = counts
        if not isinstance(values, Summary):
            self.values = values
            return
        self._summary = values
        if values.low == values.high:  # then the values are known all the same
            self.values, self.counts = [values.low], [values.count]

    @property
    def summary(self) -> Summary:
        """The samples without their values."""
        if self._summary is None:
            values, counts = self.values, self.counts
            assert values is not None
            count = len(values) if counts is None else sum(counts)
            total = sum(values) if counts is None else sum(map(mul, values, counts))
            self._summary = Summary(count, total, min(values), max(values))
        return self._summary

    def forget_values(self) -> None:
        """Keep the summary only."""
        self._summary = self.summary
        self.values = self.counts = None

    def count_into(self, values: Counter[float]) -> None:
        """Add the raw values to a count of them."""
        assert self.values is not None
        if self.counts is None:
            values.update(self.values)
            return
        for value, weight in zip(self.values, self.counts, strict=True):
            values[value] += weight  # type: ignore[assignment]  # weights of statistic sets need not be whole


class MetricStore:
    """All cells by metric, in the order of their timestamps."""

    def __init__(self, exact_values: int = EXACT_VALUES) -> None:
        self._cells: dict[Metric, list[Cell]] = {}
        self._exact: deque[Cell] = deque()
        self._room = exact_values

    def add(self, metric: Metric, cell: Cell) -> None:
        """Take a publication in."""
        cells = self._cells.setdefault(metric, [])
        insort(cells, cell, key=_AT)
        if len(cells) > CELLS:
            del cells[: CELLS // 10]
        if cell.counts is None and cell.values is not None:
            self._exact.append(cell)
            self._room -= len(cell.values)
            self._make_room()

    def metrics(self) -> Iterable[Metric]:
        """Every metric that was ever published."""
        return self._cells.keys()

    def cells(self, metric: Metric, start: float, end: float, now: float) -> Iterator[Cell]:
        """The visible cells of a metric, from ``start`` up to and without ``end``."""
        cells = self._cells.get(metric, [])
        for cell in cells[bisect_left(cells, start, key=_AT) : bisect_left(cells, end, key=_AT)]:
            if cell.visible_at <= now:
                yield cell

    def _make_room(self) -> None:
        while self._room < 0 and self._exact:
            oldest = self._exact.popleft()
            self._room += len(oldest.values or ())
            oldest.forget_values()


def floor_instant(instant: float, period: int, now: float) -> int:
    """The instant at which CloudWatch begins (or ends) when asked for this one: a minute, or the period's part of one.

    From 15 days ago on, five minutes; from 63 days ago on, an hour. Period 1 begins at its second.
    """
    grain = period if period in SUB_MINUTE else _coarsest(now - instant)
    return int(instant // grain) * grain


def _coarsest(age: float) -> int:
    return 60 if age < 15 * _DAY else 300 if age < 63 * _DAY else _HOUR


def _retained(period: int, age: float) -> bool:
    """Tells whether data of that age still exists in that resolution."""
    return period % _coarsest(age) == 0 or (period in SUB_MINUTE and age <= 3 * _HOUR)


def datapoints(
    cells: Callable[[float, float], Iterable[Cell]],
    window: tuple[float, float],
    period: int,
    now: float,
    statistic: Callable[[Samples], float | None],
) -> list[tuple[int, float]]:
    """(bucket start, value), ascending, of the buckets that have data; buckets are counted from the start.

    ``cells`` gives what there is between two instants. Start and end are rounded down as ``floor_instant`` says;
    the end is exclusive. A bucket where the statistic is unknown has no point.
    """
    start, end = (floor_instant(instant, period, now) for instant in window)
    if not _retained(period, now - window[0]):
        return []
    points = (
        (start + number * period, statistic(gather(inside)))
        for number, inside in groupby(cells(start, end), lambda cell: int((cell.timestamp - start) // period))
    )
    return [(at, value) for at, value in points if value is not None]


def gather(cells: Iterable[Cell]) -> Samples:
    """The samples of one or more cells together."""
    cells = list(cells)
    values: Counter[float] | None = None
    if all(cell.values is not None for cell in cells):
        values = Counter()
        for cell in cells:
            cell.count_into(values)
    summaries = [cell.summary for cell in cells]
    return Samples(
        count=sum(each.count for each in summaries),
        total=sum(each.total for each in summaries),
        low=min(each.low for each in summaries),
        high=max(each.high for each in summaries),
        values=values,
    )
