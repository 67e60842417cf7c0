from __future__ import annotations

import email.utils
import math
import socket
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.data.decoded import decoded, encoded
from inference_benchmarker.embedded.running import EndpointConfig, start
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.server_metric import Interval, ServerMetric
from server_capacity.metrics.aws_failures import first_line
from server_capacity.metrics.cloudwatch import check_block, hardware, make_source
from server_capacity.metrics.cloudwatch.block import read_block
from server_capacity.metrics.cloudwatch.fetch import HOPELESS, MOST_PAGES, fetch, make_client
from server_capacity.metrics.cloudwatch.queries import wanted_of
from server_capacity.metrics.cloudwatch.source import SECOND_LOOK_S, CloudWatch, poll_interval
from server_capacity.metrics.cloudwatch.waits import wait_limit
from tests.cloudwatch_source import (
    BUSY,
    DIMENSIONS,
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
from tests.fake_cloudwatch import FakeCloudWatch, alone, error
from tests.mentions import mentions

if TYPE_CHECKING:
    from pathlib import Path


__all__ = ["clock", "fake"]  # fixtures


def collect(
    fake: FakeCloudWatch,
    *blocks: dict[str, Any],
    interval: Interval = WAVE,
    attempts: int = 1,
    said: list[str] | None = None,
) -> dict[str, ServerMetric]:
    assert [problem for each in blocks for problem in check_block(each, "block")] == []
    source = CloudWatch([read_block(each) for each in blocks], make_client(attempts), fake.clock, fake.clock.sleep)
    source.begin()
    found = source.collect(interval, (said if said is not None else []).append)
    assert [decoded(encoded(each), ServerMetric) for each in found] == found
    return {each.name: each for each in found}


def test_a_wave_of_two_and_a_half_minutes(fake: FakeCloudWatch) -> None:
    fake.delay = 75
    latencies = requests(fake)
    gauge(fake)
    said: list[str] = []
    found = collect(
        fake,
        block(INSTANCES, CPUUtilization=["Average", "Maximum", "Minimum"]),
        block(ModelLatency=["Average", "p50", "p99", "Maximum", "SampleCount"], Invocation5XXErrors=["Sum", "Average"]),
        said=said,
    )
    assert said[0] == (
        "⏳ Fetching server metrics: cloudwatch, waiting 90 s more (they usually arrive 90 s after the wave)..."
    )
    cpu = found["CPUUtilization"]
    assert cpu.statistics == {"Average": BUSY, "Maximum": BUSY, "Minimum": BUSY}
    assert (cpu.start, cpu.end, cpu.unit, cpu.reason, cpu.complete) == (NOON + 60, NOON + 120, "Percent", None, True)
    assert [round(value) for _, value in cpu.series] == [224, 312, 244]
    assert [count for _, count in cpu.instances] == [1, 1, 1]
    latency = found["ModelLatency"]
    ordered = sorted(latencies)
    assert latency.statistics == {
        "Average": pytest.approx(math.fsum(latencies) / 1500),
        "p50": ordered[749],
        "p99": ordered[1484],
        "Maximum": ordered[-1],
        "SampleCount": 1500,
    }
    assert (latency.unit, latency.complete, latency.reason) == ("Microseconds", True, None)
    assert found["Invocation5XXErrors"].statistics == {"Sum": 15, "Average": pytest.approx(0.01)}
    counter = found["Invocations"]
    assert (counter.statistics, counter.asked, counter.complete) == ({"Sum": 1500}, False, True)
    assert latency.asked
    assert NOON + 180 + 75 <= fake.clock.now <= NOON + 180 + 75 + 31  # as soon as it is there, and unchanged once
    assert set(fake.clock.slept) == {15}


def test_a_percentile_is_of_one_bucket_over_the_wave(fake: FakeCloudWatch) -> None:
    latencies = requests(fake)
    found = collect(fake, block(ModelLatency=["p99"]))["ModelLatency"]
    assert found.statistics == {"p99": sorted(latencies)[1484]}
    asked = [query["MetricStat"] for query in fake.requests[0]["MetricDataQueries"]]
    assert [(each["Stat"], each["Period"]) for each in asked] == [("p99", 60), ("p99", 180), ("Sum", 60)]
    assert len(found.series) == 3
    mean_of_buckets = sum(value for _, value in found.series) / 3
    assert found.statistics["p99"] != pytest.approx(mean_of_buckets, rel=0.05)


def test_a_percentile_s_bucket_may_hold_what_was_before_the_wave(fake: FakeCloudWatch) -> None:
    """Of whole minutes: a slow wave ten seconds earlier is in the percentile, not in the mean."""
    fake.resolution = 10
    wave = Interval(begin=NOON + 25, start=NOON + 25, end=NOON + 55, sent=300)
    for number, first, latency in ((200, 0, 500_000), (300, 25, 20_000)):
        for index in range(number):
            fake.put(SAGEMAKER, "ModelLatency", HERE, (NOON + first + index / 10.01, latency))
            fake.put(SAGEMAKER, "Invocations", HERE, (NOON + first + index / 10.01, 1))
    asked = block(ModelLatency=["Average", "p50", "p99"], Period=10, Lag=0)
    latency_of = collect(fake, asked, interval=wave)["ModelLatency"]
    assert latency_of.statistics == {"Average": 20_000, "p50": 20_000, "p99": 500_000}
    assert mentions(latency_of.reason, "p50", "p99", "60 s", "CloudWatch", "200", "500 requests")
    alone_in_it = collect(fake, asked, interval=replace(wave, begin=NOON, start=NOON, sent=500))["ModelLatency"]
    assert alone_in_it.reason is None
    assert (latency_of.bounds, alone_in_it.bounds) == ({"p50": "about", "p99": "about"}, {})


def served(fake: FakeCloudWatch, number: int, first: float, rate: float, latency: float) -> None:
    """That many requests from an instant on, at a rate, each of that ModelLatency (us)."""
    for index in range(number):
        fake.put(SAGEMAKER, "ModelLatency", HERE, (NOON + first + index / rate, latency))
        fake.put(SAGEMAKER, "Invocations", HERE, (NOON + first + index / rate, 1))


@pytest.mark.parametrize(
    ("others", "near"), [(1, ["p99.9", "p99.99", "p100"]), (5, ["tm99", "p50", "p99", "p99.9", "p99.99", "p100"])]
)
def test_a_percentile_is_the_window_s_while_the_others_in_its_bucket_cannot_be_it(
    fake: FakeCloudWatch, others: int, near: list[str]
) -> None:
    """One cold start in a thousand is the p99.9, and moves no p99."""
    fake.resolution = 10
    wave = Interval(begin=NOON + 25, start=NOON + 25, end=NOON + 55, sent=999)
    for number, first, latency in ((others, 5, 500_000), (999, 25, 20_000)):
        served(fake, number, first, 34, latency)
    asked = block(ModelLatency=["tm99", "p50", "p99", "p99.9", "p99.99", "p100"], Period=10, Lag=0)
    found = collect(fake, asked, interval=wave)["ModelLatency"]
    assert found.bounds == dict.fromkeys(near, "about")
    assert mentions(found.reason, f"{others} of its {999 + others:,} requests")


@pytest.mark.parametrize(("others", "side"), [(0, "at_most"), (200, "about")])
def test_the_highest_of_several_buckets_bounds_a_percentile_unless_others_are_in_them(
    fake: FakeCloudWatch, others: int, side: str
) -> None:
    """Fast others lower each bucket's percentile below the window's own."""
    fake.resolution = 10
    wave = Interval(begin=NOON + 25, start=NOON + 25, end=NOON + 55, sent=300)
    for number, first, latency in ((others, 0, 1_000), (300, 25, 20_000)):
        served(fake, number, first, 10.01, latency)

    def in_two(answer: dict[str, Any]) -> None:
        """The one bucket as two: of half of the samples each, where it counts them."""
        for result in answer["MetricDataResults"]:
            if result["Id"].endswith(("w0", "n")) and len(result["Values"]) == 1:
                (at,), (value,) = result["Timestamps"], result["Values"]
                each = value / 2 if result["Id"].endswith("n") else value
                result.update(Timestamps=[at, at + 30], Values=[each, each])

    fake.edit = in_two
    found = collect(fake, block(ModelLatency=["p50"], Period=10, Lag=0), interval=wave)["ModelLatency"]
    assert found.bounds == {"p50": side}
    assert "the highest of 2 buckets" in str(found.reason)
    assert ("200 of its 500 requests" in str(found.reason)) == (others > 0)


def test_ten_second_buckets(fake: FakeCloudWatch) -> None:
    fake.resolution = 10
    for second in range(0, 300, 10):
        fake.put(INSTANCES, "CPUUtilization", HERE, (NOON + second, 300.0 if 20 <= second < 160 else 100.0))
    cpu = collect(fake, block(INSTANCES, CPUUtilization=["Average"], Period=10, Lag=0))["CPUUtilization"]
    assert (cpu.statistics, cpu.start, cpu.end) == ({"Average": 300}, NOON + 20, NOON + 160)
    assert len(cpu.series) == 16  # the call ends at the full minute, the series with the wave


def test_minute_metrics_asked_with_a_shorter_period(fake: FakeCloudWatch) -> None:
    gauge(fake)
    cpu = collect(fake, block(INSTANCES, CPUUtilization=["Maximum"], Period=10, Lag=0))["CPUUtilization"]
    assert cpu.statistics == {"Maximum": BUSY}
    assert "CPUUtilization came once a minute: use a Period of 60" in (cpu.reason or "")
    assert "not all values" not in (cpu.reason or "")


def test_a_wave_shorter_than_a_period_shows_the_maximum_and_says_so(fake: FakeCloudWatch) -> None:
    requests(fake, 40)
    gauge(fake)
    short = Interval(NOON + 61, NOON + 61, NOON + 66, 4)
    fake.clock.now = short.end
    cpu = collect(fake, block(INSTANCES, CPUUtilization=["Average", "Maximum", "Minimum"]), interval=short)
    found = cpu["CPUUtilization"]
    assert found.statistics == {"Average": BUSY, "Maximum": BUSY, "Minimum": None}
    assert mentions(found.reason or "", "60 s", "5.0 s")
    assert "take 180 s or more, or a shorter Period" in (found.reason or "")
    assert found.bounds == {"Average": "about", "Maximum": "about"}


def test_gauges_end_with_the_load_and_counts_with_the_last_answer(fake: FakeCloudWatch) -> None:
    requests(fake)
    gauge(fake)
    idle = Interval(WAVE.begin, WAVE.start, NOON + 600, WAVE.sent, loaded=WAVE.end)
    fake.put(INSTANCES, "CPUUtilization", HERE, *((NOON + 60 * minute, 1.0) for minute in range(3, 10)))
    found = collect(fake, block(INSTANCES, CPUUtilization=["Average"]), interval=idle)["CPUUtilization"]
    assert found.statistics == {"Average": BUSY}
    counts = collect(fake, block(Invocations=["Sum"]), interval=idle)["Invocations"]
    assert counts.end == NOON + 600


@pytest.mark.parametrize(("minutes", "near"), [((1, 2, 3, 4), False), ((1, 2, 4), False), ((1, 4), True), ((4,), True)])
def test_a_gauge_of_few_of_the_windows_buckets_is_not_the_windows(
    fake: FakeCloudWatch, minutes: tuple[int, ...], near: bool
) -> None:
    longer = Interval(NOON + 50, NOON + 50, NOON + 310, 0)
    fake.put(INSTANCES, "CPUUtilization", HERE, *((NOON + 60 * minute, BUSY) for minute in minutes))
    fake.clock.now = longer.end + 3_600
    cpu = collect(fake, block(INSTANCES, CPUUtilization=["Average"]), interval=longer)["CPUUtilization"]
    assert cpu.statistics == {"Average": BUSY}
    assert cpu.bounds == ({"Average": "about"} if near else {})
    assert (f"values came of {len(minutes)} of the 4 buckets" in (cpu.reason or "")) is near


def test_sums_and_percentiles_of_a_gauge(fake: FakeCloudWatch) -> None:
    longer = Interval(WAVE.begin, WAVE.start, NOON + 230, 0)
    for minute, busy in ((0, 10.0), (1, 300.0), (2, 320.0), (3, 20.0)):
        fake.put(INSTANCES, "CPUUtilization", HERE, (NOON + 60 * minute, busy), (NOON + 60 * minute, busy))
    fake.clock.now = longer.end
    found = collect(fake, block(INSTANCES, CPUUtilization=["Sum", "p50", "SampleCount"]), interval=longer)
    cpu = found["CPUUtilization"]
    assert cpu.statistics == {"Sum": 620, "p50": 300, "SampleCount": 4}  # the fleet's mean; of 12:01 to 12:03
    assert cpu.reason == "Sum is the mean of 2 buckets' sums"
    short = collect(fake, block(INSTANCES, CPUUtilization=["p50"]), interval=Interval(NOON + 5, NOON + 5, NOON + 50, 0))
    assert short["CPUUtilization"].statistics == {"p50": 10}
    assert "idle time too" in (short["CPUUtilization"].reason or "")
    assert (cpu.bounds, short["CPUUtilization"].bounds) == ({}, {"p50": "about"})


def test_what_came_is_kept_when_a_later_call_fails(fake: FakeCloudWatch) -> None:
    requests(fake, 1400)
    fake.fault = lambda *_: error("ExpiredToken", status=403) if fake.clock.now > NOON + 300 else None
    metric = collect(fake, block(ModelLatency=["SampleCount"]))["ModelLatency"]
    assert metric.statistics == {"SampleCount": 1400}
    assert "the AWS credentials have expired" in (metric.reason or "")
    assert not metric.complete


def test_requests_to_one_instance_do_not_count_those_of_the_wave(fake: FakeCloudWatch) -> None:
    requests(fake)
    one = {**HERE, "InstanceId": "i-1"}
    requests(fake, 700, one)
    enhanced = block(Invocations=["Sum"])
    enhanced["Dimensions"] = [{"Name": name, "Value": value} for name, value in one.items()]
    source = CloudWatch([read_block(enhanced)], make_client(1), fake.clock, fake.clock.sleep)
    found = source.collect(WAVE, lambda *_: None)
    assert [(each.statistics["Sum"], each.asked, each.complete) for each in found] == [
        (700, True, True),
        (1500, False, True),
    ]


def test_warm_up_counts_as_requests_but_not_as_latency(fake: FakeCloudWatch) -> None:
    requests(fake)
    fake.put(SAGEMAKER, "Invocations", HERE, (NOON - 100, 1.0))
    fake.put(SAGEMAKER, "ModelLatency", HERE, (NOON - 100, 9e9))
    warmed = Interval(NOON - 110, WAVE.start, WAVE.end, 1501)
    found = collect(fake, block(ModelLatency=["Maximum"], Invocations=["Sum"]), interval=warmed)
    assert found["Invocations"].statistics == {"Sum": 1501}
    assert (found["ModelLatency"].statistics["Maximum"] or 0) < 9e9


def test_pages_repeat_ids_and_are_merged(fake: FakeCloudWatch) -> None:
    latencies = requests(fake)
    gauge(fake)
    fake.page = 2
    found = collect(
        fake, block(INSTANCES, CPUUtilization=["Average"]), block(ModelLatency=["Average", "p99", "SampleCount"])
    )
    assert found["ModelLatency"].statistics["p99"] == sorted(latencies)[1484]
    assert found["ModelLatency"].statistics["SampleCount"] == 1500
    assert found["ModelLatency"].reason is None
    assert found["CPUUtilization"].statistics["Average"] == BUSY


def test_more_than_500_queries(fake: FakeCloudWatch) -> None:
    for number in range(600):
        fake.put("Ours", f"Requests{number}", HERE, *((NOON + minute * 60, number) for minute in range(3)))
    found = collect(fake, block("Ours", **{f"Requests{number}": ["Sum"] for number in range(600)}))
    assert [metric.statistics["Sum"] for metric in found.values()] == [3 * number for number in range(600)]
    assert {len(request["MetricDataQueries"]) for request in fake.requests} == {500, 100}
    assert [query["Id"] for query in fake.queries()][:2] == ["m0s0", "m1s0"]


def test_one_refused_query_does_not_cost_the_others(fake: FakeCloudWatch) -> None:
    requests(fake)

    def refuse(operation: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        stats = [query["MetricStat"]["Stat"] for query in request.get("MetricDataQueries", [])]
        return error("ValidationError", "no such statistic") if "IQM" in stats else None

    fake.fault = refuse
    found = collect(fake, block(ModelLatency=["IQM"], Invocations=["Sum"]))
    assert found["Invocations"].statistics == {"Sum": 1500}
    assert found["Invocations"].reason is None
    assert found["ModelLatency"].statistics == {"IQM": None}
    assert "CloudWatch refused the query (ValidationError: no such statistic)" in (found["ModelLatency"].reason or "")


def is_percentile(query: dict[str, Any]) -> bool:
    return str(query["MetricStat"]["Stat"]).startswith("p")


def test_percentiles_that_a_service_fails_on_cost_nothing_else(fake: FakeCloudWatch) -> None:
    requests(fake)
    gauge(fake)

    def fail(operation: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        asked = request.get("MetricDataQueries", [])
        return error("InternalFailure", "float(None)", 500) if any(map(is_percentile, asked)) else None

    fake.fault = fail
    blocks = [
        block(ModelLatency=["Average", "p50", "p99"], Invocations=["Sum"], Invocation5XXErrors=["Sum"]),
        block(INSTANCES, CPUUtilization=["Average", "p99"]),
    ]
    found = collect(fake, *blocks, attempts=1)
    assert found["Invocations"].statistics == {"Sum": 1500}
    assert (found["Invocations"].reason, found["Invocation5XXErrors"].reason) == (None, None)
    latency, cpu = found["ModelLatency"], found["CPUUtilization"]
    assert [name for name, value in latency.statistics.items() if value is None] == ["p50", "p99"]
    assert mentions(str(latency.reason), "p50", "p99", "CloudWatch", "HTTP", "500", "InternalFailure")
    assert cpu.statistics["Average"] is not None
    assert mentions(str(cpu.reason), "p99", "CloudWatch", "HTTP", "500")
    assert len(fake.clock.slept) < 5, "what fails again and again is not waited for"


def test_a_service_that_fails_on_everything_is_not_asked_for_each(fake: FakeCloudWatch) -> None:
    fake.fault = lambda *_: error("InternalFailure", "down", 500)
    client = make_client(attempts=1)
    many = block(**{f"Metric{number}": ["Sum"] for number in range(300)})
    queries = [query for wanted in wanted_of([read_block(many)], WAVE) for query in wanted.queries()]
    answers = fetch(client, queries).answers
    assert len(fake.requests) <= HOPELESS + math.ceil(math.log2(len(queries))) + 1
    assert all(answer.failure is not None and "HTTP 500" in answer.failure.text for answer in answers.values())


class Endless:
    """A service that names another page after each."""

    def __init__(self) -> None:
        self.asked = 0

    def get_metric_data(self, **_: Any) -> dict[str, Any]:
        self.asked += 1
        return {"MetricDataResults": [], "NextToken": str(self.asked), "ResponseMetadata": {}}


def test_pages_without_end_are_given_up() -> None:
    service = Endless()
    (wanted,) = wanted_of([read_block(block(Invocations=["Sum"]))], WAVE)
    fetch(service, list(wanted.queries())[:1])
    assert service.asked == MOST_PAGES + 1


def test_a_secret_is_hidden_before_a_text_is_cut() -> None:
    assert "hunter" not in first_line("y" * 276 + " https://bob:hunter2hunter2hunter2@host/")


def test_one_bad_query_among_many_is_found(fake: FakeCloudWatch) -> None:
    def fail(operation: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        names = {query["MetricStat"]["Metric"]["MetricName"] for query in request.get("MetricDataQueries", [])}
        return error("InternalFailure", "down", 500) if "Metric0" in names else None

    fake.fault = fail
    many = block(**{f"Metric{number}": ["Sum"] for number in range(300)})
    queries = [query for wanted in wanted_of([read_block(many)], WAVE) for query in wanted.queries()]
    answers = fetch(make_client(attempts=1), queries).answers
    failed = {query.name for query in queries if answers[query.id].failure is not None}
    assert failed == {"Metric0"}


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("AccessDenied", 403, "allow cloudwatch:GetMetricData (AccessDenied: said so)"),
        ("ExpiredToken", 403, "the AWS credentials have expired: renew them"),
        ("InvalidClientTokenId", 403, "AWS does not accept these credentials"),
        ("SignatureDoesNotMatch", 403, "AWS does not accept these credentials"),
        ("InvalidParameterCombination", 400, "CloudWatch refused the query (InvalidParameterCombination"),
    ],
)
def test_a_refusal_ends_the_waiting_at_once(fake: FakeCloudWatch, code: str, status: int, expected: str) -> None:
    fake.fault = lambda *_: error(code, status=status)
    metric = collect(fake, block(ModelLatency=["Average", "p99"]))["ModelLatency"]
    assert metric.statistics == {"Average": None, "p99": None}
    assert expected in (metric.reason or "")
    assert not metric.complete
    assert fake.clock.slept == []


def test_throttling_is_retried_then_waited_out(fake: FakeCloudWatch) -> None:
    requests(fake)
    calls = 0

    def throttle(operation: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        nonlocal calls
        calls += 1
        return error("Throttling", "Rate exceeded") if calls % 2 else None

    fake.fault = throttle
    metric = collect(fake, block(ModelLatency=["SampleCount"]), attempts=3)["ModelLatency"]
    assert (metric.statistics, metric.reason) == ({"SampleCount": 1500}, None)


def test_throttling_without_end_is_a_reason(fake: FakeCloudWatch) -> None:
    fake.fault = lambda *_: error("Throttling", "Rate exceeded")
    metric = collect(fake, block(ModelLatency=["Average"], Lag=0))["ModelLatency"]
    assert "CloudWatch throttled the queries, also at attempt 1 (Throttling: Rate exceeded)" in (metric.reason or "")
    assert fake.clock.now == WAVE.end + wait_limit(60)


def test_what_any_call_would_meet_is_met_once_a_poll(fake: FakeCloudWatch) -> None:
    asked = block(ModelLatency=["p99"], Lag=0)
    warmed = Interval(WAVE.begin - 120, WAVE.start, WAVE.end, WAVE.sent)  # the counter's window is another
    fake.fault = lambda *_: error("Throttling", "Rate exceeded")
    found = collect(fake, asked, interval=warmed)
    assert all("throttled the queries" in (each.reason or "") for each in found.values())
    assert len(fake.requests) == len(fake.clock.slept) + 1
    requests(fake)
    fake.fault = lambda *_: None
    fake.requests.clear()
    collect(fake, asked, interval=warmed)
    assert len({request["StartTime"] for request in fake.requests}) == 2


@pytest.mark.parametrize(
    ("status", "expected", "waits"),
    [
        ("PartialData", "CloudWatch returned only part of the data", True),
        ("InternalError", "CloudWatch had an internal error", True),
        ("Forbidden", "CloudWatch forbids reading this metric (another account or region?) (because)", False),
    ],
)
def test_a_status_of_one_metric_is_its_own(fake: FakeCloudWatch, status: str, expected: str, waits: bool) -> None:
    requests(fake)

    def spoil(answer: dict[str, Any]) -> None:
        for result in answer["MetricDataResults"]:
            if result["Id"] == "m0s0":
                result |= {"StatusCode": status, "Messages": [{"Code": "X", "Value": "because"}]}

    fake.edit = spoil
    found = collect(fake, block(ModelLatency=["Maximum"], Invocations=["Sum"]))
    assert expected in (found["ModelLatency"].reason or "")
    assert not found["ModelLatency"].complete
    assert (found["Invocations"].reason, found["Invocations"].complete) == (None, True)
    assert (fake.clock.now == WAVE.end + 30 + wait_limit(60)) == waits


def test_a_passing_fault_leaves_no_trace(fake: FakeCloudWatch) -> None:
    requests(fake)

    def spoil(answer: dict[str, Any]) -> None:
        if fake.clock.now < NOON + 200:
            answer["MetricDataResults"][0] |= {"StatusCode": "InternalError", "Timestamps": [], "Values": []}

    fake.edit = spoil
    metric = collect(fake, block(ModelLatency=["SampleCount"]))["ModelLatency"]
    assert (metric.statistics, metric.reason, metric.complete) == ({"SampleCount": 1500}, None, True)


def test_what_cloudwatch_remarks_and_leaves_out_is_said(fake: FakeCloudWatch) -> None:
    requests(fake)

    def limit(answer: dict[str, Any]) -> None:
        answer["Messages"] = [{"Code": "Limit", "Value": "Maximum number of allowed metrics exceeded"}]
        answer["MetricDataResults"] = [each for each in answer["MetricDataResults"] if each["Id"] != "m1s0"]

    fake.edit = limit
    found = collect(fake, block(Invocations=["Sum"], ModelLatency=["Maximum"]))
    assert found["Invocations"].statistics == {"Sum": 1500}
    assert "CloudWatch remarks: Maximum number of allowed" in (found["Invocations"].reason or "")
    assert "CloudWatch left this query out (Maximum number" in (found["ModelLatency"].reason or "")


def test_no_connection(fake: FakeCloudWatch, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH", address)
        metric = collect(fake, block(ModelLatency=["Average"]))["ModelLatency"]
    assert f"no connection to {address}: check network, proxy and region us-east-1" in (metric.reason or "")
    assert fake.clock.slept == []


@pytest.mark.parametrize(
    "answer",
    [
        [],
        "sign in",
        {},
        {"Messages": []},
        {"MetricDataResults": ["x"]},
        {"MetricDataResults": [{"Id": "m0s0", "Timestamps": ["abc"], "Values": [1]}]},
        {"MetricDataResults": [{"Id": "m0s0", "Timestamps": [NOON], "Values": [None]}]},
        {"MetricDataResults": [{"Id": "m0s0", "Timestamps": [1e30], "Values": [1]}]},
    ],
)
def test_somebody_else_answers(fake: FakeCloudWatch, answer: Any) -> None:
    fake.fault = lambda *_: (200, answer)
    asked = [read_block(block(ModelLatency=["Average", "p99"]))]
    client = make_client(1)
    found = CloudWatch(asked, client, fake.clock, fake.clock.sleep, sagemaker=hardware.make_client("us-east-1"))
    latency = found.collect(WAVE, lambda _: None)[0]
    assert (latency.statistics, latency.complete) == ({"Average": None, "p99": None}, False)
    assert f"the answer of {client.meta.endpoint_url} is not CloudWatch's" in (latency.reason or "")
    assert fake.clock.slept == []


def test_a_metric_that_does_not_exist_is_not_zero(fake: FakeCloudWatch) -> None:
    requests(fake)
    gauge(fake)
    found = collect(
        fake,
        block(INSTANCES, CPUUtilization=["Average"], ModelLatency=["Average"], GPUUtilization=["Average"]),
        block(Invocations=["Sum", "p99"]),
    )
    assert found["CPUUtilization"].statistics == {"Average": BUSY}
    assert found["ModelLatency"].statistics == {"Average": None}
    assert mentions(found["ModelLatency"].reason or "", "ModelLatency", "AWS/SageMaker", "aws/sagemaker/Endpoints")
    assert "only instances with a GPU publish it" in (found["GPUUtilization"].reason or "")
    assert not found["GPUUtilization"].complete
    assert fake.clock.now <= NOON + 225  # the others of the instance were there: no waiting for a GPU that is not


def test_the_dimensions_under_which_it_is_are_reported(fake: FakeCloudWatch) -> None:
    requests(fake, dimensions={"EndpointName": "other", "VariantName": "AllTraffic"})
    wrong = block(ModelLatency=["Average"])
    wrong["Dimensions"] = DIMENSIONS[:1]
    reason = collect(fake, wrong)["ModelLatency"].reason or ""
    assert "add the dimension VariantName (often AllTraffic)" in reason
    assert mentions(reason, "CloudWatch", "ModelLatency", "EndpointName=other", "VariantName=AllTraffic")
    fake.fault = lambda operation, _: error("AccessDenied", status=403) if operation == "ListMetrics" else None
    assert "CloudWatch has ModelLatency" not in (collect(fake, wrong)["ModelLatency"].reason or "")


def test_what_only_exists_once_it_happened_is_not_waited_for(fake: FakeCloudWatch) -> None:
    requests(fake)
    found = collect(fake, block(NoCapacityInvocationFailures=["Sum"], Invocations=["Sum"]))
    assert found["NoCapacityInvocationFailures"].statistics == {"Sum": None}
    assert fake.clock.now <= NOON + 225


def test_a_wrong_name_is_waited_for_three_periods_only(fake: FakeCloudWatch) -> None:
    metric = collect(fake, block(ModelLatency=["Average"]))["ModelLatency"]
    assert "do these values of EndpointName and VariantName exist in this region" in (metric.reason or "")
    assert WAVE.end + 30 + 180 <= fake.clock.now <= WAVE.end + 30 + 195


def test_what_is_reported_of_arrivals_may_end_before_the_bucket_of_the_last_answers(fake: FakeCloudWatch) -> None:
    requests(fake)
    fake.put(SAGEMAKER, "ModelCacheHit", HERE, (WAVE.start, 1.0), (NOON + 110, 0.0))
    found = collect(fake, block(ModelCacheHit=["Average"], Invocations=["Sum"]))
    assert (found["ModelCacheHit"].statistics, found["Invocations"].statistics) == ({"Average": 0.5}, {"Sum": 1500})
    assert fake.clock.now - WAVE.end <= 30 + 3 * 60 + 15


def test_short_periods_that_come_late_are_waited_for(fake: FakeCloudWatch) -> None:
    """Three periods of 10 s are over long before CloudWatch has anything, as it may be."""
    fake.resolution, fake.delay = 10, 100
    requests(fake)
    metric = collect(fake, block(ModelLatency=["SampleCount"], Period=10, Lag=1))["ModelLatency"]
    assert (metric.statistics, metric.reason, metric.complete) == ({"SampleCount": 1500}, None, True)


def test_a_slow_answer_tells_of_the_time_it_was_asked(fake: FakeCloudWatch) -> None:
    fake.delay = 150
    requests(fake)

    def take_long(answer: dict[str, Any]) -> None:
        fake.clock.now = max(fake.clock.now, WAVE.end + 250)

    fake.edit = take_long
    metric = collect(fake, block(ModelLatency=["SampleCount"]))["ModelLatency"]
    assert (metric.statistics, metric.reason, metric.complete) == ({"SampleCount": 1500}, None, True)


def test_requests_that_never_come_end_the_waiting_at_its_limit(fake: FakeCloudWatch) -> None:
    requests(fake, 1400)
    said: list[str] = []
    found = collect(fake, block(ModelLatency=["Average"]), said=said)
    assert fake.clock.now == WAVE.end + 30 + wait_limit(60)
    assert not found["ModelLatency"].complete
    assert found["ModelLatency"].statistics["Average"] is not None
    assert mentions(found["ModelLatency"].reason or "", "1,400", "1,500 requests", "330 s")
    assert any("1,400 of 1,500 requests counted" in line for line in said)
    assert len(said) < 6  # said when it changes, not at each poll


def test_requests_that_failed_before_the_endpoint_are_not_waited_for(fake: FakeCloudWatch) -> None:
    """The client has an answer to each that CloudWatch counted; the others are waited for three periods."""
    requests(fake, 1480)
    interval = replace(WAVE, answered=1480)
    found = collect(fake, block(ModelLatency=["Average"], Invocations=["Sum"]), interval=interval)
    assert WAVE.end + 30 + 180 <= fake.clock.now < WAVE.end + 30 + 180 + 31
    assert (found["ModelLatency"].complete, found["ModelLatency"].reason) == (True, None)
    assert found["Invocations"].complete
    assert mentions(found["Invocations"].reason, "20", "1,500 requests")


def test_the_tasks_of_a_locust_file_do_not_tell_how_many_requests_come(fake: FakeCloudWatch) -> None:
    requests(fake, 1500)
    interval = replace(WAVE, sent=500, answered=500, tasks=True)
    found = collect(fake, block(ModelLatency=["SampleCount"]), interval=interval)
    assert WAVE.end + 30 + 180 <= fake.clock.now < WAVE.end + 30 + 180 + 31, "a third of them would seem to be all"
    assert (found["ModelLatency"].statistics, found["ModelLatency"].complete) == ({"SampleCount": 1500}, True)
    assert found["Invocations"].reason is None


def test_foreign_traffic_is_visible(fake: FakeCloudWatch) -> None:
    requests(fake, 1800)
    found = collect(fake, block(INSTANCES, CPUUtilization=["Average"]))
    counter = found["Invocations"]
    assert (counter.statistics, counter.asked) == ({"Sum": 1800}, False)
    assert mentions(counter.reason or "", "1,800 requests", "1,500", "300 came")


@pytest.mark.parametrize(
    ("counted", "mean", "high"), [(1500, None, None), (1503, None, "about"), (1800, "about", "about")]
)
def test_times_of_others_requests_are_only_about_this_waves(
    fake: FakeCloudWatch, counted: int, mean: str | None, high: str | None
) -> None:
    """A few of a client's own retries leave a mean what it is; one in a thousand requests can be all of a p99.9."""
    requests(fake, counted)
    found = collect(fake, block(ModelLatency=["Average", "p99.9"], Invocations=["Sum"]))
    assert found["ModelLatency"].bounds.get("Average") == mean
    assert found["ModelLatency"].bounds.get("p99.9") == high
    assert found["Invocations"].bounds == ({"Sum": "at_most"} if counted > 1500 else {})


def test_times_of_the_warmup_in_the_same_buckets_bound_this_waves_mean(fake: FakeCloudWatch) -> None:
    """The first bucket begins 30 s before the window, with half of the warm-up's 600 requests; 900 are the window's."""
    requests(fake, 1500)
    start = WAVE.start // 60 * 60 + 30
    interval = replace(WAVE, begin=start - 60, start=start, warmup_sent=600)
    latency = collect(fake, block(ModelLatency=["Average", "Maximum", "p99"]), interval=interval)["ModelLatency"]
    mean, highest = latency.statistics["Average"], latency.statistics["Maximum"]
    assert mean is not None
    assert highest is not None
    assert others_in_first(latency.buckets["Average"], mean, highest) == pytest.approx(0.25)
    assert latency.bounds == {"Maximum": "at_most", "p99": "about"}
    assert "about 25% of the requests in these buckets of 60 s are the warm-up's" in str(latency.reason)


def others_in_first(edges: tuple[float, float], mean: float, highest: float) -> float:
    """The share of others that these edges of a mean are reckoned with."""
    share = 1 - mean / edges[1]
    assert edges[0] == pytest.approx(max(0.0, (mean - share * highest) / (1 - share)))
    return share


def test_several_endpoints_add_up(fake: FakeCloudWatch) -> None:
    other = {"EndpointName": "f", "VariantName": "AllTraffic"}
    requests(fake, 900)
    requests(fake, 600, other)
    second = block(ModelLatency=["SampleCount"])
    second["Dimensions"] = [{"Name": name, "Value": value} for name, value in other.items()]
    source = CloudWatch(
        [read_block(block(ModelLatency=["SampleCount"])), read_block(second)],
        make_client(1),
        fake.clock,
        fake.clock.sleep,
    )
    found = source.collect(WAVE, lambda *_: None)
    counts = [(each.name, each.dimensions["EndpointName"], *each.statistics.values(), each.complete) for each in found]
    assert counts == [
        ("ModelLatency", "e", 900, True),
        ("ModelLatency", "f", 600, True),
        ("Invocations", "e", 900, True),
        ("Invocations", "f", 600, True),
    ]


def test_scaling_is_noticed(fake: FakeCloudWatch) -> None:
    gauge(fake, instances=2)
    for minute in (2, 3):
        fake.put(INSTANCES, "CPUUtilization", HERE, (NOON + minute * 60, 10.0))
    cpu = collect(fake, block(INSTANCES, CPUUtilization=["Average"]))["CPUUtilization"]
    assert [count for _, count in cpu.instances] == [2, 2, 3]
    assert "its samples per bucket changed during the window (2 -> 3): instances were added or removed, or" in (
        cpu.reason or ""
    )


def test_ctrl_c_ends_the_waiting_with_what_there_is(fake: FakeCloudWatch) -> None:
    fake.delay = 10_000
    requests(fake)

    def stop(seconds: float) -> None:
        raise KeyboardInterrupt

    source = CloudWatch([read_block(block(ModelLatency=["Average"]))], make_client(1), fake.clock, stop)
    (metric, _) = source.collect(WAVE, lambda *_: None)
    assert metric.statistics == {"Average": None}
    assert "when the wait was interrupted" in (metric.reason or "")


def test_ctrl_c_before_the_first_answer(fake: FakeCloudWatch) -> None:
    class Stopped:
        def get_metric_data(self, **_: Any) -> None:
            raise KeyboardInterrupt

    source = CloudWatch([read_block(block(ModelLatency=["Average", "p99"]))], Stopped(), fake.clock, fake.clock.sleep)
    (metric, _) = source.collect(WAVE, lambda *_: None)
    assert metric.statistics == {"Average": None, "p99": None}
    assert metric.reason == "the wait was interrupted before CloudWatch answered"


def test_a_wrong_clock_of_this_machine_moves_the_window(fake: FakeCloudWatch) -> None:
    requests(fake)
    behind = Interval(WAVE.begin - 120, WAVE.start - 120, WAVE.end - 120, WAVE.sent)
    fake.date = email.utils.formatdate(time.time() + 120, usegmt=True)
    metric = collect(fake, block(ModelLatency=["SampleCount"]), interval=behind)["ModelLatency"]
    assert metric.statistics == {"SampleCount": 1500}
    assert "this client's clock is 1" in (metric.reason or "")
    assert "behind CloudWatch's; the window was moved" in (metric.reason or "")


def test_a_wave_longer_than_a_day_has_no_percentiles(fake: FakeCloudWatch) -> None:
    long = Interval(NOON, NOON, NOON + 90_000, 1)
    fake.clock.now = long.end
    fake.put(SAGEMAKER, "ModelLatency", HERE, (NOON + 89_000, 5.0))
    metric = collect(fake, block(ModelLatency=["p99", "Maximum"]), interval=long)["ModelLatency"]
    assert metric.statistics == {"p99": None, "Maximum": 5.0}
    assert "CloudWatch's longest is a day" in (metric.reason or "")


PAST = Interval.past(WAVE.start, WAVE.end)


def late(fake: FakeCloudWatch, after_s: float, *blocks: dict[str, Any]) -> tuple[dict[str, ServerMetric], list[str]]:
    """The rows of a past window that is asked for so long after its end, and what was said."""
    fake.clock.now = PAST.end + after_s
    said: list[str] = []
    return collect(fake, *blocks, interval=PAST, said=said), said


@pytest.mark.parametrize(
    ("after_s", "waiting"),
    [
        (0.0, ", waiting 90 s more (they usually arrive 90 s after the wave)"),
        (0.3, ", waiting 90 s more (they usually arrive 90 s after the wave)"),
        (0.7, ", waiting 89 s more (they usually arrive 90 s after the wave)"),
        (48.0, ", waiting 42 s more (they usually arrive 90 s after the wave)"),
        (90.0, ""),
        (121.0, ""),
        (1e8, ""),
    ],
)
def test_only_what_is_left_of_the_waiting_is_announced(fake: FakeCloudWatch, after_s: float, waiting: str) -> None:
    requests(fake)
    _, said = late(fake, after_s, block(Invocations=["Sum"]))
    assert said[0] == f"⏳ Fetching server metrics: cloudwatch{waiting}..."


@pytest.mark.parametrize(("after_s", "slept"), [(121.0, [SECOND_LOOK_S]), (400.0, [])])
def test_a_past_window_is_read_at_once(fake: FakeCloudWatch, after_s: float, slept: list[float]) -> None:
    requests(fake)
    gauge(fake)
    asked = block(ModelLatency=["SampleCount"], Invocations=["Sum"]), block(INSTANCES, CPUUtilization=["Average"])
    found, _ = late(fake, after_s, *asked)
    assert fake.clock.slept == slept, "CloudWatch may add to what is young"
    assert [(each.has_values, each.complete, each.reason) for each in found.values()] == [(True, True, None)] * 3


def test_what_a_young_window_may_lack_is_reported(fake: FakeCloudWatch) -> None:
    """Nothing of its last minute: nobody sent anything then, or CloudWatch is late."""
    for second in range(60):
        fake.put(SAGEMAKER, "Invocations", HERE, (NOON + 20 + second, 1.0))
    asked = block(Invocations=["Sum"], Nothing=["Sum"])
    found, _ = late(fake, 121.0, asked)
    assert fake.clock.slept == [SECOND_LOOK_S]
    counted = found["Invocations"]
    assert (counted.statistics, counted.complete) == ({"Sum": 60}, False)
    assert mentions(counted.reason, "126 s", "CloudWatch")
    assert "CloudWatch has no data" in (found["Nothing"].reason or "")
    found, _ = late(fake, 400.0, asked)
    assert (found["Invocations"].complete, found["Invocations"].reason) == (True, None)


def test_a_window_that_has_just_ended_is_waited_for(fake: FakeCloudWatch) -> None:
    fake.delay = 100
    requests(fake)
    found, _ = late(fake, 1.0, block(ModelLatency=["SampleCount"]))
    assert (found["ModelLatency"].statistics, found["ModelLatency"].complete) == ({"SampleCount": 1500}, True)
    assert fake.clock.now <= NOON + 180 + 100 + 31


DAY_S = 86_400


@pytest.mark.parametrize(
    ("period", "age_s", "expected"),
    [
        (10, 3 * 3600 + 60, "CloudWatch keeps buckets of 10 s for 3 hours: use a Period of 60"),
        (10, 20 * DAY_S, "CloudWatch keeps buckets of 10 s for 3 hours: use a Period of 300"),
        (60, 16 * DAY_S, "CloudWatch keeps buckets of 60 s for 15 days: use a Period of 300"),
        (300, 64 * DAY_S, "CloudWatch keeps buckets of 300 s for 63 days: use a Period of 3600"),
        (3600, 456 * DAY_S, "CloudWatch keeps nothing for longer than 455 days"),
        (10, 2000 * DAY_S, "CloudWatch keeps nothing for longer than 455 days"),
        (60, 3 * DAY_S, None),
        (3600, 300 * DAY_S, None),
    ],
)
def test_what_is_no_longer_kept_is_the_whole_reason(
    fake: FakeCloudWatch, period: int, age_s: float, expected: str | None
) -> None:
    found, _ = late(fake, age_s + period, block(ModelLatency=["p99"], Period=period))
    assert fake.clock.slept == []
    if expected is None:
        assert "do these values of EndpointName and VariantName exist" in (found["ModelLatency"].reason or "")
    else:
        assert found["ModelLatency"].reason == expected


def test_a_web_page_in_cloudwatchs_place_is_no_empty_answer(fake: FakeCloudWatch) -> None:
    """Of HTML botocore makes an answer with nothing in it."""
    fake.fault = lambda *_: (200, {})
    metric = collect(fake, block(ModelLatency=["Average"]))["ModelLatency"]
    assert "is not CloudWatch's (application/x-amz-json-1.0 without results): is there a proxy" in (metric.reason or "")
    assert fake.clock.slept == []


@pytest.mark.parametrize(("period", "seconds"), [(1, 1), (5, 1.25), (10, 2.5), (60, 15), (300, 15)])
def test_polls_fit_the_period(period: int, seconds: float) -> None:
    assert poll_interval(period) == seconds


def without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **given: str) -> str:
    alone(monkeypatch, tmp_path)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BenchmarkError) as caught:
        make_source([read_block(block(ModelLatency=["Average"]))])
    return str(caught.value)


def test_missing_credentials_and_region_are_one_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    message = without(monkeypatch, tmp_path)
    assert "there are no AWS credentials" in message
    assert "there is no AWS region" in message


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"AWS_ACCESS_KEY_ID": "a"}, "cannot be used (Partial credentials found in env"),
        ({"AWS_PROFILE": "nobody"}, "The config profile (nobody) could not be found"),
        ({"AWS_ACCESS_KEY_ID": "a b", "AWS_SECRET_ACCESS_KEY": "s"}, "the AWS access key is malformed"),
        ({"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": '"s"'}, "the AWS secret key is malformed"),
        ({"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_DEFAULT_REGION": "us east 1"}, "us east 1"),
        (
            {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_ENDPOINT_URL_CLOUDWATCH": "here"},
            "Invalid endpoint: here",
        ),
    ],
)
def test_what_is_malformed_is_reported_before_the_wave(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: dict[str, str], expected: str
) -> None:
    message = without(monkeypatch, tmp_path, **{"AWS_DEFAULT_REGION": "us-east-1", **given})
    assert expected in message
    assert "`aws configure`" in message
    assert '"s"' not in message


def test_a_source_is_made_without_the_network(fake: FakeCloudWatch) -> None:
    assert isinstance(make_source([read_block(block(ModelLatency=["Average"]))]), CloudWatch)
    assert fake.requests == []


def test_boto3_is_imported_by_those_who_ask_only() -> None:
    program = (
        "import sys, server_capacity.metrics.config, server_capacity.metrics.cloudwatch; "
        "sys.exit('boto3' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0


@pytest.mark.process
def test_the_endpoint_that_knows_the_truth(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Pages, part of the data and throttling on the way, and still what the endpoint's own log says."""
    alone(monkeypatch, tmp_path)
    config = EndpointConfig(publish_interval_s=1, throttle_every=3, metric_faults={"ModelLatency": "PartialData"})
    with start(config) as endpoint:
        for name, value in endpoint.aws_environment.items():
            monkeypatch.setenv(name, value)
        source = make_source(asked_of_the_endpoint())
        interval = small_wave(endpoint, 4.2, 50)
        found = {each.name: each for each in source.collect(interval, lambda *_: None)}
        log = endpoint.arrivals()
    times = [(last - first) / 1e3 for first, last in zip(log["queued_ns"], log["finish_ns"], strict=True)]
    assert found["Invocations"].statistics == {"Sum": 210}
    assert found["ModelLatency"].statistics["SampleCount"] == 210
    assert found["ModelLatency"].statistics["p99"] == pytest.approx(sorted(times)[207], rel=0.01)
    busy = 210 * 0.02 * 100 / (interval.end - interval.begin)  # percent of one core
    assert found["CPUUtilization"].statistics["Average"] == pytest.approx(busy, rel=0.3)
    assert [each.reason for each in found.values()] == [None] * 4
    assert all(each.complete for each in found.values())


@pytest.mark.process
def test_an_endpoint_that_denies_its_metrics(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    alone(monkeypatch, tmp_path)
    with start(EndpointConfig(access_denied=True)) as endpoint:
        for name, value in endpoint.aws_environment.items():
            monkeypatch.setenv(name, value)
        now = time.time()
        found = make_source(asked_of_the_endpoint()).collect(Interval(now - 9, now - 9, now, 1), lambda *_: None)
    assert all(mentions(each.reason or "", "cloudwatch:GetMetricData", "AccessDenied", "arn:aws") for each in found)
