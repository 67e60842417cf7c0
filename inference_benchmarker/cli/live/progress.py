"""The live view of a wave: a panel on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TextIO

from inference_benchmarker.cli.live.live_limits import limits_so_far
from inference_benchmarker.cli.live.live_lines import (
    WINDOW_S,
    about,
    error_names,
    last_arrival_ns,
    minute_of,
    rows,
    server_texts,
    stage_text,
)
from inference_benchmarker.cli.live.panel import head, panel
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.steering import rate_at
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import pluralize, rate_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from decimal import Decimal

    from inference_benchmarker.cli.live.live_limits import LimitSoFar
    from inference_benchmarker.cli.live.screen import Drawing, Line
    from inference_benchmarker.facts.server_metric import Newest
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.records.histogram import Histogram
    from inference_benchmarker.wave.spool.spool_state import SpoolState

_LINE = re.compile(r"-?\d+s(/[\d.]+s)? (running|starting|warm-up|waiting for [\d,]+ [a-z ]+), sent [\d,]+ so far, ")
LINE_INTERVAL_NS = 10 * NS
OFTEN_NS = 600 * NS  # then a line a minute is enough: ten hours are 650
SELDOM_INTERVAL_NS = 60 * NS


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A wave at this moment; rate and times over the last few whole seconds.

    ``sessions``: how many were started and are open; None where arrivals are none.
    """

    now_s: float
    share: float | None
    state: str
    sent: int
    errors: int
    dropped: int
    in_flight: int
    rate: float
    target: float | None
    times: Mapping[str, Histogram]
    sessions: tuple[int, int] | None = None


class Meter:
    """Follows a running wave by its feed."""

    def __init__(self, plan: WavePlan) -> None:
        self._plan = plan

    def take(self, spool_state: SpoolState, now_ns: int) -> Snapshot:
        """The wave now."""
        ledger, stop = spool_state.ledger, spool_state.whole_seconds
        recent = spool_state.feed.over(stop - WINDOW_S, stop)
        return Snapshot(
            now_s=now_ns / NS,
            share=self._share(now_ns, ledger.arrivals + ledger.dropped),
            state=self._state(spool_state, now_ns),
            sent=ledger.sent,
            errors=ledger.failed,
            dropped=ledger.dropped,
            in_flight=ledger.in_flight,
            target=None if spool_state.has_sessions else rate_at(self._plan.load, spool_state.changes, now_ns),
            sessions=(ledger.arrivals, ledger.sessions_open) if spool_state.has_sessions else None,
            rate=recent.ok / min(WINDOW_S, stop) if stop else 0.0,
            times=recent.times,
        )

    def _share(self, now_ns: int, arrivals: int) -> float | None:
        """The share of the wave that is over, by whichever bound is nearer; None without a bound."""
        bounds = self._plan.bounds
        shares = []
        if bounds.duration_ns is not None:
            shares.append(now_ns / bounds.duration_ns)
        if bounds.num_requests is not None:
            shares.append(arrivals / bounds.num_requests)
        return min(max(0.0, *shares), 1.0) if shares else None

    def _state(self, spool_state: SpoolState, now_ns: int) -> str:
        if now_ns < 0:
            return "warm-up" if self._plan.warmup_ns else "starting"
        ledger, number = spool_state.ledger, self._plan.bounds.num_requests
        end = last_arrival_ns(self._plan, spool_state)
        if (end is not None and now_ns > end) or (number is not None and ledger.arrivals + ledger.dropped >= number):
            if spool_state.has_sessions:
                return f"waiting for {pluralize(ledger.sessions_open, 'open session', 'open sessions')}"
            return f"waiting for {ledger.in_flight:,} in flight"
        return "running"


def _shortest(seconds: Decimal) -> str:
    """Seconds to the millisecond, without zeros behind the point: 10, 2.5."""
    return f"{round(seconds, 3).normalize():f}"


def headline(plan: WavePlan, *, sessions: bool = False) -> str:
    """One sentence that says what the wave is going to do; ``sessions``: its arrivals are sessions."""
    if isinstance(plan.load, OpenLoop):
        what = f"Sending {plan.load.text.replace('requests/s', 'sessions/s') if sessions else plan.load.text}"
    elif sessions:
        what = f"Keeping {pluralize(plan.load.concurrency, 'session', 'sessions')} open"
    else:
        users = f"Requests of {plan.load.text}"
        what = (
            users
            if plan.load.has_users
            else f"Keeping {pluralize(plan.load.concurrency, 'request', 'requests')} in flight"
        )
    bounds = []
    if plan.bounds.duration_s is not None:
        bounds.append(f"for {_shortest(plan.bounds.duration_s)} s")
    if plan.bounds.num_requests is not None:
        bounds.append(f"until {plan.bounds.num_requests:,} are {'started' if sessions else 'sent'}")
    source = pluralize(plan.workers, "worker", "workers")
    if plan.hosts.uncounted:  # how many cores they have they tell later
        source = pluralize(len(plan.hosts.hosts), "host", "hosts")
    return f"{' '.join(filter(None, (what, ', or '.join(bounds))))}, from {source}."


def line(plan: WavePlan, snapshot: Snapshot) -> str:
    """A snapshot in one plain line."""
    end = "" if plan.bounds.duration_s is None else f"/{_shortest(plan.bounds.duration_s)}s"
    parts = [
        f"{snapshot.now_s:.0f}s{end} {snapshot.state}",
        f"sent {snapshot.sent:,} so far",
        *_counts(snapshot),
        *_times(snapshot),
    ]
    return ", ".join(parts)


def is_line(text: str) -> bool:
    """Tells whether it is such a line."""
    return _LINE.match(text) is not None


class PlainView:
    """Writes a line at the start, every ten seconds, and after ten minutes every minute."""

    def __init__(self, plan: WavePlan, stream: TextIO) -> None:
        self._plan = plan
        self._stream = stream
        self._meter = Meter(plan)
        self._next_ns = LINE_INTERVAL_NS
        self._begun = False

    def say(self, message: str) -> None:
        """A sentence about what happens now."""
        self._stream.write(message + "\n")
        self._stream.flush()

    def update(self, spool_state: SpoolState, now_ns: int) -> None:
        """The wave goes on."""
        snapshot = self._meter.take(spool_state, now_ns)
        if not self._begun:
            self._begun = True
            self.say(headline(self._plan, sessions=spool_state.has_sessions))
        if now_ns >= self._next_ns:
            self._next_ns += LINE_INTERVAL_NS if self._next_ns < OFTEN_NS else SELDOM_INTERVAL_NS
            self.say(line(self._plan, snapshot))

    def close(self) -> None:
        """Nothing to close."""


class PanelView:
    """Keeps a small panel on a terminal up to date, from the first moment on."""

    def __init__(self, plan: WavePlan, screen: Drawing, sources: Sequence[Newest] = ()) -> None:
        self._plan = plan
        self._sources = sources
        self._meter = Meter(plan)
        self._screen = screen
        self._foot = ""
        self._shown: Callable[[], list[Line]] | None = None

    def set_foot(self, text: str) -> None:
        """A line beneath all others, shown at once."""
        self._foot = text
        self._redraw()

    def say(self, message: str) -> None:
        """A sentence about what happens now, above the panel."""
        self._screen.print(message)
        self._redraw()

    def starting(self, what: str, seconds: float) -> None:
        """The wave has not begun."""
        self._shown = lambda: [[(f"{seconds:.1f}s  {what}", "")]]
        self._redraw()

    def update(self, spool_state: SpoolState, now_ns: int) -> None:
        """The wave goes on."""
        self._shown = lambda: self._panel(spool_state, now_ns)
        self._redraw()

    def close(self) -> None:
        """Take the panel away: the report follows."""
        self._screen.clear()
        self._shown = None

    def _redraw(self) -> None:
        if self._shown is not None:
            foot: list[Line] = [[(self._foot, "")]] if self._foot else []
            self._screen.show([*self._shown(), *foot])

    def _panel(self, spool_state: SpoolState, now_ns: int) -> list[Line]:
        width, _ = self._screen.size()
        snapshot = self._meter.take(spool_state, now_ns)
        end = "" if self._plan.bounds.duration_s is None else f" / {_shortest(self._plan.bounds.duration_s)}s"
        elapsed, state = f"{max(snapshot.now_s, 0):.0f}s{end}", f"{snapshot.sent:,} sent, {snapshot.state}"
        first = head(elapsed, snapshot.share, state, width)
        readings = chain.from_iterable(source.latest() for source in self._sources)
        stage = stage_text(self._plan, snapshot.now_s)
        lists = [
            ("stage", _cells([stage] if stage else [])),
            ("limits so far", [_limit(limit) for limit in limits_so_far(self._plan, spool_state)]),
            ("errors by name", _cells(error_names(spool_state.feed), "alarm")),
            ("server", _cells(server_texts(readings))),
        ]
        stop = spool_state.whole_seconds
        minute = minute_of(self._plan, stop)
        return panel(first, rows(self._plan, spool_state), lists, stop=stop, width=width, minute=minute)


def _cells(texts: Sequence[str], colour: str = "") -> list[Line]:
    return [[(text, colour)] for text in texts]


def _limit(limit: LimitSoFar) -> Line:
    """A limit with its mark and value; the mark can be read without its colour."""
    colour = {None: "dim", True: "green", False: "red"}[limit.kept]
    return [(limit.mark, colour), (f" {limit.expression} ", ""), (limit.value, "bold")]


def _counts(snapshot: Snapshot) -> list[str]:
    target = "" if snapshot.target is None else f" of {rate_text(snapshot.target)}"
    sessions = [] if snapshot.sessions is None else ["{:,} sessions started, {:,} open".format(*snapshot.sessions)]
    counts = [
        *sessions,
        f"completed {snapshot.rate:.1f}/s{target}",
        f"in flight {snapshot.in_flight:,}",
        f"errors {snapshot.errors:,}",
    ]
    return [*counts, f"dropped {snapshot.dropped:,}"] if snapshot.dropped else counts


def _times(snapshot: Snapshot) -> list[str]:
    latency, lag = (snapshot.times.get(name) for name in ("latency", "lag"))
    p50, p99 = (None, None) if latency is None else latency.percentiles(50, 99)
    times = []
    if p50 is not None and p99 is not None:
        times.append(f"latency p50 {about(p50)} p99 {about(p99)}")
    if lag is not None and (late := lag.percentile(99)) is not None:
        times.append(f"lag p99 {about(late)}")
    return times
