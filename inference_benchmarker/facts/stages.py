"""The stages of a wave, each as a wave of its own. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.facts.wave_facts import WaveFacts, Window
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.records.record import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.plan.stage import Stage
    from inference_benchmarker.records.columns import Records


@dataclass(frozen=True, slots=True)
class StageFacts:
    """A stage and the requests that were due in it, on a clock that begins with it.

    ``facts.warmup`` is what was in flight when it began.
    """

    name: str
    stage: Stage
    start_ns: int
    end_ns: int
    facts: WaveFacts

    @property
    def in_flight_end(self) -> int:
        """Requests in flight when it ended, whichever stage they were from."""
        length = self.end_ns - self.start_ns
        return sum(_in_flight(records, length) for records in (self.facts.warmup, self.facts.records))


def stages_of(facts: WaveFacts) -> Iterator[StageFacts]:
    """The stages that had begun when the wave ended."""
    load, stop = facts.plan.load, facts.window.stopped_at_ns
    if not isinstance(load, OpenLoop) or not load.stages:
        return
    ends = list(accumulate((stage.duration_ns for stage in load.stages), initial=0))
    until = ends if stop is None else [min(end, max(stop, 0)) for end in ends]
    planned = np.diff(TokenBucket.of(facts.plan).counts(until)).tolist()
    rows = np.searchsorted(facts.records.int("due"), ends).tolist()  # a later arrival has a higher index
    named = zip(load.stage_names, load.stages, pairwise(until), pairwise(rows), planned, strict=True)
    for name, stage, (start, end), span, count in named:
        if end > start:
            alone = OpenLoop(arrivals=load.arrivals, stages=(stage,))
            yield StageFacts(name, stage, start, end, _alone(facts, alone, (start, end), span, count))


def _alone(facts: WaveFacts, load: OpenLoop, times: tuple[int, int], rows: tuple[int, int], planned: int) -> WaveFacts:
    (start, end), (first, stop) = times, rows
    records = facts.records.between(first, stop).since(start)
    before = facts.warmup.and_then(facts.records.between(0, first))
    before = before.where((before.int("done") >= start) | before.outcome("abandoned")).since(start)
    counts = {name: int(records.outcome(name).sum()) for name in ("ok", "failed", "abandoned")}
    dropped = 0 if facts.lost_workers else max(planned - len(records), 0)
    answered = records.int("done")[~records.outcome("abandoned")]
    return replace(
        facts,
        plan=replace(facts.plan, load=load, bounds=Bounds()),
        window=Window(
            facts.window.start_unix_ns + start,
            facts.window.t0_monotonic_ns + start,
            end - start,
            int(answered.max(initial=0)),
        ),
        records=records,
        warmup=before,
        ledgers=(Ledger(scheduled=planned, sent=len(records), dropped=dropped, **counts),),
    )


def _in_flight(records: Records, at_ns: int) -> int:
    gone = (records.int("done") < at_ns) & ~records.outcome("abandoned")
    return int(np.count_nonzero((records.int("sent") < at_ns) & ~gone))
