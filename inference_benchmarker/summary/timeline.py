"""A wave second by second: ``timeline.csv``. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.summary.distribution import Distribution
from inference_benchmarker.summary.goodput import meets
from inference_benchmarker.summary.request_times import output_tokens
from inference_benchmarker.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Int64, Records

COLUMNS = (
    "second,scheduled,sent,ok,failed,abandoned,in_flight,latency_p50_s,latency_p99_s,response_time_p99_s,lag_p99_s,"
    "ttft_p99_s,tokens_out,good,stage,repeated"
)


def timeline(facts: WaveFacts) -> str:
    """``timeline.csv``: a row for each second of the wave; requests count in the second they were sent or done in.

    ``repeated``: those sent that were not the first of their arrival.
    """
    records = facts.records
    sent, done, due = records.int("sent"), records.int("done"), records.int("due")
    arrived = records.arrived
    last = max(facts.window.duration_ns, facts.window.planned_ns or 0, int(done.max(initial=0)))
    seconds = last // NS + 1
    edges = np.arange(seconds + 1) * NS
    in_second = {
        "scheduled": _scheduled(facts, edges),
        "sent": np.histogram(sent, edges)[0],
        **{name: np.histogram(done[records.outcome(name)], edges)[0] for name in ("ok", "failed", "abandoned")},
    }
    ok = records.outcome("ok")
    streamed = ok & records.has("first_token")
    percentiles = [
        _by_second(done[ok], (done - sent)[ok], seconds, 50),
        _by_second(done[ok], (done - sent)[ok], seconds, 99),
        _by_second(done[ok], (done - arrived)[ok], seconds, 99),
        _by_second(sent, sent - records.int("build_ns") - due, seconds, 99),
        _by_second(done[streamed], (records.int("first_token") - sent)[streamed], seconds, 99),
    ]
    columns = [
        _in_flight(facts, seconds),
        *percentiles,
        _tokens_by_second(records, edges),
        _good_by_second(facts, edges),
        _stages_by_second(facts, seconds),
        map(str, np.histogram(sent[records.repeats], edges)[0].tolist()),
    ]
    counts = [map(str, values.tolist()) for values in in_second.values()]
    rows = zip(map(str, range(seconds)), *counts, *columns, strict=True)
    return "\n".join((COLUMNS, *map(",".join, rows))) + "\n"


def _tokens_by_second(records: Records, edges: Int64) -> list[str]:
    """Output tokens of the ok requests done in each second; empty where none were counted."""
    counted = records.outcome("ok") & (records.has("tokens_out") | records.has("chunks"))
    if not counted.any():
        return [""] * (len(edges) - 1)
    tokens = output_tokens(records)[counted].astype(float)
    totals, _ = np.histogram(records.int("done")[counted], edges, weights=tokens)
    return [str(int(total)) for total in totals]


def _good_by_second(facts: WaveFacts, edges: Int64) -> list[str]:
    """Requests done in each second that met every ``--goodput`` limit; empty without any."""
    if not facts.plan.goodput:
        return [""] * (len(edges) - 1)
    good = meets(facts.records, facts.plan.goodput)
    return [str(count) for count in np.histogram(facts.records.int("done")[good], edges)[0].tolist()]


def _stages_by_second(facts: WaveFacts, seconds: int) -> list[str]:
    """The stage in which each second begins; empty without stages, and from the end of the wave on."""
    load, end = facts.plan.load, facts.window.planned_ns
    if not isinstance(load, OpenLoop) or not load.stages or end is None:
        return [""] * seconds
    ends = np.minimum(np.cumsum([stage.duration_ns for stage in load.stages]), end)
    places = np.searchsorted(ends, np.arange(seconds) * NS, side="right")
    names = (*load.stage_names, "")
    return [names[place] for place in places.tolist()]


def _scheduled(facts: WaveFacts, edges: Int64) -> Int64:
    """Arrivals due in each second: all of an open loop's, also those that no record tells of (dropped, lost)."""
    if not facts.open_loop:
        return np.histogram(facts.records.int("due")[~facts.records.repeats], edges)[0]
    stop = facts.window.stopped_at_ns
    instants = edges if stop is None else np.minimum(edges, stop)
    return np.diff(TokenBucket.of(facts.plan).counts(map(int, instants)))


def _in_flight(facts: WaveFacts, seconds: int) -> list[str]:
    """The mean number of requests in flight over each second, those that the warm-up left among them."""
    both = (facts.warmup, facts.records)
    sent, done = (np.concatenate([records.int(name) for records in both]) for name in ("sent", "done"))
    return [f"{nanoseconds / NS:.6f}" for nanoseconds in _time_since(sent, seconds) - _time_since(done, seconds)]


def _time_since(instants: Int64, seconds: int) -> Int64:
    """The part of each second that lies after an instant, summed over the instants: ns."""
    second, passed = np.divmod(np.clip(instants, 0, seconds * NS), NS)
    counts = np.bincount(second, minlength=seconds + 1)
    rests = np.bincount(second, NS - passed, seconds + 1).astype(np.int64)
    return ((np.cumsum(counts) - counts) * NS + rests)[:seconds]


def _by_second(at: Int64, values: Int64, seconds: int, percent: float) -> list[str]:
    """A percentile of the values in each second, as text; empty where there are none."""
    order = np.argsort(at, kind="stable")
    at, values = at[order], values[order]
    bounds = np.searchsorted(at, np.arange(seconds + 1) * NS)
    column = [""] * seconds
    for second in np.flatnonzero(np.diff(bounds)):  # a long wave may have few requests
        distribution = Distribution.of(values[bounds[second] : bounds[second + 1]] / NS)
        assert distribution is not None
        column[second] = f"{distribution.percentile(percent):.6f}"
    return column
