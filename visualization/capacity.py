"""Capacity folders -> figures: the capacity with its interval, the curve it stands on, the course of the search."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.json_file import read_json
from inference_benchmarker.text import one_line
from inference_benchmarker.wording import duration_text, length_text
from visualization.figures import Axis, Bar, Bars, Card, Curves, Line, Points, Scale, Section
from visualization.runs import below, number, tell_apart

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

CAPACITY_FILE = "capacity.json"
_STATISTICS = {"mean": "mean", "median": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}
_WIDE = 20.0  # from where the largest is so many times the smallest, an axis is logarithmic
_LONG = 200
_FOUND = ("found", "at_least")


@dataclass(frozen=True, slots=True)
class Capacity:
    """A capacity folder: ``facts`` is its capacity.json."""

    path: Path
    label: str
    facts: dict[str, Any]
    hover: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        """Of its rates."""
        return "users" if self.facts.get("in") == "users" else "/s"

    def number(self, *keys: str) -> float | None:
        """A number of capacity.json by its keys."""
        return number(self.facts, *keys)

    def rows(self, key: str) -> list[dict[str, Any]]:
        """The objects of a list of capacity.json."""
        found = self.facts.get(key)
        return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def is_capacity(path: Path) -> bool:
    """Tells whether a folder holds the answer of a search."""
    return (path / CAPACITY_FILE).is_file()


def read_capacities(paths: Sequence[Path], metadata: Mapping[str, Mapping[str, Any]]) -> tuple[Capacity, ...]:
    """The capacity folders; ``metadata`` is keyed by their basenames. Raises BenchmarkError for a damaged file."""
    facts = [_facts(path) for path in paths]
    given = [metadata.get(path.resolve().name, {}) for path in paths]
    names = [str(data.get("legend") or each.get("name") or "") for data, each in zip(given, facts, strict=True)]
    labels = tell_apart([one_line(name, _LONG) for name in names], paths)
    hovers = [tuple(f"{key}: {value}" for key, value in data.items() if key != "legend") for data in given]
    return tuple(Capacity(*each) for each in zip(paths, labels, facts, hovers, strict=True))


def _facts(path: Path) -> dict[str, Any]:
    facts = read_json(path / CAPACITY_FILE, inside=path)
    if not isinstance(facts.get("outcome"), str):
        raise BenchmarkError(
            f"{path / CAPACITY_FILE}: is no answer of a search.", "Give a folder of `benchmark capacity`."
        )
    return facts


def lead(capacities: Sequence[Capacity]) -> str:
    """The answer of the only search there is."""
    return str(capacities[0].facts.get("headline") or "") if len(capacities) == 1 else ""


def capacity_card(capacity: Capacity) -> Card:
    """The words on one, above all figures."""
    facts, outcome = capacity.facts, str(capacity.facts["outcome"])
    return Card(
        label=capacity.label,
        verdict=outcome.replace("_", " "),
        doubtful=outcome not in _FOUND,
        missed=outcome == "not_kept",
        facts=tuple(_told(capacity)),
        headline=tuple(_headline(capacity)),
        hover=capacity.hover,
        findings=(),
        problems=(str(facts["reason"]),) if facts.get("reason") else (),
    )


def _told(capacity: Capacity) -> Iterator[str]:
    facts = capacity.facts
    if facts.get("limit"):
        yield str(facts["limit"])
    if capacity.unit == "/s":
        yield {"poisson": "Poisson arrivals", "constant": "evenly spaced arrivals"}.get(str(facts.get("arrivals")), "")
    if (seconds := capacity.number("load_s")) is not None:
        yield f"{length_text(seconds)} of load"
    if isinstance(facts.get("created"), str):
        yield f"{facts['created'][:16].replace('T', ' ')} UTC"


def _headline(capacity: Capacity) -> Iterator[tuple[str, str]]:
    """The numbers to know first."""
    unit = " users" if capacity.unit == "users" else "/s"
    rate, low, high = _ends(capacity)
    if rate is not None:
        yield "Capacity", f"{rate:,.4g}{unit}"
    elif (least := capacity.number("at_least", "rate")) is not None:
        yield "At least", f"{least:,.4g}{unit}"
    if low is not None and high is not None:
        yield "95%", f"{low:,.4g}–{high:,.4g}"
    if (by_model := capacity.number("twin", "rate")) is not None:
        yield "By the model", f"{by_model:,.4g}{unit}"
    holds = _holding(capacity)
    if holds is not None and (at_low := number(holds, "at_low")) is not None and holds.get("unit") == "s":
        yield "At the lower end", duration_text(at_low)


def _ends(capacity: Capacity) -> tuple[float | None, float | None, float | None]:
    return capacity.number("rate"), capacity.number("interval", "low"), capacity.number("interval", "high")


def _holding(capacity: Capacity) -> dict[str, Any] | None:
    """The limit that gave out first."""
    rows = capacity.rows("limits")
    return next((row for row in rows if row.get("expression") == capacity.facts.get("limit")), None)


def capacity_sections(capacities: Sequence[Capacity], first: int) -> Iterator[Section]:
    """The sections of these folders, which are the runs from number ``first`` on."""
    if not capacities:
        return
    numbered = list(enumerate(capacities, first))
    if len(capacities) > 1:
        text = "The highest rate below which every limit is kept, with its 95% interval."
        yield Section("found", "Capacity", text, tuple(_bars(numbered, first)))
    yield Section(
        "curve",
        "The curve",
        "A point for each rate that was offered, of the time that counts; the shaded band is the 95% interval of the "
        "capacity, the level line the limit.",
        tuple(_against_rate(numbered)),
    )
    yield Section(
        "search",
        "The search",
        "The rates in the order in which they were offered; a gap is a stretch that counts for nothing, or a pause in "
        "which the backlog drained.",
        tuple(_course(numbered)),
    )


def _bars(numbered: Sequence[tuple[int, Capacity]], first: int) -> Iterator[Bars]:
    for unit in dict.fromkeys(capacity.unit for _, capacity in numbered):
        found = tuple(_bar(capacity) if capacity.unit == unit else Bar() for _, capacity in numbered)
        yield Bars("Capacity", "Capacity", unit, "capacity", {"": found}, first)
    modelled = tuple(_bar_of_model(capacity) for _, capacity in numbered)
    if any(bar.value is not None for bar in modelled):
        yield Bars("By the model", "Capacity by the model", "/s", "capacity", {"": modelled}, first)


def _bar(capacity: Capacity) -> Bar:
    rate, low, high = _ends(capacity)
    if rate is not None:
        return Bar(rate, low, high)
    least = capacity.number("at_least", "rate")
    reason = str(capacity.facts.get("reason") or below(capacity.facts, "at_least", "reason") or "")
    return Bar(least, sign="≥" if least is not None else "", note=reason)


def _bar_of_model(capacity: Capacity) -> Bar:
    rate = capacity.number("twin", "rate")
    if rate is None:
        return Bar(note=str(below(capacity.facts, "twin", "reason") or "no model"))
    return Bar(rate, capacity.number("twin", "interval", "low"), capacity.number("twin", "interval", "high"))


def _against_rate(numbered: Sequence[tuple[int, Capacity]]) -> Iterator[Curves]:
    """Times, and the share of requests over the limit, against the rate; of one search with its interval as a band."""
    unit = numbered[0][1].unit
    rate, bands = Axis("Users" if unit == "users" else "Rate", "" if unit == "users" else unit), _band(numbered)
    times = [
        Line(run, "", points, statistic=choice, marked=True)
        for run, capacity in numbered
        for choice, key in _STATISTICS.items()
        if (points := _points(capacity, key))
    ]
    if times:
        yield _drawn(rate, Axis(_time_title(numbered), "ms"), (*times, *_bounds(numbered)), bands)
    over = [Line(run, "", points, marked=True) for run, capacity in numbered if (points := _over(capacity))]
    if over:
        yield _drawn(rate, Axis("Over the limit", "%"), (*over, *_allowed(numbered)), bands)


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
    _, low, high = _ends(numbered[0][1])
    return (("95%", low, high),) if len(numbered) == 1 and low is not None and high is not None else ()


def _time_title(numbered: Sequence[tuple[int, Capacity]]) -> str:
    return "Latency" if any(capacity.unit == "users" for _, capacity in numbered) else "Response time"


def _points(capacity: Capacity, key: str) -> Points:
    rows = ((number(row, "rate"), number(row, key)) for row in capacity.rows("curve"))
    return tuple(sorted((at, value * 1e3) for at, value in rows if at and value is not None))


def _over(capacity: Capacity) -> Points:
    """The share over the limit that holds, in percent."""
    expressions = [row.get("expression") for row in capacity.rows("limits")]
    if capacity.facts.get("limit") not in expressions:
        return ()
    place = expressions.index(capacity.facts["limit"])
    found = ((number(row, "rate"), _share(row, place)) for row in capacity.rows("curve"))
    return tuple(sorted((at, share * 100) for at, share in found if at and share is not None))


def _share(row: dict[str, Any], place: int) -> float | None:
    shares = row.get("share_over")
    return number({"": shares[place]}, "") if isinstance(shares, list) and place < len(shares) else None


def _bounds(numbered: Sequence[tuple[int, Capacity]]) -> Iterator[Line]:
    """The limits on a time as level lines, each where its own percentile is shown."""
    ends = _span(numbered)
    for choice, bound in dict.fromkeys(each for _, capacity in numbered for each in _percentile_limits(capacity)):
        yield Line(None, "limit", tuple((at, bound * 1e3) for at in ends), statistic=choice)


def _percentile_limits(capacity: Capacity) -> Iterator[tuple[str, float]]:
    """The statistic and the bound in seconds of each limit on a time that can be chosen."""
    for row in capacity.rows("limits"):
        bound, allowed = number(row, "bound"), number(row, "allowed")
        if row.get("metric") in ("response_time", "latency") and bound is not None and allowed is not None:
            percent = round(100 - 100 * allowed, 6)
            choice = "median" if percent == 50 else f"p{percent:g}"
            if choice in _STATISTICS:
                yield choice, bound


def _allowed(numbered: Sequence[tuple[int, Capacity]]) -> Iterator[Line]:
    """The share that may be over, as a level line."""
    shares = [number(_holding(capacity), "allowed") for _, capacity in numbered]
    for share in dict.fromkeys(each for each in shares if each is not None):
        yield Line(None, "allowed", tuple((at, share * 100) for at in _span(numbered)))


def _span(numbered: Sequence[tuple[int, Capacity]]) -> tuple[float, float]:
    """The lowest and the highest rate of all curves."""
    rates = [at for _, capacity in numbered for row in capacity.rows("curve") if (at := number(row, "rate"))]
    return min(rates, default=0.0), max(rates, default=1.0)


def _course(numbered: Sequence[tuple[int, Capacity]]) -> Iterator[Curves]:
    """The rate over the time of the search."""
    lines = tuple(Line(run, "", tuple(_offered(capacity)), stepped=True) for run, capacity in numbered)
    if any(line.points for line in lines):
        unit = numbered[0][1].unit
        yield Curves("Rate over the search", Axis("Since its start", "s"), Axis("Rate", unit), lines)


def _offered(capacity: Capacity) -> Iterator[tuple[float, float | None]]:
    end, last = 0.0, None
    for row in capacity.rows("stretches"):
        start, stop, rate = (number(row, key) for key in ("start_s", "end_s", "rate"))
        if start is not None and stop is not None:
            last = None if row.get("void") or not rate else rate
            yield start, last
            end = stop
    if end:
        yield end, last
