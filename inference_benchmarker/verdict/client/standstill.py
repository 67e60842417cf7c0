"""Tells whether the endpoint answered nobody for a while, and then all who had waited. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from inference_benchmarker.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts

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
        sent = np.sort(facts.records.int("sent"))
        done = np.sort(facts.records.int("done")[~facts.records.outcome("abandoned")])
        if len(done) < 3:
            return None
        before, after = done[:-1], done[1:]
        in_flight = np.searchsorted(sent, before, side="right") - np.arange(1, len(done))
        upcoming = sent[np.minimum(np.searchsorted(sent, before, side="right"), len(sent) - 1)]
        begun = np.where(in_flight > 0, before, np.maximum(before, upcoming))
        waits = (after - begun) / NS
        longest = int(np.argmax(waits))
        waiting = int(np.searchsorted(sent, after[longest], side="right")) - longest - 1
        found = cls(float(begun[longest]) / NS, float(waits[longest]), waiting)
        others = float(np.partition(waits, -2)[-2])
        return found if found.stands_out(facts, others) else None

    def stands_out(self, facts: WaveFacts, next_longest_s: float) -> bool:
        """Tells whether it is no wait like others of this wave."""
        records = facts.records
        usual = float(np.median(records.int("done") - records.int("sent"))) / NS
        length_s = (facts.window.planned_ns or facts.window.duration_ns) / NS
        least = max(LEAST_S, LEAST_SHARE * length_s, TIMES_THE_NEXT * next_longest_s, TIMES_THE_NEXT * usual)
        return self.length_s >= least and self.waiting >= LEAST_WAITING and self.begin_s < length_s
