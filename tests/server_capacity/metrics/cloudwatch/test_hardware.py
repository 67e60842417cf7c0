"""What the endpoints run on, as SageMaker says it: all its answers and refusals, and the rows that follow."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.data.decoded import decoded, encoded
from inference_benchmarker.embedded.running import EndpointConfig, start
from inference_benchmarker.facts.server_metric import Hardware, Interval, ServerMetric
from server_capacity.metrics.cloudwatch import check_block, make_source
from server_capacity.metrics.cloudwatch.block import read_block, variant_of
from server_capacity.metrics.cloudwatch.fetch import make_client
from server_capacity.metrics.cloudwatch.hardware import Described, describe, variants
from server_capacity.metrics.cloudwatch.source import CloudWatch
from tests.cloudwatch_source import (
    BUSY,
    HERE,
    INSTANCES,
    NOON,
    SAGEMAKER,
    WAVE,
    asked_of_the_endpoint,
    block,
    clock,
    fake,
    gauge,
    requests,
    small_wave,
)
from tests.fake_cloudwatch import alone
from tests.fake_cloudwatch import error as refusal
from tests.fake_sagemaker import ALL_TRAFFIC, CONFIGURED, DENIED, NOT_FOUND, UNREACHABLE, SageMaker, produced, refused
from tests.mentions import mentions

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fake_cloudwatch import FakeCloudWatch

__all__ = ["clock", "fake"]

E = ("e", "AllTraffic")
M5 = Hardware("ml.m5.xlarge", 2, 4, 0)


NOT_ALLOWED = (
    "endpoint 'e': these credentials may not call sagemaker:DescribeEndpoint (AccessDeniedException: no): its "
    "instances are not followed"
)
NO_CONFIG = refused("ValidationException", 'Could not find endpoint configuration "arn:...".')


@pytest.mark.parametrize(
    ("sagemaker", "given", "expected"),
    [
        (SageMaker(), None, Described(M5)),
        (SageMaker(), "ml.g5.xlarge", Described(M5)),
        (SageMaker(config=DENIED), "ml.g5.xlarge", Described(Hardware("ml.g5.xlarge", 2, 4, 1))),
        (SageMaker(config=NO_CONFIG), None, Described()),
        (SageMaker(config=produced()), "ml.g5.xlarge", Described(Hardware("ml.g5.xlarge", 2, 4, 1))),
        (SageMaker(DENIED), None, Described(denied=NOT_ALLOWED)),
        (SageMaker(DENIED), "ml.m5.xlarge", Described(Hardware("ml.m5.xlarge", None, 4, 0), denied=NOT_ALLOWED)),
        (SageMaker(UNREACHABLE), "ml.m5.xlarge", Described(Hardware("ml.m5.xlarge", None, 4, 0))),
        (SageMaker(config=UNREACHABLE), None, Described()),
        (SageMaker(refused("ValidationException", "1 validation error detected")), None, Described()),
        (SageMaker(NOT_FOUND), "ml.m5.xlarge", Described(absent="there is no endpoint 'e' in us-east-1")),
        (
            SageMaker(produced({"VariantName": "blue"}, {"VariantName": "green"})),
            None,
            Described(absent="endpoint 'e' has no variant 'AllTraffic', only blue, green"),
        ),
        (SageMaker(produced(EndpointStatus="Creating")), None, Described()),
        (SageMaker(produced(EndpointConfigName=None, EndpointStatus="Creating")), None, Described()),
        (SageMaker(produced({"VariantName": "b"}, ShadowProductionVariants=[ALL_TRAFFIC])), None, Described()),
        (
            SageMaker(produced({**ALL_TRAFFIC, "CurrentServerlessConfig": {"MemorySizeInMB": 2048}})),
            "ml.m5.xlarge",
            Described(),
        ),
        (
            SageMaker(config=produced({"VariantName": "AllTraffic", "ServerlessConfig": {"MaxConcurrency": 1}})),
            "ml.m5.xlarge",
            Described(),
        ),
        (SageMaker(produced({**ALL_TRAFFIC, "InstancePools": [{"InstanceType": "ml.g5.xlarge"}]})), None, Described()),
        (SageMaker(config=produced({**CONFIGURED, "InstancePools": [{}]})), None, Described()),
        (
            SageMaker(config=produced({**CONFIGURED, "InstanceType": "ml.c5.metal"})),
            None,
            Described(Hardware("ml.c5.metal", 2)),
        ),
        (None, "ml.m5.xlarge", Described(Hardware("ml.m5.xlarge", None, 4, 0))),
        (None, None, Described()),
    ],
)
def test_what_is_known_of_a_variant(sagemaker: SageMaker | None, given: str | None, expected: Described) -> None:
    assert describe(sagemaker, {E: given}) == {E: expected}


def test_an_endpoint_is_asked_for_once_and_an_unreachable_service_too() -> None:
    given = dict.fromkeys([("a", "x"), ("a", "y"), ("b", "x")])
    for endpoint, asked in ((None, ["a", "b"]), (DENIED, ["a", "b"]), (UNREACHABLE, ["a"])):
        sagemaker = SageMaker(endpoint)
        assert set(describe(sagemaker, given)) == set(given)
        assert sagemaker.asked == asked


@pytest.mark.parametrize(
    ("namespace", "more", "expected"),
    [
        (INSTANCES, {}, E),
        (SAGEMAKER, {}, E),
        (INSTANCES, {"InstanceId": "i-1"}, E),
        (INSTANCES, {"GpuId": "0"}, None),
        (INSTANCES, {"InferenceComponentName": "c"}, None),
        ("AWS/ECS", {}, None),
    ],
)
def test_whose_instances_report(namespace: str, more: dict[str, str], expected: tuple[str, str] | None) -> None:
    assert variant_of(namespace, tuple({**HERE, **more}.items())) == expected
    assert variant_of(namespace, (("EndpointName", "e"),)) is None


def test_the_instance_type_of_one_block_holds_for_its_variant() -> None:
    typed = {**block(INSTANCES, CPUUtilization=["Average"]), "InstanceType": "ml.m5.xlarge"}
    assert check_block(typed, "block") == []
    for blocks in ([typed, block(Invocations=["Sum"])], [block(Invocations=["Sum"]), typed]):
        assert variants(read_block(each) for each in blocks) == {E: "ml.m5.xlarge"}


def collect(
    fake: FakeCloudWatch, sagemaker: Any, *blocks: dict[str, Any], interval: Interval = WAVE, asked_before: bool = False
) -> dict[str, ServerMetric]:
    blocks = blocks or (block(INSTANCES, CPUUtilization=["Average"]), block(ModelLatency=["Average"]))
    read = [read_block(each) for each in blocks]
    source = CloudWatch(read, make_client(1), fake.clock, fake.clock.sleep, sagemaker)
    if asked_before:
        source.warnings(None)
    return {each.name: each for each in source.collect(interval, lambda *_: None)}


@pytest.mark.parametrize(
    ("described", "samples", "said"), [(3, 3, True), (2, 3, True), (1, 3, False), (1, 12, False), (2, 2, False)]
)
def test_scaling_is_what_the_description_bears_out(
    fake: FakeCloudWatch, described: int, samples: int, said: bool
) -> None:
    """Samples change where publishing does, too: then the endpoint's count is neither the first nor the last."""
    gauge(fake, instances=2)
    for minute in (2, 3):
        for _ in range(samples - 2):
            fake.put(INSTANCES, "CPUUtilization", HERE, (NOON + minute * 60, 10.0))
    sagemaker = SageMaker(produced({**ALL_TRAFFIC, "CurrentInstanceCount": described}))
    cpu = collect(fake, sagemaker, block(INSTANCES, CPUUtilization=["Average"]))["CPUUtilization"]
    assert [count for _, count in cpu.instances] == [2, 2, samples]
    text = f"the number of instances reporting changed during the window (2 -> {samples})"
    assert (text in (cpu.reason or "")) == said
    assert ("changed during the window" in (cpu.reason or "")) == said


def test_the_rows_of_a_variant_carry_its_hardware(fake: FakeCloudWatch) -> None:
    requests(fake)
    gauge(fake)
    fake.put("AWS/ECS", "CPUUtilization", HERE, (WAVE.start + 60, 1.0))
    found = collect(fake, SageMaker())
    assert {name: each.hardware for name, each in found.items()} == dict.fromkeys(found, M5)
    assert found["CPUUtilization"].statistics == {"Average": BUSY}
    assert decoded(encoded(found["CPUUtilization"]), ServerMetric) == found["CPUUtilization"]
    assert collect(fake, SageMaker(), block("AWS/ECS", CPUUtilization=["Average"]))["CPUUtilization"].hardware is None


@pytest.mark.parametrize("sagemaker", [SageMaker(DENIED), SageMaker(UNREACHABLE), None])
def test_without_sagemaker_the_metrics_are_the_same(fake: FakeCloudWatch, sagemaker: SageMaker | None) -> None:
    requests(fake)
    gauge(fake)
    found = collect(fake, sagemaker)
    assert found["CPUUtilization"].statistics == {"Average": BUSY}
    assert [(each.hardware, each.reason, each.complete) for each in found.values()] == [(None, None, True)] * 3


def test_an_endpoint_that_is_gone_since_the_wave_is_waited_for_its_lag_only(fake: FakeCloudWatch) -> None:
    requests(fake, dimensions={**HERE, "EndpointName": "other"})
    found = collect(fake, SageMaker(NOT_FOUND), block(ModelLatency=["Average"], ModelLoadingTime=["Average"]))
    assert WAVE.end + 30 <= fake.clock.now <= WAVE.end + 45
    assert found["ModelLatency"].reason == (
        "there is no endpoint 'e' in us-east-1;"
        " CloudWatch has ModelLatency under EndpointName=other, VariantName=AllTraffic"
    )
    assert found["ModelLoadingTime"].reason == "there is no endpoint 'e' in us-east-1"
    assert not any(each.complete for each in found.values())


def test_a_variant_that_does_not_exist_names_those_that_do(fake: FakeCloudWatch) -> None:
    found = collect(fake, SageMaker(produced({"VariantName": "blue"})), block(INSTANCES, CPUUtilization=["Average"]))
    assert WAVE.end + 30 <= fake.clock.now <= WAVE.end + 45
    assert found["CPUUtilization"].reason == "endpoint 'e' has no variant 'AllTraffic', only blue"


def test_an_endpoint_deleted_since_the_wave_has_its_metrics(fake: FakeCloudWatch) -> None:
    fake.delay = 75
    requests(fake)
    found = collect(fake, SageMaker(NOT_FOUND), block(ModelLatency=["SampleCount"], FirstChunkLatency=["Average"]))
    assert (found["ModelLatency"].statistics, found["ModelLatency"].reason) == ({"SampleCount": 1500}, None)
    assert "there is no endpoint" not in (found["FirstChunkLatency"].reason or "")


@pytest.mark.parametrize(("asked_before", "waits"), [(True, False), (False, True)])
def test_an_endpoint_that_never_was_counts_no_requests(fake: FakeCloudWatch, asked_before: bool, waits: bool) -> None:
    """Somebody publishes its use: nobody waits until what nobody counts is counted."""
    gauge(fake)
    blocks = block(INSTANCES, CPUUtilization=["Average"]), block(ModelLatency=["Average"])
    found = collect(fake, SageMaker(NOT_FOUND), *blocks, asked_before=asked_before)
    assert (fake.clock.now > WAVE.end + 30 + 60 + 15) == waits
    assert found["CPUUtilization"].statistics == {"Average": BUSY}


@pytest.mark.parametrize("wait", [20.0, 400.0])
def test_metrics_are_waited_for_as_long_as_was_asked(fake: FakeCloudWatch, wait: float) -> None:
    late = {**block(ModelLatency=["Average"]), "Wait": wait}
    found = collect(fake, None, late)
    assert WAVE.end + wait <= fake.clock.now <= WAVE.end + wait + 15
    assert not found["ModelLatency"].complete


def test_a_failing_cloudwatch_is_no_sign_of_an_absent_endpoint(fake: FakeCloudWatch) -> None:
    requests(fake)
    fake.fault = lambda *_: refusal("Throttling") if fake.clock.now < WAVE.end + 120 else None
    found = collect(fake, SageMaker(NOT_FOUND), block(ModelLatency=["SampleCount"]))
    assert (found["ModelLatency"].statistics, found["ModelLatency"].reason) == ({"SampleCount": 1500}, None)


def test_ctrl_c_while_sagemaker_is_asked(fake: FakeCloudWatch) -> None:
    class Stopped:
        def describe_endpoint(self, **_: str) -> dict[str, Any]:
            raise KeyboardInterrupt

    found = collect(fake, Stopped(), block(ModelLatency=["Average"]))
    assert mentions(found["ModelLatency"].reason, "interrupted")


def collect_from(
    config: EndpointConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **environment: str
) -> list[ServerMetric]:
    """The metrics of a short wave, by boto3 and with the real clock."""
    alone(monkeypatch, tmp_path)
    with start(config) as endpoint:
        for name, value in {**endpoint.aws_environment, **environment}.items():
            monkeypatch.setenv(name, value)
        return make_source(asked_of_the_endpoint()).collect(small_wave(endpoint, 2.2, 20), lambda *_: None)


@pytest.mark.process
def test_the_embedded_endpoint_tells_its_hardware(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = EndpointConfig(publish_interval_s=1, instances=2, instance_type="ml.g5.12xlarge")
    found = collect_from(config, monkeypatch, tmp_path)
    assert {each.hardware for each in found} == {Hardware("ml.g5.12xlarge", 2, 48, 4)}
    assert [each.reason for each in found] == [None] * len(found)


@pytest.mark.process
def test_a_control_plane_out_of_reach_costs_nothing_but_the_hardware(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        config = EndpointConfig(publish_interval_s=1)
        found = collect_from(config, monkeypatch, tmp_path, AWS_ENDPOINT_URL_SAGEMAKER=address)
    assert {each.hardware for each in found} == {None}
    assert [each.reason for each in found] == [None] * len(found)


@pytest.mark.process
def test_the_embedded_endpoint_refuses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = collect_from(EndpointConfig(access_denied=True), monkeypatch, tmp_path)
    assert {each.hardware for each in found} == {None}
    assert all("allow cloudwatch:GetMetricData" in (each.reason or "") for each in found)


@pytest.mark.slow  # the suite has the same for the command
@pytest.mark.process
def test_the_embedded_endpoint_has_another_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = collect_from(EndpointConfig(publish_interval_s=1, endpoint_name="other"), monkeypatch, tmp_path)
    assert {each.reason.split(";")[0] for each in found if each.reason} == {"there is no endpoint 'demo' in us-east-1"}
    assert {each.hardware for each in found} == {None}


def test_an_address_that_is_none_makes_no_client(fake: FakeCloudWatch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER", "here")
    assert isinstance(make_source([read_block(block(ModelLatency=["Average"]))]), CloudWatch)
