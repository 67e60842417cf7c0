"""The values of a server that a confirmation wave keeps."""

from __future__ import annotations

import pytest

from inference_benchmarker.facts.server_metric import ServerMetric
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.wave.wave import Wave
from server_capacity.experiments.measurements.client_limit import spoilt
from server_capacity.experiments.measurements.confirmed import Confirmed, Judgement, reported_values
from server_capacity.experiments.measurements.counting import count_stages
from server_capacity.experiments.measurements.question import Question
from server_capacity.search.limits import limits_of
from server_capacity.search.settings import Settings
from tests.waves import MS, observe, on_time, open_plan


@pytest.mark.parametrize(("late_ms", "invalid"), [(0, ""), (9, "schedule_lag")])
def test_a_wave_that_counts_although_it_is_invalid_says_why(late_ms: int, invalid: str) -> None:
    plan = open_plan("20", "20", slos=(Slo.parse("p99<100ms"),))
    asked = Question(plan, limits_of(plan.slos, 0.95), Settings(time_s=60.0), 1)
    later = late_ms * MS
    rows = [each._replace(sent=each.sent + later, done=each.done + later) for each in on_time(plan)]
    facts = observe(plan, rows)
    wave = Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})
    assert not spoilt(asked, wave), "9 ms are less than a tenth of the limit"
    judged: list[Judgement] = ["holds" for _ in asked.limits]
    found = Confirmed(wave, count_stages(wave, asked.limits)[0], tuple(judged)).to_result(asked)
    assert found.invalid.startswith(invalid)
    assert bool(found.invalid) == bool(invalid)


@pytest.mark.parametrize(("late", "is_spoilt"), [(20, True), (2, False)])
def test_a_pause_of_the_client_that_alone_violates_a_limit_does_not_refute_it(late: int, is_spoilt: bool) -> None:
    plan = open_plan("50", "60", slos=(Slo.parse("p99.9<100ms"),))
    asked = Question(plan, limits_of(plan.slos, 0.95), Settings(time_s=60.0), 1)
    rows = on_time(plan)
    paused = [each._replace(sent=each.sent + 300 * MS, done=each.done + 300 * MS) for each in rows[100 : 100 + late]]
    facts = observe(plan, [*rows[:100], *paused, *rows[100 + late :]])
    wave = Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})
    assert ("is missed with that lag and met without it" in spoilt(asked, wave)) is is_spoilt


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
