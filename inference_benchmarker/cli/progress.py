"""The live view of a wave: a panel on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TextIO

from inference_benchmarker.cli.live_lines import (
    WINDOW_S,
    about,
    error_names,
    last_arrival_ns,
    rows,
    server_text,
    stage_text,
)
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.steering import rate_at
from inference_benchmarker.text import plain_lines
from inference_benchmarker.units import NS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inference_benchmarker.facts.server_metric import Newest
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.records.histogram import Histogram
    from inference_benchmarker.wave.spool_state import SpoolState

LINE_INTERVAL_NS = 10 * NS
OFTEN_NS = 600 * NS  # then a line a minute is enough: ten hours are 650
SELDOM_INTERVAL_NS = 60 * NS


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A wave at this moment; rate and times over the last few whole seconds."""

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
            target=rate_at(self._plan.load, spool_state.changes, now_ns),
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
            return f"waiting for {ledger.in_flight:,} in flight"
        return "running"


def headline(plan: WavePlan) -> str:
    """One sentence that says what the wave is going to do."""
    if isinstance(plan.load, OpenLoop):
        what = f"Sending {plan.load.text}"
    else:
        users = f"Requests of {plan.load.text}"
        what = users if plan.load.has_users else f"Keeping {plan.load.concurrency:,} requests in flight"
    bounds = []
    if plan.bounds.duration_s is not None:
        bounds.append(f"for {round(plan.bounds.duration_s, 3).normalize():f} s")
    if plan.bounds.num_requests is not None:
        bounds.append(f"until {plan.bounds.num_requests:,} are sent")
    workers = "1 worker" if plan.workers == 1 else f"{plan.workers} workers"
    return f"{' '.join(filter(None, (what, ', or '.join(bounds))))}, from {workers}."


def line(plan: WavePlan, snapshot: Snapshot) -> str:
    """A snapshot in one plain line."""
    end = "" if plan.bounds.duration_s is None else f"/{plan.bounds.duration_s:f}s"
    parts = [
        f"{snapshot.now_s:.0f}s{end} {snapshot.state}",
        f"sent {snapshot.sent:,}",
        *_counts(snapshot),
        *_times(snapshot),
    ]
    return ", ".join(parts)


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
            self.say(headline(self._plan))
        if now_ns >= self._next_ns:
            self._next_ns += LINE_INTERVAL_NS if self._next_ns < OFTEN_NS else SELDOM_INTERVAL_NS
            self.say(line(self._plan, snapshot))

    def close(self) -> None:
        """Nothing to close."""


class PanelView:
    """Keeps a small panel on a terminal up to date."""

    def __init__(self, plan: WavePlan, stream: TextIO, sources: Sequence[Newest] = ()) -> None:
        from rich.console import Console
        from rich.live import Live

        self._plan = plan
        self._sources = sources
        self._meter = Meter(plan)
        self._console = Console(file=stream)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._shown = False
        self._foot = ""
        self._seen: tuple[SpoolState, int] | None = None

    def set_foot(self, text: str) -> None:
        """A line beneath all others, shown at once."""
        self._foot = text
        if self._seen is not None:
            self._live.update(self._draw(*self._seen), refresh=True)

    def say(self, message: str) -> None:
        """A sentence about what happens now, above the panel."""
        self._console.print(plain_lines(message), highlight=False, markup=False)

    def update(self, spool_state: SpoolState, now_ns: int) -> None:
        """The wave goes on."""
        if not self._shown:
            self._live.start()
            self._shown = True
        self._seen = spool_state, now_ns
        self._live.update(self._draw(spool_state, now_ns), refresh=True)

    def close(self) -> None:
        """Take the panel away: the report follows."""
        if self._shown:
            self._live.stop()
            self._shown, self._seen = False, None

    def _draw(self, spool_state: SpoolState, now_ns: int) -> Any:
        from inference_benchmarker.cli.panel import head, panel

        snapshot = self._meter.take(spool_state, now_ns)
        end = "" if self._plan.bounds.duration_s is None else f" / {self._plan.bounds.duration_s:f}s"
        elapsed, state = f"{max(snapshot.now_s, 0):.0f}s{end}", f"{snapshot.sent:,} sent, {snapshot.state}"
        first = head(elapsed, snapshot.share, state, self._console.width)
        figures = rows(self._plan, spool_state)
        readings = chain.from_iterable(source.latest() for source in self._sources)
        last = [
            stage_text(self._plan, snapshot.now_s),
            error_names(spool_state.feed),
            server_text(readings),
            self._foot,
        ]
        return panel(first, figures, list(filter(None, last)), spool_state.whole_seconds, self._console.width)


def _counts(snapshot: Snapshot) -> list[str]:
    target = "" if snapshot.target is None else f" of {snapshot.target:.4g}/s"
    counts = [
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
