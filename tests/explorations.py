"""A search that looked at two rates and found one, made up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.wave.wave import Wave
from server_capacity.experiments.measurements.counting import count_stages
from server_capacity.experiments.measurements.evidence import SearchEvidence
from server_capacity.experiments.measurements.question import Question
from server_capacity.search.answer import Answer, Estimate, Interval
from server_capacity.search.limits import limits_of
from server_capacity.search.settings import Settings
from tests.waves import observe, on_time, open_plan, staged

LIMITS = limits_of([Slo.parse("p99<100ms")], 0.95)
FOUND = Answer("found", 18.0, Interval(15.0, 21.0), "p99<100ms", estimates=(Estimate("p99<100ms", 18.0),))


def question(**more: Any) -> Question:
    return Question(open_plan(), LIMITS, Settings(time_s=60.0, **more), 1)


def explored(void: str = "") -> SearchEvidence:
    """Two stages and a pause between them, in which every request took 20 ms."""
    plan = staged("10:2s,0:1s,20:2s")
    facts = observe(plan, on_time(plan))
    wave = Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})
    found = SearchEvidence(1)
    stages = count_stages(wave, LIMITS)
    found.add(wave, [replace(stage, stretch=replace(stage.stretch, void=void)) for stage in stages])
    return found
