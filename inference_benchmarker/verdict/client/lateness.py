"""Arrivals that this client sent late: how many, in how many hold-ups, and what they did to response times. Pure.

One pause of a machine makes every arrival late that is due during it, so arrivals that are late together are one piece
of evidence. docs/explanation/verdict.md derives the rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np

from inference_benchmarker.facts.on_time import lag_ns, on_time
from inference_benchmarker.records.columns import ROW_KEY
from inference_benchmarker.records.counts import bucket_values
from inference_benchmarker.summary.statistics.distribution import PERCENTILES
from inference_benchmarker.summary.statistics.streaming_histogram import StreamingHistogram
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.limits_met import slo_met
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import duration_text, pluralize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.slo import Slo
    from inference_benchmarker.records.columns import Int64
    from inference_benchmarker.records.counts import Counts
    from inference_benchmarker.summary.statistics.distribution import Distribution
    from inference_benchmarker.summary.summary import Summary

TOLERATED = 0.01  # of arrivals may be late: a p99 leaves out as many
MOST_DOUBT = 0.01  # the chance with which a client that is late that rarely looks as if it were late more often
MOST_BY_HICCUP = 0.15  # of arrivals: what took more is no hiccup, but what the wave was
LEAST_IN_HICCUP = 2  # so many may be late in a wave of any size
MOST_GATHERED = 100_000  # no single pause makes as many late
CATCH_UP = 2  # a client that is half busy sends what waited within as long again
SPOILING_S = 0.001  # where the lag decides a limit: a client in good order is later than this only in a hiccup
NOTABLE_CHANGE = 0.01

Key = TypeVar("Key")
Judged = TypeVar("Judged")
_COLUMNS = (*ROW_KEY, "due", "sent", "done", "build_ns", "outcome")


@dataclass(frozen=True, slots=True)
class Lateness:
    """Arrivals later than a limit. ``hold_ups``: the pauses that explain them; ``longest_s``: the worst lag."""

    arrivals: int
    late: int
    hold_ups: int
    longest_s: float

    @classmethod
    def of(cls, facts: WaveFacts, limit_s: float) -> Self:
        """The arrivals of a wave that were later than this."""
        if facts.counts is not None:
            return cls._of_counts(facts.counts.window, limit_s)
        total, late, longest = len(facts.records), 0, 0
        gathered: list[tuple[Int64, Int64]] = []
        for part in facts.records.parts("due", "sent", "build_ns"):
            lag = lag_ns(part)
            chosen = lag > limit_s * NS
            late, longest = late + int(chosen.sum()), max(longest, int(lag.max(initial=0)))
            if late <= MOST_GATHERED:
                gathered.append((part.int("due")[chosen], lag[chosen]))
        whole = late if late > MOST_GATHERED else hold_ups(gathered)
        return cls(total, late, whole, longest / NS)

    @classmethod
    def _of_counts(cls, counts: Counts, limit_s: float) -> Self:
        """The same where requests were counted: the seconds in which late ones were over stand for the hold-ups."""
        series = counts["lag"]
        lags = bucket_values(series.key) / NS
        late = series.where(lags > limit_s)
        longest = float(lags.max(initial=0.0))
        return cls(series.total, late.total, len(np.unique(late.second[late.count > 0])), longest)

    @property
    def text(self) -> str:
        """``1 of 20 arrivals was sent late, by 5.2 ms``; of several in how many pauses, and the longest."""
        late, longest = f"{self.late:,} of {self.arrivals:,} arrivals", duration_text(self.longest_s)
        if self.late == 1:
            return f"{late} was sent late, by {longest}"
        pauses = pluralize(self.hold_ups, "client pause", "client pauses")
        return f"{late} were sent late, in {pauses} of up to {longest}"

    @property
    def is_more_than_tolerated(self) -> bool:
        """Tells whether the p99 of the lag is above the limit."""
        return self.late > self.arrivals - math.ceil(round((1 - TOLERATED) * self.arrivals, 9))

    @property
    def is_steady(self) -> bool:
        """Tells whether more are late than is tolerated, and neither chance nor a single hiccup explains it."""
        if not self.is_more_than_tolerated:
            return False
        if self.late > max(LEAST_IN_HICCUP, MOST_BY_HICCUP * self.arrivals):
            return True
        pieces = round(self.arrivals * self.hold_ups / self.late)
        return at_least_by_chance(self.hold_ups, pieces, TOLERATED) < MOST_DOUBT


def hold_ups(gathered: list[tuple[Int64, Int64]]) -> int:
    """The number of pauses: one explains what was due until it ended, and as long again while the client caught up."""
    if not gathered:
        return 0
    due, lag = (np.concatenate(columns) for columns in zip(*gathered, strict=True))
    order = np.argsort(due, kind="stable")
    due, ends = due[order], (due + CATCH_UP * lag)[order]
    number, place = 0, 0
    while place < len(due):
        number, place = number + 1, int(np.searchsorted(due, ends[place], "right"))
    return number


def at_least_by_chance(seen: int, number: int, share: float) -> float:
    """The chance that of so many independent pieces at least ``seen`` are late, where each is with this chance."""
    if seen <= number * share:
        return 1.0  # about even: no evidence, whatever its exact value
    term = math.exp(
        math.lgamma(number + 1)
        - math.lgamma(seen + 1)
        - math.lgamma(number - seen + 1)
        + seen * math.log(share)
        + (number - seen) * math.log1p(-share)
    )
    total = 0.0
    while seen <= number and term > 1e-12 * total:
        total += term
        term *= (number - seen) / (seen + 1) * share / (1 - share)
        seen += 1
    return total


def _times_without_lag(facts: WaveFacts, summary: Summary, least_s: float) -> Distribution | None:
    """Response times as they would be had no arrival been later than this, or at all where requests were counted."""
    if facts.counts is not None:
        return _counted_at_once(summary)
    times, ages = StreamingHistogram(), []
    for part in on_time(facts, least_s).records.parts(*_COLUMNS):
        seconds = (part.int("done") - part.arrived) / NS
        times.add(seconds[part.outcome("ok")])
        ages.append(seconds[part.outcome("abandoned")])
    return times.distribution(np.concatenate(ages) if ages else ())


@dataclass(frozen=True, slots=True)
class Moved:
    """A percentile of response time that late arrivals moved: its value and that without their lag, in seconds.

    ``lowest``: the least of the shown percentiles that they moved.
    """

    percent: float
    value: float
    without: float
    lowest: float


def moved(facts: WaveFacts, summary: Summary, limit_s: float) -> Moved | None:
    """The p99 where arrivals later than this moved it, else another that is shown; None where none did."""
    times = summary.response_time
    rest = _times_without_lag(facts, summary, limit_s) if times is not None else None
    if times is None or rest is None:
        return None
    pairs = {percent: (times.percentile(percent), rest.percentile(percent)) for percent in PERCENTILES}
    changed = [percent for percent, (value, without) in pairs.items() if value > (1 + NOTABLE_CHANGE) * without]
    if not changed:
        return None
    percent = 99.0 if 99.0 in changed else changed[-1]
    return Moved(percent, *pairs[percent], changed[0])


def changed_by_lag(
    facts: WaveFacts, summary: Summary, judge: Callable[[WaveFacts], Mapping[Key, Judged]]
) -> dict[Key, tuple[Judged, Judged]]:
    """Of each limit whose judgement this client's lag changes, the judgement with it and without it.

    Whatever the limit is on, its judge looks at the wave twice: as it was, and as it would have been on time.
    """
    if not facts.paced or summary.lag is None or summary.lag.maximum <= SPOILING_S:
        return {}
    seen, rest = judge(facts), judge(on_time(facts, SPOILING_S))
    return {name: (each, rest[name]) for name, each in seen.items() if each != rest[name]}


@dataclass(frozen=True, slots=True)
class Kept:
    """Tells whether a wave kept a limit, by the part of it that the limit speaks of."""

    slo: Slo
    kept: bool
    part: Summary | None = field(compare=False)


def limits_spoilt(facts: WaveFacts, summary: Summary) -> list[Kept]:
    """The limits that are missed, and would be kept without the client's lag, as they would be then."""

    def judge(wave: WaveFacts) -> dict[str, Kept]:
        return {each.slo.expression: each for each in _kept(wave, _summary_of(wave, facts, summary))}

    if all(each.kept for each in _kept(facts, summary)):
        return []
    return [rest for _, rest in changed_by_lag(facts, summary, judge).values() if rest.kept]


def _kept(facts: WaveFacts, summary: Summary) -> Iterator[Kept]:
    """Each limit on what may have been late; one on the lag itself is on nothing else."""
    for slo in facts.plan.slos:
        part = summary.part(slo)
        if slo.metric != "lag":
            yield Kept(slo, part is not None and slo_met(slo, part), part)


def _summary_of(wave: WaveFacts, facts: WaveFacts, summary: Summary) -> Summary:
    """The summary of a wave, or of the same on time."""
    if wave is facts:
        return summary
    if facts.counts is None:
        return summarise(wave)
    stages = tuple(replace(row, summary=_at_once(row.summary)) for row in summary.stages)
    return replace(_at_once(summary), stages=stages)


def _at_once(part: Summary) -> Summary:
    late = part.lag is not None and part.lag.maximum > SPOILING_S
    return replace(part, response_time=_counted_at_once(part)) if late and part.response_time is not None else part


def _counted_at_once(part: Summary) -> Distribution | None:
    """Response times without lag of requests that were counted: latencies, and the times of building payloads.

    Which of them belong together is not known; that the longest do makes the least of a lag.
    """
    if part.latency is None or part.build is None:
        return part.latency
    return part.latency.beside(part.build)
