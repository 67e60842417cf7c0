"""Minutes that were put back-dated, read by the rules of windows, weights and percentiles.

The same configuration is asked of moto's server, where moto can answer, and of the embedded endpoint.
"""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from inference_benchmarker.embedded.aws.boto3_settings import boto3_settings
from inference_benchmarker.embedded.aws.container_log import LogEvent
from inference_benchmarker.embedded.aws.logs import page
from inference_benchmarker.embedded.running import EndpointConfig, start
from inference_benchmarker.facts.server_metric import Interval
from server_capacity.metrics.cloudwatch import check_block, make_source, read_block
from tests.fake_cloudwatch import alone, cloudwatch_block
from tests.moto_server import moto_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from inference_benchmarker.facts.server_metric import ServerMetric

NAME = "back"
DIMENSIONS = [{"Name": "EndpointName", "Value": NAME}, {"Name": "VariantName", "Value": "AllTraffic"}]
SAGEMAKER, INSTANCES = "AWS/SageMaker", "/aws/sagemaker/Endpoints"
NOON = time.time() // 60 * 60 - 1200  # the past, so that nothing is waited for; called 12:00 below

# 100 requests a second from 12:00:17 to 12:02:47, and 100 of a warm-up before; latency in µs -> how many requests.
LATENCIES = {
    -1: {9_000: 100},
    0: {40: 2150, 60: 2150},
    1: {140: 3000, 160: 2940, 900: 60},
    2: {150: 4700},
}
FAILED = {1: 60}
# 312% while the wave lasts, which is 43, 60 and 47 s of the three minutes.
CPU = {-1: 0.0, 0: 223.6, 1: 312.0, 2: 244.4, 3: 0.0}
TOTAL_US = 4300 * 50 + 3000 * 140 + 2940 * 160 + 60 * 900 + 4700 * 150


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    """The server of moto, with an endpoint."""
    with moto_server() as url:
        create_endpoint(session().client("sagemaker", endpoint_url=url))
        yield url


@pytest.fixture(scope="module")
def embedded() -> Iterator[str]:
    """The embedded endpoint."""
    with start(EndpointConfig(service="none", publication_delay_s=0, endpoint_name=NAME)) as endpoint:
        yield endpoint.url


@pytest.fixture(scope="module", params=["moto", "embedded"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """A CloudWatch that has the minutes above."""
    url = request.getfixturevalue(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_DISABLE_REQUEST_COMPRESSION", "true")  # moto reads no compressed body
        put(session().client("cloudwatch", endpoint_url=url))
        yield url


def session() -> Any:
    return boto3.Session("demo", "demo", region_name="us-east-1")


def create_endpoint(client: Any) -> None:
    """The endpoint itself, for whoever asks what it runs on."""
    variant = {
        "VariantName": "AllTraffic",
        "ModelName": NAME,
        "InstanceType": "ml.m5.xlarge",
        "InitialInstanceCount": 1,
    }
    client.create_model(ModelName=NAME, ExecutionRoleArn="arn:aws:iam::123456789012:role/endpoint")
    client.create_endpoint_config(EndpointConfigName=NAME, ProductionVariants=[variant])
    client.create_endpoint(EndpointName=NAME, EndpointConfigName=NAME)


def put(client: Any) -> None:
    """The minutes, as SageMaker would have published them."""
    for minute, latencies in LATENCIES.items():
        asked = sum(latencies.values())
        failed = FAILED.get(minute, 0)
        counts = {
            "ModelLatency": latencies,
            "Invocations": {1: asked},
            "Invocation5XXErrors": {1: failed, 0: asked - failed} if failed else {0: asked},
        }
        client.put_metric_data(Namespace=SAGEMAKER, MetricData=[datum(*each, minute) for each in counts.items()])
    cpu = [datum("CPUUtilization", {busy: 1}, minute) for minute, busy in CPU.items()]
    client.put_metric_data(Namespace=INSTANCES, MetricData=cpu)


def datum(name: str, counts: dict[Any, int], minute: int) -> dict[str, Any]:
    return {
        "MetricName": name,
        "Dimensions": DIMENSIONS,
        "Timestamp": datetime.fromtimestamp(NOON + 60 * minute, UTC),
        "Values": [float(value) for value in counts],
        "Counts": [float(count) for count in counts.values()],
    }


@pytest.fixture
def ask(address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., dict[str, ServerMetric]]:
    """Ask for metrics over a window that is given in seconds after noon."""
    alone(monkeypatch, tmp_path)
    for name, value in boto3_settings(address).items():
        monkeypatch.setenv(name, value)

    def ask(begin: float, start: float, end: float, sent: int, **metrics: list[str]) -> dict[str, ServerMetric]:
        cpu = {"CPUUtilization": ["Average", "Minimum", "Maximum", "SampleCount"]}
        blocks = [cloudwatch_block(*each, endpoint=NAME) for each in ((INSTANCES, cpu), (SAGEMAKER, metrics))]
        assert [problem for each in blocks for problem in check_block(each, "block")] == []
        interval = Interval(NOON + begin, NOON + start, NOON + end, sent)
        return {row.name: row for row in make_source(list(map(read_block, blocks))).collect(interval, lambda _: None)}

    return ask


@pytest.mark.process
def test_a_wave_of_two_and_a_half_minutes(ask: Callable[..., dict[str, ServerMetric]]) -> None:
    found = ask(
        *(17, 17, 167, 15_000),
        ModelLatency=["Average", "Sum", "Minimum", "Maximum", "SampleCount"],
        Invocations=["Sum"],
        Invocation5XXErrors=["Sum", "Average"],
    )
    assert {name: row.statistics for name, row in found.items()} == {
        "CPUUtilization": {"Average": 312, "Minimum": 312, "Maximum": 312, "SampleCount": 1},
        "ModelLatency": {
            "Average": pytest.approx(TOTAL_US / 15_000),
            "Sum": TOTAL_US,
            "Minimum": 40,
            "Maximum": 900,
            "SampleCount": 15_000,
        },
        "Invocations": {"Sum": 15_000},
        "Invocation5XXErrors": {"Sum": 60, "Average": pytest.approx(60 / 15_000)},
    }
    assert [(row.complete, row.reason) for row in found.values()] == [(True, None)] * 4
    cpu = found["CPUUtilization"]
    assert [value for _, value in cpu.series] == [223.6, 312, 244.4]
    assert cpu.hardware is not None
    assert (cpu.hardware.instances, cpu.hardware.vcpus) == (1, 4)


# begin, start, end of the wave -> Invocations, mean latency, CPU, the whole minutes that CPU is of
WINDOWS: dict[str, tuple[tuple[float, float, float], int, float, float, tuple[int, int] | None]] = {
    "edges are left out of gauges": ((17, 17, 167), 15_000, TOTAL_US / 15_000, 312, (60, 120)),
    "a warm-up is invocations only": ((-30, 17, 167), 15_100, TOTAL_US / 15_000, 312, (60, 120)),
    "on the minute nothing is an edge": ((0, 0, 180), 15_000, TOTAL_US / 15_000, 260, (0, 180)),
    "one whole minute": ((60, 60, 120), 6_000, 157.4, 312, (60, 120)),
    "no whole minute: the maximum of those around": ((61, 61, 119), 6_000, 157.4, 312, None),
    "two edges and nothing between": ((17, 17, 100), 10_300, 1_159_400 / 10_300, 312, None),
    "five seconds": ((125, 125, 130), 4_700, 150, 244.4, None),
}


@pytest.mark.process
@pytest.mark.parametrize("case", WINDOWS)
def test_windows(ask: Callable[..., dict[str, ServerMetric]], case: str) -> None:
    window, invocations, latency, cpu, whole = WINDOWS[case]
    found = ask(*window, invocations, ModelLatency=["Average"], Invocations=["Sum"])
    gauge = found["CPUUtilization"]
    assert found["Invocations"].statistics == {"Sum": invocations}
    assert found["ModelLatency"].statistics == {"Average": pytest.approx(latency)}
    assert gauge.statistics["Average"] == pytest.approx(cpu)
    if whole is not None:
        assert (gauge.start, gauge.end) == (NOON + whole[0], NOON + whole[1])
    assert ("no whole bucket of 60 s lies inside" in (gauge.reason or "")) == (whole is None)


@pytest.mark.process
@pytest.mark.parametrize("address", ["embedded"], indirect=True)
def test_percentiles_are_of_the_whole_wave_and_shares_are_weighted(
    ask: Callable[..., dict[str, ServerMetric]],
) -> None:
    ordered = sorted(value for minute in (0, 1, 2) for value, n in LATENCIES[minute].items() for _ in range(n))
    names = {f"p{percent:g}": ordered[math.ceil(percent * 150) - 1] for percent in (10, 50, 90, 99, 99.9)}
    row = ask(17, 17, 167, 15_000, ModelLatency=[*names, "PR(:150)", "TC(:150)"])["ModelLatency"]
    assert row.statistics == {**names, "PR(:150)": 80, "TC(:150)": 12_000}
    assert (names["p10"], names["p99.9"]) == (40, 900), "averages over the minutes' own would be 110 and 370"


def test_the_log_is_paged_as_moto_pages_it(moto: str) -> None:
    """Order, both ends of the time range, streams, limits and tokens; of events that lie an hour back."""
    first = int(time.time() - 3600) * 1000
    events = [LogEvent(first + n, f"s{n % 3}", f"{n:02d}", f"line {n}") for n in range(20)]
    logs = session().client("logs", endpoint_url=moto)
    logs.create_log_group(logGroupName="g")
    for stream in ("s0", "s1", "s2"):
        mine = [{"timestamp": each.at_ms, "message": each.message} for each in events if each.stream == stream]
        logs.create_log_stream(logGroupName="g", logStreamName=stream)
        logs.put_log_events(logGroupName="g", logStreamName=stream, logEvents=mine)
    for asked in (
        {},
        {"startTime": first + 3},
        {"startTime": first + 3, "endTime": first + 7},
        {"endTime": first},
        {"startTime": first + 100},
        {"logStreamNames": ["s1"]},
        {"limit": 7},
        {"limit": 5, "startTime": first + 2, "logStreamNames": ["s0", "s2"]},
        {"limit": 20},
    ):
        theirs = pages_of(lambda **more: logs.filter_log_events(logGroupName="g", interleaved=True, **more), asked)
        ours = pages_of(lambda **more: page(events, more), asked)
        assert ours == theirs, asked


def pages_of(ask: Callable[..., dict[str, Any]], asked: dict[str, Any]) -> list[list[tuple[int, str, str]]]:
    """What stands on each page."""
    found, more = [], dict(asked)
    while True:
        answer = ask(**more)
        found.append([(each["timestamp"], each["logStreamName"], each["message"]) for each in answer["events"]])
        if "nextToken" not in answer:
            return found
        more["nextToken"] = answer["nextToken"]
