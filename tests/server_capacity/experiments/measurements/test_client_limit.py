"""Requests that queue within the client are no limit of the endpoint."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import partial

import pytest

from inference_benchmarker.plan.slo import RequestLimit, Slo
from inference_benchmarker.records.feed import Cell, Feed
from inference_benchmarker.records.histogram import Histogram
from inference_benchmarker.wave.wave import Wave
from server_capacity.experiments.capacity.confirmation import judgements
from server_capacity.experiments.measurements.client_limit import (
    ClientWatch,
    Queueing,
    lag_limit_s,
    late_alone,
    queueing,
    void_if_late,
    without_queueing,
)
from server_capacity.experiments.measurements.counting import count_stages
from server_capacity.experiments.measurements.question import Question, SessionShape
from server_capacity.search.answer import Answer, Interval
from server_capacity.search.limits import limits_of
from server_capacity.search.settings import Settings
from tests.queues import waiting
from tests.waves import MS, observe, on_time, open_plan, staged

LIMITS = limits_of([Slo.parse("p99<100ms")], 0.95)
FOUND = Answer("found", 18.0, Interval(15.0, 21.0), "p99<100ms")


def queueing_from(*clear_until_s: float) -> Queueing | None:
    """Of a wave in whose workers, if any, every other request waited for its pool from then on."""
    plan = staged("10:2s,0:1s,40:2s,20:2s")
    facts = replace(observe(plan, on_time(plan)), workers=tuple(map(waiting, clear_until_s)))
    wave = Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})
    return queueing(wave, count_stages(wave, LIMITS))


@pytest.mark.parametrize(("clear_until_s", "rate"), [(0.0, 10), (1.0, 10), (2.5, 10), (4.0, 40), (6.0, 20)])
def test_requests_queue_from_the_rate_on_at_which_the_first_one_waited(clear_until_s: float, rate: float) -> None:
    seen = queueing_from(clear_until_s)
    assert seen is not None
    assert seen.rate == rate
    assert seen.reason == "the client was the limit: 50% of the requests in flight waited for their pool's connections"


def test_where_no_request_waited_nothing_queued() -> None:
    assert queueing_from() is None


@pytest.mark.parametrize("rate", [5.0, 21.0])
def test_what_the_clients_own_queue_broke_is_no_capacity(rate: float) -> None:
    answer = without_queueing(FOUND, Queueing(rate, "the client was the limit: pool"))
    assert (answer.outcome, answer.rate, answer.interval, answer.at_least) == ("at_least", None, None, 15.0)
    assert answer.reason == "the client was the limit: pool"


def test_a_queue_above_the_answer_changes_nothing() -> None:
    assert without_queueing(FOUND, Queueing(22.0, "pool")) == FOUND
    assert without_queueing(FOUND, None) == FOUND
    no_rate = Answer("not_kept")
    assert without_queueing(no_rate, Queueing(1.0, "pool")) == no_rate


def test_where_nothing_gave_out_a_queue_within_the_client_is_named() -> None:
    assert without_queueing(Answer("cannot_tell", at_least=12.0), Queueing(1.0, "pool")).reason == "pool"


@pytest.mark.parametrize(
    ("slos", "expected_s"),
    [
        (["tpot.p95<25ms"], 0.02),
        (["ttft.p95<500ms", "tpot.p95<25ms"], 0.05),
        (["ttft.p95<500ms", "itl.p95<25ms"], 0.00625),
        (["goodput>=0.9"], 0.0125),
    ],
)
def test_a_late_request_does_not_lengthen_the_time_for_a_token(slos: list[str], expected_s: float) -> None:
    limits = limits_of([Slo.parse(text) for text in slos], 0.95)

    plan = open_plan(goodput=(RequestLimit.parse("ttft<50ms"), RequestLimit.parse("tpot<2ms")))
    assert lag_limit_s(Question(plan, limits, Settings(), 1), 0.2) == pytest.approx(expected_s)


@pytest.mark.parametrize(
    ("slo", "late", "late_ms", "said"),
    [
        ("p99<100ms", 20, 300, ""),
        ("p99.9<100ms", 20, 300, "0.6667% of the requests (allowed: 0.1%) more than 25 ms late"),
        ("p99.9<100ms", 20, 20, ""),
        ("p99.9<100ms", 2, 300, ""),
        ("p99<100ms", 40, 20, "1.333% of the requests (allowed: 1%) more than 10 ms late"),
    ],
)
def test_a_stretch_is_void_where_a_pause_of_the_client_may_decide_a_limit(
    slo: str, late: int, late_ms: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lag = Histogram.of([late_ms * MS] * late + [MS // 10] * (3000 - late))
    monkeypatch.setattr(Feed, "stage", lambda *_: Cell(times=defaultdict(Histogram, lag=lag)))
    watch = ClientWatch(Question(open_plan(), limits_of([Slo.parse(slo)], 0.95), Settings(), 1))
    found = watch.late(Feed(), 0)
    assert said in found
    assert bool(said) == bool(found)


@pytest.mark.parametrize(
    ("slo", "turns", "late", "said"),
    [
        ("turn1.p99<100ms", 20, 10, "0.3333% of the requests (allowed: 0.05%) more than 25 ms late"),
        ("turn2+.p99<100ms", 20, 10, ""),
        ("turn2+.p99<100ms", 20, 29, "0.9667% of the requests (allowed: 0.95%) more than 25 ms late"),
        ("goodput>=0.999", 1, 10, "0.3333% of the requests (allowed: 0.1%) more than 25 ms late"),
        ("goodput>=0.99", 1, 10, ""),
    ],
)
def test_a_pause_may_decide_a_limit_on_some_turns_or_on_goodput(
    slo: str, turns: float, late: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lag = Histogram.of([300 * MS] * late + [MS // 10] * (3000 - late))
    monkeypatch.setattr(Feed, "stage", lambda *_: Cell(times=defaultdict(Histogram, lag=lag)))
    plan = open_plan(goodput=(RequestLimit.parse("response_time<100ms"),))
    limits = limits_of([Slo.parse(slo)], 0.95, of_sessions=True)
    found = ClientWatch(Question(plan, limits, Settings(), 1, sessions=SessionShape(9.0, turns))).late(Feed(), 0)
    assert said in found
    assert bool(said) == bool(found)


@pytest.mark.parametrize(
    ("slo", "late", "slow_ms", "void"),
    [
        ("p99<100ms", 150, 0, True),
        ("turn1.p99<100ms", 150, 0, True),
        ("goodput>=0.99", 150, 0, True),
        ("p99<100ms", 150, 300, False),  # the endpoint violates it by itself
        ("p99<100ms", 12, 0, False),  # no more than bursts explain
        ("latency.p99<100ms", 150, 0, False),
    ],
)
def test_a_stretch_that_only_the_clients_lag_makes_violate_a_limit_is_void(
    slo: str, late: int, slow_ms: int, void: bool
) -> None:
    plan = staged("50:20s,0:1s,60:20s")
    asked = Question(
        replace(plan, goodput=(RequestLimit.parse("response_time<100ms"),)),
        limits_of([Slo.parse(slo)], 0.95, of_sessions=True),
        Settings(),
        1,
    )
    rows = [each._replace(turn=1, session=each.index) for each in on_time(asked.plan)]
    by = 300 * MS
    rows[300 : 300 + late] = [
        each._replace(sent=each.sent + by, done=each.done + by) for each in rows[300 : 300 + late]
    ]
    rows[500:900] = [each._replace(done=each.done + slow_ms * MS) for each in rows[500:900]]
    facts = observe(asked.plan, rows)
    wave = Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})
    found = void_if_late(asked, wave, count_stages(wave, asked.limits), partial(judgements, asked))
    assert [each.stretch.void for each in found][1:] == ["", ""]
    assert found[0].stretch.void == (f"the client was the limit: {slo} is met without its lag" if void else "")


@pytest.mark.parametrize(("goodput", "alone"), [("response_time<100ms", True), ("latency<100ms", False)])
def test_lateness_speaks_against_a_goodput_only_where_that_is_on_response_times(goodput: str, alone: bool) -> None:
    plan = open_plan(goodput=(RequestLimit.parse(goodput),), slos=(Slo.parse("goodput>=0.9"),))
    facts = observe(plan, on_time(plan))
    wave = Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})
    assert late_alone(Question(plan, limits_of(plan.slos, 0.95), Settings(), 1), wave) is alone
