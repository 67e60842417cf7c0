"""A source of CloudWatch metrics over a wave, and a service that answers what a test prepares."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from inference_benchmarker.facts.server_metric import Interval
from server_capacity.metrics.cloudwatch.block import read_block
from tests.fake_cloudwatch import Clock, FakeCloudWatch, alone, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inference_benchmarker.embedded.running import RunningEndpoint
    from server_capacity.metrics.cloudwatch.block import CloudWatchBlock


NOON = 1_782_129_600  # 2026-06-22 12:00:00 UTC

WAVE = Interval(begin=NOON + 17, start=NOON + 17, end=NOON + 167, sent=1500)

HERE = {"EndpointName": "e", "VariantName": "AllTraffic"}

DIMENSIONS = [{"Name": name, "Value": value} for name, value in HERE.items()]

SAGEMAKER, INSTANCES = "AWS/SageMaker", "/aws/sagemaker/Endpoints"

BUSY = 312.0


def block(namespace: str = SAGEMAKER, /, **metrics: list[str] | int) -> dict[str, Any]:
    period, lag = metrics.pop("Period", 60), metrics.pop("Lag", 30)
    return {
        "stream": "cloudwatch",
        "Namespace": namespace,
        "Dimensions": DIMENSIONS,
        "Period": period,
        "Lag": lag,
        "Metrics": list(metrics),
        "Statistics": list(metrics.values()),
    }


@pytest.fixture
def clock() -> Clock:
    return Clock(WAVE.end)


@pytest.fixture
def fake(clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeCloudWatch]:
    fake = FakeCloudWatch(clock)
    alone(monkeypatch, tmp_path)
    with serving(fake) as address:
        for name, value in {
            "AWS_ACCESS_KEY_ID": "demo",
            "AWS_SECRET_ACCESS_KEY": "demo",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL_CLOUDWATCH": address,
        }.items():
            monkeypatch.setenv(name, value)
        yield fake


def requests(fake: FakeCloudWatch, number: int = 1500, dimensions: dict[str, str] = HERE) -> list[float]:
    """So many requests over the wave, and their latencies in µs: longer from the second minute on."""
    generator = random.Random(7)
    latencies = []
    for index in range(number):
        at = WAVE.start + (index + 0.5) * (WAVE.end - WAVE.start) / number
        latencies.append(generator.expovariate(1 / (50_000 if at < NOON + 60 else 150_000)))
        fake.put(SAGEMAKER, "Invocations", dimensions, (at, 1.0))
        fake.put(SAGEMAKER, "ModelLatency", dimensions, (at, latencies[-1]))
        fake.put(SAGEMAKER, "Invocation5XXErrors", dimensions, (at, float(index % 100 == 0)))
    return latencies


def gauge(fake: FakeCloudWatch, name: str = "CPUUtilization", instances: int = 1) -> None:
    for minute in range(-2, 6):
        busy = max(0.0, min(minute * 60 + 60, 167) - max(minute * 60, 17)) / 60
        for _ in range(instances):
            fake.put(INSTANCES, name, HERE, (NOON + minute * 60, BUSY * busy))


def small_wave(endpoint: RunningEndpoint, seconds: float, rate: float) -> Interval:
    """Requests from some threads, evenly spaced; the time of the real clock."""
    address = urlsplit(endpoint.url)
    begin, number = time.time(), int(seconds * rate)

    def send(index: int) -> None:
        time.sleep(max(0.0, begin + index / rate - time.time()))
        with closing(HTTPConnection(address.hostname or "", address.port, timeout=10)) as connection:
            connection.request("POST", "/invocations", b"x")
            connection.getresponse().read()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(send, range(number)))
    return Interval(begin, begin, time.time(), number)


def asked_of_the_endpoint() -> list[CloudWatchBlock]:
    blocks = [
        block(INSTANCES, CPUUtilization=["Average", "Maximum"], Period=1, Lag=1),
        block(ModelLatency=["p99", "SampleCount"], OverheadLatency=["Average"], Period=1, Lag=1),
    ]
    for each in blocks:
        each["Dimensions"] = [{"Name": "EndpointName", "Value": "demo"}, DIMENSIONS[1]]
    return list(map(read_block, blocks))
