"""The verdict on a wave is the same in any parts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from inference_benchmarker.facts.client_use import Connections, LoopDelay, WorkerUse
from inference_benchmarker.records.columns import Records
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.client.evidence import Evidence, most_in_flight
from inference_benchmarker.verdict.client.flow import Flow
from inference_benchmarker.verdict.client.standstill import Standstill
from inference_benchmarker.verdict.client.worker import in_time_until_ns
from inference_benchmarker.verdict.server.cold_start import cold_start
from inference_benchmarker.verdict.server.platform_metrics import PlatformMetrics
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.words.units import NS
from tests.parts import parted
from tests.queues import ORDERS, held_up, observed_at, offered, waiting
from tests.situations import SITUATIONS, abandoning, late
from tests.situations import wave as situation
from tests.waves import MS, observe, on_time, open_plan

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts

DUES = [number / 100 for number in range(1000)]


def behind_late(onset: float = 5.5) -> WaveFacts:
    services = [0.02 if due < onset else 0.02 * (1 + 1.5 * (due - onset)) for due in DUES]
    return observed_at(100, 10, DUES, ORDERS["first come first served"](DUES, services, 4))


WAVES: dict[str, WaveFacts] = {
    **{name: facts for name, (facts, _, _, _) in SITUATIONS.items()},
    **{order: offered(order, 1.5, seed=3) for order in ORDERS},
    "a full pool": replace(offered("first come first served", 1.5, rate=300), workers=(waiting(4.0),)),
    "behind in the second half": behind_late(),
    "a standstill": held_up(4, 2),
    "two pauses": observed_at(
        100, 10, DUES, [max(d + 0.02, next((e for e in (3.5, 8.5) if e - 1.5 <= d + 0.02 < e), 0)) for d in DUES]
    ),
    "late": situation(late(300 * MS)),
    "late from the middle on": situation(lambda r: late(NS)(r) if r.index > 400 else r),
    "hung for good": situation(abandoning(*range(300, 1000))),
    "a loop that blocks": situation(
        workers=(WorkerUse(loop_delay=LoopDelay(count=600, p50_s=0, p95_s=0, p99_s=0.5, max_s=0.6)),)
    ),
    "connections for each": situation(workers=(WorkerUse(connections=Connections(opened=990)),)),
}


@pytest.mark.parametrize("name", WAVES)
def test_the_verdict_is_the_same(name: str) -> None:
    facts = WAVES[name]
    summary = summarise(facts)
    expected = judge(facts, summary)
    for rows in (30, 999):
        assert judge(parted(facts, rows), summary) == expected


def slow_start(*slow: int) -> WaveFacts:
    plan = open_plan("100", "10", warmup_s=1)
    took = dict.fromkeys(slow, NS)
    return observe(plan, [r._replace(done=r.sent + took.get(r.index, (20 + r.index % 7) * MS)) for r in on_time(plan)])


@pytest.mark.parametrize(
    "facts", [slow_start(*range(-100, 80)), slow_start(-100), slow_start(), slow_start(*range(900))]
)
def test_a_cold_start_is_the_same(facts: WaveFacts) -> None:
    for rows in (30, 999):
        assert cold_start(parted(facts, rows)) == cold_start(facts)


@pytest.mark.parametrize("name", ["a standstill", "two pauses", "late", "hung for good", "last come first served"])
def test_what_is_seen_is_the_same(name: str) -> None:
    """Also where it leads to no finding."""
    facts = WAVES[name]
    summary = summarise(facts)
    for rows in (30, 999):
        parts = parted(facts, rows)
        assert most_in_flight(parts) == most_in_flight(facts)
        assert in_time_until_ns(Evidence(parts, summary)) == in_time_until_ns(Evidence(facts, summary))
        assert Standstill.of(parts) == Standstill.of(facts)
        latency = PlatformMetrics(facts, summary, ()).latency_s
        assert PlatformMetrics(parts, summary, ()).latency_s == pytest.approx(latency, rel=1e-12)
        found, expected = Flow.of(parts, 10 * NS), Flow.of(facts, 10 * NS)
        assert (found.sent.tolist(), found.in_flight.tolist()) == (expected.sent.tolist(), expected.in_flight.tolist())
        assert found.slow == pytest.approx(expected.slow, rel=1e-12)


def test_the_most_in_flight_is_that_of_one_worker() -> None:
    random = np.random.default_rng(4)
    records = [
        r._replace(worker=r.index % 3, done=r.sent + int(random.exponential(0.2) * NS))
        for r in on_time(open_plan("100", "10"))
    ]
    facts = replace(observe(open_plan("100", "10"), records), plan=open_plan("100", "10", workers=3))
    mine = [[r for r in records if r.worker == worker] for worker in range(3)]
    most = max(sum(r.sent <= one.sent < r.done for r in rows) for rows in mine for one in rows)
    assert most_in_flight(facts) == most_in_flight(parted(facts, 50)) == most
    assert most_in_flight(replace(facts, records=Records.of([]))) == 0
