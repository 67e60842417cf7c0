"""Late arrivals: a hiccup is no evidence against the client, steady lateness is; what they changed is always shown."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from inference_benchmarker.facts.client_use import Collections, LoopBlock, WorkerUse
from inference_benchmarker.plan.slo import RequestLimit, Slo
from inference_benchmarker.report.headline import headline
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.client.lateness import Lateness, at_least_by_chance
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.words.units import NS
from tests.counted import counted
from tests.mentions import mentions
from tests.situations import late, verdict_of, wave
from tests.waves import HOST, MS, observe, on_time, open_plan, records_of, staged, talks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.record import RequestRecord
    from inference_benchmarker.verdict.finding import Finding

FACTS = wave()
HICCUPS = [(number, rate) for number in (10, 20, 100, 1_000) for rate in (10, 100, 1_000)]
STOLEN = replace(HOST, cores=2, steal_share_mean=0.06)
IDLE = WorkerUse(cpu_share=0.03, starved_share=0.01)


def lateness(due: Any, lag_ns: Any) -> Lateness:
    """Of arrivals that were due and late so, answered at once."""
    due, sent = np.asarray(due, np.int64), np.asarray(due + lag_ns, np.int64)
    columns = {"index": np.arange(len(due)), "due": due, "sent": sent, "build_ns": np.zeros(len(due), np.int64)}
    return Lateness.of(replace(FACTS, records=records_of(columns)), 0.005)


def paused(due: Any, begin: float, length: float) -> Any:
    """The lag of each arrival of a client that a pause holds up; it sends what waited at 10,000 a second."""
    held = (due >= begin) & (due < begin + length)
    return np.where(held, begin + length - due + np.cumsum(held) * MS // 10, MS // 10)


def test_a_single_hiccup_is_no_evidence() -> None:
    random, blamed = np.random.default_rng(1), 0
    for number, rate in HICCUPS * 25:
        due = np.cumsum(random.exponential(NS / rate, number))
        length = min(random.exponential(30 * MS) + 5 * MS, 0.08 * due[-1])
        blamed += lateness(due, paused(due, random.uniform(0, due[-1] - length), length)).is_steady
    assert blamed <= 0.01 * 25 * len(HICCUPS)


@pytest.mark.parametrize("number", [10, 19, 20, 29, 100, 300, 1_000, 6_000])
def test_by_chance_alone_a_client_that_is_late_as_rarely_as_is_tolerated_is_hardly_ever_blamed(number: int) -> None:
    """Exactly: the chance of all counts of late arrivals, apart from each other, that would be steady."""
    steady = [count for count in range(number + 1) if Lateness(number, count, count, 1.0).is_steady]
    assert steady == list(range(steady[0], number + 1))
    assert at_least_by_chance(steady[0], number, 0.01) < 0.01
    assert at_least_by_chance(steady[0] - 1, number, 0.01) >= 0.01


def chance(seen: int, number: int, share: float) -> float:
    """That of so many at least ``seen`` are late, by the binomial formula."""
    few = (math.comb(number, each) * share**each * (1 - share) ** (number - each) for each in range(seen))
    return 1 - sum(few)


@pytest.mark.parametrize(
    ("number", "share"), [(10, 0.51), (20, 0.37), (50, 0.19), (100, 0.115), (300, 0.058), (1000, 0.031)]
)
def test_steady_lateness_is_not_missed(number: int, share: float) -> None:
    needed = next(count for count in range(number + 1) if Lateness(number, count, count, 1.0).is_steady)
    assert chance(needed, number, share) > 0.99


@pytest.mark.parametrize(("seen", "number", "share"), [(1, 20, 0.01), (3, 20, 0.01), (19, 1000, 0.01), (7, 10, 0.6)])
def test_the_chance_is_the_binomial_one(seen: int, number: int, share: float) -> None:
    assert at_least_by_chance(seen, number, share) == pytest.approx(chance(seen, number, share), rel=1e-6)


def test_a_backlog_that_grows_is_steady_whatever_its_number_of_hold_ups() -> None:
    due = np.arange(2_500) * 2 * MS
    assert lateness(due, due * 1.0).is_steady
    assert lateness(due, np.full(2_500, 6 * MS)).is_steady, "always a little late"


def test_pauses_again_and_again_are_steady() -> None:
    due = np.arange(600) * 100 * MS
    lag = np.where(np.arange(600) % 40 == 7, 6 * MS, 0)
    found = lateness(due, lag)
    assert (found.late, found.hold_ups, found.is_steady) == (15, 15, True)


def of(lags: Sequence[int], *, rate: str = "10", latency: int = 30 * MS, slos: str = "", **more: Any) -> WaveFacts:
    """A wave whose first arrivals are late by these times in ns."""
    plan = open_plan(rate, None, 20)

    def change(record: RequestRecord) -> RequestRecord:
        return late(lags[record.index] if record.index < len(lags) else 0, latency)(record)

    facts = observe(plan, [change(record) for record in on_time(plan)], **{"host": HOST, "workers": (IDLE,), **more})
    return replace(facts, plan=replace(plan, slos=wave(slos=slos).plan.slos))


def found(facts: WaveFacts) -> dict[str, Finding]:
    return {finding.code: finding for finding in verdict_of(facts).findings if finding.code != "too_few_samples"}


def test_one_of_twenty_arrivals_late_by_a_hair_leaves_the_wave_valid_and_is_reported() -> None:
    facts = of([5_190_000], host=STOLEN)
    late = found(facts)["late_arrivals"]
    verdict, summary = verdict_of(facts), summarise(facts)
    assert (verdict.word, verdict.exit_code, verdict.limited_by) == ("VALID", 0, None)
    text = "1 of 20 arrivals was sent late, by 5.19 ms; this raised the p99 of response time from 30 ms to 35.2 ms"
    assert (late.severity, late.measured) == ("warning", text)
    assert late.advice.startswith("Other guests of the same machine took 6% of the CPU (steal)")
    assert "use more --workers" not in late.advice
    assert headline(summary, verdict) == f"VALID: {text}; 20 of 20 answered, p99 35.2 ms"
    assert late.compared == text.replace(";", " (limit 5 ms);")


def test_a_missed_limit_is_reported_before_late_arrivals() -> None:
    facts = of([5_190_000], slos="p50<1ms", host=STOLEN)
    line = headline(summarise(facts), verdict_of(facts))
    assert line.startswith(
        "LIMIT MISSED: p50<1ms with response time p50 30 ms; 1 of 20 arrivals was sent late, by 5.19 ms; this raised"
    )


def test_what_moves_no_shown_percentile_is_not_reported() -> None:
    slow = of([5_190_000], latency=30 * MS)
    table = [record._replace(done=record.sent + NS) if record.index in (5, 7, 9) else record for record in slow.records]
    assert found(observe(slow.plan, table, workers=(IDLE,))) == {}


def test_a_hiccup_that_alone_breaks_a_limit_makes_the_wave_invalid_since_the_endpoint_did_not_break_it() -> None:
    verdict = verdict_of(of([200 * MS], slos="p99<100ms"))
    first = verdict.findings[0]
    assert (verdict.exit_code, first.code, first.severity) == (3, "schedule_lag", "invalid")
    assert mentions(first.measured, "1", "20 arrivals", "200 ms", "p99<100ms", "p99", "30 ms")


@pytest.mark.parametrize("lag_ms", [2.1, 4, 4.9, 6])
def test_steady_lateness_that_alone_breaks_a_limit_is_never_taken_for_the_endpoint_s(lag_ms: float) -> None:
    facts = wave(late(int(lag_ms * MS), 20 * MS), slos="p99<22ms", host=HOST)
    assert verdict_of(facts).exit_code == 3


def test_a_limit_that_the_endpoint_breaks_by_itself_is_its_own_miss() -> None:
    assert verdict_of(of([200 * MS], slos="p99<25ms")).exit_code == 1
    assert verdict_of(of([MS // 2], latency=29_800_000, slos="p99<30ms")).exit_code == 1, "a lag that decides nothing"


def test_a_limit_of_a_stage_is_judged_by_the_lag_of_that_stage() -> None:
    plan = replace(staged("10:2s,20:2s"), slos=wave(slos="20:p99<100ms").plan.slos)
    name = summarise(observe(plan, on_time(plan))).stages[1].name
    plan = replace(plan, slos=wave(slos=f"{name}:p99<100ms").plan.slos)
    for index, code in ((30, 3), (5, 0)):
        records = [late(200 * MS)(record) if record.index == index else record for record in on_time(plan)]
        assert verdict_of(observe(plan, records)).exit_code == code


def blocked(part: Any) -> WorkerUse:
    return replace(IDLE, block=LoopBlock(part, "spin (mine.py:3)", 0.9, 0.2))


CAUSES: dict[str, tuple[dict[str, Any], str]] = {
    "steal": ({"host": STOLEN}, "Other guests of the same machine took 6% of the CPU"),
    "another program": (
        {"host": replace(HOST, cores=2, cpu_share_mean=0.8, cpu_share_max=1.0, steal_share_mean=0.01)},
        "Other programs on this host took the CPU",
    ),
    "the user's code": ({"host": STOLEN, "workers": (blocked("invoke"),)}, "spin (mine.py:3) prevents the worker"),
    "garbage collection": (
        {"workers": (replace(IDLE, collections=Collections(3, 0.3, 0.2)),)},
        "Python's garbage collection stopped a worker for 200 ms",
    ),
    "a quota": ({"host": replace(HOST, throttled_s=0.4)}, "The cgroup throttled this client for 400 ms"),
    "a quota that leaves no free core": (
        {"host": replace(HOST, throttled_s=0.4), "workers": (WorkerUse(cpu_share=0.1, starved_share=0.3),)},
        "The cgroup throttled this client for 400 ms",
    ),
    "no free core": (
        {"workers": (WorkerUse(cpu_share=0.1, starved_share=0.3),)},
        "A worker waited 30% of the time for a free core",
    ),
}


@pytest.mark.parametrize("name", CAUSES)
def test_the_cause_is_named_from_the_evidence(name: str) -> None:
    more, begins = CAUSES[name]
    steady, hiccup = found(of([50 * MS] * 20, **more)), found(of([50 * MS], **more))
    assert steady["schedule_lag"].advice.startswith(begins)
    assert hiccup["late_arrivals"].advice.startswith(begins)


def test_the_pace_is_blamed_only_where_a_worker_was_busy() -> None:
    busy = found(of([50 * MS] * 20, workers=(WorkerUse(cpu_share=0.8),)))["schedule_lag"]
    assert mentions(busy.advice, "--workers")
    idle = found(of([50 * MS] * 20))["schedule_lag"]
    assert idle.advice.startswith("No measurement shows the cause (the busiest worker used 3% of a core)")
    assert "a short pause of this machine is typical" in found(of([50 * MS]))["late_arrivals"].advice


def test_where_requests_were_counted_the_rule_is_the_same() -> None:
    for lags, word, code in (([5_190_000], "VALID", "late_arrivals"), ([50 * MS] * 20, "INVALID", "schedule_lag")):
        facts = of(lags)
        facts = replace(facts, counts=counted(facts.records))
        verdict = judge(facts, summarise(facts))
        assert verdict.word == word
        assert code in {finding.code for finding in verdict.findings}


def building(lags: Sequence[int], slo: str) -> WaveFacts:
    """A wave whose payloads take 12 ms to build, whose answers take 150 ms and whose first arrivals are late."""
    facts = of(lags, latency=150 * MS, slos=slo)
    after = {"sent": 12 * MS, "done": 12 * MS, "build_ns": 12 * MS}
    records = [
        each._replace(**{name: getattr(each, name) + by for name, by in after.items()}) for each in facts.records
    ]
    return observe(facts.plan, records, host=HOST, workers=(IDLE,))


@pytest.mark.parametrize(
    ("lags", "slo", "code"),
    [
        ([2 * MS], "p99<158ms", 1),
        ([2 * MS] * 20, "p99<158ms", 1),
        ([60 * MS], "p99<158ms", 1),
        ([60 * MS], "p99<180ms", 3),
        ([16 * MS] * 20, "p99<172ms", 3),
        ([60 * MS], "p50<180ms", 0),
        ([MS // 2], "p99<180ms", 0),
    ],
)
def test_the_time_of_building_payloads_is_no_lag_whether_requests_are_recorded_or_counted(
    lags: list[int], slo: str, code: int
) -> None:
    recorded = building(lags, slo)
    of_counts = replace(recorded, counts=counted(recorded.records))
    assert [verdict_of(each).exit_code for each in (recorded, of_counts)] == [code, code]
    severities = [{code: each.severity for code, each in found(facts).items()} for facts in (recorded, of_counts)]
    assert severities[0] == severities[1]


def talking(slo: str, turn: int, late: int = 0) -> WaveFacts:
    """A session a second, of two turns; of some this client sends a turn 300 ms late, and what follows it."""
    goodput = (RequestLimit.parse("response_time<100ms"),) if slo.startswith("goodput") else ()
    plan = open_plan("1", "300", slos=(Slo.parse(slo),), goodput=goodput)
    return observe(plan, map(_sent_late(turn, late), talks(*[2] * 300)), environment={"sessions": True})


def _sent_late(turn: int, late: int) -> Callable[[RequestRecord], RequestRecord]:
    def change(record: RequestRecord) -> RequestRecord:
        assert record.turn is not None
        assert record.first_token is not None
        assert record.last_token is not None
        if not 100 <= record.index < 100 + late or record.turn < turn:
            return record
        by = 300 * MS
        ends: dict[str, Any] = {
            "done": record.done + by,
            "first_token": record.first_token + by,
            "last_token": record.last_token + by,
        }
        return record._replace(due=record.due + by * (record.turn > turn), sent=record.sent + by, **ends)

    return change


@pytest.mark.parametrize(
    ("slo", "turn", "late"),
    [
        ("p99<100ms", 1, 7),
        ("turn1.p99<100ms", 1, 5),
        ("turn1-2.p99<100ms", 1, 7),
        ("turn2.p99<100ms", 2, 5),
        ("turn2+.p99<100ms", 2, 5),
        ("session.p99<200ms", 1, 5),
        ("session.p99<200ms", 2, 5),
        ("goodput>=0.99", 1, 7),
    ],
)
def test_a_pause_that_alone_breaks_a_limit_on_sessions_makes_the_wave_invalid(slo: str, turn: int, late: int) -> None:
    verdict = verdict_of(talking(slo, turn, late))
    first = verdict.findings[0]
    assert (verdict.exit_code, first.code, first.severity) == (3, "schedule_lag", "invalid")
    assert slo in first.measured
    assert verdict_of(talking(slo, turn)).exit_code == 0


def test_a_pause_that_decides_no_limit_on_sessions_leaves_the_wave_valid_and_is_reported() -> None:
    verdict = verdict_of(talking("turn2.p99<100ms", 1, 5))
    assert (verdict.exit_code, [finding.code for finding in verdict.findings]) == (0, ["late_arrivals"])
    assert verdict_of(talking("turn2.p99<15ms", 2, 5)).exit_code == 1, "the endpoint breaks it by itself"


def test_a_hiccup_that_alone_breaks_a_goodput_makes_the_wave_invalid() -> None:
    facts = of([200 * MS], slos="goodput>=0.99")
    for limit, code in (("response_time<100ms", 3), ("response_time<25ms", 1), ("latency<100ms", 0)):
        plan = replace(facts.plan, goodput=(RequestLimit.parse(limit),))
        assert verdict_of(replace(facts, plan=plan)).exit_code == code
    first = verdict_of(replace(facts, plan=replace(plan, goodput=(RequestLimit.parse("response_time<100ms"),))))
    assert mentions(first.findings[0].measured, "goodput>=0.99", "goodput", "100%")


def test_a_limit_on_the_lag_itself_is_missed_and_no_client_s_excuse() -> None:
    assert verdict_of(of([200 * MS], slos="lag.p99<100ms")).exit_code == 1
