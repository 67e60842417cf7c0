"""The stages of a wave, or stretches of equal length, each as a wave of its own. Pure."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.facts.counted import counted_spans, counted_stage, in_flight_at
from inference_benchmarker.facts.wave_facts import WaveFacts, Window
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.records.columns import ROW_KEY, Records
from inference_benchmarker.records.ordered import rows_before, watermarks
from inference_benchmarker.records.record import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.plan.stage import Stage
    from inference_benchmarker.records.columns import Int64
    from inference_benchmarker.records.counts import Counts
    from inference_benchmarker.records.parts import InParts

_FLIGHT = ("due", "sent", "done", "outcome")
_LOAD = (*ROW_KEY, *_FLIGHT, "build_ns", "first_token", "last_token", "chunks", "tokens_in", "tokens_out")


@dataclass(frozen=True, slots=True)
class StageFacts:
    """A stage and the requests of the arrivals that were due in it, on a clock that begins with it.

    ``facts.warmup`` is what was in flight when it began, and what sessions of before it sent later; where requests were
    counted, ``counted_in_flight`` is the number of those at its end.
    """

    name: str
    stage: Stage
    start_ns: int
    end_ns: int
    facts: WaveFacts
    counted_in_flight: int | None = None

    @property
    def in_flight_end(self) -> int:
        """Requests in flight when it ended, whichever stage they were from."""
        if self.counted_in_flight is not None:
            return self.counted_in_flight
        length = self.end_ns - self.start_ns
        several = (self.facts.warmup, self.facts.records)
        return sum(_in_flight(part, length) for records in several for part in records.parts(*_FLIGHT))


def stages_of(facts: WaveFacts) -> Iterator[StageFacts]:
    """The stages that had begun when the wave ended."""
    load, stop = facts.plan.load, facts.window.stopped_at_ns
    if not isinstance(load, OpenLoop) or not load.stages:
        return
    ends = list(accumulate((stage.duration_ns for stage in load.stages), initial=0))
    until = ends if stop is None else [min(end, max(stop, 0)) for end in ends]
    planned = np.diff(TokenBucket.of(facts.plan).counts(until)).tolist()
    if facts.counts is not None:
        yield from _counted_stages(facts, facts.counts, load, list(pairwise(until)), planned)
        return
    rows = rows_before(facts.records, ends)  # a later arrival has a higher index
    named = zip(load.stage_names, load.stages, pairwise(until), pairwise(rows), planned, strict=True)
    flying, latest = Records.joined([]), facts.warmup
    kept = _LOAD if facts.has_sessions else _FLIGHT
    for name, stage, (start, end), span, count in named:
        if end > start:
            alone = OpenLoop(arrivals=load.arrivals, stages=(stage,), steered=load.steered)
            flying, latest = _unfinished(start, kept, flying, latest), facts.records.between(*span)
            part = _alone(facts, (start, end), latest.since(start), count)
            plan = replace(part.plan, load=alone)
            yield StageFacts(name, stage, start, end, replace(part, plan=plan, warmup=flying.since(start)))


def _counted_stages(
    facts: WaveFacts, counts: Counts, load: OpenLoop, times: Sequence[tuple[int, int]], planned: Sequence[int]
) -> Iterator[StageFacts]:
    named = zip(load.stage_names, load.stages, times, planned, strict=True)
    for number, (name, stage, (start, end), count) in enumerate(named):
        if end > start:
            part = counted_stage(facts, counts, number, (start, end), count)
            alone = OpenLoop(arrivals=load.arrivals, stages=(stage,), steered=load.steered)
            plan = replace(part.plan, load=alone)
            in_flight = in_flight_at(counts, end)
            yield StageFacts(name, stage, start, end, replace(part, plan=plan), in_flight)


def spans_of(facts: WaveFacts, length_ns: int) -> Iterator[tuple[int, int, WaveFacts]]:
    """The requests due in each stretch of that length, with its start and end; none of those before it is in flight.

    In the closed loop nothing was planned but what was sent. Where requests were counted they are those that were over
    in it.
    """
    if facts.counts is not None:
        yield from counted_spans(facts, facts.counts, length_ns)
        return
    whole = facts.window.planned_ns or 1 + max(
        (int(part.arrived.max()) for part in facts.records.parts(*ROW_KEY, "due")), default=-1
    )
    edges = [*range(0, whole, length_ns), whole]
    planned = (
        np.diff(TokenBucket.of(facts.plan).counts(edges)).tolist() if facts.open_loop else [None] * (len(edges) - 1)
    )
    for (start, end), records, count in zip(pairwise(edges), _spread(facts.records, edges), planned, strict=True):
        arrivals = int(np.count_nonzero(records.firsts)) if count is None else count
        yield start, end, _alone(facts, (start, end), records.since(start), arrivals)


def _spread(records: InParts, edges: Sequence[int]) -> Iterator[Records]:
    """The records whose arrivals were due between each two instants; in memory are those that a later part may add to.

    In the closed loop a later arrival may have been due earlier.
    """
    pieces: list[list[Records]] = [[] for _ in edges[1:]]
    given = 0
    for part, watermark in zip(records.parts(), watermarks(records, "due"), strict=True):
        over = len(pieces) if watermark is None else max(given, bisect_right(edges, watermark) - 1)
        ordered = part if _is_sorted(part.arrived) else part.in_order_of_arrival()
        for place, (first, stop) in enumerate(pairwise(np.searchsorted(ordered.arrived, edges).tolist())):
            if stop > first:
                piece = ordered.between(first, stop)
                pieces[place].append(piece if place < over else _copy(piece))
        for place in range(given, over):
            yield Records.joined(pieces[place])
            pieces[place].clear()
        given = over
    yield from (Records.joined([]) for _ in range(given, len(pieces)))


def _is_sorted(values: Int64) -> bool:
    return bool((values[1:] >= values[:-1]).all())


def _copy(records: Records) -> Records:
    """The same records, which do not keep the part that they are from in memory."""
    return records.where(np.ones(len(records), bool))


def _alone(facts: WaveFacts, times: tuple[int, int], records: InParts, planned: int) -> WaveFacts:
    start, end = times
    counts = dict.fromkeys(("ok", "failed", "abandoned"), 0)
    repeated = later = last = 0
    for part in records.parts(*ROW_KEY, "done", "outcome"):
        for name in counts:
            counts[name] += int(np.count_nonzero(part.outcome(name)))
        repeated += int(np.count_nonzero(part.repeats))
        later += int(np.count_nonzero(part.later_turns & ~part.repeats))
        last = max(last, int(part.int("done")[~part.outcome("abandoned")].max(initial=0)))
    dropped = 0 if facts.lost_workers else max(planned - len(records) + repeated + later, 0)
    return replace(
        facts,
        plan=replace(facts.plan, bounds=Bounds()),
        window=Window(facts.window.start_unix_ns + start, facts.window.t0_monotonic_ns + start, end - start, last),
        records=records,
        warmup=records.between(0, 0),
        prompts=None,
        ledgers=(
            Ledger(
                scheduled=planned,
                sent=len(records),
                dropped=dropped,
                repeated=repeated,
                later_turns=later,
                **counts,
            ),
        ),
    )


def _unfinished(at_ns: int, columns: Sequence[str], *several: InParts) -> Records:
    """Those that ended at an instant or later, or not at all, with some of their columns."""
    found = []
    for part in (part for records in several for part in records.parts(*columns)):
        lasting = (part.int("done") >= at_ns) | part.outcome("abandoned")
        found.append(Records(part.table.select(columns)).where(lasting))
    return Records.joined(found)


def _in_flight(records: Records, at_ns: int) -> int:
    gone = (records.int("done") < at_ns) & ~records.outcome("abandoned")
    return int(np.count_nonzero((records.int("sent") < at_ns) & ~gone))
