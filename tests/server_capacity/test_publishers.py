"""A metric is waited for where it, or its neighbours, came before the wave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from server_capacity.metrics.cloudwatch import source as source_module
from server_capacity.metrics.cloudwatch.block import read_block
from server_capacity.metrics.cloudwatch.fetch import make_client
from server_capacity.metrics.cloudwatch.source import CloudWatch
from tests.cloudwatch_source import HERE, INSTANCES, NOON, SAGEMAKER, WAVE, block, clock, fake, requests
from tests.fake_cloudwatch import error as refusal
from tests.fake_sagemaker import SageMaker
from tests.mentions import mentions

if TYPE_CHECKING:
    from inference_benchmarker.facts.server_metric import ServerMetric
    from tests.fake_cloudwatch import FakeCloudWatch

__all__ = ["clock", "fake"]

LATENCY = block(ModelLatency=["Average"])
SHORT, USUAL = WAVE.end + 30 + 60, WAVE.end + 30 + 3 * 60
COMPONENT = [{"Name": "InferenceComponentName", "Value": "c"}]
DAY = 86_400


@pytest.fixture(autouse=True)
def _time_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine answers late."""
    monkeypatch.setattr(source_module, "LOOK_UP_S", 60.0)


def collect(fake: FakeCloudWatch, *blocks: dict[str, Any]) -> tuple[dict[str, ServerMetric], list[str]]:
    """The rows of an endpoint that exists, and the warnings before its wave."""
    client, read = make_client(1), [read_block(each) for each in blocks]
    source = CloudWatch(read, client, fake.clock, fake.clock.sleep, SageMaker())
    fake.clock.now = WAVE.start
    warnings = source.warnings(None)
    fake.clock.now = WAVE.end
    return {each.name: each for each in source.collect(WAVE, lambda *_: None)}, warnings


def never_waited(fake: FakeCloudWatch) -> bool:
    assert fake.clock.now >= SHORT
    return fake.clock.now <= SHORT + 15


def test_what_never_came_is_waited_for_by_lag_and_period(fake: FakeCloudWatch) -> None:
    found, warnings = collect(fake, LATENCY)
    assert never_waited(fake)
    assert mentions(
        warnings[-1], "CloudWatch", "EndpointName", "VariantName", "AllTraffic", "14 days", "90 s", "--metrics-wait"
    )
    assert "it had no values before the wave either: allow more time with --metrics-wait" in str(
        found["ModelLatency"].reason
    )


@pytest.mark.parametrize(
    ("namespace", "name"), [(SAGEMAKER, "ModelLatency"), (SAGEMAKER, "Invocations"), (INSTANCES, "CPUUtilization")]
)
@pytest.mark.parametrize("days", [1, 12])
def test_what_came_or_whose_neighbours_came_is_waited_for(
    fake: FakeCloudWatch, namespace: str, name: str, days: int
) -> None:
    fake.put(namespace, name, HERE, (NOON - days * DAY, 5.0))
    _, warnings = collect(fake, LATENCY)
    assert USUAL <= fake.clock.now <= USUAL + 15
    assert not any("had nothing" in each for each in warnings)


@pytest.mark.parametrize("delay", [0.0, 200.0])
def test_what_comes_first_with_the_wave_is_read_to_its_end(fake: FakeCloudWatch, delay: float) -> None:
    """As soon as anything of an endpoint has come, its publisher is there."""
    fake.put(INSTANCES, "CPUUtilization", HERE, (NOON + 60, 5.0))
    fake.delay = delay
    requests(fake)
    found, _ = collect(fake, LATENCY, block(INSTANCES, CPUUtilization=["Average"]))
    assert found["ModelLatency"].complete
    assert found["ModelLatency"].statistics["Average"] is not None


def test_another_endpoint_is_no_neighbour(fake: FakeCloudWatch) -> None:
    fake.put(SAGEMAKER, "Invocations", {**HERE, "EndpointName": "f"}, (NOON - DAY, 1.0))
    fake.put("mine", "Queue", HERE, (NOON - DAY, 1.0))
    collect(fake, LATENCY)
    assert never_waited(fake)


@pytest.mark.parametrize("namespace", ["AWS/Lambda", "mine"])
def test_the_same_holds_of_every_namespace(fake: FakeCloudWatch, namespace: str) -> None:
    collect(fake, block(namespace, Depth=["Average"]))
    assert never_waited(fake)


def test_copies_of_a_component_are_neighbours_of_its_requests(fake: FakeCloudWatch) -> None:
    asked = {**block("/aws/sagemaker/InferenceComponents", CPUUtilization=["Average"]), "Dimensions": COMPONENT}
    fake.put(SAGEMAKER, "Invocations", {"InferenceComponentName": "c"}, (NOON - DAY, 1.0))
    collect(fake, asked)
    assert fake.clock.now >= USUAL


def test_who_may_not_ask_waits_as_before(fake: FakeCloudWatch) -> None:
    fake.fault = lambda *_: refusal("AccessDenied", status=403) if fake.clock.now < WAVE.end else None
    collect(fake, LATENCY)
    assert fake.clock.now >= USUAL


def test_who_asks_to_wait_waits(fake: FakeCloudWatch) -> None:
    _, warnings = collect(fake, {**LATENCY, "Wait": 200.0})
    assert WAVE.end + 200 <= fake.clock.now <= WAVE.end + 215
    assert not any("had nothing" in each for each in warnings)
