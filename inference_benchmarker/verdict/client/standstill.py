"""Tells whether the endpoint answered nobody for a while, and then all who had waited. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from inference_benchmarker.records.ordered import ReorderBuffer, watermarks
from inference_benchmarker.summary.statistics.streaming_histogram import StreamingHistogram
from inference_benchmarker.verdict.client.counted import latencies, waits
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Int64, Records
    from inference_benchmarker.records.counts import Counts

LEAST_S = 1.0
LEAST_SHARE = 0.1  # of the time in which requests were sent
TIMES_THE_NEXT = 5.0  # longer than any other wait for an answer, and than a usual latency
LEAST_WAITING = 10


@dataclass(frozen=True, slots=True)
class Standstill:
    """``length_s`` without an answer from ``begin_s`` after wave start on; ``waiting`` requests were in flight then."""

    begin_s: float
    length_s: float
    waiting: int

    @classmethod
    def of(cls, facts: WaveFacts) -> Self | None:
        """The one that stands out: an endpoint that is slow, or pauses regularly, has many as long."""
        if facts.counts is not None:
            return cls._of_counts(facts, facts.counts)
        if not _may_have_one(facts):
            return None
        waits = _Waits()
        marks = watermarks(facts.records, "sent", "done")
        for part, mark in zip(facts.records.parts("sent", "done", "outcome"), marks, strict=True):
            waits.add(part, mark)
        if waits.number < 2:
            return None
        begin_ns, length_ns, waiting = waits.longest
        found = cls(begin_ns / NS, length_ns / NS, waiting)
        return found if found.stands_out(facts, waits.next_longest_ns / NS) else None

    @classmethod
    def _of_counts(cls, facts: WaveFacts, counts: Counts) -> Self | None:
        found = waits(counts.window)
        if len(found) < 2:
            return None
        (*_, (_, next_longest_ns, _), (begin_ns, length_ns, waiting)) = found
        longest = cls(begin_ns / NS, length_ns / NS, waiting)
        return longest if longest.stands_out(facts, next_longest_ns / NS) else None

    def stands_out(self, facts: WaveFacts, next_longest_s: float) -> bool:
        """Tells whether it is no wait like others of this wave."""
        least = max(_least_s(facts), TIMES_THE_NEXT * next_longest_s)
        if self.length_s < least or self.waiting < LEAST_WAITING or self.begin_s >= _length_s(facts):
            return False
        usual_s = _usual_s(facts)
        return usual_s is not None and self.length_s >= TIMES_THE_NEXT * usual_s


def _usual_s(facts: WaveFacts) -> float | None:
    """The median latency of the requests; None without any."""
    if facts.counts is not None:
        counted = latencies(facts.counts.window)
        return None if counted is None else counted.median
    found = StreamingHistogram()
    for part in facts.records.parts("sent", "done"):
        found.add(part.int("done") - part.int("sent"))
    usual = found.distribution()
    return None if usual is None else usual.median / NS


class _Waits:
    """The waits between two answers, as parts of the requests come; from when on somebody waited.

    ``longest``: its begin and length (ns), and the requests that were waiting at its end.
    """

    def __init__(self) -> None:
        self.longest = (0, 0, 0)
        self.next_longest_ns = 0
        self.number = 0
        self._buffer = ReorderBuffer()
        self._events = np.zeros(0, np.int64)  # from the last answer on
        self._in_flight = 0  # before them

    def add(self, part: Records, watermark: int | None) -> None:
        """Take in some more, before those that are sent and done from the watermark on."""
        sent, done = part.int("sent"), part.int("done")[~part.outcome("abandoned")]
        both = np.concatenate([sent << 1, done << 1 | 1])  # of the same instant, the sending is the first
        ordered = self._buffer.push(both, None if watermark is None else watermark << 1)
        events = np.concatenate([self._events, ordered])
        in_flight = self._in_flight + np.cumsum(np.where(events & 1, -1, 1))
        answers = np.flatnonzero(events & 1)
        if len(answers) > 1:
            self._take(events >> 1, in_flight, answers)
        if len(answers):
            self._events, self._in_flight = events[answers[-1] :], int(in_flight[answers[-1]]) + 1
        elif len(events):
            self._in_flight = int(in_flight[-1])

    def _take(self, at: Int64, in_flight: Int64, answers: Int64) -> None:
        before, after = answers[:-1], answers[1:]
        begun = np.where(in_flight[before] > 0, at[before], at[before + 1])
        waits = at[after] - begun
        place = int(np.argmax(waits))
        found = (int(begun[place]), int(waits[place]), int(in_flight[after[place]]) + 1)
        others = [found[1], self.longest[1], self.next_longest_ns, int(np.delete(waits, place).max(initial=0))]
        self.next_longest_ns = sorted(others)[-2]
        self.number += len(waits)
        if found[1] > self.longest[1]:
            self.longest = found


def _may_have_one(facts: WaveFacts) -> bool:
    """Tells whether there is a stretch without an answer, of half the least length: a standstill has one within it."""
    half_ns = round(_least_s(facts) * NS / 2)
    answered: set[int] = set()
    for part in facts.records.parts("done", "outcome"):
        done = part.int("done")[~part.outcome("abandoned")]
        answered.update(np.flatnonzero(np.bincount(np.maximum(done, 0) // half_ns)).tolist())
    return len(answered) < max(answered, default=0) - min(answered, default=1) + 1


def _least_s(facts: WaveFacts) -> float:
    return max(LEAST_S, LEAST_SHARE * _length_s(facts))


def _length_s(facts: WaveFacts) -> float:
    return (facts.window.planned_ns or facts.window.duration_ns) / NS
