"""For how long limits were missed: each second is judged by the requests due in it, as a stage is by its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.facts.instances import Followed
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict import missed_time
from inference_benchmarker.verdict.limits_met import slo_met
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.words.units import NS
from tests.waves import MS, closed_plan, observe, on_time, open_plan, staged

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.records.record import RequestRecord

P99, RATE, OF_A_STAGE = Slo.parse("p99<50ms"), Slo.parse("rate>=99%"), Slo.parse("b:p99<1ms")


def slow(since: float, until: float) -> Callable[[RequestRecord], RequestRecord]:
    def of(record: RequestRecord) -> RequestRecord:
        late = since * NS <= record.due < until * NS
        return record._replace(done=record.done + 100 * MS) if late else record

    return of


def failing(since: float, until: float, outcome: str = "failed") -> Callable[[RequestRecord], RequestRecord]:
    def of(record: RequestRecord) -> RequestRecord:
        bad = since * NS <= record.due < until * NS
        return record._replace(outcome=outcome, error="E" if outcome == "failed" else None) if bad else record

    return of


def same(record: RequestRecord) -> RequestRecord:
    return record


@pytest.mark.parametrize(
    ("slos", "change", "spans", "failed"),
    [
        ((P99, RATE), same, (), 0),
        ((P99,), slow(3, 5), ((3, 5),), 0),
        ((P99,), slow(3, 3.2), ((3, 4),), 0),
        ((), slow(3, 5), (), 0),
        ((OF_A_STAGE,), slow(3, 5), (), 0),
        ((), failing(2, 4), ((2, 4),), 20),
        ((), failing(2, 2.01), ((2, 3),), 1),
        ((P99,), failing(7, 10, "abandoned"), ((7, 10),), 30),
        ((P99,), lambda record: slow(1, 2)(failing(8, 9)(record)), ((1, 2), (8, 9)), 10),
    ],
)
def test_the_seconds_whose_requests_missed_a_limit(
    slos: tuple[Slo, ...],
    change: Callable[[RequestRecord], RequestRecord],
    spans: tuple[tuple[float, float], ...],
    failed: int,
) -> None:
    plan = open_plan("10", "10", slos=slos)
    found = missed_time.missed_time(observe(plan, map(change, on_time(plan))))
    assert (found.spans, found.failed) == (spans, failed)
    assert found.seconds == sum(end - start for start, end in spans)
    assert found.limits == ("success>=95%", *(slo.expression for slo in slos if not slo.stage))


def test_a_pause_misses_nothing_and_what_was_not_sent_does() -> None:
    plan = staged("10:3s, 0:4s, 10:3s", slos=(P99,))
    records = [record for record in on_time(plan) if not 8 * NS <= record.due < 9 * NS]
    dropped = [10, *[0] * (plan.workers - 1)]
    assert missed_time.missed_time(observe(plan, records, dropped=dropped)).spans == ((8, 9),)


def test_seconds_are_judged_as_stages_are() -> None:
    """A stage a second: the same limits met, whatever the limits are."""
    slos = tuple(map(Slo.parse, ("p99<70ms", "latency.mean<60ms", "rate>=99%", "success>=0.9", "min<30ms")))
    plan = staged(", ".join(f"{rate}:1s" for rate in range(20, 28)), slos=slos)
    changed = [
        slow(2, 3.05)(failing(5, 5.2)(failing(6, 6.05, "abandoned")(record))) for record in on_time(plan, 40 * MS)
    ]
    facts = observe(plan, changed)
    expected = [
        row.start_s
        for row in summarise(facts).stages
        if (row.summary.success_rate or 0) < plan.success_threshold or not all(slo_met(s, row.summary) for s in slos)
    ]
    found = missed_time.missed_time(facts)
    assert [second for start, end in found.spans for second in range(int(start), int(end))] == expected
    assert expected


def test_the_closed_loop_has_seconds_whatever_the_order_of_its_requests() -> None:
    plan = closed_plan(2, "6", slos=(Slo.parse("latency.p99<50ms"),))
    records = [
        record._replace(index=len_ - record.index)
        for len_ in [100]
        for record in map(slow(2, 4), on_time(open_plan("10", "6")))
    ]
    assert missed_time.missed_time(observe(plan, records)).spans == ((2, 4),)


def test_a_long_wave_is_looked_at_in_longer_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missed_time, "MOST_SPANS", 4)
    plan = open_plan("10", "10", slos=(P99,))
    found = missed_time.missed_time(observe(plan, map(slow(4, 5), on_time(plan))))
    assert (found.step_s, found.spans) == (3.0, ((3, 6),))


def test_it_is_looked_at_where_instances_were_followed() -> None:
    plan = open_plan("10", "3", slos=(P99,))
    facts = observe(plan, map(slow(1, 2), on_time(plan)))
    assert judge(facts, summarise(facts)).missed is None
    followed = replace(facts, instances=(Followed("e/v", "DescribeEndpoint"),))
    missed = judge(followed, summarise(followed)).missed
    assert missed is not None
    assert missed.spans == ((1, 2),)
