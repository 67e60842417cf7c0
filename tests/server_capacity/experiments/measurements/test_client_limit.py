"""Requests that queue within the client are no limit of the endpoint."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest

from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.records.feed import Cell, Feed
from inference_benchmarker.records.histogram import Histogram
from inference_benchmarker.wave.wave import Wave
from server_capacity.experiments.measurements.client_limit import (
    ClientWatch,
    Queueing,
    lag_limit_s,
    queueing,
    without_queueing,
)
from server_capacity.experiments.measurements.counting import count_stages
from server_capacity.experiments.measurements.question import Question
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
    ],
)
def test_a_late_request_does_not_lengthen_the_time_for_a_token(slos: list[str], expected_s: float) -> None:
    limits = limits_of([Slo.parse(text) for text in slos], 0.95)

    assert lag_limit_s(Question(open_plan(), limits, Settings(), 1), 0.2) == pytest.approx(expected_s)


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
