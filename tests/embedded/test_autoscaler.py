"""The autoscaler minute by minute, without a clock, and the metrics that its policies read."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.embedded.aws.gauges import Gauges
from inference_benchmarker.embedded.aws.metric_store import Metric, MetricStore
from inference_benchmarker.embedded.aws.scaling_metrics import ScalingMetrics
from inference_benchmarker.embedded.aws.telemetry import HARDWARE, REQUESTS, VARIANT, Telemetry
from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.queueing.model import QueueModel
from inference_benchmarker.embedded.queueing.routed import queues
from inference_benchmarker.embedded.scaling.autoscaler import Autoscaler
from inference_benchmarker.embedded.scaling.instances import Instances
from inference_benchmarker.embedded.scaling.records import MetricSource, Policy, Target
from inference_benchmarker.embedded.scaling.target_tracking import TargetTracking, Tracking
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterable

MINUTE = 60 * NS
START = 4 * MINUTE


class World:
    """An autoscaler and its instances, which start in 4 minutes, and a metric that shows what the test sets."""

    def __init__(self, count: int = 1, minimum: int = 1, maximum: int = 8, **settings: Any) -> None:
        self.now = 0
        self.value: float | None = 0.0
        self.due: int | None = None
        self.instances = Instances(count, START)
        self.autoscaler = Autoscaler(self.instances, 1, lambda now: now / NS, self._ask)
        self.target = self.register(minimum, maximum)
        self.policy = self._put(**settings)

    def register(self, minimum: int, maximum: int) -> Target:
        return self.autoscaler.register("e", "endpoint/e/variant/AllTraffic", minimum, maximum, self.now)

    def _put(self, **settings: Any) -> Policy:
        source = MetricSource("n", "m", (), "Sum", None, lambda *_: self.value, 60)
        tracking = TargetTracking(Tracking(100, **settings))
        return self.autoscaler.put_policy(
            self.target, "p", configuration={}, tracking=tracking, source=source, now_ns=self.now
        )

    def _ask(self, count: int, now_ns: int) -> None:
        due = self.instances.ask(count, now_ns)
        self.due = due if due > now_ns else None
        if self.due is None:
            self._arrive(now_ns)

    def _arrive(self, now_ns: int) -> None:
        if self.instances.arrive(now_ns):
            self.autoscaler.arrived(now_ns)

    def minutes(self, values: Iterable[float | None]) -> list[tuple[int, int]]:
        """The instances that serve and that are asked for, at the end of each minute with its value of the metric."""
        reported = []
        for self.value in values:
            self.now += MINUTE
            if self.due is not None and self.due <= self.now:
                at, self.due = self.due, None
                self._arrive(at)
            self.autoscaler.passed(1, self.now)
            reported.append((self.instances.current, self.instances.desired))
        return reported

    def activities(self) -> list[tuple[str, str, float, float | None]]:
        return [(each.description, each.status, each.started_at, each.ended_at) for each in self.autoscaler.activities]


def test_out_after_three_minutes_there_after_four_more_and_in_after_fifteen() -> None:
    world = World()
    assert world.minutes([150] * 3) == [(1, 1), (1, 1), (1, 2)]
    assert world.minutes([150] * 4) == [(1, 2)] * 3 + [(2, 2)]
    assert world.minutes([40] * 15) == [(2, 2)] * 14 + [(1, 1)]
    assert world.activities() == [
        ("Setting desired instance count to 2.", "Successful", 180, 420),
        ("Setting desired instance count to 1.", "Successful", 1320, 1320),
    ]


def test_the_cooldown_begins_when_the_instances_serve() -> None:
    """120 of 100 on 10 instances are 12; from then on 12 instances want 13, of which the cooldown's 2 are a part."""
    world = World(10, maximum=40)
    world.minutes([120] * 3)
    assert world.instances.desired == 12
    assert world.minutes([120] * 3 + [105]) == [(10, 12)] * 3 + [(12, 12)]
    assert world.minutes([105] * 4) == [(12, 12)] * 4
    assert world.minutes([105]) == [(12, 13)]


@settings(max_examples=60)
@given(st.integers(1, 20), st.floats(0, 1800))
def test_a_constant_load_gets_the_instances_that_it_needs_and_keeps_them(count: int, load: float) -> None:
    """The metric is the load over the instances that serve. 100 minutes are more than all waits together."""
    world = World(count, maximum=20)
    for _ in range(100):
        world.minutes([load / world.instances.current])
    there, needed = world.instances.current, max(1, math.ceil(load / 100 * (1 - 1e-9)))
    assert there == needed or (there > needed and load / there >= 90)
    before = len(world.activities())
    for _ in range(30):
        world.minutes([load / world.instances.current])
    assert (world.instances.current, len(world.activities())) == (there, before)


def test_a_bound_in_the_way_is_reported_once_for_each_alarm() -> None:
    world = World(2, maximum=2)
    world.minutes([500] * 10)
    assert [(each.status, each.reason) for each in world.autoscaler.activities] == [
        ("Unfulfilled", {"Code": "AlreadyAtMaxCapacity", "MaxCapacity": 2, "CurrentCapacity": 2})
    ]
    world = World(2, minimum=2)
    world.minutes([0] * 20)
    (activity,) = world.autoscaler.activities
    assert activity.reason == {"Code": "AlreadyAtMinCapacity", "MinCapacity": 2, "CurrentCapacity": 2}
    assert "-AlarmLow-" in activity.cause


def test_the_alarms_history_says_when_it_went_off_and_what_it_did() -> None:
    world = World()
    world.minutes([50, 150, 150, 150, 150, 80])
    high = world.policy.alarms[0]
    reported = [(item.at, item.kind, item.summary) for item in high.history]
    assert reported == [
        (0, "ConfigurationUpdate", f'Alarm "{high.name}" created'),
        (60, "StateUpdate", "Alarm updated from INSUFFICIENT_DATA to OK"),
        (240, "StateUpdate", "Alarm updated from OK to ALARM"),
        (240, "Action", "Successfully executed action: policy p"),
        (360, "StateUpdate", "Alarm updated from ALARM to OK"),
    ]
    fired = high.history[2].data["newState"]["stateReasonData"]
    assert (fired["recentDatapoints"], fired["threshold"], fired["period"]) == ([150, 150, 150], 100, 60)
    assert high.updated_at == 360


def test_bounds_registered_while_instances_are_on_their_way_hold_when_they_are_there() -> None:
    world = World()
    world.minutes([150] * 3)
    world.register(4, 8)
    assert world.minutes([100] * 3) == [(1, 2)] * 3
    assert world.minutes([100]) == [(2, 4)]
    assert world.autoscaler.activities[-1].cause == "minimum capacity was set to 4"


def test_minutes_that_were_slept_through_count_each() -> None:
    world = World()
    world.value = 150
    world.autoscaler.passed(3, 3 * MINUTE)
    assert world.instances.desired == 2


# --- the metrics


def telemetry(store: MetricStore, **more: Any) -> Telemetry:
    return Telemetry(EndpointConfig(publish_interval_s=10, publication_delay_s=1.0, **more), store)


def test_invocations_count_by_the_instances_there_were_and_as_of_a_whole_minute() -> None:
    store = MetricStore()
    watched = telemetry(store, instances=2)
    traffic = watched.traffic("demo")
    read = ScalingMetrics(EndpointConfig(time_factor=60), watched, store, NS, lambda _: 0).source("demo", {}).read
    assert read(0, 1) is None  # the minute in which the policy was put was not whole
    begin = watched.clock.end_ns(watched.clock.interval(time.monotonic_ns()) + 1)
    for _ in range(8):
        traffic.rejected(503, begin)
    watched.resize(4, begin)
    for _ in range(8):
        traffic.rejected(503, begin)
    assert read(0, 1) == pytest.approx(60 * (8 / 2 + 8 / 4))
    assert read(0, 3) == 0
    watched.flush(begin + 10 * NS)
    published = Metric(
        REQUESTS, "InvocationsPerInstance", frozenset({("EndpointName", "demo"), ("VariantName", VARIANT)})
    )
    cells = list(store.cells(published, 0, 1e12, 1e12))
    assert {cell.timestamp for cell in cells} == {watched.clock.interval(begin) * 10}
    assert sum(cell.summary.total for cell in cells) == 8 / 2 + 8 / 4


def test_a_gauge_has_a_sample_for_each_instance_and_shows_what_each_has() -> None:
    """Each has two servers. Half of the time one has both busy, then both have theirs: as sums over cores, 200%."""
    store, config = MetricStore(), EndpointConfig(servers=2, publish_interval_s=10)
    watched, queue = Telemetry(config, store), QueueModel(config.rules, lambda: 100 * NS)
    begin = watched.clock.end_ns(watched.clock.interval(time.monotonic_ns()))
    gauges = Gauges(config, queue, None, watched, begin)
    for _ in range(4):
        assert queue.offer(begin)
    gauges.publish(begin + 10 * NS)
    queue.resize(begin + 10 * NS, config.servers_of(2))
    watched.resize(2, begin + 10 * NS)
    gauges.publish(begin + 20 * NS)
    variant = frozenset({("EndpointName", "demo"), ("VariantName", VARIANT)})
    cells = [cell.summary for cell in store.cells(Metric(HARDWARE, "CPUUtilization", variant), 0, 1e12, 1e12)]
    assert [(cell.count, cell.total / cell.count) for cell in cells] == [(1, 200), (2, 200)]


@pytest.mark.parametrize(
    ("servers", "instances", "expected"),
    [(4, 1, [4, 8, 12]), (4, 2, [2, 4, 6]), (3, 2, [1, 3, 4]), (1, 4, [1, 1, 1]), (8, 8, [1, 2, 3])],
)
def test_each_instance_brings_its_share_of_the_servers(servers: int, instances: int, expected: list[int]) -> None:
    config = EndpointConfig(servers=servers, instances=instances)
    assert [config.servers_of(count) for count in (1, 2, 3)] == expected
    assert config.servers_of(instances) == servers


@pytest.mark.parametrize(("statistic", "expected"), [("Average", 60), ("Maximum", 80), ("Sum", 3 * 120)])
def test_a_metric_of_cloudwatch_is_read_when_it_is_visible(statistic: str, expected: float) -> None:
    """A short minute of 20 s has two publications; what comes after them is not yet visible."""
    store = MetricStore()
    watched = telemetry(store)
    given = {"MetricName": "CPUUtilization", "Namespace": HARDWARE, "Statistic": statistic}
    named = [{"Name": "VariantName", "Value": VARIANT}, {"Name": "EndpointName", "Value": "demo"}]
    metrics = ScalingMetrics(EndpointConfig(time_factor=3), watched, store, 20 * NS, lambda _: 0)
    source = metrics.source("demo", {"CustomizedMetricSpecification": {**given, "Dimensions": named}})
    assert source.read(0, 1) is None
    first = watched.clock.interval(0)
    for number, value in enumerate([1000.0, 40.0, 80.0, 1000.0]):
        watched.add(HARDWARE, "CPUUtilization", "demo", watched.clock.cell(first + number, "Percent", [value]))
        watched.add(HARDWARE, "CPUUtilization", "other", watched.clock.cell(first + number, "Percent", [7.0]))
    visible = watched.clock.end_ns(first + 2) + NS
    assert source.read(visible, 1) == source.read(visible + 9 * NS, 1) == pytest.approx(expected)


@pytest.mark.parametrize("routing", ["shared", "random"])
def test_concurrency_is_the_mean_number_of_requests_on_an_instance(routing: str) -> None:
    store, config = MetricStore(), EndpointConfig(servers=4, instances=2, routing=routing)
    queue = queues(config.rules, lambda: 4 * NS, routing, 2, 0)
    metrics = ScalingMetrics(config, telemetry(store, instances=2), store, 60 * NS, queue.present_ns)
    kind = {"PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"}
    source = metrics.source("demo", {"PredefinedMetricSpecification": kind})
    assert (source.name, source.period_s) == ("ConcurrentRequestsPerModel", 10)
    assert source.read(0, 1) is None
    jobs = [queue.offer(0) for _ in range(3)]
    queue.take_ready(20 * NS)
    stayed_s = sum((job.finish_ns or 0) / NS for job in jobs if job)
    assert source.read(20 * NS, 1) == pytest.approx(stayed_s / 20 / 2)
    assert source.read(30 * NS, 1) == 0


def test_a_metric_that_is_published_less_than_once_a_minute_is_its_newest_publication() -> None:
    """A short minute of 1 s here, and a publication every 10 s: sums are those of a minute, too."""
    store, published = MetricStore(), {"publish_interval_s": 10, "publication_delay_s": 1.0}
    watched = telemetry(store)
    named = [{"Name": "VariantName", "Value": VARIANT}, {"Name": "EndpointName", "Value": "demo"}]
    config = EndpointConfig(time_factor=60, **published)  # type: ignore[arg-type]  # two numbers
    metrics = ScalingMetrics(config, watched, store, NS, lambda _: 0)
    first = watched.clock.interval(0)
    for number, value in enumerate([7.0, 40.0]):
        watched.add(HARDWARE, "CPUUtilization", "demo", watched.clock.cell(first + number, "Percent", [value]))
    read_at = watched.clock.end_ns(first + 1) + 5 * NS
    for statistic, expected in (("Average", 40), ("Sum", 6 * 40)):
        given = {"MetricName": "CPUUtilization", "Namespace": HARDWARE, "Statistic": statistic, "Dimensions": named}
        assert metrics.named("demo", given).read(read_at, 1) == pytest.approx(expected)
