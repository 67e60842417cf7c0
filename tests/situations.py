"""Waves to which each kind of thing has happened, and what a report says of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.facts.client_use import Connections, WorkerUse
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.report.summary_json import summary_of
from inference_benchmarker.report.text import to_text
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.verdict import Verdict, judge
from inference_benchmarker.words.units import NS
from tests.waves import MS, observe, on_time, open_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.record import RequestRecord

PLAN = open_plan("100", "10")


def wave(
    change: Callable[[RequestRecord], RequestRecord | None] = lambda record: record, *, slos: str = "", **more: Any
) -> WaveFacts:
    """A faultless wave of 1,000 arrivals, changed in one thing."""
    plan = replace(PLAN, slos=tuple(map(Slo.parse, slos.split())), **more.pop("plan", {}))
    changed = [change(record) for record in on_time(plan)]
    return observe(plan, [record for record in changed if record is not None], **more)


def verdict_of(facts: WaveFacts) -> Verdict:
    return judge(facts, summarise(facts))


def failing(*indices: int) -> Callable[[RequestRecord], RequestRecord]:
    return lambda r: r._replace(outcome="failed", error="ValueError") if r.index in indices else r


def abandoning(*indices: int) -> Callable[[RequestRecord], RequestRecord]:
    return lambda r: r._replace(outcome="abandoned", done=70 * NS) if r.index in indices else r


def without(*indices: int) -> Callable[[RequestRecord], RequestRecord | None]:
    return lambda r: None if r.index in indices else r


def late(nanoseconds: int, latency: int = 20 * MS) -> Callable[[RequestRecord], RequestRecord]:
    return lambda r: r._replace(sent=r.due + nanoseconds, done=r.due + nanoseconds + latency)


SITUATIONS: dict[str, tuple[WaveFacts, list[str], str, int]] = {
    "faultless": (wave(), [], "VALID", 0),
    "5% failed are allowed": (wave(failing(*range(50))), [], "VALID", 0),
    "51 of 1,000 failed": (wave(failing(*range(51))), ["success_below_threshold"], "VALID", 1),
    "all failed": (wave(failing(*range(1000))), ["success_below_threshold"], "VALID", 1),
    "all failed, none need succeed": (
        wave(failing(*range(1000)), plan={"success_threshold": 0.0}),
        ["success_below_threshold"],
        "VALID",
        1,
    ),
    "all abandoned": (
        wave(abandoning(*range(1000))),
        ["success_below_threshold", "unfinished_requests"],
        "VALID",
        1,
    ),
    "one abandoned": (wave(abandoning(5)), ["unfinished_requests"], "VALID", 0),
    "a limit met": (wave(slos="p99<=20ms success>=1 rate>=1"), [], "VALID", 0),
    "a limit missed": (wave(slos="p99<20ms"), ["slo_missed"], "VALID", 1),
    "two limits missed": (wave(slos="p50<1ms p99<20ms p90<1s"), ["slo_missed", "slo_missed"], "VALID", 1),
    "a limit on nothing measured": (wave(slos="ttft.p50<1s"), ["slo_missed"], "VALID", 1),
    "an arrival dropped": (wave(without(7), dropped=[1]), ["dropped_arrivals"], "INVALID", 3),
    "2% dropped": (wave(without(*range(20)), dropped=[20]), ["dropped_arrivals", "rate_missed"], "INVALID", 3),
    "a worker lost": (
        wave(without(*range(501, 1000, 2)), plan={"workers": 2}, lost_workers=(1,)),
        ["worker_lost", "rate_missed"],
        "INVALID",
        3,
    ),
    "a worker lost after its last arrival": (wave(lost_workers=(0,)), ["worker_lost"], "INVALID", 3),
    "the primary lost": (wave(primary_lost=True), ["primary_lost"], "INVALID", 3),
    "strangers at the port": (wave(foreign_connections=3), ["foreign_connections"], "VALID", 0),
    "loopback down": (wave(loopback_down_s=3.2), ["loopback_down"], "INVALID", 3),
    "a full disk": (wave(disk_error="No space left on device"), ["disk_full"], "INVALID", 3),
    "a count that does not add up": (wave(without(3)), ["ledger_broken"], "INVALID", 3),
    "lag of 5 ms": (wave(late(5 * MS)), [], "VALID", 0),
    "lag above 5 ms": (wave(late(5 * MS + 1)), ["schedule_lag"], "INVALID", 3),
    "lag of a tenth of the latency": (wave(late(20 * MS, 200 * MS)), [], "VALID", 0),
    "lag above a tenth of the latency": (wave(late(20 * MS + 1, 200 * MS)), ["schedule_lag"], "INVALID", 3),
    "lag of 1 arrival in 1,000": (wave(lambda r: late(NS)(r) if r.index < 1 else r), [], "VALID", 0),
    "one hold-up of 11 arrivals in 1,000": (
        wave(lambda r: late(NS)(r) if r.index < 11 else r),
        ["late_arrivals"],
        "VALID",
        0,
    ),
    "10 hold-ups of an arrival in 1,000": (
        wave(lambda r: late(20 * MS)(r) if r.index % 100 == 7 else r),
        ["late_arrivals"],
        "VALID",
        0,
    ),
    "20 hold-ups of an arrival in 1,000": (
        wave(lambda r: late(20 * MS)(r) if r.index % 50 == 7 else r),
        ["schedule_lag"],
        "INVALID",
        3,
    ),
    "invalid and missed": (
        wave(without(7), dropped=[1], slos="p50<1ms"),
        ["dropped_arrivals", "slo_missed"],
        "INVALID",
        3,
    ),
    "interrupted": (wave(interrupted=True), [], "VALID", 130),
    "interrupted, invalid and missed": (
        wave(without(7), dropped=[1], slos="p50<1ms", interrupted=True),
        ["dropped_arrivals", "slo_missed"],
        "INVALID",
        130,
    ),
    "nothing sent": (observe(PLAN, [], stopped_at=0), ["nothing_sent"], "INVALID", 3),
    "descriptors used up by more than 1%": (
        wave(
            lambda r: r._replace(outcome="failed", error="OSError EMFILE") if r.index < 11 else r,
            workers=(WorkerUse(connections=Connections(refused={"EMFILE": 11})),),
        ),
        ["descriptors"],
        "INVALID",
        3,
    ),
    "a silent worker": (wave(workers=(WorkerUse(silence_s=3.5),)), ["heartbeats_missed"], "VALID", 0),
    "a full pool and an endpoint that times out": (
        wave(
            lambda r: r._replace(outcome="failed", error="ReadTimeout") if r.index % 10 == 0 else r,
            workers=(WorkerUse(connections=Connections(opened=500, discarded=400)),),
        ),
        ["success_below_threshold", "server_limited", "connection_pool"],
        "VALID",
        1,
    ),
    "a usage beyond all measure": (
        wave(lambda r: r._replace(tokens_out=10**9) if r.index == 7 else r),
        ["impossible_usage"],
        "VALID",
        0,
    ),
    "a usage that cannot be": (
        wave(lambda r: r._replace(chunks=4, tokens_out=3 if r.index < 7 else 4)),
        ["impossible_usage"],
        "VALID",
        0,
    ),
    "few samples": (
        observe(open_plan("10", None, 99), on_time(open_plan("10", None, 99))),
        ["too_few_samples"],
        "VALID",
        0,
    ),
    "too few for p99.99": (wave(slos="p99.99<1s"), ["too_few_samples"], "VALID", 0),
    "descriptors used up": (
        wave(
            lambda r: r._replace(outcome="failed", error="OSError EMFILE") if r.index < 9 else r,
            workers=(WorkerUse(connections=Connections(refused={"EMFILE": 9})),),
        ),
        ["descriptors"],
        "VALID",
        0,
    ),
}


def text_of(facts: WaveFacts, run_dir: Path | None = None) -> str:
    summary = summarise(facts)
    return to_text(facts, summary, judge(facts, summary), run_dir)


def json_of(facts: WaveFacts) -> dict[str, Any]:
    summary = summarise(facts)
    fields: dict[str, Any] = encoded(summary_of(facts, summary, judge(facts, summary)))
    return fields


def line(text: str, start: str) -> str:
    (found,) = [line for line in text.splitlines() if line.strip().startswith(start)]
    return found.strip()
