"""Replicas and money for users: tables by hand, and what holds for any load and any routing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.exit_codes import MISSED, OK
from server_capacity.planning.measured import measured
from server_capacity.planning.text import WIDTH, to_text
from server_capacity.planning.totals import headline
from server_capacity.planning.users.comparing import Compared
from server_capacity.planning.users.content import users_plan
from server_capacity.planning.users.routing import Held, Routed, most_users
from server_capacity.planning.users.sizing import at_most, needed
from server_capacity.results.codec import check_plan
from server_capacity.results.types.plan import PlanResult
from server_capacity.results.types.users_plan import RoutingComparison, UsersPlan
from tests.capacities import searched
from tests.case import case
from tests.mentions import mentions
from tests.users_plans import SESSIONS, asked_for, at_price, by_hits, planned_for, search_of_users, talked


def result(plan: UsersPlan) -> PlanResult:
    found = PlanResult(
        schema_version=1,
        exit_code=plan.exit_code,
        utilisation=0.7,
        spare=1,
        limits=plan.limits,
        endpoints=[],
        users=plan,
        cost=plan.cost,
    )
    return replace(found, headline=headline(found))


def replicas(plan: UsersPlan) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for each in plan.options:
        found.setdefault(each.routing, {})[each.name] = each.replicas
    return found


def unknown(reason: str = "the fit refused") -> Compared:
    return Compared(RoutingComparison(reason=reason))


def of_at_most(truth: int, users: int) -> Routed | None:
    return Routed(users, 1.0, 0.0) if users <= truth else None


def test_the_busiest_hour_follows_from_users_and_their_day() -> None:
    demand = planned_for().demand
    assert (demand.peak_per_s, demand.peak_open, demand.turns) == (3.0, 24.0, 4.0)


def test_a_conversation_of_users_takes_as_long_as_their_number_over_its_rate() -> None:
    """Searches stored before had the mean of all that the wave began: the last of those ended among few others."""
    demand = planned_for(search_of_users(sessions={**SESSIONS, "length_s": 7.2})).demand
    assert (demand.length_s, demand.peak_open) == (8.0, 24.0)


def test_replicas_follow_from_the_lower_end_by_each_routing() -> None:
    plan = planned_for(peak_factor=12.0)  # 96 open conversations of 40 on a replica
    assert replicas(plan) == {
        "prefix_aware": {"limit alone": 3, "70% use": 4, "60% use": 4, "50% use": 5},
        "random": {"limit alone": 4, "70% use": 6, "60% use": 8, "50% use": 9},
    }
    assert [each.with_spare for each in plan.options] == [4, 4, 4, 5, 5, 6, 8, 9]
    assert plan.routing == "random", "nobody said that the router is prefix-aware"
    assert mentions(result(plan).headline, "6 replicas of gpu", "28,800 users", "random", "4 with prefix-aware")


def test_the_user_says_that_the_router_is_prefix_aware() -> None:
    plan = planned_for(peak_factor=12.0, routing="prefix_aware")
    assert (plan.chosen.replicas, plan.routing_given) == (4, True)
    assert any(mentions(each, "needs a router", "2 replicas more") for each in plan.remarks)


def test_behind_one_replica_both_routings_are_the_same() -> None:
    plan = planned_for(peak_factor=1.0)
    aware, spread = (next(each for each in plan.options if each.routing == name) for name in ("prefix_aware", "random"))
    assert replace(spread, routing="prefix_aware") == aware
    assert by_hits().routings is not None
    assert by_hits().routings.held("random", 1) == Held(1.0, 0.6)  # type: ignore[union-attr]


def test_hits_and_capacity_fall_with_the_number_of_replicas_and_lie_between_the_simulated_ones() -> None:
    routings = by_hits(most=4000).routings
    assert routings is not None
    found = [routings.held("random", count) for count in (1, 2, 3, 4, 6, 8, 16, 40, 64, 100, 10_000)]
    assert [each.hit_rate for each in found] == sorted((each.hit_rate for each in found), reverse=True)
    assert [each.share for each in found] == sorted((each.share for each in found), reverse=True)
    assert routings.held("random", 3).hit_rate == pytest.approx(0.2), "1/3 of 0.6, between 1/2 and 1/4"
    assert routings.held("random", 10_000).hit_rate == pytest.approx(0.6 / 10_000, rel=0.01)
    assert routings.held("random", 10_000).share == pytest.approx(0.5, rel=0.03)


def test_what_is_found_is_within_two_percent_of_the_most_users() -> None:
    for truth in (1, 2, 7, 40, 333, 1600):
        for guess in (1, 10, 40, 900):
            with case(truth, guess):
                found = most_users(partial(of_at_most, truth), guess)
                if truth > 5 * guess:
                    assert found is None, "far above what was measured nothing is believed"
                elif found is not None:
                    assert 0.98 * truth - 1 <= found.users <= truth
    assert most_users(lambda _: None, 10) is None


@given(st.floats(0.1, 1e6), st.floats(0.5, 1e4), st.floats(0.05, 1.0))
def test_as_many_are_needed_as_hold_the_load_and_no_fewer(target: float, each: float, least: float) -> None:
    def held(count: int) -> Held:
        return Held(least + (1 - least) / count, 0.0)

    count = needed(target, each, held)
    assert count * each * held(count).share >= target * (1 - 1e-6)
    if count > 1:
        assert (count - 1) * each * held(count - 1).share <= target * (1 + 1e-6)


def test_no_number_of_replicas_is_enough_where_each_serves_nobody() -> None:
    assert needed(10, 5, lambda count: Held(1.0 if count == 1 else 0.0, 0.0)) == 0


def test_costs_are_those_of_replicas_day_and_night() -> None:
    plan = planned_for(peak_factor=12.0, hour=4.0)
    assert plan.cost is not None
    assert (plan.cost.hour, plan.cost.month) == (24.0, 24.0 * 730)
    assert plan.cost_per_conversation == pytest.approx(24 * 24 / 86_400)
    assert plan.cost_per_user_month == pytest.approx(24 * 730 / 28_800)
    unpriced = planned_for(hour=None)
    assert (unpriced.cost, unpriced.cost_per_conversation, unpriced.cost_per_user_month) == (None, None, None)
    assert "No cost: give --price" in to_text(result(unpriced))


def test_conversations_a_second_are_sized_as_such() -> None:
    search = search_of_users(5.0, **{"in": "sessions"})
    plan = planned_for(search, by_hits(in_users=False), peak_factor=12.0)  # 12/s of 5/s on a replica
    assert replicas(plan)["prefix_aware"]["limit alone"] == 3
    assert (plan.unit, plan.demand.peak_per_s, plan.chosen.replicas) == ("sessions", 12.0, 6)


def test_two_replicas_searched_together_serve_half_each() -> None:
    search = search_of_users(80.0, endpoint={"name": "chat", "instance_type": "gpu", "instances": 2})
    assert planned_for(search, peak_factor=12.0).measured.low == 40.0


@pytest.mark.parametrize(("routing", "replicas_needed"), [("", 4), ("prefix_aware", 4), ("random", None)])
def test_without_a_simulation_only_what_was_measured_is_planned(routing: str, replicas_needed: int | None) -> None:
    made = users_plan(asked_for(peak_factor=12.0, routing=routing), search_of_users(), unknown(), at_price(4.0))
    if replicas_needed is None:
        assert isinstance(made, str)
        assert "the fit refused" in made
        return
    assert isinstance(made, UsersPlan)
    assert (made.routing, made.chosen.replicas) == ("prefix_aware", replicas_needed)
    assert "Routing cannot be compared: the fit refused." in made.remarks
    assert ("if each conversation stays on its replica" in result(made).headline) == (not routing)


def test_where_nothing_is_cached_routing_makes_no_difference() -> None:
    plan = planned_for(None, Compared(RoutingComparison(reason="none was cached"), equal=True), peak_factor=12.0)
    assert replicas(plan)["random"] == replicas(plan)["prefix_aware"]
    assert "Routing makes no difference: none was cached." in plan.remarks


def test_the_loss_of_a_replica_is_told() -> None:
    assert planned_for(peak_factor=12.0).lost.holds
    alone = planned_for(peak_factor=1.0)
    assert (alone.lost.replicas, alone.lost.holds, alone.chosen.with_spare) == (0, False, 2)
    full = planned_for(peak_factor=12.0, utilisation=1.0)
    assert not full.lost.holds


def test_users_who_come_at_random_are_more_at_times() -> None:
    assert [at_most(mean) for mean in (0.1, 1.0, 10.0, 100.0, 10_000.0)] == [1, 3, 15, 117, 10_165]


IN_SESSIONS = {"in": "sessions", "arrivals": "poisson"}


@pytest.mark.parametrize(
    ("low", "search", "simulated", "asked", "end"),
    [
        (40.0, {}, None, {}, "up to 32 in 95% of the time; it is certain to serve 40."),
        (
            40.0,
            {},
            None,
            {"utilisation": 1.0},
            "up to 42 in 95% of the time; it is certain to serve 40. At times it has more than that and may miss the "
            "limit: 4 replicas (70% use) would leave room.",
        ),
        (
            2.0,
            {},
            None,
            {},
            "up to 3 in 95% of the time; it is certain to serve 2. At times it has more than that and may miss the "
            "limit: only --utilisation below 0.5 would leave room.",
        ),
        (40.0, {}, 40, {"utilisation": 1.0}, "with the uneven load that chance causes in the simulation."),
        (40.0, {}, 40, {"utilisation": 1.0, "peak_factor": 5.0}, "more than that and may miss the limit: 2 replicas ("),
        (5.0, IN_SESSIONS, None, {"utilisation": 1.0}, "since conversations of the search began at random, too."),
        (5.0, {**IN_SESSIONS, "arrivals": "constant"}, None, {"utilisation": 1.0}, "more than that and may miss the"),
    ],
)
def test_users_who_come_at_random_may_be_more_than_a_replica_serves(
    low: float, search: dict[str, Any], simulated: int | None, asked: dict[str, Any], end: str
) -> None:
    """A search for users holds their number, and neither one for sessions nor a simulation of several replicas does."""
    compared = unknown() if simulated is None else by_hits(simulated)
    plan = planned_for(search_of_users(low, **search), compared, **{"peak_factor": 12.0, **asked})
    (remark,) = (each for each in plan.remarks if each.startswith("Users come at random"))
    assert end in remark


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sessions": None}, "single requests"),
        ({"sessions": {"turns": 3.0}}, "how long a conversation takes"),
        ({"outcome": "not_kept", "exit_code": 1, "rate": None, "interval": None}, "found no capacity"),
        ({"interval": {"low": 0.0, "high": 50.0}}, "starts at 0"),
    ],
)
def test_searches_that_no_plan_for_users_can_rest_on(change: dict[str, Any], words: str) -> None:
    made = measured(searched(**talked(**change)), "x_capacity", for_users=True)
    assert isinstance(made, str)
    assert words in made


def test_a_search_that_no_wave_confirmed_is_marked_and_its_exit_code_inherited() -> None:
    plan = planned_for(search_of_users(confirmation=[]))
    assert plan.exit_code == MISSED
    assert "no wave confirmed it" in result(plan).headline
    assert planned_for().exit_code == OK


def test_the_report_fits_and_is_read_again() -> None:
    found = result(planned_for(peak_factor=12.0))
    text = to_text(found)
    assert max(map(len, text.splitlines()[1:-1])) <= WIDTH
    words = " ".join(text.split())
    assert mentions(words, "12 times the average", "Little's law", "Random routing over 6 replicas", "$0.0067")
    assert check_plan(encoded(found)) == found


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ("exit_code", 1),
        ("users.exit_code", 1),
        ("users.demand.users", 30_000),
        ("users.demand.peak_open", 90.0),
        ("users.demand.length_s", 9.0),
        ("users.measured.low", 50.0),
        ("users.measured.rate", 90.0),
        ("users.routing", "prefix_aware"),
        ("users.chosen.replicas", 5),
        ("users.options.4.replicas", 5),
        ("users.options.0.per_replica", 30.0),
        ("users.options.5.per_replica", 41.0),
        ("users.options.5.with_spare", 9),
        ("users.lost.replicas", 4),
        ("users.lost.per_replica", 10.0),
        ("users.comparison.reason", "because"),
        ("users.comparison.engine", None),
        ("users.cost.hour", 20.0),
        ("users.cost_per_conversation", 0.001),
        ("users.cost_per_user_month", None),
        ("refused", ["x: no."]),
        ("users.options.0.share", 1.5),
        ("users.unit", "requests"),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(keys: str, value: object) -> None:
    data = encoded(result(planned_for(peak_factor=12.0)))
    *above, last = keys.split(".")
    place: Any = data
    for key in above:
        place = place[int(key)] if isinstance(place, list) else place[key]
    place[last] = value
    with pytest.raises(ValueError, match=r"\w"):
        check_plan(data)
