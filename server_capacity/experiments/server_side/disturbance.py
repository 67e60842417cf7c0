"""The server that must stand still while it is measured: stretches in which its instances changed, or others called.

Pure. Such a stretch counts for nothing; its reason begins as the client's do, with what went wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.verdict.server.known_metrics import BALANCER, BEDROCK, LAMBDA, SAGEMAKER
from inference_benchmarker.words.units import NS
from server_capacity.experiments.measurements.completions import Span
from server_capacity.experiments.server_side.server_points import metric_series

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from inference_benchmarker.facts.instances import Count
    from inference_benchmarker.facts.server_metric import LiveMetric
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from server_capacity.experiments.server_side.server_points import MetricSeries

MOST_FOREIGN = 0.01
"""A share of our requests: fewer of others change no answer."""

_COUNTERS = {
    (SAGEMAKER, "Invocations"),
    (LAMBDA, "Invocations"),
    (BALANCER, "RequestCount"),
    (BEDROCK, "Invocations"),
}
_EDGE_S = 1.0
"""The clocks of both sides and what a server calls the time of a request may put it so far beside its bucket."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A time in which the server was not the one that is measured, unix seconds, and why."""

    span: Span
    reason: str


def voids(spans: Mapping[int, Span], disturbed: Iterable[Disturbance]) -> dict[int, str]:
    """The stretches that count for nothing, by number, with the reason."""
    found: dict[int, str] = {}
    for each in disturbed:
        for number, span in spans.items():
            if span.start < each.span.end and each.span.start < span.end:
                found.setdefault(number, each.reason)
    return found


def disturbances(waves: Sequence[WaveFacts]) -> list[Disturbance]:
    """All that disturbed a search, by what was followed of its server's instances and what the server counted."""
    followed: dict[str, list[Count]] = {}
    for each in (each for wave in waves for each in wave.instances):
        followed.setdefault(each.of, []).extend(each.counts)
    end = max((_end(wave) for wave in waves), default=0.0)
    changed = [each for counts in followed.values() for each in _of_instances(counts, end)]
    return [*changed, *_of_others(waves)]


class Standing:
    """Watches the live count of instances while a wave runs."""

    def __init__(self) -> None:
        self._last: list[float] = []

    def see(self, latest: Iterable[LiveMetric]) -> str:
        """Why the stretch that runs counts for nothing, by a follower's latest counts; empty where it does."""
        listed = list(latest)
        counts = [each.value for each in listed if each.name == "instances"]
        before, self._last = self._last or counts, counts or self._last
        asked = [each.value for each in listed if each.name == "asked for"]
        if asked:
            return f"the number of instances changes: {asked[0]:g} are asked for"
        changed = [pair for pair in zip(before, counts, strict=False) if pair[0] != pair[1]]
        return _said(*changed[0]) if changed else ""


def _end(wave: WaveFacts) -> float:
    return (wave.window.start_unix_ns + wave.window.duration_ns) / NS


def _of_instances(several: Iterable[Count], end: float) -> Iterator[Disturbance]:
    """The times with another number of instances than most of the search had, from the count before a change on."""
    counts = sorted(several, key=lambda count: count.at)
    if len({count.current for count in counts}) < 2:
        return
    usual = _usual(counts, end)
    for place, count in enumerate(counts):
        if count.current != usual:
            before = counts[place - 1].at if place else count.at
            after = counts[place + 1].at if place + 1 < len(counts) else end
            yield Disturbance(Span(before, after), _said(usual, count.current))


def _usual(counts: Sequence[Count], end: float) -> float:
    seconds: dict[float, float] = {}
    for count, until in zip(counts, [*(count.at for count in counts[1:]), end], strict=True):
        seconds[count.current] = seconds.get(count.current, 0.0) + max(until - count.at, 0.0)
    return max(seconds, key=lambda number: seconds[number])


def _said(usual: float, seen: float) -> str:
    return f"the number of instances changed: {seen:g} instead of {usual:g}"


def _of_others(waves: Sequence[WaveFacts]) -> Iterator[Disturbance]:
    """The buckets in which the server counted more requests than ours can be; or all, where only their sum is more."""
    if any(wave.plan.locust_file is not None or wave.lost_workers for wave in waves):
        return  # nobody knows how many requests were ours
    rows = [row for wave in waves for row in wave.server_metrics or () if (row.namespace, row.name) in _COUNTERS]
    sent = sum(wave.ledger.sent + wave.warmup_sent for wave in waves)
    for course in metric_series(rows):
        found = list(_foreign(waves, course))
        counted = sum(count for _, count in course.series)
        if not found and counted > sent * (1 + MOST_FOREIGN):
            whole = Span(course.series[0][0], course.series[-1][0] + course.period_s)
            found = [Disturbance(whole, _more(counted - sent, counted))]
        yield from found


def _foreign(waves: Sequence[WaveFacts], course: MetricSeries) -> Iterator[Disturbance]:
    period = course.period_s
    reach_s = min(_EDGE_S, period / 2)
    starts = np.array([at for at, _ in course.series])
    ours = np.zeros(len(starts))
    for wave in waves:
        start_ns = wave.window.start_unix_ns
        for part in (part for records in (wave.warmup, wave.records) for part in records.parts("sent", "done")):
            began, ended = (np.sort((part.int(name) + start_ns) / NS) for name in ("sent", "done"))
            ours += np.searchsorted(began, starts + period + reach_s) - np.searchsorted(ended, starts - reach_s)
    for (at, counted), mine in zip(course.series, ours.tolist(), strict=True):
        if counted > mine * (1 + MOST_FOREIGN):
            yield Disturbance(Span(at, at + period), _more(counted - mine, counted))


def _more(others: float, counted: float) -> str:
    return f"{others:,.0f} requests from elsewhere were among the {counted:,.0f} that the server counted"
