"""Goodput: which requests met every limit, known by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.plan.slo import RequestLimit, Slo
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.words.units import NS
from tests.situations import json_of, line, text_of, verdict_of
from tests.waves import MS, observe, on_time, open_plan, streamed

if TYPE_CHECKING:
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.records.record import RequestRecord
    from inference_benchmarker.summary.goodput import Goodput


def plan_with(limits: str, number: int = 4, *slos: str) -> WavePlan:
    parsed = tuple(map(RequestLimit.parse, limits.split(",")))
    return open_plan("10", None, number, goodput=parsed, slos=tuple(map(Slo.parse, slos)))


def goodput(limits: str, *records: RequestRecord) -> Goodput:
    found = summarise(observe(plan_with(limits, len(records)), records)).goodput
    assert found is not None
    return found


FAST = streamed(0, 50, (10, 10))


@pytest.mark.parametrize(
    ("limits", "record", "good"),
    [
        ("ttft<=50ms", FAST, True),
        ("ttft<50ms", FAST, False),  # a value on its limit
        ("itl<=10ms", FAST, True),
        ("itl<10ms", FAST, False),
        ("itl<11ms", streamed(0, 50, (1, 19)), True),  # the mean of its gaps, not each of them
        ("tpot<=20ms", FAST, True),
        ("tpot<3ms", FAST._replace(tokens_out=11), True),  # several tokens in a piece, by the server's usage
        ("itl<3ms", FAST._replace(tokens_out=11), False),
        ("latency<=70ms", FAST, True),
        ("e2e<70ms", FAST, False),
        ("response_time<75ms", FAST._replace(due=-10 * MS), False),
        ("latency<75ms", FAST._replace(due=-10 * MS), True),
        ("ttft<1s,itl<10ms", FAST, False),  # one is not enough
        ("ttft<1s,itl<11ms", FAST, True),
        ("itl<2ms,tpot<2ms", streamed(0, 50, ()), True),  # one piece has no gap that is too long
        ("ttft<1s", FAST._replace(outcome="failed", error="E"), False),
        ("latency<1s", FAST._replace(outcome="abandoned"), False),
        ("ttft<1s", streamed(0, 0, (), chunks=0, first_token=None, last_token=None, gaps=()), False),
    ],
)
def test_a_good_request_meets_every_limit(limits: str, record: RequestRecord, good: bool) -> None:
    other = streamed(1, 1, (1,))  # good, whatever the limits
    assert goodput(limits, record, other).share == pytest.approx(1.0 if good else 0.5)


def test_it_is_a_rate_and_a_share_of_what_was_sent() -> None:
    slow, failed = streamed(1, 90, (1,)), streamed(3, 1, (1,), outcome="failed", error="E")
    found = goodput("ttft<80ms,itl<5ms", streamed(0, 1, (1,)), slow, streamed(2, 60, (30,)), failed)
    assert found.share == 0.25
    assert found.rate == pytest.approx(1 / 0.4)
    assert [(each.limit.expression, each.share) for each in found.limits] == [("ttft<80ms", 0.5), ("itl<5ms", 0.5)]


def test_requests_that_are_not_good_do_not_move_the_rate() -> None:
    plan = open_plan("100", "10", goodput=(RequestLimit.parse("latency<1s"),))
    records = [r._replace(done=r.due + (20 * MS if r.index % 4 == 0 else 5 * NS)) for r in on_time(plan)]
    found = summarise(observe(plan, records)).goodput
    assert found is not None
    assert (found.rate, found.share) == (25.0, 0.25)


def test_an_overloaded_server_has_the_goodput_of_what_it_answered_in_time() -> None:
    plan = open_plan("100", "10", goodput=(RequestLimit.parse("latency<2.5s"),))
    # one server of 20 ms: each answer takes 10 ms longer than the one before, so the first 248 are good
    records = [record._replace(done=(record.index + 1) * 20 * MS) for record in on_time(plan)]
    found = summarise(observe(plan, records)).goodput
    assert found is not None
    assert found.share == 0.248
    assert found.rate == pytest.approx(24.8, rel=0.3)  # those done before their median latency are left out


def test_a_limit_on_what_no_request_has_was_not_measured() -> None:
    plan = plan_with("latency<1s,ttft<1s", 4, "goodput>=0.5")
    observed = observe(plan, on_time(plan))
    assert line(text_of(observed), "Goodput:").startswith("Goodput:          not measured: no answer has ttft")
    assert json_of(observed)["goodput"] == {
        "rate": None,
        "share": None,
        "limits": [{"limit": "latency<1s", "share": 1.0}, {"limit": "ttft<1s", "share": None}],
    }
    assert [f.measured for f in verdict_of(observed).findings if f.code == "slo_missed"] == ["goodput not measured"]


def test_where_nothing_was_answered_it_is_zero() -> None:
    records = [r._replace(outcome="failed", error="E") for r in on_time(plan_with("ttft<1s"))]
    found = goodput("ttft<1s", *records)
    assert (found.rate, found.share) == (0.0, 0.0)


def test_nothing_sent_and_no_limit_have_none() -> None:
    assert summarise(observe(plan_with("ttft<1s"), [], stopped_at=0)).goodput is None
    assert summarise(observe(open_plan(), on_time(open_plan()))).goodput is None
    assert "Goodput" not in text_of(observe(open_plan(), on_time(open_plan())))


@pytest.mark.parametrize(("slo", "missed"), [("goodput>=0.75", False), ("goodput>75%", True), ("goodput>=0.8", True)])
def test_an_slo_on_it_is_held_against_the_share(slo: str, missed: bool) -> None:
    plan = plan_with("ttft<80ms", 4, slo)
    observed = observe(plan, [streamed(n, 90 if n == 0 else 50, (1,)) for n in range(4)])
    findings = [f for f in verdict_of(observed).findings if f.code == "slo_missed"]
    assert bool(findings) == missed
    assert all(finding.measured == "goodput 75%" for finding in findings)
    assert line(text_of(observed), "Goodput:") == "Goodput:          7.5/s, 75% of those sent (ttft<80ms: 75%)"


def test_the_time_of_a_good_request_is_not_rounded_to_its_limit() -> None:
    limit = RequestLimit.parse("latency<=20ms")
    for nanoseconds, good in ((20 * MS, True), (20 * MS + 1, False)):
        plan = open_plan("10", None, 1, goodput=(limit,))
        (record,) = on_time(plan, nanoseconds)
        found = summarise(observe(plan, [record])).goodput
        assert found is not None
        assert found.share == good
