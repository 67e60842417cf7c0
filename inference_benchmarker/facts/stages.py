"""The stages of a wave, or stretches of equal length, each as a wave of its own. Pure."""

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
    """A stage and the requests of the arrivals that were due in it, on a clock that begins with it.

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
    rows = np.searchsorted(facts.records.arrived, ends).tolist()  # a later arrival has a higher index
    named = zip(load.stage_names, load.stages, pairwise(until), pairwise(rows), planned, strict=True)
    for name, stage, (start, end), span, count in named:
        if end > start:
            alone = OpenLoop(arrivals=load.arrivals, stages=(stage,))
            records, before = facts.records.between(*span), facts.warmup.and_then(facts.records.between(0, span[0]))
            before = before.where((before.int("done") >= start) | before.outcome("abandoned")).since(start)
            part = _alone(facts, (start, end), records.since(start), count)
            plan = replace(part.plan, load=alone)
            yield StageFacts(name, stage, start, end, replace(part, plan=plan, warmup=before))


def spans_of(facts: WaveFacts, length_ns: int) -> Iterator[tuple[int, int, WaveFacts]]:
    """The requests due in each stretch of that length, with its start and end; none of those before it is in flight.

    In the closed loop nothing was planned but what was sent.
    """
    due = facts.records.arrived
    ordered = facts.records if (due[1:] >= due[:-1]).all() else facts.records.in_order_of_arrival()
    whole = facts.window.planned_ns or int(due.max(initial=-1)) + 1
    edges = [*range(0, whole, length_ns), whole]
    rows = np.searchsorted(ordered.arrived, edges).tolist()
    arrivals = np.append(0, np.cumsum(~ordered.repeats))[rows]
    planned = np.diff(TokenBucket.of(facts.plan).counts(edges) if facts.open_loop else arrivals).tolist()
    for (start, end), span, count in zip(pairwise(edges), pairwise(rows), planned, strict=True):
        yield start, end, _alone(facts, (start, end), ordered.between(*span).since(start), count)


def _alone(facts: WaveFacts, times: tuple[int, int], records: Records, planned: int) -> WaveFacts:
    start, end = times
    counts = {name: int(records.outcome(name).sum()) for name in ("ok", "failed", "abandoned")}
    repeated = int(np.count_nonzero(records.repeats))
    dropped = 0 if facts.lost_workers else max(planned - len(records) + repeated, 0)
    answered = records.int("done")[~records.outcome("abandoned")]
    return replace(
        facts,
        plan=replace(facts.plan, bounds=Bounds()),
        window=Window(
            facts.window.start_unix_ns + start,
            facts.window.t0_monotonic_ns + start,
            end - start,
            int(answered.max(initial=0)),
        ),
        records=records,
        warmup=records.between(0, 0),
        ledgers=(Ledger(scheduled=planned, sent=len(records), dropped=dropped, repeated=repeated, **counts),),
    )


def _in_flight(records: Records, at_ns: int) -> int:
    gone = (records.int("done") < at_ns) & ~records.outcome("abandoned")
    return int(np.count_nonzero((records.int("sent") < at_ns) & ~gone))
