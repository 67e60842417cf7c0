"""The numbers of a plan: tables by hand, and what holds for any search and any load."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.stage import Stage
from server_capacity.models.fleet.demand import Step, Steps
from server_capacity.models.fleet.result_section import Chosen, simulations
from server_capacity.models.fleet.service import Service
from server_capacity.planning.case import Case
from server_capacity.planning.content import endpoint_plan
from server_capacity.planning.demand import demand_of, recorded
from server_capacity.planning.measured import Measured, Refused, measured
from server_capacity.planning.mix import read_mix
from server_capacity.planning.remarks import simulated_remarks
from server_capacity.planning.request import LEAST_OUTSTANDING, PlanRequest, parse_growth
from server_capacity.planning.simulating import simulation
from server_capacity.planning.sizing import Between, CannotTellError, Linear, floored, law_of, safety_factor
from server_capacity.planning.targets import targets_of
from server_capacity.planning.text import WIDTH, to_text
from server_capacity.planning.totals import content, total_cost
from server_capacity.results.codec import check_capacity
from server_capacity.results.types.bounds import Cost, Quota
from server_capacity.results.types.plan import EndpointPlan, PlanResult, Run, SearchedRequests, Simulation
from tests.capacities import found, searched, stretch
from tests.mentions import mentions
from tests.plans import FOLDER, case, planned, search

if TYPE_CHECKING:
    from pathlib import Path

RATES = st.floats(0.01, 10_000)


def refusal(*searches: Measured, **asked: Any) -> str:
    made = endpoint_plan(case(*searches, **asked))
    assert isinstance(made, str)
    return made


def reported(made: EndpointPlan) -> str:
    return " ".join(made.remarks)


def test_instances_come_from_the_lower_end_side_by_side() -> None:
    made = planned(search(100.0), target_rps=1000)

    rows = {row.name: row for row in made.options}
    assert {name: row.instances for name, row in rows.items()} == {
        "limit alone": 10,
        "70% use": 15,
        "60% use": 17,
        "AWS's safety factor 0.5": 20,
    }
    assert {name: row.invocations_per_instance for name, row in rows.items()} == {
        "limit alone": 6000,
        "70% use": 4200,
        "60% use": 3600,
        "AWS's safety factor 0.5": 3000,
    }
    assert [row.with_spare for row in rows.values()] == [11, 15, 17, 20]
    assert made.chosen.name == "70% use"
    assert (made.chosen.minimum, made.chosen.maximum) == (2, 15)
    assert encoded(made.chosen.with_one_lost) == {
        "instances": 14,
        "rate_per_instance": pytest.approx(71.43, abs=0.01),
        "share_of_low": pytest.approx(0.7143, abs=0.0001),
        "holds": True,
    }
    assert encoded(made.per_instance) == {
        "low": 100,
        "rate": pytest.approx(103.5),
        "high": pytest.approx(107),
        "measured_at": 1,
        "counted": False,
        "at_least": False,
    }


def test_several_instances_measured_are_divided_among_them() -> None:
    assert planned(search(400.0, {"instances": 4}), target_rps=1000).options[0].instances == 10


def test_one_that_may_be_lost_is_distinguished() -> None:
    made = planned(search(100.0), target_rps=180, utilisation=0.9)
    assert (made.chosen.instances, made.chosen.with_spare) == (2, 3)
    assert not made.chosen.with_one_lost.holds
    assert mentions(reported(made), "180/s", "3 instances")
    alone = planned(search(100.0), target_rps=50, spare=0)
    assert encoded(alone.chosen.with_one_lost) == {
        "instances": 0,
        "rate_per_instance": None,
        "share_of_low": None,
        "holds": False,
    }
    assert "two zones need at least 2 instances" in reported(alone)
    assert (alone.chosen.minimum, alone.chosen.maximum) == (1, 1)


OVER = {"expression": "p99<500ms", "at_low": 0.609, "unit": "s", "bound": 0.5, "allowed": 0.01, "rate": 174.13}
FAILED = {"rate": 168.2, "seconds": 60.0, "verdict": "fails", "limits": []}


@pytest.mark.parametrize("violated", [{"limits": [OVER]}, {"confirmation": [FAILED]}], ids=["p99", "a wave"])
@pytest.mark.parametrize("target", [1000, 180])
def test_a_limit_that_was_violated_is_not_still_met_with_one_fewer(violated: dict[str, Any], target: float) -> None:
    made = planned(search(100.0, **violated), target_rps=target, utilisation=0.9)
    assert "still" not in reported(made)
    assert "of the rate at which a limit was violated in the search" in reported(made)


@pytest.mark.parametrize(("growth", "create_s", "factor"), [(0.2, 240, 1 / 2.4), (0.01, 120, 1 / 1.05), (1.0, 0, 0.25)])
def test_growth_asks_for_room_until_new_instances_serve(growth: float, create_s: float, factor: float) -> None:
    assert safety_factor(growth, create_s) == pytest.approx(factor)
    made = planned(search(100.0), target_rps=1000, growth_per_min=growth, seconds_to_create=create_s)
    assert encoded(made.scale_out) == {
        "alarm_s": 180,
        "create_s": create_s,
        "source": "given",
        "growth_per_min": growth,
        "safety_factor": pytest.approx(factor),
    }
    assert made.chosen.share == pytest.approx(min(0.7, factor))
    assert made.chosen.maximum >= 1000 / factor / (min(0.7, factor) * 100)


def test_the_time_to_create_is_as_it_was_measured_and_else_must_be_given() -> None:
    made = planned(search(endpoint={"seconds_to_create": 100}), target_rps=1000, growth_per_min=0.1)
    assert made.scale_out is not None
    assert (made.scale_out.create_s, made.scale_out.source) == (100, "measured")
    with pytest.raises(BenchmarkError, match="Give --seconds-to-create"):
        planned(target_rps=1000, growth_per_min=0.1)
    assert planned(target_rps=1000).scale_out is None


def test_bounds_follow_the_load() -> None:
    stages = (Stage.parse("50..400:2m"), Stage.parse("spike=2000:10s"), Stage.parse("400..50:2m"))
    made = planned(search(100.0), target_rps=400, stages=stages)
    assert (made.chosen.instances, made.chosen.minimum, made.chosen.maximum) == (6, 2, 29)
    assert "The stages reach 2,000/s" in reported(made)
    assert planned(search(100.0), stages=stages).target_rps == 2000
    given_bounds = planned(search(100.0), target_rps=400, stages=stages, minimum=4, maximum=7).chosen
    assert (given_bounds.minimum, given_bounds.maximum) == (4, 7)


def test_a_recording_is_reported_by_its_whole_minutes() -> None:
    arrivals = np.concatenate([np.linspace(0, 59.9, 600), np.linspace(60, 119.9, 6000), np.full(900, 125.0)])
    read = recorded(arrivals, 130.0, 900)
    assert (read.peak_rps, read.least_rps, read.peak_second) == (100, 10, 900)
    question = PlanRequest((FOLDER,), replay=None, target_rps=None)
    demand = demand_of(question, read)
    assert (demand.target_rps, demand.peak_rps, demand.least_rps) == (100, 100, 10)
    made = endpoint_plan(Case(question, [search(20.0)], demand, lambda *_: None))
    assert isinstance(made, EndpointPlan)
    assert "The busiest second has 900 requests" in reported(made)
    assert recorded(np.zeros(5), 10.0, 5).least_rps is None


@given(low=RATES, target=RATES, more=st.floats(1, 10), use=st.floats(0.05, 1.0), fewer=st.floats(0.05, 1.0))
def test_more_load_or_less_use_never_takes_fewer_instances(
    low: float, target: float, more: float, use: float, fewer: float
) -> None:
    law = Linear(low)
    count = law.needed(target, use)
    assert count <= law.needed(target * more, use)
    assert law.needed(target, max(use, fewer)) <= law.needed(target, min(use, fewer))
    assert use * law.held(count) >= target * (1 - 1e-6)
    assert count == 1 or use * law.held(count - 1) < target


@given(target=RATES, more=st.floats(1, 10), spare=st.integers(0, 3), growth=st.none() | st.floats(0.01, 1))
def test_more_load_never_lowers_a_bound(target: float, more: float, spare: int, growth: float | None) -> None:
    asked = {"spare": spare, "growth_per_min": growth, "seconds_to_create": 100}
    less, greater = (planned(target_rps=rate, **asked).chosen for rate in (target, target * more))
    assert all(getattr(less, key) <= getattr(greater, key) for key in ("instances", "minimum", "maximum", "with_spare"))


@given(low=RATES, spread=st.floats(0, 5), target=RATES)
def test_only_the_lower_end_counts(low: float, spread: float, target: float) -> None:
    def plan_of(high: float) -> list[int | None]:
        interval = {"low": low, "high": high}
        made = measured(searched(rate=(low + high) / 2, interval=interval), "x")
        assert isinstance(made, Measured)
        return [row.instances for row in planned(made, target_rps=target).options]

    assert plan_of(low) == plan_of(low * (1 + spread))


@given(target=st.floats(1, 100_000), use=st.floats(0.05, 1.0), spare=st.integers(0, 3))
def test_bounds_hold_what_is_planned(target: float, use: float, spare: int) -> None:
    chosen = planned(target_rps=target, utilisation=use, spare=spare).chosen
    assert 1 <= chosen.minimum <= chosen.instances <= chosen.maximum
    assert chosen.with_spare - spare >= target / 168.2 * (1 - 1e-9)


MULTI = {"kind": "multi-model", "arguments": {"models": 20}}


def test_a_multi_model_endpoint_is_reported_of_between_two_counts() -> None:
    two, six = (search(low, {**MULTI, "instances": count}) for low, count in ((100.0, 2), (260.0, 6)))
    assert "N instances do not serve N times as much" in refusal(two, target_rps=50)
    assert law_of([six, two]) == Between(((2, 100.0), (6, 260.0)), six.not_linear)

    made = planned(two, six, target_rps=140, utilisation=1.0)
    assert (made.chosen.instances, made.linear) == (3, False)
    assert "measured at 2 and 6 instances" in reported(made)
    assert planned(two, six, target_rps=10, utilisation=1.0).chosen.instances == 2
    assert planned(two, six, target_rps=460, utilisation=1.0).chosen.instances == 11
    assert "more than 12 instances" in refusal(two, six, target_rps=600, utilisation=1.0)
    rows = planned(two, six, target_rps=460, utilisation=1.0).options
    assert rows[-1].name.startswith("AWS")
    assert rows[-1].instances is None


def test_an_instance_more_adds_no_more_than_those_before() -> None:
    law = Between(((1, 10.0), (2, 40.0)), "")
    assert [law.held(count) for count in (1, 2, 3, 4)] == [10, 40, 60, 80]
    assert [Between(((1, 50.0), (2, 40.0)), "").held(count) for count in (2, 4)] == [40, 40]
    with pytest.raises(CannotTellError, match="more than 4 instances"):
        law.needed(81, 1.0)


def test_two_searches_are_of_one_endpoint_where_only_the_count_differs() -> None:
    one, other = (search(endpoint={**MULTI, "arguments": {"models": 20, "instances": count}}) for count in (1, 3))
    assert one.is_same_endpoint(other)
    assert not one.is_same_endpoint(search(endpoint={**MULTI, "arguments": {"models": 40}}))
    assert not search(endpoint={"name": "a"}).is_same_endpoint(search(endpoint={"name": "b"}))


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ({"region": "us-east-1"}, {"region": "eu-west-1"}),
        ({"payload_arguments": {"length": 10}}, {"payload_arguments": {"length": 1000}}),
        ({"variant": "blue"}, {"variant": "green"}),
    ],
)
def test_what_differs_in_anything_else_is_another_endpoint(here: dict[str, Any], there: dict[str, Any]) -> None:
    made_by = {"name": "x", "arguments": {"instance_type": "ml.m5.large"}}
    assert search(endpoint={**made_by, **here}).is_same_endpoint(search(endpoint={**made_by, **here, "name": "y"}))
    assert not search(endpoint={**made_by, **here}).is_same_endpoint(search(endpoint={**made_by, **there}))


def test_searches_with_other_factories_or_other_names_are_of_other_endpoints() -> None:
    one = search(endpoint={"arguments": {"a": 1}})
    a, b = (replace(one, factories_file=name) for name in ("a.py", "b.py"))
    assert not a.is_same_endpoint(b)
    assert a.is_same_endpoint(replace(b, factories_file=None))
    assert not search(name="a").is_same_endpoint(search(name="b"))


def test_searches_that_sent_other_requests_are_of_other_endpoints() -> None:
    light, heavy, there = (
        replace(search(name="e"), factories_file="f.py", requests=SearchedRequests(settings=settings))
        for settings in ({"WORK": "1"}, {"WORK": "4"}, {"WORK": "1", "SERVER": "http://h"})
    )
    assert not light.is_same_endpoint(heavy)
    assert light.is_same_endpoint(there)
    assert light.is_same_endpoint(search(name="e"))


@pytest.mark.parametrize(
    ("one", "two", "is_same"),
    [
        ({"settings": {"URL": "http://a:1", "API": "chat"}}, {"settings": {"URL": "http://b", "API": "chat"}}, True),
        ({"settings": {"URL": "http://a:1/x"}}, {"settings": {"URL": "https://b/x"}}, True),
        ({"settings": {"URL": "http://a:1/x"}}, {"settings": {"URL": "http://a:1/y"}}, False),
        ({"settings": {"URL": "http://a:1/x?m=1"}}, {"settings": {"URL": "http://a:1/x?m=2"}}, False),
        ({"settings": {"SERVER": "a:1"}}, {"settings": {"SERVER": "http://[hidden]@b"}}, True),
        ({"digests": {"": "1"}}, {}, True),
        ({"digests": {"": "1"}}, {"digests": {"": "2"}}, False),
        ({"settings": {"BODY": "@f"}, "digests": {"BODY": "1"}}, {"settings": {"BODY": "@f"}}, True),
        (*({"settings": {"BODY": "@f"}, "digests": {"BODY": digest}} for digest in "12"), False),
        ({"headers": ["X-Tier"]}, {"headers": ["x-tier"]}, True),
        ({"headers": ["X-Tier"]}, {}, False),
    ],
)
def test_requests_are_compared_in_both_directions_as_far_as_both_are_known(
    one: dict[str, Any], two: dict[str, Any], is_same: bool
) -> None:
    a, b = (replace(search(name="e"), factories_file="f.py", requests=SearchedRequests(**of)) for of in (one, two))
    assert a.is_same_endpoint(b) == b.is_same_endpoint(a) == is_same


def test_a_plan_says_which_requests_were_searched() -> None:
    made = replace(
        planned(target_rps=100),
        factories_file="f.py",
        requests=SearchedRequests({"WORK": "4", "TEXT": "a" * 200}, {"--expect": ["json", "text:a"]}, ["X-Own"]),
    )
    usual: dict[str, Any] = {"created": "", "utilisation": 0.7, "spare": 1}
    text = " ".join(to_text(content([made], [], **usual)).split())
    assert "Searched with f.py: WORK=4, TEXT=aaaa" in text
    assert "…, --expect json, --expect text:a, --header X-Own." in text
    assert "Searched" not in to_text(content([planned(target_rps=100)], [], **usual))


@pytest.mark.parametrize("backwards", [False, True])
def test_of_several_searches_everything_rests_on_the_one_with_the_least_of_each(*, backwards: bool) -> None:
    searches = [search(70.0, {"instances": 1}), search(120.0, {"instances": 2}), search(61.0, {"instances": 1})]
    made = planned(*(reversed(searches) if backwards else searches), target_rps=1000)
    assert made.per_instance.low == 60
    assert made.per_instance.measured_at == 2
    assert mentions(reported(made), "x_capacity", "x_capacity", "x_capacity")
    assert "one endpoint" not in reported(planned(target_rps=9))
    assert made.options[0].invocations_per_instance == 3600
    assert made.chosen.invocations_per_instance == 2520


def test_what_was_measured_between_two_counts_counts() -> None:
    searches = [search(low, {**MULTI, "instances": count}) for low, count in ((100.0, 2), (10.0, 3), (160.0, 4))]
    law = law_of(searches)
    assert isinstance(law, Between)
    assert [law.held(count) for count in (1, 2, 3, 4, 5)] == [50, 100, 10, 160, 200]
    made = planned(*searches, target_rps=120, utilisation=1.0)
    assert made.chosen.instances == 4
    assert "measured at 2, 3 and 4 instances" in reported(made)


def test_a_policy_aims_at_what_each_holds_of_as_many_as_there_may_be() -> None:
    two, four = (search(low, {**MULTI, "instances": count}) for low, count in ((100.0, 2), (160.0, 4)))
    made = planned(two, four, target_rps=100, utilisation=1.0, maximum=4)
    assert (made.chosen.instances, made.chosen.maximum) == (2, 4)
    assert made.chosen.invocations_per_instance == 2400
    assert "target is 2,400 requests per minute" in reported(made)


def test_no_fewer_instances_are_reported_and_paid_than_always_run() -> None:
    made = planned(search(100.0), target_rps=1000, minimum=50, cost=None)
    assert (made.chosen.instances, made.chosen.minimum, made.chosen.maximum) == (50, 50, 50)
    assert made.chosen.with_one_lost.instances == 49
    assert "The load needs 15 instances, but the minimum is 50" in reported(made)
    priced = endpoint_plan(case(search(100.0), cost=0.23, target_rps=1000, minimum=50))
    assert isinstance(priced, EndpointPlan)
    assert priced.cost is not None
    assert priced.cost.hour == pytest.approx(11.5)
    assert mentions(whole(priced).headline, "50 instances", "1,000/s", "10", "50", "50")
    idle = planned(search(100.0), stages=(Stage.parse("0.001:60s"),)).chosen
    assert (idle.instances, idle.minimum) == (2, 2)


def test_a_maximum_that_does_not_hold_the_target_is_refused() -> None:
    with pytest.raises(BenchmarkError, match=r"--maximum 3 is too few for .*: 1,000/s need 15 instances at 0.7"):
        planned(search(100.0), target_rps=1000, maximum=3)
    stages = (Stage.parse("50..2000:2m"),)
    made = planned(search(100.0), target_rps=400, stages=stages, maximum=7)
    assert "The stages reach 2,000/s, and --maximum is 7." in reported(made)


def test_flags_do_not_contradict_what_the_search_knows() -> None:
    known = searched(rate=100.0, interval={"low": 90.0, "high": 110.0}, endpoint={"instances": 2, "instance_type": "a"})
    assert isinstance(measured(known, "x", 2, "a"), Measured)
    with pytest.raises(BenchmarkError, match="--instances 1: x was measured with 2"):
        measured(known, "x", 1)
    with pytest.raises(BenchmarkError, match="--instance-type b: x was measured with a"):
        measured(known, "x", None, "b")


@pytest.mark.parametrize(
    "more",
    [
        {"interval": {"low": 200.0, "high": 100.0}},
        {"rate": 500.0},
        {"interval": {"low": True, "high": 300.0}},
        {"endpoint": {"instances": 1_000_000_000}},
        {"endpoint": {"instances": 1_000_000}},
        {"endpoint": {"instances": -1}},
    ],
)
def test_numbers_that_no_search_writes_are_refused(more: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"rate|interval|instances"):
        measured(check_capacity(found(schema_version=1, **more)), "x")


@pytest.mark.parametrize("length_s", [0.001, 0.5])
def test_a_recording_of_less_than_a_second_is_no_higher_rate_than_its_requests(length_s: float) -> None:
    read = recorded(np.zeros(2), length_s, 2)
    assert (read.peak_rps, read.least_rps) == (2, None)
    assert "less than a second" in read.peak_text
    assert demand_of(PlanRequest((FOLDER,), target_rps=5.0), read).peak_text == ""
    half = recorded(np.linspace(0, 29, 300), 30.0, 10)
    demand = demand_of(PlanRequest((FOLDER,)), half)
    made = endpoint_plan(Case(PlanRequest((FOLDER,)), [search(20.0)], demand, lambda *_: None))
    assert isinstance(made, EndpointPlan)
    assert "The recording of 30 s has on average 10/s" in reported(made)


def test_the_worse_of_two_searches_counts_where_instances_add_up() -> None:
    assert law_of([search(100.0), search(180.0, {"instances": 2})]) == Linear(90.0)


NOTHING = {"rate": None, "interval": None}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({**NOTHING, "outcome": "cannot_tell", "reason": "why"}, "the search found no capacity: Inconclusive: why"),
        ({**NOTHING, "outcome": "not_kept", "reason": "all are over"}, "no capacity: No rate meets p99<100ms: all are"),
        ({"endpoint": {"kind": "serverless"}}, "a serverless endpoint has no instances"),
        ({"rate": 5.0, "interval": {"low": 0.0, "high": 9.0}}, "starts at 0"),
        ({"in": "users", "users": {"law": None}}, "search with --in rps"),
    ],
)
def test_a_search_without_an_answer_gives_no_plan(more: dict[str, Any], said: str) -> None:
    made = measured(searched(**more), "x")
    assert isinstance(made, str)
    assert said in made


def test_what_was_kept_is_planned_with_where_no_limit_gave_out() -> None:
    kept = measured(searched(**NOTHING, outcome="at_least", at_least={"rate": 50.0, "reason": ""}), "x")
    assert isinstance(kept, Measured)
    made = planned(kept, target_rps=100, utilisation=1.0)
    assert (made.chosen.instances, made.per_instance.high) == (2, None)
    assert "No limit was violated in the search" in reported(made)


def test_users_are_planned_by_the_requests_that_they_send() -> None:
    users = {"law": {"x": 20.0, "r": 4.0, "z": 1.0, "n": 100.0, "users": 100, "over": 1.0}}
    made = measured(
        searched(**{"in": "users", "rate": 120.0, "interval": {"low": 100.0, "high": 150.0}, "users": users}), "x"
    )
    assert isinstance(made, Measured)
    assert (made.low, made.rate, made.high) == (20, 24, 30)
    assert any("The search was in users" in each for each in made.remarks())


@pytest.mark.parametrize("unit", ["sessions", "users"])
def test_a_search_for_sessions_is_none_to_plan_with(unit: str) -> None:
    refused = measured(searched(**{"in": unit, "sessions": {"turns_per_s": 8.0}}), "x")
    assert isinstance(refused, str)
    assert "was for sessions" in refused
    assert "--in rps" in refused


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"arrivals": "constant"}, "overstate capacity by up to 14%"),
        ({"confirmation": [{"rate": 100.0, "verdict": "fails"}]}, "The wave at the interval's lower end failed"),
        ({"confirmation": [{"rate": 100.0, "verdict": "cannot_tell"}]}, "No wave confirmed"),
        ({"outcome": "interrupted"}, "The search was interrupted"),
        ({"cache": "warm"}, "Each payload was sent"),
        ({"endpoint": None}, "The number of measured instances is not known"),
        ({"endpoint": {"routing": "LEAST_OUTSTANDING_REQUESTS"}}, "the plan is conservative"),
        ({"endpoint": {"kind": "inference-component"}}, "An instance here is a copy"),
        ({"endpoint": {"instance_type": "ml.t2.medium"}}, "does not scale instances of the burstable type"),
    ],
)
def test_what_a_plan_rests_on_is_said(more: dict[str, Any], said: str) -> None:
    assert said in reported(planned(search(**more), target_rps=1000))


def test_what_goes_far_beyond_the_measured_is_to_be_proven() -> None:
    assert "--verify" in reported(planned(search(100.0), target_rps=1000))
    assert "--verify" not in reported(planned(search(100.0), target_rps=700))
    made = planned(search(100.0, {"instances": 1}), target_rps=700, routing=LEAST_OUTSTANDING)
    assert made.routing == "least_outstanding"


@pytest.mark.parametrize(
    ("value", "rounded"), [(4205.8, 4205), (100.99, 100), (12.345, 12.3), (0.012345, 0.0123), (6000.0, 6000)]
)
def test_targets_are_rounded_down(value: float, rounded: float) -> None:
    assert floored(value) == pytest.approx(rounded, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "share"), [("20%/min", 0.2), ("0.2", 0.2), ("60%/h", 0.01), ("1%/s", 0.6), (" 5 % ", 0.05)]
)
def test_growth_is_read(text: str, share: float) -> None:
    assert parse_growth("--growth", text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "x", "20%/day", "-1%", "1e3"])
def test_growth_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BenchmarkError, match="--growth must be"):
        parse_growth("--growth", text)


def whole(*endpoints: EndpointPlan, refused: tuple[str, ...] = ()) -> PlanResult:
    reasons = [Refused(why) for why in refused]
    return content(endpoints, reasons, created="2026-11-23T00:00:00+00:00", utilisation=0.7, spare=1)


def test_the_first_line_is_the_answer() -> None:
    kind = {"instance_type": "ml.m5.xlarge", "instances": 1}
    one = endpoint_plan(case(search(100.0, kind), cost=0.23, target_rps=1000))
    assert isinstance(one, EndpointPlan)
    first = "15 instances of ml.m5.xlarge can serve 1,000/s (10 without headroom) for $3.45/h."
    first += " Autoscaling: 2 to 15 instances."
    assert whole(one).headline == first
    assert mentions(whole(planned(search(100.0), target_rps=50)).headline, "1 instance", "50/s", "1", "1", "2")
    both = whole(one, one, refused=("x: why.",))
    assert mentions(both.headline, "2 endpoints", "30 instances", "2,000/s", "20", "$6.90/h", "1 refused")
    assert both.exit_code == 1
    assert whole(refused=("x: why.",)).headline == "No plan: x: why."


def test_the_report_fits_its_width() -> None:
    kind = {"instance_type": "ml.m5.xlarge", "instances": 1, "seconds_to_create": 240}
    one = endpoint_plan(case(search(100.0, kind), cost=0.23, target_rps=1000, growth_per_min=0.2))
    assert isinstance(one, EndpointPlan)
    for data in (whole(one), whole(one, one), whole(refused=("x: why.",))):
        lines = to_text(data, "x_plan").splitlines()
        assert lines[0] == data.headline
        assert [line for line in lines[1:] if len(line) > WIDTH and line != data.headline] == []


def test_a_quota_that_is_too_small_has_a_line_to_paste() -> None:
    name = "ml.m5.xlarge for endpoint usage"
    row = Quota(name, limit=4, needed=10, enough=False, increase="aws x " * 20)
    data = content([planned(target_rps=9)], [], created="", utilisation=0.7, spare=1, quota=[row])
    assert f"{'aws x ' * 20}".rstrip() in to_text(data)
    assert "it is enough" in to_text(replace(data, quota=[replace(row, enough=True)]))


def test_the_reason_for_no_cost_is_reported() -> None:
    plans = [endpoint_plan(case(search(100.0), cost=1.0, target_rps=9)) for _ in range(2)]
    one, other = (plan for plan in plans if isinstance(plan, EndpointPlan))
    assert other.cost is not None
    other = replace(other, cost=replace(other.cost, currency="CNY"))
    assert "prices are in CNY and USD" in to_text(whole(one, other))
    assert "No cost: give --price" in to_text(whole(planned(target_rps=9)))
    copies = to_text(whole(planned(search(endpoint={"kind": "inference-component"}), target_rps=9)))
    assert "give --price" not in copies
    assert "No cost of copies" in copies


def test_costs_add_up_in_one_currency_alone() -> None:
    dollars = Cost(1.0, 730.0)
    assert encoded(total_cost([dollars, dollars])) == {"hour": 2.0, "month": 1460.0, "currency": "USD"}
    assert total_cost([dollars, None]) is None
    assert total_cost([dollars, replace(dollars, currency="CNY")]) is None


def test_a_mix_is_read_from_json_and_toml(tmp_path: Path) -> None:
    usual = PlanRequest((), utilisation=0.6)
    (tmp_path / "mix.json").write_text('[{"capacity": "a", "target_rps": 100, "spare": 2, "growth": "5%/min"}]')
    (tmp_path / "mix.toml").write_text(
        '[[endpoints]]\ncapacity = ["a", "b"]\ninstances = [1, 4]\nstages = "5:1m,9:1m"\n'
    )
    (one,) = read_mix(tmp_path / "mix.json", usual)
    assert (one.capacities, one.target_rps, one.spare, one.utilisation) == ((tmp_path / "a",), 100, 2, 0.6)
    assert one.growth_per_min == pytest.approx(0.05)
    (other,) = read_mix(tmp_path / "mix.toml", usual)
    assert (other.instances, len(other.stages)) == ((1, 4), 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "cannot be read"),
        ("[]", "has no list of endpoints"),
        ('{"endpoints": 3}', "has no list of endpoints"),
        ('[{"capacity": "a"}]', "endpoint 1: No load"),
        ('[{"target_rps": 5}]', "endpoint 1: Give the folder of a search"),
        ('[{"capacity": "a", "target": 5}]', "unknown key 'target'"),
        ('[{"capacity": 5, "target_rps": 5}]', "capacity must be a string"),
        ('[{"capacity": "a", "target_rps": "many"}]', "target_rps must be a number"),
        ('[{"capacity": "a", "target_rps": 5, "spare": 1.5}]', "spare must be a whole number"),
        ('[{"capacity": "a", "target_rps": 5, "utilisation": "300%"}]', "--utilisation must be from 5% to 100%"),
        ('[{"capacity": "a", "target_rps": 5, "utilisation": "x%"}]', "utilisation must be a share"),
        ('[{"capacity": "a", "target_rps": "5%"}]', "target_rps must be a number"),
        (f'[{{"capacity": "a", "target_rps": 1{"0" * 400}}}]', "target_rps must be a number, not one so large"),
        (f'[{{"capacity": "a", "target_rps": 5, "spare": 1{"0" * 4200}}}]', "spare must be a whole number"),
        ('[{"capacity": "a", "target_rps": 5, "routing": "foo"}]', "--routing must be random or least_outstanding"),
    ],
)
def test_a_mix_that_is_none_is_one_error(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "mix.json").write_text(text)
    with pytest.raises(BenchmarkError) as raised:
        read_mix(tmp_path / "mix.json", PlanRequest(()))
    assert said in str(raised.value)


TWIN = {"fits": True, "servers": 4, "overhead_s": 0.0, "services_s": [0.02] * 256, "limit": "p99<100ms"}
LIMIT = {"expression": "p99<100ms", "bound": 0.1, "allowed": 0.01}


def simulated(*, compare: bool = False, **asked: Any) -> Simulation | None:
    """An endpoint of 4 servers of 20 ms, of which 100/s is sure, under the load that is asked about."""
    made = case(search(100.0, twin=TWIN, limits=[LIMIT]), **{"seconds_to_create": 60, **asked})
    plan = endpoint_plan(made)
    assert isinstance(plan, EndpointPlan)
    return simulation(made, plan, compare=compare)


def test_the_load_is_simulated_with_the_planned_policy_and_with_as_many_instances_all_along() -> None:
    found = simulated(stages=(Stage.parse("100..1200:20m"),), target_rps=300)
    assert found is not None
    tracking, fixed = found.runs
    assert fixed.policy == "5 instances, fixed"
    assert tracking.requests == fixed.requests == pytest.approx(780_000, rel=0.01)
    assert fixed.share_over > 0.01 >= tracking.share_over
    assert found.instance_start_s == 60


def test_a_policy_that_does_not_hold_the_load_is_said_in_the_first_line() -> None:
    stages = tuple(map(Stage.parse, ("50:5m", "spike=1500:2m", "50:10m")))
    made = case(search(100.0, twin=TWIN, limits=[LIMIT]), stages=stages, seconds_to_create=60)
    plan = endpoint_plan(made)
    assert isinstance(plan, EndpointPlan)
    found = simulation(made, plan, compare=False)
    assert found is not None
    plan = replace(plan, simulation=found)
    assert found.runs[0].share_over > 0.1
    (remark,) = simulated_remarks(plan)
    assert "throughout meet it: --minimum" in remark
    first = whole(plan).headline
    assert "In a simulation with this policy, " in first
    assert mentions(first, "p99<100ms", "1%")
    assert f"{plan.name}: In a simulation" in whole(plan, plan).headline
    kept = replace(found, runs=[replace(found.runs[0], share_over=0.01), *found.runs[1:]])
    plan = replace(plan, simulation=kept)
    assert list(simulated_remarks(plan)) == []
    assert "Simulated" not in whole(plan).headline


TRACKED = ("target tracking on invocations", "scaling_policy.json")
STEPPED = ("step scaling on invocations", "scaling_policy_step.json")
PODS = ("HPA or KEDA on requests/s", "hpa.yaml")
STANDING = ("4 instances, fixed", None)


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([(*TRACKED, 0.01, 10.0), (*STANDING, 0.0, 12.0)], ""),
        ([(*TRACKED, 0.01, 10.0), (*STANDING, 0.0, 9.95)], ""),
        (
            [(*TRACKED, 0.01, 10.0), (*STANDING, 0.0, 9.0), (*STEPPED, 0.0, 9.5)],
            "4 instances throughout meet p99<100ms under this load too, with 10% fewer instance hours than "
            "target tracking on invocations: --minimum 4 --maximum 4.",
        ),
        (
            [(*TRACKED, 0.01, 10.0), (*STANDING, 0.02, 7.0), (*STEPPED, 0.01, 8.0), (*PODS, 0.0, 6.0)],
            "Step scaling on invocations meets p99<100ms under this load too, with 20% fewer instance hours "
            "than target tracking on invocations: use scaling_policy_step.json.",
        ),
        (
            [(*TRACKED, 0.02, 7.0), (*STANDING, 0.0, 12.0), (*STEPPED, 0.01, 11.0)],
            "In a simulation with this policy, 2% of requests violate p99<100ms (1% may). The load rises faster than "
            "instances start. Step scaling on invocations meets it: use scaling_policy_step.json.",
        ),
        (
            [(*TRACKED, 0.02, 7.0), (*STANDING, 0.02, 12.0)],
            "In a simulation with this policy, 2% of requests violate p99<100ms (1% may). The load rises faster than "
            "instances start. Give a higher --minimum.",
        ),
    ],
)
def test_what_keeps_the_limit_and_costs_less_is_advised(
    runs: list[tuple[str, str | None, float, float]], said: str
) -> None:
    """Nothing of Kubernetes is advised for an endpoint of SageMaker's, however cheap."""
    plan = simulated_as(runs, {"kind": "variant"})
    assert list(simulated_remarks(plan)) == ([said] if said else [])


def simulated_as(runs: list[tuple[str, str | None, float, float]], endpoint: dict[str, Any] | None) -> EndpointPlan:
    """A plan of 4 instances with runs: policy, file, the share over, instance hours."""
    made = [
        Run(policy, 100, 1, share, 1.0, 0.0, 0, hours, None, None, None, 1.0, 1.0, [], file)
        for policy, file, share, hours in runs
    ]
    simulation = Simulation(limit="p99<100ms", allowed=0.01, runs=made)
    plan = replace(planned(search(100.0, endpoint), target_rps=280), simulation=simulation)
    assert plan.chosen.instances == 4
    return plan


def test_a_plan_for_pods_may_be_advised_what_scales_them() -> None:
    (said,) = simulated_remarks(simulated_as([(*TRACKED, 0.0, 10.0), (*PODS, 0.0, 8.0)], None))
    assert said.startswith("HPA or KEDA on requests/s meets")
    assert said.endswith(": use hpa.yaml.")


@pytest.mark.parametrize(
    "forged",
    [
        {"servers": 0},
        {"servers": -4},
        {"servers": 4.5},
        {"services_s": ["a"]},
        {"services_s": [[0.1]]},
        {"services_s": [-1.0]},
        {"services_s": [0.0]},
        {"overhead_s": -1.0},
    ],
)
def test_a_model_that_no_search_writes_is_refused(forged: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="twin"):
        Service.of(searched(twin={**TWIN, **forged}).twin, 1)


def test_a_fleet_too_large_to_be_simulated_is_said() -> None:
    chosen = Chosen(1.0, 1, 1, 70_000, 60.0)
    load = Steps((Step(1.0, 1.0, 60.0),))
    reported = simulations(searched(twin=TWIN, limits=[LIMIT]), 1, load, chosen)
    assert encoded(reported) == {"reason": "70,000 instances are more than can be simulated (65,536)", "runs": []}
    reported = simulations(
        searched(twin={**TWIN, "servers": 10**9}, limits=[LIMIT]), 1, load, Chosen(1.0, 1, 1, 1, 60.0)
    )
    assert "servers of the model" in str(reported.reason)


def test_growth_is_simulated_from_the_target_on() -> None:
    found = simulated(compare=True, target_rps=100, growth_per_min=0.25)
    assert found is not None
    assert len(found.runs) == 5
    rates = [row.rate for row in found.runs[0].timeline]
    assert rates[0] == pytest.approx(100, rel=0.1)
    assert rates[-1] == pytest.approx(200, rel=0.1)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"seconds_to_create": None}, "give --seconds-to-create"),
        ({"stages": (Stage.parse("1000000:10m"),)}, "600,000,000 requests are more than"),
    ],
)
def test_what_cannot_be_simulated_is_said(asked: dict[str, Any], said: str) -> None:
    found = simulated(**{"stages": (Stage.parse("5:1m"),), "target_rps": 5, **asked})
    assert found is not None
    assert (found.runs, said in str(found.reason)) == ([], True)
    assert simulated(target_rps=5) is None


def test_a_search_that_was_interrupted_before_anything_was_judged_is_no_ground_for_a_plan() -> None:
    stretches = [stretch(0, 16.0, start_s=0.0, end_s=2.0), stretch(1, 8.0, start_s=2.0, end_s=9.0)]
    nothing = {"outcome": "interrupted", "rate": None, "interval": None, "at_least": {"rate": 16.0, "reason": "x"}}
    data = searched(**nothing, stretches=stretches, confirmation=[])

    reported = measured(data, "x")
    assert isinstance(reported, str)
    assert mentions(reported, "16.0/s", "2.0 s")

    confirmed = measured(searched(**nothing, stretches=stretches), "x")
    assert isinstance(confirmed, Measured)
    assert not any("interval" in remark for remark in confirmed.remarks())


def test_a_report_is_as_wide_as_it_may_be() -> None:
    made = whole(planned(target_rps=1000, cost=0.23))
    narrow, wide = (to_text(made, width=width).splitlines() for width in (79, WIDTH))
    assert max(map(len, narrow[1:-1])) <= 79
    assert "$/1M req" in "".join(wide)
    assert "$/hour" in "".join(narrow)


def test_a_search_without_a_limit_says_what_it_holds() -> None:
    made = planned(search(100.0, limit="keeps up", limits=[]), target_rps=1000)
    assert "The search had no --slo, so the capacity is only the rate that the endpoint keeps up with" in reported(made)
    assert "each keeps up with 10" in " ".join(to_text(whole(made)).split())


@pytest.mark.parametrize(
    ("model", "verdict", "said"),
    [
        (
            {"low": 130.0, "high": 160.0},
            "holds",
            "The measurement (100 to 107/s) and the queueing model (130 to 160/s) disagree. The plan uses 100/s, the "
            "lower end of the measurement: it counts requests that were sent, while the model extrapolates.",
        ),
        (
            {"low": 60.0, "high": 80.0},
            "fails",
            "The measurement (100 to 107/s) and the queueing model (60 to 80/s) disagree. No wave confirmed the "
            "measurement either: search again before you deploy.",
        ),
        ({"low": 105.0, "high": 160.0}, "holds", ""),
    ],
)
def test_a_plan_says_which_number_it_rests_on_where_count_and_model_disagree(
    model: dict[str, float], verdict: str, said: str
) -> None:
    """Nothing of such a model is simulated, and no target is taken from it."""
    wave = {"rate": 100.0, "seconds": 60.0, "verdict": verdict, "limits": []}
    twin = {**TWIN, "rate": model["low"], "interval": model}
    measured_at = [{"rate": rate, "mean": 0.5} for rate in (60.0, 100.0)]
    reported = search(100.0, twin=twin, limits=[LIMIT], confirmation=[wave], curve=measured_at)
    made = case(reported, stages=(Stage.parse("50:1m"),), target_rps=100, seconds_to_create=60)
    plan = endpoint_plan(made)
    assert isinstance(plan, EndpointPlan)
    assert [each for each in plan.remarks if "queueing model" in each] == ([said] if said else [])
    found = simulation(made, plan, compare=False)
    assert found is not None
    assert ("disagree" in str(found.reason)) == bool(said)
    in_flight = targets_of(plan, made.main).concurrency
    assert isinstance(in_flight, float)
    assert (in_flight > 30) == bool(said), "70/s of half a second, as measured, or of about 20 ms"
