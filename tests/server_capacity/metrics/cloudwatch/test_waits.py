"""One rule for the wait: the warning before a wave, the announcement, the progress and the end agree."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from server_capacity.metrics.cloudwatch import source as source_module
from server_capacity.metrics.cloudwatch.block import read_block
from server_capacity.metrics.cloudwatch.fetch import make_client
from server_capacity.metrics.cloudwatch.source import CloudWatch
from tests.cloudwatch_source import HERE, INSTANCES, NOON, SAGEMAKER, WAVE, block, clock, fake, requests
from tests.fake_sagemaker import NOT_FOUND, SageMaker

if TYPE_CHECKING:
    from inference_benchmarker.facts.server_metric import ServerMetric
    from tests.fake_cloudwatch import FakeCloudWatch

__all__ = ["clock", "fake"]

CPU = block(INSTANCES, CPUUtilization=["Average"])
LATENCY = block(ModelLatency=["Average"])
SECONDS = block(INSTANCES, CPUUtilization=["Average"], Period=1, Lag=0)
TENS = block(INSTANCES, CPUUtilization=["Average"], Period=10, Lag=15)
A_POLL = 15


@pytest.fixture(autouse=True)
def _time_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine answers late."""
    monkeypatch.setattr(source_module, "LOOK_UP_S", 60.0)


def waited(
    fake: FakeCloudWatch, *blocks: dict[str, Any], exists: bool = False, sent: int = 20
) -> tuple[float, list[str], dict[str, ServerMetric]]:
    """The seconds after the wave, what was said before and during them, and the rows."""
    read = [read_block(each) for each in blocks]
    source = CloudWatch(read, make_client(1), fake.clock, fake.clock.sleep, SageMaker(None if exists else NOT_FOUND))
    fake.clock.now = WAVE.start
    said = source.warnings(None)
    fake.clock.now = WAVE.end
    rows = source.collect(replace(WAVE, sent=sent), said.append)
    return fake.clock.now - WAVE.end, said, {each.name: each for each in rows}


def seconds_in(texts: list[str]) -> list[float]:
    """Every time that a text gives for the wait."""
    found = (re.findall(r"(?:waits|waiting) (\d+) s|(\d+) s at most", text) for text in texts)
    return [float(one or other) for each in found for one, other in each]


@pytest.mark.parametrize("blocks", [(CPU,), (LATENCY,), (SECONDS,), (CPU, LATENCY), ({**CPU, "Wait": 300.0},)])
def test_an_endpoint_that_does_not_exist_is_not_waited_for(fake: FakeCloudWatch, blocks: tuple[dict[str, Any]]) -> None:
    seconds, said, rows = waited(fake, *blocks)
    assert seconds <= A_POLL
    assert seconds_in(said) == []
    assert all("there is no endpoint 'e'" in str(each.reason) for each in rows.values())


def test_of_an_endpoint_that_does_not_exist_nothing_but_what_is_published_is_waited_for(fake: FakeCloudWatch) -> None:
    """Its use of CPU has a period of a second, the requests that nobody counts one of a minute."""
    fake.resolution = 1
    fake.put(INSTANCES, "CPUUtilization", HERE, *((WAVE.start + second - 5, 50.0) for second in range(155)))
    seconds, said, rows = waited(fake, SECONDS)
    assert seconds <= 2
    assert rows["CPUUtilization"].statistics == {"Average": 50}
    assert rows["CPUUtilization"].instances == (), "nobody's instances"
    assert not any("requests counted" in text for text in said)
    assert max(seconds_in(said)) == 1, "nor is the period of what is not waited for announced"


def test_an_endpoint_of_another_account_has_its_metrics(fake: FakeCloudWatch) -> None:
    """SageMaker has none of that name here; CloudWatch, with which another account shares, has its values."""
    fake.delay = 75
    requests(fake, 1500)
    fake.put(SAGEMAKER, "Invocations", HERE, (NOON - 86_400, 1.0))
    _, _, rows = waited(fake, LATENCY, sent=1500)
    assert rows["ModelLatency"].statistics["Average"] is not None


@pytest.mark.parametrize(("asked", "usual"), [(TENS, 25), (SECONDS, 1), (CPU, 90)])
def test_who_never_published_is_waited_for_as_long_as_was_said(
    fake: FakeCloudWatch, asked: dict[str, Any], usual: float
) -> None:
    seconds, said, _ = waited(fake, asked, exists=True)
    assert usual <= seconds <= usual + 1
    assert seconds_in(said[:2]) == [usual, usual]
    assert max(seconds_in(said)) == usual, "nor more at most"


@pytest.mark.parametrize(("wait", "announced"), [(5.0, [5]), (200.0, [90, 200])])
def test_the_wait_that_was_asked_for_is_announced(fake: FakeCloudWatch, wait: float, announced: list[float]) -> None:
    seconds, said, _ = waited(fake, {**CPU, "Wait": wait}, exists=True)
    assert wait <= seconds <= wait + 1
    assert seconds_in(said[:1]) == announced
    assert max(seconds_in(said)) == wait
