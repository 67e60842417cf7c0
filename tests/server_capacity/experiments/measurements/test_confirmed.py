"""The values of a server that a confirmation wave keeps."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.facts.server_metric import ServerMetric
from inference_benchmarker.plan.slo import RequestLimit, Slo
from inference_benchmarker.wave.wave import Wave
from server_capacity.experiments.capacity.confirmation import judgements
from server_capacity.experiments.capacity.exploration import broken_off
from server_capacity.experiments.measurements.client_limit import spoilt
from server_capacity.experiments.measurements.confirmed import Confirmed, Judgement, reported_values
from server_capacity.experiments.measurements.counting import count_stages
from server_capacity.experiments.measurements.question import Question
from server_capacity.search.limits import limits_of
from server_capacity.search.settings import Settings
from tests.waves import MS, observe, on_time, open_plan, talks

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.record import RequestRecord


@pytest.mark.parametrize(("late_ms", "invalid"), [(0, ""), (9, "schedule_lag")])
def test_a_wave_that_counts_although_it_is_invalid_says_why(late_ms: int, invalid: str) -> None:
    plan = open_plan("20", "20", slos=(Slo.parse("p99<100ms"),))
    asked = Question(plan, limits_of(plan.slos, 0.95), Settings(time_s=60.0), 1)
    later = late_ms * MS
    rows = [each._replace(sent=each.sent + later, done=each.done + later) for each in on_time(plan)]
    facts = observe(plan, rows)
    wave = _wave(facts)
    assert not spoilt(asked, wave, partial(judgements, asked)), "9 ms are less than a tenth of the limit"
    judged: list[Judgement] = ["holds" for _ in asked.limits]
    found = Confirmed(wave, count_stages(wave, asked.limits)[0], tuple(judged)).to_result(asked)
    assert found.invalid.startswith(invalid)
    assert bool(found.invalid) == bool(invalid)


@pytest.mark.parametrize(
    ("slo", "late", "times_ms", "slow", "is_spoilt"),
    [
        ("p99.9<100ms", 20, (300, 20), 0, True),
        ("p99.9<100ms", 2, (300, 20), 0, False),
        ("p99.9<100ms", 20, (300, 20), 4, True),  # it cannot tell without the pause, and fails with it
        ("p99.9<100ms", 0, (0, 20), 18, False),
        ("p99.9<100ms", 20, (300, 20), 300, False),  # it fails either way
        ("p99.9<100ms", 28, (9, 92), 0, True),  # as the plain wave, which is INVALID
        ("goodput>=0.999", 28, (300, 20), 0, True),
        ("latency.p99.9<100ms", 28, (300, 20), 0, False),
    ],
)
def test_a_pause_of_the_client_that_alone_violates_a_limit_does_not_refute_it(
    slo: str, late: int, times_ms: tuple[int, int], slow: int, is_spoilt: bool
) -> None:
    plan = open_plan("50", "60", slos=(Slo.parse(slo),), goodput=(RequestLimit.parse("response_time<100ms"),))
    late_ms, answer_ms = times_ms
    rows = on_time(plan, answer_ms * MS)
    rows[100 : 100 + late] = [_sent_later(each, late_ms) for each in rows[100 : 100 + late]]
    rows[200 : 200 + slow] = [each._replace(done=each.done + 300 * MS) for each in rows[200 : 200 + slow]]
    wave = _wave(observe(plan, rows))
    asked = Question(plan, limits_of(plan.slos, 0.95), Settings(time_s=60.0), 1)
    why = spoilt(asked, wave, partial(judgements, asked))
    assert bool(why) is is_spoilt
    assert (slo in why and why.startswith("schedule lag")) is is_spoilt
    if not wave.verdict.valid:
        assert is_spoilt, "a wave that is INVALID by its limits counts in no search"


@pytest.mark.parametrize(("slo", "turn"), [("turn1.p99.9<100ms", 1), ("turn2+.p99.9<100ms", 2), ("p99.9<100ms", 1)])
def test_a_pause_that_alone_violates_a_limit_on_turns_does_not_refute_it(slo: str, turn: int) -> None:
    plan = open_plan("1", "3000", slos=(Slo.parse(slo),))
    rows = [
        _sent_later(each, 300) if 100 <= each.index < 120 and each.turn == turn else each for each in talks(*[2] * 3000)
    ]
    wave = _wave(observe(plan, rows, environment={"sessions": True}))
    asked = Question(plan, limits_of(plan.slos, 0.95, of_sessions=True), Settings(time_s=3000.0), 1)
    assert slo in spoilt(asked, wave, partial(judgements, asked))
    assert not wave.verdict.valid


def test_what_else_spoilt_a_wave_is_named() -> None:
    plan = open_plan("20", "20", slos=(Slo.parse("p99<100ms"),))
    wave = _wave(observe(plan, on_time(plan)[:100], lost_workers=(0,)))
    asked = Question(plan, limits_of(plan.slos, 0.95), Settings(time_s=60.0), 1)
    assert spoilt(asked, wave, partial(judgements, asked)).startswith("worker lost: 1 of 1 workers")
    assert broken_off(wave).startswith("worker lost: 1 of 1 workers")
    dropped = _wave(observe(plan, on_time(plan)[7:], dropped=[7]))
    assert spoilt(asked, dropped, partial(judgements, asked)).startswith("dropped arrivals: 7 arrivals")


def _sent_later(record: RequestRecord, late_ms: int) -> RequestRecord:
    first, last = (None if each is None else each + late_ms * MS for each in (record.first_token, record.last_token))
    late = record._replace(sent=record.sent + late_ms * MS, done=record.done + late_ms * MS)
    return late._replace(first_token=first, last_token=last)


def _wave(facts: WaveFacts) -> Wave:
    return Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})


def test_each_series_has_its_own_values_and_a_bound_none() -> None:
    gpus = [
        ServerMetric("prometheus", "gpu_use", {"Average": 0.1 * gpu}, dimensions={"gpu": str(gpu)}) for gpu in (1, 9)
    ]
    wait = ServerMetric("prometheus", "wait", {"p99": 0.25, "Average": 0.6}, bounds={"p99": "at_least"})
    part = ServerMetric("prometheus", "tokens", {"Rate": 3.0}, complete=False)
    assert reported_values([*gpus, wait, part]) == {
        "gpu_use (gpu=1)": {"Average": 0.1},
        "gpu_use (gpu=9)": {"Average": 0.9},
        "wait": {"p99": None, "Average": 0.6},
        "tokens": {"Rate": None},
    }
