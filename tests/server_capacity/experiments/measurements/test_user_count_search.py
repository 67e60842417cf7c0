"""A search in users: what is sent, what is counted, and the response time law."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from inference_benchmarker.engine.pilot import Rate, Users
from inference_benchmarker.plan.load import ClosedLoop, Population
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.problems import problems_of_values
from inference_benchmarker.plan.think import Think
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.wave.wave import Wave
from inference_benchmarker.words.units import NS
from server_capacity.experiments.capacity.modelling import twin_of
from server_capacity.experiments.measurements.counting import count_stages
from server_capacity.experiments.measurements.evidence import SearchEvidence
from server_capacity.experiments.measurements.question import Question
from server_capacity.experiments.measurements.user_count_search import answer_of, law, search_of
from server_capacity.results.text.capacity import to_text
from server_capacity.search.limits import Limit
from server_capacity.search.settings import Settings
from server_capacity.search.users import UserSearch
from tests.capacities import searched
from tests.mentions import mentions
from tests.waves import MS, closed_plan, observe

LIMIT = Limit("p99<100ms", "latency", 0.01, 0.1)


def question(think: str | None = "2s", *, in_users: bool = True, **more: Any) -> Question:
    plan = WavePlan(ClosedLoop(1, steered=True), closed_plan().bounds, **more)
    made = None if think is None else Think.parse(think)
    return Question(plan, (LIMIT,), Settings(), 1, in_users=in_users, think=made)


def test_an_exploration_is_steered_and_a_confirmation_has_its_users_settled() -> None:
    asked = question(max_in_flight=500)
    exploring, confirming = asked.exploration(7, 2, Path("x")), asked.confirmation(30.0, 20, 2, Path("x"))
    assert exploring.load == ClosedLoop(7, Think.parse("2s"), steered=True)
    assert confirming.load == ClosedLoop(30, Think.parse("2s"))
    assert confirming.warmup_s == 4, "two think times"
    assert confirming.name == "30 users"
    for plan in (exploring, confirming):
        assert not problems_of_values(plan)
    assert asked.confirmation(1, 20, 4, Path("x")).workers == 1


def test_an_order_is_of_whole_users_and_always_makes_a_stage() -> None:
    asked = question()
    assert asked.offerable(41.6) == 42
    assert asked.order(Decimal(42), Decimal(30)) == Users(42)
    assert asked.order(Decimal(42), Decimal(42)) == Users(43)
    assert asked.order(Decimal(0), Decimal(42)) == Users(0)
    assert asked.order(Decimal(1), Decimal(1)) == Users(2)
    most = replace(asked, settings=Settings(max_rps=42))
    assert most.order(Decimal(42), Decimal(42)) == Users(41), "never more than may be tried"
    rates = replace(asked, in_users=False)
    assert rates.order(Decimal(42), Decimal(30)) == Rate(Decimal(42))
    assert rates.order(Decimal(42), Decimal(42)) == Rate(Decimal("42.04"))
    assert replace(most, in_users=False).order(Decimal(42), Decimal(42)) == Rate(Decimal("41.96"))


def test_a_search_in_users_has_its_own_controller_and_answer() -> None:
    assert isinstance(search_of(question()), UserSearch)
    assert search_of(question()).first_rate == 2
    assert search_of(question(None)).first_rate == 1
    assert answer_of(question(), ()).outcome == "cannot_tell"


def test_no_twin_is_made_of_a_closed_loop_and_all_its_keys_say_so() -> None:
    reported = twin_of(question(), [], [])
    assert reported.reason == "the model needs arrivals at a given rate"
    assert not reported.fits


def test_requests_count_in_the_population_in_which_they_were_due() -> None:
    """10 users for 2 s and 20 for 2 s, who wait 100 ms and think 900 ms; the later of two indices is due first."""
    populations = (Population(10, Decimal(2)), Population(20, Decimal(2)))
    load = ClosedLoop(10, Think.parse("900ms"), steered=True, populations=populations)
    plan = replace(closed_plan(), load=load, bounds=replace(closed_plan().bounds, duration_s=Decimal(4)))
    dues = [place * 100 * MS for place in range(20)] + [2 * NS + place * 50 * MS for place in range(40)]
    records = [
        RequestRecord(index, 0, dues[index ^ 1], dues[index ^ 1], dues[index ^ 1] + 100 * MS) for index in range(60)
    ]
    facts = observe(plan, records)
    stages = count_stages(facts, (LIMIT,))
    assert [stage.stretch.rate for stage in stages] == [10, 20]
    assert [[part.sent for part in stage.stretch.slices] for stage in stages] == [[10, 10], [20, 20]]
    assert [part.counts[0] for stage in stages for part in stage.stretch.slices] == [
        (10, 10),
        (10, 10),
        (20, 20),
        (20, 20),
    ]
    seen, wave = SearchEvidence(1), Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})
    seen.add(wave, stages)
    assert seen.adaptive == [wave]


def test_the_response_time_law_is_reported_beside_the_answer() -> None:
    held = law(180, 164.6, 0.044, 1.0)
    assert held.n == pytest.approx(171.84, abs=0.01)
    users = {"think": "exponential:1s", "law": held}
    text = to_text(searched(**{"in": "users", "rate": 199, "interval": {"low": 180, "high": 210}, "users": users}))
    assert mentions(text, "164.6/s", "44 ms", "1 s", "171.8 users")
    assert mentions(text, "4.532%", "180")
    assert mentions(text, "p99<100ms", "199 users", "95%", "180", "210", "exponential:1s")
