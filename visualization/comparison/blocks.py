"""Sums over the seconds of a wave, added up as its parts come: the source of the errors of its metrics. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.records.arrow import numbers
from inference_benchmarker.records.counting import BIN_NS
from inference_benchmarker.records.counts import bucket_values
from inference_benchmarker.records.user_metrics import PREFIX
from inference_benchmarker.summary.request_times import output_tokens
from inference_benchmarker.summary.samples import Streams, TimesGathered, samples
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import numpy.typing as npt

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Floats, Int64, Records
    from inference_benchmarker.records.counts import Counts, Series
    from inference_benchmarker.summary.completed_rate import CompletedSpan
    from inference_benchmarker.summary.samples import Sample


def lengths(seconds: float) -> Floats:
    """The lengths of so many seconds' blocks: whole seconds; a fraction at the end belongs to the last one."""
    blocks = max(int(round(seconds, 6)), 1)
    each = np.ones(blocks)
    each[-1] += seconds - blocks
    return each


class Completed:
    """Gathers the requests that completed in each second of the completed rate's interval, or their output tokens."""

    def __init__(self, span: CompletedSpan, *, tokens: bool) -> None:
        self.columns = ("outcome", "done", *(("chunks", "tokens_out") if tokens else ()))
        self._span = span
        self._begin_ns = math.ceil(span.begin_ns)  # of whole ns, those from here on are those from there on
        self.lengths = lengths(span.seconds)
        self.requests, self.tokens = np.zeros(len(self.lengths)), np.zeros(len(self.lengths))
        self._has_tokens = tokens

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        done = part.int("done")
        inside = part.outcome("ok") & self._span.holds(done)
        seconds = blocks_of(done[inside] - self._begin_ns, len(self.lengths))
        add_to(self.requests, seconds)
        if self._has_tokens:
            add_to(self.tokens, seconds, output_tokens(part)[inside])

    def add_counts(self, counts: Counts) -> None:
        """Take in requests that were counted, to 20 ms; and tokens, to a second."""
        ok, tokens = counts["ok_at"], counts["tokens_out_sum"]
        for sums, series, instants in (
            (self.requests, ok, ok.bins * BIN_NS + BIN_NS // 2),
            (self.tokens, tokens, tokens.second.astype(np.int64) * NS + NS // 2),
        ):
            inside = self._span.holds(instants)
            add_to(sums, blocks_of(instants[inside] - self._begin_ns, len(self.lengths)), series.count[inside])


class Seconds:
    """Gathers what each second had: requests that were sent, those of them that were ok, and some of their values.

    A request belongs to the second it was due in, in the closed loop sent in. ``limits``: of each time, or metric of
    the user's own, by its name.
    """

    def __init__(self, facts: WaveFacts, limits: Mapping[str, Collection[float]]) -> None:
        streams = Streams.of(facts.records) if {"ttft", "itl", "tpot"} & set(limits) else _NO_STREAMS
        self._metrics = [name for name in limits if name.startswith(PREFIX)]
        self.columns = (*TimesGathered(streams, open_loop=facts.open_loop).columns, *self._metrics)
        self._streams, self._open_loop = streams, facts.open_loop
        number = len(lengths((facts.window.planned_ns or facts.window.duration_ns) / NS))
        self.sent, self.ok = np.zeros(number), np.zeros(number)
        self.times = {name: Values(number, limits[name]) for name in limits}

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        seconds = blocks_of(part.int("due" if self._open_loop else "sent"), len(self.sent))
        add_to(self.sent, seconds)
        add_to(self.ok, seconds[part.outcome("ok")])
        for name, sample in samples(part, open_loop=self._open_loop, streams=self._streams):
            if name in self.times:
                self.times[name].add(_seconds_of(part, name, sample, seconds), sample)
        for name in self._metrics:
            known = part.outcome("ok") & part.has(name)
            self.times[name].add_values(seconds[known], part.metric(name.removeprefix(PREFIX))[known])

    def add_counts(self, counts: Counts) -> None:
        """Take in requests that were counted, each in the second in which it was over."""
        for what in ("ok", "failed", "abandoned"):
            series = counts[what]
            for sums in (self.sent, self.ok) if what == "ok" else (self.sent,):
                add_to(sums, self._second_of(series), series.count)
        for name, values in self.times.items():
            series = counts[name]
            values.add_values(self._second_of(series), bucket_values(series.key) / NS, series.count)

    def _second_of(self, series: Series) -> Int64:
        return np.clip(series.second.astype(np.int64), 0, len(self.sent) - 1)


_NO_STREAMS = Streams(any=False, timed=False, only=False, typical_gap_s=0.0)


class Values:
    """The values of one time or metric in each second."""

    def __init__(self, seconds: int, limits: Collection[float]) -> None:
        self._limits = np.array(sorted(limits))
        self._at_most = np.zeros((seconds, len(self._limits) + 1))
        self._sums = np.zeros(seconds)

    def add(self, seconds: Int64, sample: Sample) -> None:
        """Take in the values of a sample; ``seconds``: the block of each."""
        self.add_values(
            seconds, np.concatenate((sample.measured, sample.ages)) if len(sample.ages) else sample.measured
        )

    def add_values(self, seconds: Int64, values: Floats, counts: npt.NDArray[Any] | None = None) -> None:
        """Take in values in seconds; ``counts``: how many of each."""
        above = np.zeros(len(values), np.uint8)  # the number of limits that each is above
        for limit in self._limits:
            above += (values > limit).view(np.uint8)
        add_to(self._at_most.reshape(-1), seconds * self._at_most.shape[1] + above, counts)
        add_to(self._sums, seconds, values if counts is None else values * counts)

    @property
    def counts(self) -> Floats:
        """The number of them in each second that has any."""
        counts = self._counts
        return counts[counts > 0]

    @property
    def sums(self) -> Floats:
        """Their sum in each of these seconds."""
        return self._sums[self._counts > 0]

    def at_most(self, limit: float) -> Floats:
        """The number of them at or below one of the limits in each of these seconds."""
        place = int(np.searchsorted(self._limits, limit))
        found: Floats = self._at_most[self._counts > 0, : place + 1].sum(axis=1)
        return found

    @property
    def _counts(self) -> Floats:
        counts: Floats = self._at_most.sum(axis=1)
        return counts


def _seconds_of(part: Records, name: str, sample: Sample, seconds: Int64) -> Int64:
    """The block of each value of a sample."""
    measured = seconds[sample.measured_in]
    if name == "itl":
        measured = np.repeat(measured, gap_counts(part)[sample.measured_in])
    return np.concatenate((measured, seconds[sample.aged_in]))


def gap_counts(part: Records) -> Int64:
    """The number of gaps between the pieces of each request."""
    import pyarrow.compute as pc

    counts: Int64 = numbers(pc.list_value_length(part.table.column("gaps"))).astype(np.int64)
    return counts


def blocks_of(instants: Int64, number: int) -> Int64:
    """The seconds that these instants, in ns, are in; the first and the last have what lies outside."""
    seconds: Int64 = np.clip(instants // NS, 0, number - 1)
    return seconds


def add_to(sums: Floats, blocks: Int64, weights: npt.NDArray[np.generic] | None = None) -> None:
    """Add each weight to the sum of its block; without weights, 1. A part has few of a wave's seconds."""
    if len(blocks):
        first, last = int(blocks.min()), int(blocks.max())
        sums[first : last + 1] += np.bincount(blocks - first, weights)
