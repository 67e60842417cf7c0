"""The live feed: what a worker's requests came to in each second and stage, small enough to be sent while a wave runs.

A worker adds up its requests in cells, one for each second and stage (``feed_writer``), and sends what came since its
last batch. Whoever follows the wave adds up the cells of all workers (``Feed``). It is for what is shown or decided
while the wave runs; what is stored is computed from the records. Warm-up is not counted. Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from inference_benchmarker.records.histogram import MOST_COUNT, Histogram
from inference_benchmarker.words.units import MAX_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

KEPT_S = 75  # a view shows a minute, and a worker may be some seconds behind; a second takes up to 60 kB
_MOST_SECOND = 3 * MAX_SECONDS
_MOST_STAGE = 1_000_000
_COUNTS = ("sent", "ok", "abandoned", "tokens", "ended")
TIMES = ("latency", "response_time", "lag", "ttft", "itl", "tpot")
"""As in the summary: latency, response time, TTFT and ITL of ok and abandoned requests, TPOT of ok ones, lag of all."""


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
