"""The lines of the live view: how the wave goes now, and each second of its last minute. All of it is from the feed."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.steering import rate_at
from inference_benchmarker.records.feed import KEPT_S
from inference_benchmarker.records.turn_feed import PARTS
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import duration_text, metric_text, percent_text, rate_text, unit_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from inference_benchmarker.facts.server_metric import LiveMetric
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.records.feed import Cell, Feed
    from inference_benchmarker.records.turn_feed import TurnFeed
    from inference_benchmarker.wave.spool.spool_state import SpoolState

LINE_S = 60
WINDOW_S = 5
LAG_LIMIT_S = 0.005  # as the schedule lag's least limit
APART = 1.1  # response time that is so much above latency is shown beside it
SILENT_S = 3  # a worker reports every second at the least
_MOST_HOSTS, _LONG = 8, 20
LEAST_GROWTH = 0.05  # of the rate: what is in flight swings by less
_NOTHING, _BARS = "▁", "▂▃▄▅▆▇"  # none fills its line: steady figures would be a wall

Points = list[float | None]


@dataclass(frozen=True, slots=True)
class LiveFigure:
    """One figure: its name, its value now, and its value in each whole second of the last minute."""

    name: str
    value: str
    points: Points
    alarm: bool = False


def sparkline(points: Sequence[float | None], stop: int, width: int, minute: int = LINE_S) -> str:
    """A bar for each stretch of the last minute up to second ``stop``, as high as its highest point.

    ``minute``: its seconds, fewer in a shorter wave.

    Stretches begin at whole multiples of their length, so that a bar stays as it is while it moves.
    """
    if width < 1:
        return ""
    length = -(-minute // width)
    known: defaultdict[int, list[float]] = defaultdict(list)
    for second, point in enumerate(points, stop - len(points)):
        known[second // length] += [] if point is None else [point]
    highest = [max(known[place], default=None) for place in sorted(known)]
    top = max((value for value in highest if value is not None), default=0.0)
    return "".join(" " if value is None else _bar(value, top) for value in highest)[-(minute // length) :]


def _bar(value: float, top: float) -> str:
    return _BARS[round(value / top * (len(_BARS) - 1))] if value > 0 else _NOTHING


def rows(plan: WavePlan, spool_state: SpoolState) -> list[LiveFigure]:
    """The figures of the wave, in the order in which they are shown."""
    stop = spool_state.whole_seconds
    first = max(0, stop - LINE_S)
    minute = [spool_state.feed.second(second) for second in range(first, stop)]
    recent = spool_state.feed.over(stop - WINDOW_S, stop)
    asked = [] if spool_state.has_sessions else _asked(plan, spool_state, first, stop)
    return [
        *_sessions(spool_state),
        *_rates(plan, minute, recent, asked, spool_state.ledger.repeated),
        *_in_flight(spool_state, first, stop),
        *_times(plan, minute, recent),
        *_turns(spool_state.turns, first, stop),
        *_errors(spool_state, minute, recent),
        *_hosts(plan, spool_state),
    ]


def _rates(plan: WavePlan, minute: list[Cell], recent: Cell, asked: Points, repeated: int) -> Iterator[LiveFigure]:
    seconds = max(min(WINDOW_S, len(minute)), 1)
    steady = isinstance(plan.load, OpenLoop) and plan.load.is_steady and not plan.load.replay and not plan.load.steered
    known = [rate for rate in asked[-WINDOW_S:] if rate is not None]
    rate = rate_text(sum(known) / len(known)) if known else ""
    over = "" if steady or not known else f" over {seconds} s"
    if known and plan.load.is_steered:
        # one figure for what is asked: that of the keys, which a mean over seconds would contradict
        yield LiveFigure("target", f"{known[-1]:,.1f}/s now", asked)
    elif rate and (repeated or not steady):
        yield LiveFigure("target", f"{sum(known) / len(known):,.1f}/s{over}", asked)
    more = " with repeats" if repeated else f" of {rate}" if rate and steady else over
    yield LiveFigure("sent", f"{recent.sent / seconds:,.1f}/s{more}", [float(cell.sent) for cell in minute])
    if repeated:
        yield LiveFigure("repeats", f"{repeated:,}", [])
    yield LiveFigure("completed", f"{recent.ok / seconds:,.1f}/s{over}", [float(cell.ok) for cell in minute])


def _sessions(spool_state: SpoolState) -> Iterator[LiveFigure]:
    """The sessions by now, where arrivals are sessions."""
    if not spool_state.has_sessions:
        return
    ledger = spool_state.ledger
    yield LiveFigure("sessions", f"{ledger.arrivals:,} started, {ledger.sessions_open:,} open", [])
    broken = ledger.sessions_failed + ledger.sessions_raised
    text = f"{ledger.sessions_completed:,}" + (f", {broken:,} not" if broken else "")
    yield LiveFigure("sessions completed", text, [], broken > 0)


def _hosts(plan: WavePlan, spool_state: SpoolState) -> Iterator[LiveFigure]:
    """The requests that the first few hosts sent; an alarm where a worker of one has not reported for a while."""
    if plan.hosts.workers != len(spool_state.workers):
        return
    latest = max((worker.at for worker in spool_state.workers), default=0)
    for name, numbers in list(plan.hosts.numbers.items())[:_MOST_HOSTS]:
        workers = [spool_state.workers[number] for number in numbers]
        sent, flying = (sum(getattr(each.ledger, key) for each in workers) for key in ("sent", "in_flight"))
        silent = any(latest - each.at > SILENT_S * NS and not each.final for each in workers)
        yield LiveFigure(one_line(name, _LONG), f"{sent:,} sent, {flying:,} in flight", [], silent)


def minute_of(plan: WavePlan, stop: int) -> int:
    """The seconds that a line is for, up to second ``stop``: of a wave that lasts less than a minute, its own."""
    expected = LINE_S if plan.expected_s is None else math.ceil(plan.expected_s)
    return min(max(expected, stop, 1), LINE_S)


def last_arrival_ns(plan: WavePlan, spool_state: SpoolState) -> int | None:
    """When the last arrival is due, as far as is known by now: the plan's end, or that of a wave that was ended."""
    ends = (plan.bounds.duration_ns, spool_state.planned_end, spool_state.end_at)
    return min((end for end in ends if end is not None), default=None)


def _asked(plan: WavePlan, spool_state: SpoolState, first: int, stop: int) -> Points:
    """The rate in the middle of each second, in the last one the newest; none is asked for when the time is over."""
    end = last_arrival_ns(plan, spool_state)
    middles = [second * NS + NS // 2 for second in range(first, stop)]
    rates = [rate_at(plan.load, spool_state.changes, middle) for middle in middles]
    if rates and plan.load.is_steered and spool_state.changes:
        rates[-1] = float(spool_state.changes[-1].rate)
    return [rate and (rate if end is None or at < end else 0.0) for at, rate in zip(middles, rates, strict=True)]


def _in_flight(spool_state: SpoolState, first: int, stop: int) -> Iterator[LiveFigure]:
    feed, ledger = spool_state.feed, spool_state.ledger
    numbers = in_flight(feed, first, stop)
    text, grows = f"{ledger.in_flight:,}", False
    if len(numbers) > WINDOW_S:
        growth = (numbers[-1] - numbers[-1 - WINDOW_S]) / WINDOW_S
        grows = numbers[-1] > numbers[-2] and growth >= max(
            1.0, LEAST_GROWTH * feed.over(stop - WINDOW_S, stop).sent / WINDOW_S
        )
        text += f", falling behind: +{growth:,.0f}/s" if grows else ""
    yield LiveFigure("in flight", text, [float(number) for number in numbers], grows)
    if ledger.dropped:
        yield LiveFigure("dropped", f"{ledger.dropped:,}", [], alarm=True)


def in_flight(feed: Feed, first: int, stop: int) -> list[int]:
    """The number in flight at the end of each second, from what is in flight now backwards."""
    newest = max(feed.newest, stop - 1)
    kept = max(first, newest - KEPT_S)
    changes = [feed.second(second).in_flight for second in range(newest, kept, -1)]
    backwards = list(accumulate(changes, lambda number, change: number - change, initial=feed.in_flight))
    return backwards[::-1][: max(stop - kept, 0)]


def _times(plan: WavePlan, minute: list[Cell], recent: Cell) -> Iterator[LiveFigure]:
    for percent in (50, 99):
        yield from _time("latency", "latency", percent, minute, recent)
    if isinstance(plan.load, OpenLoop):
        response = _value(recent, "response_time", 99)
        if response is not None and response > APART * (_value(recent, "latency", 99) or 0.0):
            yield from _time("response time", "response_time", 99, minute, recent)
    for row in _time("lag", "lag", 99, minute, recent):
        late = (_value(recent, "lag", 99) or 0.0) > LAG_LIMIT_S
        yield replace(row, alarm=late)
    for name in ("TTFT", "ITL"):
        for percent in (50, 99):
            yield from _time(name, name.lower(), percent, minute, recent)
    if recent.tokens:
        tokens = recent.tokens / max(min(WINDOW_S, len(minute)), 1)
        yield LiveFigure("tokens", f"{tokens:,.0f}/s", [float(cell.tokens) for cell in minute])


def _turns(turns: TurnFeed, first: int, stop: int) -> Iterator[LiveFigure]:
    """The latency (of streams the time to their first token) and the context of first turns and of later ones.

    The context has the share that was cached, where the server says so.
    """
    for name in PARTS if turns.any else ():
        minute = [turns.second(name, second) for second in range(first, stop)]
        recent = turns.over(name, stop - WINDOW_S, stop)
        time, key = ("TTFT", "ttft") if "ttft" in recent.times else ("latency", "latency")
        yield from _time(f"turn {name} {time}", key, 99, minute, recent)
        yield from _context(f"turn {name} context", turns, name, first, stop)


def _context(called: str, turns: TurnFeed, name: str, first: int, stop: int) -> Iterator[LiveFigure]:
    recent = turns.contexts(name, stop - WINDOW_S, stop)
    if recent.mean is None:
        return
    share = "" if recent.cached_share is None else f", {percent_text(recent.cached_share)} cached"
    minute = [turns.contexts(name, second, second + 1).mean for second in range(first, stop)]
    yield LiveFigure(called, f"{recent.mean:,.0f} tokens{share}", minute)


def _time(name: str, key: str, percent: int, minute: list[Cell], recent: Cell) -> Iterator[LiveFigure]:
    value = _value(recent, key, percent)
    if value is not None:
        yield LiveFigure(f"{name} p{percent}", about(value), [_value(cell, key, percent) for cell in minute])


def _value(cell: Cell, key: str, percent: int) -> float | None:
    histogram = cell.times.get(key)
    return None if histogram is None else histogram.percentile(percent)


def _errors(spool_state: SpoolState, minute: list[Cell], recent: Cell) -> Iterator[LiveFigure]:
    failed = spool_state.ledger.failed
    now = f", {recent.errors / max(min(WINDOW_S, len(minute)), 1):,.1f}/s" if recent.errors else ""
    yield LiveFigure("errors", f"{failed:,}{now}", [float(cell.errors) for cell in minute], failed > 0)


def error_names(feed: Feed) -> list[str]:
    """The errors so far, most frequent first."""
    return [f"{count:,} x {one_line(name)}" for name, count in feed.failed.most_common(5)]


def stage_text(plan: WavePlan, now_s: float) -> str:
    """The stage of this moment and the time that it has left; empty where there is none."""
    if not isinstance(plan.load, OpenLoop) or not plan.load.stages or now_s < 0:
        return ""
    ends = accumulate(float(stage.duration_s) for stage in plan.load.stages)
    for place, (name, stage, end) in enumerate(zip(plan.load.stage_names, plan.load.stages, ends, strict=True), 1):
        if now_s < end:
            of = f"{place} of {len(plan.load.stages)}"
            which = f"{name} ({of})" if stage.name else of
            return f"{which}: {rates_text(stage.from_rps, stage.to_rps)}, {end - now_s:,.0f} s left"
    return ""


def rates_text(first: object, last: object) -> str:
    """100/s, or 100..400/s."""
    return f"{first}/s" if first == last else f"{first}..{last}/s"


def server_texts(readings: Iterable[LiveMetric]) -> list[str]:
    """The server's metrics of this moment."""
    return [f"{one_line(reading.name)} {_reading_text(reading)}" for reading in readings]


def _reading_text(reading: LiveMetric) -> str:
    if reading.unit == "Seconds":
        return duration_text(reading.value)
    unit = "/s" if reading.unit == "1/s" else f" {unit_text(reading.unit)}"
    return f"{metric_text(reading.value)}{unit}".rstrip()


def about(seconds: float) -> str:
    """A time to two digits: more are not to be had of the feed."""
    return duration_text(float(f"{seconds:.2g}"))
