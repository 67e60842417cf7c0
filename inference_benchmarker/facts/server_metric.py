"""The part that all streams of server metrics share: what was asked for, what came back, and where configs are read.

A stream (CloudWatch, Prometheus) is one module that turns its blocks of the endpoint configuration into a
``Source``; the wave's window goes in, ``ServerMetric`` rows come out, and nothing is ever made up: what is
missing is None with its reason.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from inference_benchmarker.facts.instances import InstanceSource

SAME_CLOCK_S = 3.0
"""A Date header tells whole seconds and travels; below this the clocks are the same."""


Bound = Literal["at_most", "at_least", "about"]
"""The side of a value on which the truth lies, where a server's buckets show no more than that.

``about``: on either side, as of a value that is of more time than the window.
"""

PREFIX_HITS, PREFIX_QUERIES = "prefix_cache_hits", "prefix_cache_queries"
PREFIX_HIT_RATE = "prefix_cache_hit_rate"
"""Tokens that were in a server's prefix cache, and those that it was asked for, under the names that presets give."""

SIGNS: dict[str, Literal["≤", "≥", "≈"]] = {"at_most": "≤", "at_least": "≥", "about": "≈"}


@dataclass(frozen=True, slots=True)
class Interval:
    """The wave's window on the wall clock, in seconds since the epoch, and what the client knows of it.

    ``begin``: the first request of all, warm-up and calibration included; ``start`` to ``end``: from the window's
    start to the last answer. ``loaded``: when the load was over, if that was much earlier. ``sent`` counts every
    request since ``begin``, because the server saw them all. ``answered``: how many of them were answered well, so that
    the server has counted them for sure; None: not known. ``tasks``: neither tells how many requests the server had, as
    with tasks of a Locust file or a window of the past. ``warmup_sent``: those of ``sent`` that came before ``start``.
    """

    begin: float
    start: float
    end: float
    sent: int
    answered: int | None = None
    tasks: bool = False
    loaded: float | None = None
    warmup_sent: int = 0

    @classmethod
    def past(cls, start: float, end: float) -> Interval:
        """A window of which nobody knows what was sent in it."""
        return cls(begin=start, start=start, end=end, sent=0, tasks=True)

    @property
    def of_others(self) -> bool:
        """Tells whether the load in it was not ours: no count says when all of it has come."""
        return self.tasks and not self.sent

    @property
    def under_load(self) -> Interval:
        """The same to the end of the load: for gauges and rates, which an idle rest would dilute."""
        return self if self.loaded is None else replace(self, end=self.loaded, loaded=None)

    @property
    def note(self) -> str | None:
        """That gauges and rates are of less than the window, if they are."""
        if self.loaded is None:
            return None
        load, whole = self.loaded - self.start, self.end - self.start
        return (
            f"gauges and rates are of the first {load:.1f} s of {whole:.1f} s: after that no request came, and the"
            " server only finished those that it had"
        )

    def moved(self, seconds: float) -> Interval:
        """The same on a clock that is ahead by so much."""
        moved = {name: getattr(self, name) + seconds for name in ("begin", "start", "end")}
        return replace(self, **moved, loaded=None if self.loaded is None else self.loaded + seconds)


@dataclass(frozen=True, slots=True)
class Hardware:
    """The serving hardware: ``instances`` machines of one type, each with so many cores and GPUs; None: not known."""

    instance_type: str
    instances: int | None = None
    vcpus: int | None = None
    gpus: int | None = None

    @property
    def text(self) -> str:
        """2 x ml.g5.12xlarge."""
        return self.instance_type if self.instances is None else f"{self.instances} x {self.instance_type}"


@dataclass(frozen=True, slots=True)
class ServerMetric:
    """One metric over the wave: a value for each statistic that was asked for, None with ``reason`` where missing.

    ``start`` and ``end`` are the seconds (unix) that the values really cover. ``series``: (bucket start, value) of
    the statistic named ``series_of``. ``instances``: (bucket start, how many reported) where the stream reports.
    ``reason`` also says what a reader of the values must know. ``samples``: how many readings of a gauge, or
    observations of a histogram, the values are taken from, where the stream reports. ``bounds``: the statistics whose
    value is only a bound, or only near the window's own. ``buckets``: those that are interpolated within a bucket, or
    have the warm-up's requests in them, and two bounds, between which the truth lies. ``asked``: False where the
    configuration does not name the metric and it was read to know when the data is complete. ``hardware``: of metrics
    that instances report.
    """

    stream: str
    name: str
    statistics: dict[str, float | None]
    unit: str | None = None
    namespace: str | None = None
    dimensions: dict[str, str] = field(default_factory=dict)
    start: float | None = None
    end: float | None = None
    complete: bool = True
    reason: str | None = None
    series_of: str | None = None
    series: tuple[tuple[float, float], ...] = ()
    instances: tuple[tuple[float, float], ...] = ()
    samples: int | None = None
    bounds: dict[str, Bound] = field(default_factory=dict)
    buckets: dict[str, tuple[float, float]] = field(default_factory=dict)
    asked: bool = True
    hardware: Hardware | None = None

    @property
    def key(self) -> tuple[str, str | None, str, tuple[tuple[str, str], ...]]:
        """Which metric it is, whatever its values."""
        return self.stream, self.namespace, self.name, tuple(sorted(self.dimensions.items()))

    @property
    def has_values(self) -> bool:
        """Tells whether any value came."""
        return any(value is not None for value in self.statistics.values())

    def bound(self, statistic: str) -> Bound | None:
        """The side of a value on which the window's own lies; None where it is the value itself.

        What is interpolated within a server's bucket counts as the value; a mean that has others' requests in it, not.
        """
        has_others = self.stream == "cloudwatch" and statistic in self.buckets
        return self.bounds.get(statistic) or ("about" if has_others else None)

    def side(self, statistic: str) -> Bound | None:
        """The same, of what is not of the whole window, too."""
        return self.bound(statistic) or (None if self.complete else "about")

    def is_near(self, statistic: str) -> bool:
        """Tells whether the value is of a part of the window, or of more: the truth may lie on either side."""
        return self.side(statistic) == "about"

    def exact(self, statistic: str) -> float | None:
        """The value, where it is no bound and of the whole window."""
        return None if self.side(statistic) else self.statistics.get(statistic)


def prefix_hit_share(metrics: Iterable[ServerMetric]) -> float | None:
    """The share of input tokens that servers found in their prefix caches, of all of them; None where it is unknown.

    It follows from their counters over the window (vLLM's hits over queries), of which each has to be known, or where
    there are none from the one server that tells it. A rate in percent, and one above 1, is no share.
    """
    hits, queries, rates = dict[Any, float | None](), dict[Any, float | None](), list[float | None]()
    for metric in metrics:
        series = replace(metric, name="", dimensions={**metric.dimensions, "__name__": ""}).key
        if metric.name == PREFIX_HITS:
            hits[series] = metric.exact("Total")
        elif metric.name == PREFIX_QUERIES:
            queries[series] = metric.exact("Total")
        elif metric.name == PREFIX_HIT_RATE:
            rates.append(None if metric.unit == "Percent" else metric.exact("Average"))
    if hits or queries:
        return _share(_sum(hits), _sum(queries)) if hits.keys() == queries.keys() else None
    return _share(rates[0], 1.0) if len(rates) == 1 else None


def _sum(counters: Mapping[Any, float | None]) -> float | None:
    known = [value for value in counters.values() if value is not None]
    return sum(known) if len(known) == len(counters) else None


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole and 0 <= part <= whole else None


@dataclass(frozen=True, slots=True)
class LogLine:
    """A kind of line in a server's log: how often it stood there, and an example, redacted and on one line."""

    text: str
    count: int


@dataclass(frozen=True, slots=True)
class ServerLog:
    """The lines of a server's log from ``start`` to ``end`` (unix seconds), while requests ended in server errors.

    ``events``: how many were read; ``lines``: the most frequent kinds of line in them, of those that look like errors
    (``errors``) or, where none does, of all. ``reason``: why nothing, or not everything, was read.
    """

    group: str
    start: float
    end: float
    events: int = 0
    lines: tuple[LogLine, ...] = ()
    errors: bool = False
    reason: str | None = None


def renewed(before: Iterable[ServerMetric], now: Iterable[ServerMetric]) -> tuple[ServerMetric, ...]:
    """The rows of an earlier reading with those of a later one in their place, where these have any value, or more."""
    old = {row.key: row for row in before}
    new = {row.key: row for row in now}
    kept = {key: row for key, row in old.items() if key not in new or (row.has_values and not new[key].has_values)}
    return tuple({**new, **kept}.values())


def renewed_logs(before: Iterable[ServerLog], now: Iterable[ServerLog]) -> tuple[ServerLog, ...]:
    """The same for logs: what was read once stays where a later reading brought nothing."""
    logs = {log.group: log for log in before}
    logs |= {log.group: log for log in now if log.lines or not (log.group in logs and logs[log.group].lines)}
    return tuple(logs.values())


@dataclass(frozen=True, slots=True)
class LiveMetric:
    """A metric's value at a moment of the wave, for the live view; ``unit`` 1/s where it is a gain a second."""

    name: str
    value: float
    unit: str | None = None


class Newest(Protocol):
    """Somebody who has values of this moment for the live view."""

    def latest(self) -> list[LiveMetric]:
        """The newest values, as far as they are known, without asking and without waiting; often nothing."""


class Source(Protocol):
    """One stream's blocks, checked and ready to be asked."""

    def warnings(self, seconds: float | None, *, ahead: bool = True) -> list[str]:
        """Sentences on what will probably bring nothing, before a wave of that length (None: nobody knows).

        ``ahead``: the wave is still to come; else a window of the past is asked for. Takes a few seconds at most.
        Raises nothing for what the service does: who does not answer leaves no doubt.
        """

    def instances(self) -> Sequence[InstanceSource]:
        """Those whose number of instances can be followed, by what the blocks name."""

    def begin(self) -> None:
        """The wave is about to start: whoever must watch meanwhile (a scraper) starts now, without blocking."""

    def latest(self) -> list[LiveMetric]:
        """The newest values, as far as they are known, without asking and without waiting; often nothing."""

    def collect(self, interval: Interval, say: Callable[[str], None]) -> list[ServerMetric]:
        """Every metric over the window, waited for as long as the stream needs; ``say`` takes progress sentences.

        Raises nothing for what the service does: an error is a reason. Ctrl-C (KeyboardInterrupt) ends the waiting
        with what there is.
        """

    def logs(self, interval: Interval, say: Callable[[str], None]) -> list[ServerLog]:
        """The lines of the server's logs from ``start`` to ``end``; nothing of a stream that has none.

        Asked after ``collect``, and only where requests ended in server errors. Takes a bounded time and raises
        nothing for what the service does; Ctrl-C ends it with what there is.
        """


def collected(source: Source, interval: Interval, say: Callable[[str], None]) -> list[ServerMetric]:
    """The source's rows; a fault of ours in it keeps its traceback, and whoever asks the rest of the results.

    Each says so where gauges and rates are of less than the window.
    """
    try:
        rows = source.collect(interval, say)
        return [replace(row, reason="; ".join(filter(None, (row.reason, interval.note))) or None) for row in rows]
    except Exception as error:
        traceback.print_exc()
        stream, reason = type(source).__name__.lower(), f"reading them failed ({type(error).__name__})"
        return [ServerMetric(stream, f"{stream} metrics", {"Value": None}, complete=False, reason=reason)]


def logged(source: Source, interval: Interval, say: Callable[[str], None]) -> list[ServerLog]:
    """The same for its logs."""
    try:
        return source.logs(interval, say)
    except Exception as error:
        traceback.print_exc()
        reason = f"reading it failed ({type(error).__name__})"
        return [ServerLog(type(source).__name__.lower(), interval.start, interval.end, reason=reason)]
