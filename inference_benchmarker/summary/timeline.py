"""A wave second by second: ``timeline.csv``. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np

from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.records.columns import ROW_KEY
from inference_benchmarker.records.counting import BIN_NS
from inference_benchmarker.records.counts import bucket_values
from inference_benchmarker.records.ordered import watermarks
from inference_benchmarker.summary.goodput import meets
from inference_benchmarker.summary.request_times import output_tokens
from inference_benchmarker.summary.statistics.by_second import InFlightTime, SecondPercentiles, SecondSums
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Int64, Records
    from inference_benchmarker.records.counts import Counts, Series

COLUMNS = (
    "second,scheduled,sent,ok,failed,abandoned,in_flight,latency_p50_s,latency_p99_s,response_time_p99_s,lag_p99_s,"
    "ttft_p99_s,tokens_out,good,stage,repeated"
)


_AT_ONCE_S = 1_000  # of requests that were counted: so that what is made of some seconds stays small
_READ = (*ROW_KEY, "due", "sent", "done", "build_ns", "outcome", "chunks", "tokens_out")
_STREAM = ("first_token", "last_token")
_OUTCOMES = ("ok", "failed", "abandoned")


def timeline(facts: WaveFacts) -> str:
    """``timeline.csv``: a row for each second of the wave; requests count in the second they were sent or done in.

    ``repeated``: those sent that were not the first of their arrival. The counts, but for ``scheduled``, include what
    sessions of the warm-up send in the wave; the times do not.
    """
    found = _Seconds.of(facts)
    last = max(facts.window.duration_ns, facts.window.planned_ns or 0, found.last_ns)
    rows = zip(*found.columns(facts, last // NS + 1), strict=True)
    return "\n".join((COLUMNS, *map(",".join, rows))) + "\n"


@dataclass
class _Seconds:
    """The seconds of a wave, as its parts are added. ``last_ns``: the last that any request was done."""

    last_ns: int = 0
    first: SecondSums = field(default_factory=SecondSums)
    sent: SecondSums = field(default_factory=SecondSums)
    repeated: SecondSums = field(default_factory=SecondSums)
    outcomes: dict[str, SecondSums] = field(default_factory=lambda: {name: SecondSums() for name in _OUTCOMES})
    in_flight: InFlightTime = field(default_factory=InFlightTime)
    tokens: SecondSums | None = None
    good: SecondSums = field(default_factory=SecondSums)
    latency: SecondPercentiles = field(default_factory=lambda: SecondPercentiles(50, 99))
    response_time: SecondPercentiles = field(default_factory=lambda: SecondPercentiles(99))
    lag: SecondPercentiles = field(default_factory=lambda: SecondPercentiles(99))
    ttft: SecondPercentiles = field(default_factory=lambda: SecondPercentiles(99))

    @classmethod
    def of(cls, facts: WaveFacts) -> Self:
        if facts.counts is not None:
            return cls._of_counts(facts.counts)
        found, records = cls(), facts.records
        for part in facts.warmup.parts("sent", "done"):
            found.in_flight.add(part)
        for part in facts.begun_before.parts(*_READ, *_STREAM):
            found._count_load(part, facts)
        marks = zip(watermarks(records, "sent"), watermarks(records, "done"), strict=True)
        for part, (sent_ns, done_ns) in zip(records.parts(*_READ, *_STREAM), marks, strict=True):
            found._count(part, facts)
            found._time(part, sent_ns, done_ns)
        return found

    @classmethod
    def _of_counts(cls, counts: Counts) -> Self:
        """Those of requests that were counted; in the closed loop an arrival is due when it is sent."""
        found, window = cls(), counts.window
        own = {"sent": (found.sent, found.first), **{name: (sums,) for name, sums in found.outcomes.items()}}
        for what, columns in own.items():
            for sums in columns:
                sums.add(window[what].second, window[what].count)
            found.in_flight.add_instants("sent" if what == "sent" else "done", *_middles(counts[f"{what}_at"]))
            found.last_ns = max(found.last_ns, int(window[f"{what}_at"].bins.max(initial=0)) * BIN_NS)
        if counts.total("tokens_out"):
            found.tokens = SecondSums()
            found.tokens.add(window["tokens_out_sum"].second, window["tokens_out_sum"].count)
        for times, what, aged in (
            (found.latency, "latency", "age"),
            (found.response_time, "response_time", "response_age"),
            (found.lag, "lag", ""),
            (found.ttft, "ttft", ""),
        ):
            for first in range(0, window.seconds, _AT_ONCE_S):
                measured, ages = (window[name].between(first, first + _AT_ONCE_S) for name in (what, aged))
                times.add_counts(
                    np.append(measured.second, ages.second),
                    bucket_values(np.append(measured.key, ages.key)),
                    np.append(measured.count.astype(np.int64), -ages.count.astype(np.int64)),
                )
        return found

    def _count(self, part: Records, facts: WaveFacts) -> None:
        """Add the sums of a part."""
        self.last_ns = max(self.last_ns, int(part.int("done").max()))
        self.in_flight.add(part)
        self._count_load(part, facts)
        if not facts.open_loop:
            self.first.add(part.int("due")[part.firsts] // NS)

    def _count_load(self, part: Records, facts: WaveFacts) -> None:
        """Add the sums of what a part was as load, whoever began it."""
        done = part.int("done") // NS
        self.sent.add(part.int("sent") // NS)
        self.repeated.add(part.int("sent")[part.repeats] // NS)
        for name, sums in self.outcomes.items():
            sums.add(done[part.outcome(name)])
        if facts.plan.goodput:
            self.good.add(done[meets(part, facts.plan.goodput)])
        counted = part.outcome("ok") & (part.has("tokens_out") | part.has("chunks"))
        if counted.any():
            self.tokens = self.tokens or SecondSums()
            self.tokens.add(done[counted], output_tokens(part)[counted])

    def _time(self, part: Records, sent_ns: int | None, done_ns: int | None) -> None:
        """Add the times of a part; nothing in later ones was sent or done before these instants."""
        ok, sent, done = part.outcome("ok"), part.int("sent"), part.int("done")
        streamed = ok & part.has("first_token")
        seconds = done // NS
        answered = seconds[ok]
        self.latency.add(answered, (done - sent)[ok], done_ns)
        self.response_time.add(answered, (done - part.arrived)[ok], done_ns)
        self.lag.add(sent // NS, sent - part.int("build_ns") - part.int("due"), sent_ns)
        self.ttft.add(seconds[streamed], (part.int("first_token") - sent)[streamed], done_ns)

    def columns(self, facts: WaveFacts, seconds: int) -> list[list[str]]:
        """Each column for so many seconds, as text; empty where nothing was measured or counted."""
        percentiles = (self.latency, self.response_time, self.lag, self.ttft)
        nothing = [""] * seconds
        return [
            list(map(str, range(seconds))),
            _scheduled(facts, seconds) if facts.open_loop else self.first.column(seconds),
            self.sent.column(seconds),
            *(sums.column(seconds) for sums in self.outcomes.values()),
            [f"{nanoseconds / NS:.6f}" for nanoseconds in self.in_flight.first(seconds)],
            *(column for each in percentiles for column in each.columns(seconds)),
            nothing if self.tokens is None else self.tokens.column(seconds),
            self.good.column(seconds) if facts.plan.goodput else nothing,
            _stages_by_second(facts, seconds),
            self.repeated.column(seconds),
        ]


def _scheduled(facts: WaveFacts, seconds: int) -> list[str]:
    """An open loop's arrivals due in each second: also those without a record (dropped, lost)."""
    stop = facts.window.stopped_at_ns
    edges = (second * NS for second in range(seconds + 1))
    counts = TokenBucket.of(facts.plan).counts(edge if stop is None else min(edge, stop) for edge in edges)
    return [str(after - before) for before, after in pairwise(counts)]


def _stages_by_second(facts: WaveFacts, seconds: int) -> list[str]:
    """The stage in which each second begins; empty without stages, and from the end of the wave on."""
    load, end = facts.plan.load, facts.window.planned_ns
    if not isinstance(load, OpenLoop) or not load.stages or end is None:
        return [""] * seconds
    ends = np.minimum(np.cumsum([stage.duration_ns for stage in load.stages]), end)
    places = np.searchsorted(ends, np.arange(seconds) * NS, side="right")
    names = (*load.stage_names, "")
    return [names[place] for place in places.tolist()]


def _middles(series: Series) -> tuple[Int64, Int64]:
    """The middle of each 20 ms, in ns, and the counts."""
    return series.bins * BIN_NS + BIN_NS // 2, series.count
