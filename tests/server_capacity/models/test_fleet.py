"""The fleet simulated: queues against closed forms, rules against tables, and what must hold for any of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.plan.stage import Stage
from server_capacity.models.fleet.demand import Recorded, Step, Steps
from server_capacity.models.fleet.policies import CpuUse, Fixed, PodScaling, StepScaling, TargetTracking
from server_capacity.models.fleet.result_section import Chosen, simulations
from server_capacity.models.fleet.run import Times
from server_capacity.models.fleet.service import Service
from server_capacity.models.fleet.simulate import simulate
from tests.capacities import found, searched
from tests.queue_formulas import MDc, MMc, erlang_b, shorter_of_two

if TYPE_CHECKING:
    from server_capacity.models.fleet.demand import Demand
    from server_capacity.models.fleet.policies import Policy
    from server_capacity.models.fleet.routing import Routing
    from server_capacity.models.fleet.run import FleetRun
    from server_capacity.models.fleet.service import Floats

MEAN_S = 0.02
RANKS = (np.arange(1 << 14) + 0.5) / (1 << 14)
EXPONENTIAL, CONSTANT = -np.log1p(-RANKS) * MEAN_S, np.array([MEAN_S])


def run(service: Service, demand: Demand, policy: Policy, routing: Routing = "random", **more: Any) -> FleetRun:
    return simulate(service, demand, policy, routing, **{"bound_s": 0.1, "allowed": 0.01, "seed": 1} | more)


def steady(rate: float, seconds: float) -> Steps:
    return Steps((Step(rate, rate, seconds),))


def evenly(rate: float, seconds: float) -> Floats:
    """Arrivals in the middle of equal gaps."""
    return np.arange(0.5, round(rate * seconds)).astype(np.float64) / rate


@pytest.mark.parametrize(
    ("queue", "services", "instances"),
    [
        (MMc(30, MEAN_S, 1), EXPONENTIAL, 2),
        (MMc(140, MEAN_S, 4), EXPONENTIAL, 2),
        (MMc(140, MEAN_S, 4), EXPONENTIAL, 1),
        (MDc(35, MEAN_S, 1), CONSTANT, 2),
        (MDc(160, MEAN_S, 4), CONSTANT, 2),
    ],
    ids=["M/M/1", "M/M/4", "M/M/4 alone", "M/D/1", "M/D/4"],
)
def test_waits_are_those_of_the_closed_form(queue: MMc | MDc, services: Floats, instances: int) -> None:
    """The long runs, which tell 1% of a mean wait, are a program in tests/performance."""
    routing: Routing = "random" if instances > 1 else "least_outstanding"
    load = steady(instances * queue.rate, 300_000 / (instances * queue.rate))
    times = run(Service(queue.servers, 0.0, services), load, Fixed(instances), routing).times
    assert times.mean is not None
    assert times.mean - MEAN_S == pytest.approx(queue.mean_wait_s, rel=0.04)
    assert times.quantile(0.99) == pytest.approx(queue.p99_s(), rel=0.03)


def test_the_shorter_of_two_queues() -> None:
    load = 0.7
    times = run(Service(1, 0.0, EXPONENTIAL), steady(100 * load, 2000), Fixed(2), "least_outstanding").times
    assert times.mean == pytest.approx(MEAN_S * shorter_of_two(load), rel=0.03)


@pytest.mark.parametrize("routing", ["random", "least_outstanding"])
@pytest.mark.parametrize("services", [EXPONENTIAL, CONSTANT], ids=["exponential", "constant"])
def test_where_nobody_may_wait_erlang_tells_who_is_refused(routing: Routing, services: Floats) -> None:
    """Random routing loses what one instance of its part loses; the least outstanding what all servers as one do."""
    offered, seen = 6.0, run(Service(2, 0.0, services, waiting=0), steady(300, 500), Fixed(4), routing)
    expected = erlang_b(offered / 4, 2) if routing == "random" else erlang_b(offered, 8)
    assert seen.refused / seen.requests == pytest.approx(expected, rel=0.05)


def test_overhead_is_in_the_response_time_and_in_no_queue() -> None:
    seen = run(Service(1, 0.05, CONSTANT), Recorded.of(evenly(49, 20), 20), Fixed(1), bound_s=0.0699)
    assert seen.times.quantile(0.5) == pytest.approx(0.07, rel=0.001)
    assert (seen.over, seen.requests) == (980, 980)
    assert seen.minutes_over == pytest.approx(20 / 60)


TRACKING = TargetTracking(metric="invocations", target=600, minimum=2, maximum=9, instance_start_s=120)
PODS = PodScaling(metric="requests", target=10, minimum=2, maximum=60, instance_start_s=60)
BY_STEPS = StepScaling(metric="invocations", high=600, low=300, minimum=2, maximum=40, instance_start_s=90)


@pytest.mark.parametrize(
    ("policy", "datapoints", "instances", "wanted"),
    [
        (TRACKING, [700, 700], 3, 3),  # two are not three
        (TRACKING, [500, 700, 700, 601], 3, 4),
        (TRACKING, [700, 600, 700], 3, 3),  # at the target is not above it
        (TRACKING, [700, 700, 1200], 3, 6),  # the last one tells how many
        (TRACKING, [700, 700, 9000], 3, 9),
        (TRACKING, [400] * 14, 6, 6),
        (TRACKING, [400] * 15, 6, 4),
        (TRACKING, [541] + [539] * 15, 6, 6),  # below 90%, and yet as many are needed
        (TRACKING, [400] * 14 + [540], 6, 6),
        (TRACKING, [0] * 15, 6, 2),
        (BY_STEPS, [700, 700, 601], 9, 10),  # 10% of 9 are at least one
        (BY_STEPS, [700, 700, 700], 10, 12),  # 25% of 10 are 2
        (BY_STEPS, [700, 700, 900], 5, 10),
        (BY_STEPS, [700, 700, 6000], 20, 40),
        (BY_STEPS, [700, 600, 900], 4, 4),
        (BY_STEPS, [299] * 15, 29, 27),
        (BY_STEPS, [299] * 15, 4, 3),
        (BY_STEPS, [299] * 15, 2, 2),
        (BY_STEPS, [300] + [299] * 14, 4, 4),
        (PODS, [450], 2, 3),  # 30/s over 15 s: at once
        (PODS, [450, 450, 450, 900], 3, 4),  # 37.5/s over the last minute
        (PODS, [327] * 4, 2, 2),  # 21.8/s on 2 are within a tenth of their target
        (PODS, [331] * 4, 2, 3),
        (PODS, [7500] * 4, 2, 6),  # 4 pods at once, or as many again
        (PODS, [7500] * 4, 10, 20),
        (PODS, [900] * 4 + [300] * 19, 6, 6),  # five minutes ago 60/s were there
        (PODS, [900] * 4 + [300] * 22, 6, 3),
        (PODS, [900] * 4 + [300] * 23, 6, 2),
        (PODS, [0] * 30, 6, 2),
    ],
)
def test_how_many_a_policy_wants(policy: Policy, datapoints: list[float], instances: int, wanted: int) -> None:
    assert policy.wanted(datapoints, instances) == wanted


def test_the_fine_metric_has_its_own_datapoints_of_fifteen_minutes() -> None:
    policy = TargetTracking(metric="concurrency", target=4, minimum=1, maximum=9, instance_start_s=90)
    assert policy.period_s == 10
    assert policy.wanted([5, 5, 6], 4) == 6
    assert (policy.wanted([2] * 89, 4), policy.wanted([2] * 90, 4)) == (4, 2)


QUICK = Service(100, 0.0, np.array([0.001]))


def instances_by_minute(run: FleetRun) -> list[float]:
    return [minute.instances for minute in run.minutes]


def loads(*parts: tuple[float, float]) -> Recorded:
    """Even arrivals at each rate for so many minutes."""
    begins = np.cumsum([0.0, *(60 * minutes for _, minutes in parts)]).tolist()
    each = [begin + evenly(rate, 60 * minutes) for begin, (rate, minutes) in zip(begins, parts, strict=False)]
    return Recorded.of(np.concatenate(each), begins[-1])


def test_a_spike_is_answered_after_three_minutes_and_the_start_of_instances() -> None:
    """20/s on 2 instances are the target; 50/s are 5 instances, there after 3 minutes and 2 more."""
    seen = run(QUICK, loads((20, 5), (50, 10)), TRACKING)
    assert instances_by_minute(seen) == [2] * 10 + [5] * 5
    assert seen.instance_hours * 60 == pytest.approx(2 * 8 + 5 * 7)


def test_instances_go_after_fifteen_minutes_and_then_a_cooldown() -> None:
    seen = run(QUICK, loads((60, 2), (30, 20), (20, 20)), TRACKING)
    assert instances_by_minute(seen) == [6] * 17 + [3] * 20 + [2] * 5


def test_what_was_just_added_is_a_part_of_what_is_added_while_it_cools_down() -> None:
    """80/s are 8 instances: of the 4 more that they ask for 2 were added just before."""
    seen = run(QUICK, loads((20, 1), (50, 30)), TRACKING)
    assert max(instances_by_minute(seen)) == 5
    twice = run(QUICK, loads((20, 1), (40, 5), (80, 12)), TRACKING)
    assert instances_by_minute(twice) == [2] * 6 + [4] * 3 + [6] * 7 + [8] * 2


def test_pods_come_at_once_and_go_by_the_most_of_five_minutes() -> None:
    """20/s on 2 pods are the target; 50/s are 5, of which the first are there a minute after the first 15 seconds."""
    seen = run(QUICK, loads((20, 5), (50, 10), (20, 12)), PODS)
    assert instances_by_minute(seen)[:6] == [2] * 6
    assert 2 < instances_by_minute(seen)[6] < 5
    assert instances_by_minute(seen)[7:20] == [5] * 13
    assert instances_by_minute(seen)[22:] == [2] * 5


def test_pods_that_start_count_and_go_first() -> None:
    """While 3 start nothing more is asked for; the load goes before they serve, and after nine minutes so do they."""
    slow = PodScaling(metric="requests", target=10, minimum=2, maximum=60, instance_start_s=900)
    seen = run(QUICK, loads((20, 2), (50, 4), (20, 12)), slow)
    assert instances_by_minute(seen) == [2] * 18
    assert 3 * 8 < seen.instance_hours * 60 - 2 * 18 < 3 * 10


def test_an_instance_never_shows_more_requests_than_it_answers() -> None:
    """10/s are all that an instance can do: the datapoints of 30/s ask for 2, those of 2 for 4, of which 1 is there."""
    policy = TargetTracking(metric="invocations", target=300, minimum=1, maximum=9, instance_start_s=60)
    seen = run(Service(1, 0.0, np.array([0.1])), loads((4, 2), (30, 18)), policy)
    assert instances_by_minute(seen)[:10] == [1] * 6 + [2] * 2 + [3] * 2


def test_the_share_of_busy_servers_and_the_requests_without_an_answer() -> None:
    """4 servers of 0.1 s at 20/s: half of them are busy, 2 requests are there, and a target below that adds."""
    service, load = Service(4, 0.0, np.array([0.1])), loads((20, 8))
    for metric, just_below, just_above in (("cpu", 49.9, 50.1), ("concurrency", 1.99, 2.01)):
        counts = []
        for target in (just_below, just_above):
            policy = TargetTracking(metric=metric, target=target, minimum=1, maximum=9, instance_start_s=0)  # type: ignore[arg-type]
            counts.append(max(instances_by_minute(run(service, load, policy))))
        assert counts == [2, 1]


def test_requests_in_flight_are_those_outside_of_servers_too() -> None:
    """20/s for 0.1 s in a server and 0.1 s elsewhere: 4 are there."""
    service, load = Service(4, 0.1, np.array([0.1])), loads((20, 8))
    for target, most in ((3.98, 2), (4.02, 1)):
        policy = TargetTracking(metric="concurrency", target=target, minimum=1, maximum=9, instance_start_s=0)
        assert max(instances_by_minute(run(service, load, policy))) == most


def test_cpu_is_what_the_metric_shows_of_it() -> None:
    """10 where nothing is served and 3 for each request/s: 70 at 20/s, whatever share of its servers is busy."""
    service, load = Service(4, 0.0, np.array([0.1])), loads((20, 8))
    for target, most in ((69.7, 2), (70.3, 1)):
        rules: dict[str, Any] = {"minimum": 1, "maximum": 9, "instance_start_s": 0, "cpu": CpuUse(10, 3)}
        policy = TargetTracking(metric="cpu", target=target, **rules)
        assert max(instances_by_minute(run(service, load, policy))) == most


@given(
    load=st.lists(st.floats(0, 40), min_size=1, max_size=4).map(
        lambda rates: Steps(tuple(Step(rate, other, 181) for rate, other in zip(rates, reversed(rates), strict=True)))
    ),
    service=st.builds(
        Service, st.integers(1, 3), st.just(0.0), st.just(EXPONENTIAL * 10), st.none() | st.integers(0, 3)
    ),
    routing=st.sampled_from(["random", "least_outstanding"]),
    metric=st.sampled_from(["invocations", "concurrency", "cpu", "requests"]),
    start_s=st.floats(0, 200),
)
@settings(max_examples=15, deadline=None)
def test_no_request_is_lost_and_every_instance_is_paid(
    load: Steps, service: Service, routing: Routing, metric: Any, start_s: float
) -> None:
    made = PodScaling if metric == "requests" else TargetTracking
    policy = made(metric=metric, target=5, minimum=1, maximum=6, instance_start_s=start_s)
    seen = run(service, load, policy, routing)
    arrivals = np.concatenate([np.zeros(0), *load.parts(np.random.default_rng((1, 0)))])
    assert seen.requests == len(arrivals) == seen.times.count + seen.refused
    assert seen.refused == 0 or service.waiting is not None
    assert seen.seconds == pytest.approx(load.seconds)
    in_service = sum(minute.seconds * minute.instances for minute in seen.minutes)
    assert in_service - 1e-6 <= seen.paid_s <= 6 * seen.seconds + 1e-6
    assert all(1 <= minute.instances <= 6 + 1e-9 for minute in seen.minutes)
    fixed = run(service, load, Fixed(3), routing)
    assert fixed.instance_hours == pytest.approx(3 * load.seconds / 3600)
    assert fixed.requests == seen.requests


def test_arrivals_follow_a_ramp() -> None:
    ramp = Steps.of([Stage.parse("0..1000:100s"), Stage.parse("200:50s")])
    at = np.concatenate(list(ramp.parts(np.random.default_rng(1))))
    assert (np.diff(at) >= 0).all()
    counts = np.histogram(at, [0, 50, 100, 150])[0]
    assert counts == pytest.approx([12_500, 37_500, 10_000], rel=0.03)
    assert ramp.seconds == 150


def test_a_quantile_of_counted_times_is_within_a_thousandth() -> None:
    taken = np.random.default_rng(1).lognormal(-4, 1, 10_000)
    times = Times()
    times.add(taken[:1])
    times.add(taken[1:])
    for share in (0.5, 0.99, 1.0):
        assert times.quantile(share) == pytest.approx(np.quantile(taken, share, method="inverted_cdf"), rel=0.001)
    assert (Times().quantile(0.5), Times().mean) == (None, None)


TWIN = {**found()["twin"], "services_s": [0.02] * 256, "limit": "p99<100ms"}
LIMITS = [{"expression": "p99<100ms", "allowed": 0.01, "bound": 0.1}]
CHOSEN = Chosen(rps=100, instances=4, minimum=2, maximum=8, instance_start_s=240)


def test_the_block_has_the_chosen_policy_beside_a_fleet_that_stands_still() -> None:
    capacity = searched(limits=LIMITS, twin=TWIN)
    load = steady(390, 120)
    block = simulations(capacity, 1, load, CHOSEN, per_hour=0.5)
    assert [each.policy for each in block.runs] == ["target tracking on invocations", "4 instances, fixed"]
    cost = block.runs[1].cost
    assert cost is not None
    assert cost.hour == pytest.approx(2.0)
    assert cost.month == pytest.approx(1460)
    assert (block.limit, block.routing, block.reason) == ("p99<100ms", "random", None)


@pytest.mark.parametrize("beside", [{}, {"concurrency": 2.5}, {"concurrency": 2.5, "cpu": (60.0, CpuUse(1.0, 0.5))}])
def test_the_policies_that_are_compared_are_those_of_the_files(beside: dict[str, Any]) -> None:
    chosen = replace(CHOSEN, **beside)
    made = {file: policy for policy, file in chosen.policies()}
    always = {"scaling_policy.json", None, "scaling_policy_step.json", "hpa.yaml"}
    assert set(made) == always | {f"scaling_policy_{name}.json" for name in beside}
    for name, target in (("concurrency", 2.5), ("cpu", 60.0)):
        if name in beside:
            policy = made[f"scaling_policy_{name}.json"]
            assert isinstance(policy, TargetTracking)
            assert policy.target == target
            assert policy.first(395, EXPONENTIAL_4) == 4, "as many as its target means at 100/s for each"
    runs = simulations(searched(limits=LIMITS, twin=TWIN), 1, steady(390, 60), chosen, compare=True).runs
    assert [run.file for run in runs] == list(made)


EXPONENTIAL_4 = Service(4, 0.0, EXPONENTIAL)


def test_without_a_model_there_is_a_reason() -> None:
    assert "older version" in str(simulations(searched(), 1, steady(1, 1), CHOSEN).reason)
    block = simulations(searched(twin={"fits": False, "reason": "nothing was sent"}), 1, steady(1, 1), CHOSEN)
    assert encoded(block) == {"reason": "the capacity has no model of the endpoint: nothing was sent", "runs": []}
