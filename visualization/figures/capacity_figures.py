"""Capacity folders -> figures: the capacity with its interval, the curve it stands on, the course of the search."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from visualization.figures.capacity import confirmed_wave
from visualization.figures.figures import Axis, Bar, Bars, Curves, Line, Points, Scale, Section

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from server_capacity.results.types.search_waves import LimitRow, Point
    from visualization.figures.capacity import Capacity

_STATISTICS: dict[str, Callable[[Point], float | None]] = {
    "mean": lambda point: point.mean,
    "median": lambda point: point.p50,
    "p90": lambda point: point.p90,
    "p95": lambda point: point.p95,
    "p99": lambda point: point.p99,
}
LIMITS = ("limit", "allowed")
"""The names of lines that are one."""

_DRAWN = 8  # points of a fitted curve to either side
_FLATTEST = 0.5  # slope of a fit that is drawn: a search finds 1 at least, and what is flatter leaves the chart
_WIDE = 20.0  # from where the largest is so many times the smallest, an axis is logarithmic


def capacity_sections(capacities: Sequence[Capacity], first: int) -> Iterator[Section]:
    """The sections of these folders, which are the runs from number ``first`` on."""
    if not capacities:
        return
    numbered = list(enumerate(capacities, first))
    if len(capacities) > 1:
        text = "The highest rate below which every limit is met, with its 95% interval."
        yield Section("found", "Capacity", text, tuple(_bars(numbered, first)))
    yield Section(
        "curve",
        "The curve",
        " ".join(_how_to_read(numbered)),
        tuple(chain.from_iterable(map(_against_rate, _by_unit(numbered)))),
    )
    yield Section(
        "search",
        "The search",
        "The rates in the order in which they were sent; a gap is a discarded stretch, or a pause in which the "
        "backlog drained.",
        tuple(chain.from_iterable(map(_course, _by_unit(numbered)))),
    )


def _how_to_read(numbered: Sequence[tuple[int, Capacity]]) -> Iterator[str]:
    """A sentence for each thing that the curves have, and none for what they have not."""
    yield "One point per offered rate, without the time that was discarded; the horizontal dashed line is the limit."
    if _band(numbered):
        yield "The shaded band is the 95% interval of the capacity."
    if any(_confirmed(numbered)):
        yield 'The ring named "confirmed" is the wave that confirmed the answer.'
    if any(_over(capacity) for _, capacity in numbered):
        yield f"In the chart of the share over the limit, {'; '.join(_how_to_read_shares(numbered))}."


def _how_to_read_shares(numbered: Sequence[tuple[int, Capacity]]) -> Iterator[str]:
    yield "a rate at which no request was over it has no point"
    estimated = {line.name for line in _estimated(numbered[0][1])} if len(numbered) == 1 else set()
    if "fit" in estimated:
        yield "the dashed curves are the fits near the limit and at the interval's ends"
    if "model" in estimated:
        yield 'the ring named "model" is the rate by the queueing model'


def _by_unit(numbered: Sequence[tuple[int, Capacity]]) -> Iterator[list[tuple[int, Capacity]]]:
    """The searches in requests a second, in sessions a second and in users, which share no axis."""
    for unit in dict.fromkeys(capacity.unit for _, capacity in numbered):
        yield [each for each in numbered if each[1].unit == unit]


def _bars(numbered: Sequence[tuple[int, Capacity]], first: int) -> Iterator[Bars]:
    for unit in dict.fromkeys(capacity.unit for _, capacity in numbered):
        found = tuple(_bar(capacity) if capacity.unit == unit else Bar() for _, capacity in numbered)
        yield Bars("Capacity", "Capacity", unit, "capacity", {"": found}, first)
    modelled = tuple(_bar_of_model(capacity) for _, capacity in numbered)
    if any(bar.value is not None for bar in modelled):
        yield Bars("By the model", "Capacity by the model", "/s", "capacity", {"": modelled}, first)


def _bar(capacity: Capacity) -> Bar:
    rate, low, high = capacity.ends
    if rate is not None:
        return Bar(rate, low, high)
    least = capacity.found.at_least
    reason = capacity.found.reason or (least.reason if least else "")
    return Bar(note=reason) if least is None else Bar(least.rate, sign="≥", note=reason)


def _bar_of_model(capacity: Capacity) -> Bar:
    twin = capacity.found.twin
    if twin is None or twin.rate is None:
        return Bar(note=(twin and twin.reason) or "no model")
    return Bar(twin.rate) if twin.interval is None else Bar(twin.rate, twin.interval.low, twin.interval.high)


def _against_rate(numbered: Sequence[tuple[int, Capacity]]) -> Iterator[Curves]:
    """Times, and the share of requests over the limit, against the rate; of one search with its interval as a band."""
    rate, bands = _load_axis(numbered), _band(numbered)
    times = [
        Line(run, "", points, statistic=choice, marked=True)
        for run, capacity in numbered
        for choice, of in _STATISTICS.items()
        if (points := _points(capacity, of))
    ]
    if times:
        drawn = (*times, *_confirmed(numbered), *_bounds(numbered))
        yield _drawn(rate, Axis(_time_title(numbered), "ms"), drawn, bands)
    over = [Line(run, "", points, marked=True) for run, capacity in numbered if (points := _over(capacity))]
    if over:
        drawn = (*over, *_allowed(numbered), *(_estimated(numbered[0][1]) if len(numbered) == 1 else ()))
        yield _drawn(rate, Axis("Over the limit", "%"), drawn, bands)


def _load_axis(numbered: Sequence[tuple[int, Capacity]]) -> Axis:
    unit = numbered[0][1].unit
    return Axis("Users", "") if unit == "users" else Axis("Rate", unit)


def _drawn(x: Axis, y: Axis, lines: tuple[Line, ...], bands: tuple[tuple[str, float, float], ...]) -> Curves:
    values = [y for line in lines for _, y in line.points if y]
    scale: Scale = "log" if values and max(values) > _WIDE * min(values) else "linear"
    if scale == "log":  # which has no place for none
        lines = tuple(_above_nothing(line) for line in lines)
    return Curves(f"{y.title} against {x.title.lower()}", x, replace(y, scale=scale), lines, bands)


def _above_nothing(line: Line) -> Line:
    return replace(line, points=tuple((x, y if y else None) for x, y in line.points))


def _band(numbered: Sequence[tuple[int, Capacity]]) -> tuple[tuple[str, float, float], ...]:
    """The interval of the only search there is."""
    _, low, high = numbered[0][1].ends
    return (("95% interval", low, high),) if len(numbered) == 1 and low is not None and high is not None else ()


def _time_title(numbered: Sequence[tuple[int, Capacity]]) -> str:
    return "Latency" if any(capacity.unit == "users" for _, capacity in numbered) else "Response time"


def _points(capacity: Capacity, of: Callable[[Point], float | None]) -> Points:
    rows = ((point.rate, of(point)) for point in capacity.found.curve or [])
    return tuple(sorted((at, value * 1e3) for at, value in rows if at and value is not None))


def _over(capacity: Capacity) -> Points:
    """The share over the limit that holds, in percent."""
    place = next((n for n, row in enumerate(capacity.found.limits) if row.expression == capacity.found.limit), None)
    if place is None:
        return ()
    found = ((point.rate, point.share_over[place : place + 1]) for point in capacity.found.curve or [])
    return tuple(sorted((at, share * 100) for at, shares in found for share in shares if at and share is not None))


def _bounds(numbered: Sequence[tuple[int, Capacity]]) -> Iterator[Line]:
    """The limits on a time as level lines, each where its own percentile is shown."""
    ends = _span(numbered)
    for choice, bound in dict.fromkeys(each for _, capacity in numbered for each in _percentile_limits(capacity)):
        yield Line(None, "limit", tuple((at, bound * 1e3) for at in ends), statistic=choice)


def _percentile_limits(capacity: Capacity) -> Iterator[tuple[str, float]]:
    """The statistic and the bound in seconds of each limit on a time that can be chosen."""
    for row in capacity.found.limits:
        if row.bound is not None and (choice := _statistic_of(row)) is not None:
            yield choice, row.bound


def _statistic_of(row: LimitRow) -> str | None:
    """The statistic that a limit on a time is of, where it can be chosen."""
    if row.metric not in ("response_time", "latency") or row.allowed is None:
        return None
    percent = round(100 - 100 * row.allowed, 6)
    choice = "median" if percent == 50 else f"p{percent:g}"
    return choice if choice in _STATISTICS else None


def _confirmed(numbered: Sequence[tuple[int, Capacity]]) -> Iterator[Line]:
    """The value of each limit on a time in the wave that confirmed the answer, as a point of its own."""
    for _, capacity in numbered:
        wave = confirmed_wave(capacity)
        values = {} if wave is None else {each.expression: each.value for each in wave.limits}
        for row in capacity.found.limits:
            value, choice = values.get(row.expression), _statistic_of(row)
            if wave is not None and value is not None and choice is not None:
                yield Line(None, "confirmed", ((wave.rate, value * 1e3),), statistic=choice, marked=True)


def _allowed(numbered: Sequence[tuple[int, Capacity]]) -> Iterator[Line]:
    """The share that may be over, as a level line."""
    shares = [capacity.holding.allowed for _, capacity in numbered if capacity.holding]
    for share in dict.fromkeys(each for each in shares if each is not None):
        yield Line(None, "allowed", tuple((at, share * 100) for at in _span(numbered)))


def _estimated(capacity: Capacity) -> Iterator[Line]:
    """The share over near the limit, by the fit and by the ends of its interval; and where the model has it."""
    row, twin = capacity.holding, capacity.found.twin
    if row is None or not row.allowed or row.rate is None:
        return
    if row.slope is not None and row.slope >= _FLATTEST:
        _, low, high = capacity.ends  # the band's: of a server that remembers they are farther apart than the limit's
        for name, rate in (("fit", row.rate), ("low", low), ("high", high)):
            if rate:
                yield Line(None, name, tuple(_fitted(float(rate), row.slope, row.allowed)), dashed=name == "fit")
    if twin is not None and twin.fits and twin.rate is not None:
        yield Line(None, "model", ((twin.rate, row.allowed * 100),), marked=True)


def _fitted(rate: float, slope: float, allowed: float) -> Iterator[tuple[float, float]]:
    """From a tenth of what is allowed to ten times that: its logarithm is about linear in the rate."""
    for tenth in range(-_DRAWN, _DRAWN + 1):
        away = tenth / _DRAWN * math.log(10.0)
        at, share = rate * (1.0 + away / slope), allowed * math.exp(away)
        if at > 0 and share <= 1:
            yield at, share * 100


def _span(numbered: Sequence[tuple[int, Capacity]]) -> tuple[float, float]:
    """The lowest and the highest rate of all curves."""
    rates = [point.rate for _, capacity in numbered for point in capacity.found.curve or [] if point.rate]
    return min(rates, default=0.0), max(rates, default=1.0)


def _course(numbered: Sequence[tuple[int, Capacity]]) -> Iterator[Curves]:
    """The rate over the time of the search."""
    lines = tuple(Line(run, "", tuple(_offered(capacity)), stepped=True) for run, capacity in numbered)
    if any(line.points for line in lines):
        offered = _load_axis(numbered)
        yield Curves(f"{offered.title} over the search", Axis("Since its start", "s"), offered, lines)


def _offered(capacity: Capacity) -> Iterator[tuple[float, float | None]]:
    end, last = 0.0, None
    for row in capacity.found.stretches or []:
        last = None if row.void or not row.rate else row.rate
        yield row.start_s, last
        end = row.end_s
    if end:
        yield end, last
