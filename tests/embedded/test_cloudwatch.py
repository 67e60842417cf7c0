"""The embedded endpoint as AWS: asked by an unmodified boto3, and held against what its own log says."""

from __future__ import annotations

import json
import math
import time
from array import array
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from inference_benchmarker.embedded.aws.aws_json import Caller
from inference_benchmarker.embedded.aws.cloudwatch import CloudWatch
from inference_benchmarker.embedded.aws.gauges import instance_type, utilization
from inference_benchmarker.embedded.aws.metric_store import (
    Cell,
    Metric,
    MetricStore,
    Summary,
    datapoints,
    floor_instant,
    gather,
)
from inference_benchmarker.embedded.aws.models import ModelCache
from inference_benchmarker.embedded.aws.statistics import parse_statistic
from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.running import RunningEndpoint, start
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records.error_key import error_key
from tests.metrics_truth import busy_servers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NS = 1_000_000_000
DAY = 86_400
M = Metric("N", "m", frozenset())
ONCE = Config(retries={"total_max_attempts": 1, "mode": "standard"})
EVER = -math.inf


def at(text: str) -> int:
    return int(datetime.fromisoformat(f"2026-11-02T{text}+00:00").timestamp())


NOW = at("20:00:00")

# --- statistics


def samples(values: Sequence[float], counts: Sequence[float] | None = None) -> Any:
    return gather([Cell(0, EVER, "None", values, counts)])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SampleCount", 100),
        ("Sum", 5050),
        ("Average", 50.5),
        ("Minimum", 1),
        ("Maximum", 100),
        ("p0", 1),
        ("p50", 50),
        ("p99", 99),
        ("p99.5", 100),
        ("p100", 100),
        ("tm90", 45.5),
        ("TM(10%:90%)", 50.5),
        ("TM(90:)", 95.5),
        ("TM(:95%)", 48),
        ("IQM", 50.5),
        ("wm90", (sum(range(1, 91)) + 10 * 90) / 100),
        ("WM(10:90)", (10 * 10 + sum(range(11, 91)) + 10 * 90) / 100),
        ("tc90", 90),
        ("TC(10:30)", 20),
        ("TS(80%:)", sum(range(81, 101))),
        ("ts10", 55),
        ("PR(:30)", 30),
        ("PR(10:30)", 20),
    ],
)
def test_statistics_of_one_to_a_hundred(name: str, expected: float) -> None:
    assert parse_statistic(name)(samples(range(1, 101))) == pytest.approx(expected)


def test_counts_weigh_like_repetitions() -> None:
    for name in ("Sum", "SampleCount", "Average", "p50", "p90", "tm75", "TS(25%:75%)", "PR(:2)"):
        statistic = parse_statistic(name)
        assert statistic(samples([1, 2, 7], [3, 5, 2])) == pytest.approx(
            statistic(samples([1] * 3 + [2] * 5 + [7] * 2))
        )


@pytest.mark.parametrize(
    "name", ["", "p", "p101", "P99", "mean", "tm", "TM(:)", "PR(1%:2%)", "TM(1:2%)", "p99 ", "TM(a:b)"]
)
def test_what_is_no_statistic(name: str) -> None:
    with pytest.raises(ValueError, match=r"is not a CloudWatch statistic|could not convert"):
        parse_statistic(name)


def test_percentiles_need_raw_values_and_a_summary_has_the_rest() -> None:
    summary = gather([Cell(0, EVER, "None", Summary(4, 10, 1, 4))])
    assert parse_statistic("Average")(summary) == 2.5
    assert parse_statistic("p50")(summary) is None
    assert parse_statistic("tm90")(summary) is None
    assert parse_statistic("p50")(gather([Cell(0, EVER, "None", Summary(4, 12, 3, 3))])) == 3


# --- buckets


@pytest.mark.parametrize(
    ("instant", "period", "floor"),
    [
        (at("12:32:34"), 60, at("12:32:00")),
        (at("12:32:34"), 3600, at("12:32:00")),
        (at("12:32:34"), 30, at("12:32:30")),
        (at("12:32:34"), 20, at("12:32:20")),
        (at("12:32:34"), 10, at("12:32:30")),
        (at("12:32:39"), 5, at("12:32:35")),
        (at("12:32:34") + 0.5, 1, at("12:32:34")),
        (at("12:32:34") - 20 * DAY, 60, at("12:30:00") - 20 * DAY),
        (at("12:32:34") - 70 * DAY, 60, at("12:00:00") - 70 * DAY),
    ],
)
def test_where_a_request_really_begins(instant: float, period: int, floor: int) -> None:
    assert floor_instant(instant, period, NOW) == floor


def points(
    cells: list[Cell], start: float, end: float, period: int, *, stat: str = "Sum", now: float = NOW
) -> list[tuple[int, float]]:
    store = MetricStore()
    for cell in cells:
        store.add(M, cell)
    return datapoints(lambda a, b: store.cells(M, a, b, now), (start, end), period, now, parse_statistic(stat))


def minutes(first: str, number: int) -> list[Cell]:
    """One publication of 1 a minute."""
    return [Cell(at(first) + 60 * minute, EVER, "None", [1]) for minute in range(number)]


@pytest.mark.parametrize(
    ("start", "end", "period", "expected"),
    [
        # counted from the start, not from the wall clock: 20 minutes from 19:19 on
        ("19:19:00", "19:59:00", 1200, [("19:19:00", 20), ("19:39:00", 20)]),
        ("19:19:41", "19:59:00", 1200, [("19:19:00", 20), ("19:39:00", 20)]),
        ("19:30:00", "19:32:00", 60, [("19:30:00", 1), ("19:31:00", 1)]),
        # the end is exclusive, and the part of a minute at the end is lost
        ("19:30:10", "19:32:50", 60, [("19:30:00", 1), ("19:31:00", 1)]),
        # one bucket for the whole window
        ("19:30:17", "19:33:00", 180, [("19:30:00", 3)]),
        # a bucket that reaches beyond the end stops there
        ("19:30:00", "19:33:00", 300, [("19:30:00", 3)]),
        # data of a minute's resolution has a point at the minute only
        ("19:30:00", "19:31:00", 10, [("19:30:00", 1)]),
        ("19:30:10", "19:31:00", 10, []),
        ("18:00:00", "18:05:00", 60, []),
    ],
)
def test_buckets_of_minutes(start: str, end: str, period: int, expected: list[tuple[str, float]]) -> None:
    assert points(minutes("19:00:00", 60), at(start), at(end), period) == [(at(t), value) for t, value in expected]


def test_seconds_are_bucketed_by_ten_and_gone_after_three_hours() -> None:
    seconds = [Cell(at("19:00:00") + second, EVER, "None", [second]) for second in range(30)]
    assert points(seconds, at("19:00:07"), at("19:00:29"), 10) == [(at("19:00:00"), 45), (at("19:00:10"), 145)]
    assert points(seconds, at("19:00:00"), at("19:01:00"), 10, now=at("22:00:01")) == []
    assert points(seconds, at("19:00:00"), at("19:01:00"), 60, now=at("22:00:01")) == [(at("19:00:00"), 435)]


def test_percentiles_are_those_of_all_samples_of_a_bucket() -> None:
    cells = [
        Cell(at("19:00:00"), EVER, "None", array("q", [50] * 97 + [100] * 3)),
        Cell(at("19:01:00"), EVER, "None", array("q", [300] * 10)),
    ]
    assert points(cells, at("19:00:00"), at("19:02:00"), 120, stat="p90") == [(at("19:00:00"), 100)]
    assert points(cells, at("19:00:00"), at("19:02:00"), 60, stat="p90") == [
        (at("19:00:00"), 50),
        (at("19:01:00"), 300),
    ]


def test_what_is_not_published_yet_is_not_there() -> None:
    cell = Cell(at("19:00:00"), at("19:01:01"), "None", [1])
    window = at("19:00:00"), at("19:01:00"), 60
    assert points([cell], *window, now=at("19:01:00")) == []
    assert points([cell], *window, now=at("19:01:01")) == [(at("19:00:00"), 1)]


def test_beyond_its_room_the_store_forgets_the_oldest_values_but_not_their_summary() -> None:
    store = MetricStore(exact_values=25)
    for second in range(4):
        store.add(M, Cell(second, EVER, "None", array("q", range(10))))
    cells = list(store.cells(M, 0, 10, NOW))
    assert [cell.values is None for cell in cells] == [True, True, False, False]
    assert {cell.summary for cell in cells} == {Summary(10, 45, 0, 9)}


# --- the model of the hardware and of models


def test_models_are_loaded_once_and_the_least_recently_used_makes_room() -> None:
    cache = ModelCache(capacity=2, load_ns=100)
    visits = [cache.visit(model, now) for model, now in (("a", 0), ("a", 50), ("b", 60), ("a", 100), ("c", 200))]
    assert [(visit.hit, visit.ready_ns, visit.loads, visit.evicted) for visit in visits] == [
        (False, 100, True, False),
        (False, 100, False, False),
        (False, 160, True, False),
        (True, 100, False, False),
        (False, 300, True, True),
    ]
    assert len(cache) == 2
    assert cache.visit("a", 400).hit
    assert not cache.visit("b", 400).hit


@pytest.mark.parametrize(
    ("servers", "instances", "kind", "gpus"),
    [(4, 1, "ml.g5.xlarge", 1), (5, 1, "ml.g5.2xlarge", 1), (8, 2, "ml.g5.xlarge", 1), (48, 1, "ml.g5.12xlarge", 4)],
)
def test_the_hardware_follows_from_the_servers(servers: int, instances: int, kind: str, gpus: int) -> None:
    config = EndpointConfig(servers=servers, instances=instances)
    assert instance_type(config) == kind
    busy = utilization(config, 0.5)
    assert busy["CPUUtilization"] == 50 * servers / instances
    assert busy["GPUUtilization"] == 40 * gpus
    growing = EndpointConfig(servers=4, most_servers=8)
    assert (instance_type(growing), utilization(growing, 0.5)["CPUUtilization"]) == ("ml.g5.2xlarge", 400)
    assert "GPUUtilization" not in utilization(EndpointConfig(instance_type="ml.m5.xlarge"), 0.5)


def test_everything_wrong_with_the_stand_in_is_said_at_once() -> None:
    wrong: dict[str, Any] = {
        "endpoint_name": "no_underscores",
        "instances": 0,
        "instance_type": "g5.xlarge",
        "publish_interval_s": 7,
        "publication_delay_s": -1,
        "models_in_memory": 0,
        "model_load_s": math.nan,
        "throttle_every": 0,
        "metric_faults": {"CPUUtilization": "Broken"},
    }
    with pytest.raises(BenchmarkError) as error:
        EndpointConfig(**wrong)
    assert [name for name in wrong if f"{name} is" not in str(error.value)] == []


# --- asked by boto3


@pytest.fixture(scope="module")
def endpoint() -> Iterator[RunningEndpoint]:
    with start(EndpointConfig(service="none", publish_interval_s=1, publication_delay_s=0.1)) as running:
        yield running


def client(endpoint: RunningEndpoint, service: str, config: Config = ONCE) -> Any:
    session = boto3.Session("demo", "demo", region_name="eu-west-1")
    return session.client(service, endpoint_url=endpoint.url, config=config)


def query(name: str, stat: str, period: int = 60, namespace: str = "AWS/SageMaker", **more: Any) -> dict[str, Any]:
    """Of the endpoint ``demo``; the Id is made of the names."""
    names = [{"Name": "VariantName", "Value": "AllTraffic"}, {"Name": "EndpointName", "Value": "demo"}]
    metric = {"Namespace": namespace, "MetricName": name, "Dimensions": more.pop("dimensions", names)}
    number = more.pop("id", f"q{name}{stat}".replace(".", "_"))
    return {"Id": number, "MetricStat": {"Metric": metric, "Period": period, "Stat": stat, **more}}


def hardware(name: str, stat: str, period: int = 60) -> dict[str, Any]:
    return query(name, stat, period, "/aws/sagemaker/Endpoints")


def fetch(cloudwatch: Any, queries: list[dict[str, Any]], begin: float, end: float, **more: Any) -> dict[str, Any]:
    output = cloudwatch.get_metric_data(
        MetricDataQueries=queries,
        StartTime=datetime.fromtimestamp(begin, UTC),
        EndTime=datetime.fromtimestamp(end, UTC),
        ScanBy="TimestampAscending",
        **more,
    )
    assert isinstance(output, dict)
    return output


def total(cloudwatch: Any, name: str, begin: float, stat: str = "Sum", **more: Any) -> float | None:
    """One value over everything since a minute before."""
    output = fetch(cloudwatch, [query(name, stat, 3600, **more)], begin - 60, begin + 3000)
    values = output["MetricDataResults"][0]["Values"]
    return values[0] if values else None


def await_total(cloudwatch: Any, name: str, begin: float, expected: float, **more: Any) -> None:
    deadline = time.monotonic() + 20
    while (value := total(cloudwatch, name, begin, **more)) != expected:
        assert time.monotonic() < deadline, f"{name} is {value}, not {expected}"
        time.sleep(0.05)


def await_gauge(cloudwatch: Any, asked: dict[str, Any], when: float) -> float:
    """What a gauge that is published each second said of the second of that instant."""
    deadline = time.monotonic() + 20
    begin = math.floor(when)
    while not (values := fetch(cloudwatch, [asked], begin, begin + 1)["MetricDataResults"][0]["Values"]):
        assert time.monotonic() < deadline, "the gauge was never published"
        time.sleep(0.05)
    return float(values[0])


def post(endpoint: RunningEndpoint, requests: int, path: str = "/invocations", pause_s: float = 0.0) -> list[int]:
    """Statuses of requests one after the other on one connection."""
    connection = HTTPConnection("127.0.0.1", endpoint.port, timeout=20)
    statuses = []
    for _ in range(requests):
        connection.request("POST", path, b"{}")
        response = connection.getresponse()
        response.read()
        statuses.append(response.status)
        time.sleep(pause_s)
    connection.close()
    return statuses


@pytest.mark.process
def test_the_environment_points_boto3_at_the_endpoint(
    endpoint: RunningEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in endpoint.aws_environment.items():
        monkeypatch.setenv(name, value)
    session = boto3.Session()
    assert session.client("sagemaker").describe_endpoint(EndpointName="demo")["EndpointStatus"] == "InService"
    assert session.client("cloudwatch").list_metrics(Namespace="nowhere")["Metrics"] == []
    answer = session.client("sagemaker-runtime").invoke_endpoint(EndpointName="demo", Body=b"{}")
    assert answer["InvokedProductionVariant"] == "AllTraffic"


@pytest.mark.process
def test_raw_values_dated_back_come_back_by_the_minute_rules(endpoint: RunningEndpoint) -> None:
    cloudwatch = client(endpoint, "cloudwatch")
    begin = (time.time() // 60 - 10) * 60
    for second, values in ((7, [1.0, 2.0]), (61, [10.0] * 3), (122, [5.0])):
        when = datetime.fromtimestamp(begin + second, UTC)
        data = {"MetricName": "back", "Timestamp": when, "Values": values, "Unit": "Count"}
        cloudwatch.put_metric_data(Namespace="Own", MetricData=[data])

    def ask(stat: str, period: int, window: tuple[float, float], **more: Any) -> list[Any]:
        asked = query("back", stat, period, "Own", dimensions=[], **more)
        result = fetch(cloudwatch, [asked], begin + window[0], begin + window[1])["MetricDataResults"][0]
        assert result["StatusCode"] == "Complete"
        times = [int(when.timestamp() - begin) for when in result["Timestamps"]]
        return list(zip(times, result["Values"], strict=True))

    assert ask("Sum", 60, (17, 180)) == [(0, 3), (60, 30), (120, 5)]
    assert ask("SampleCount", 180, (17, 180)) == [(0, 6)]
    assert ask("p50", 180, (0, 180)) == [(0, 5)]
    assert ask("Average", 60, (0, 120)) == [(0, 1.5), (60, 10)]
    assert ask("Sum", 60, (0, 179)) == [(0, 3), (60, 30)]
    assert ask("Sum", 60, (0, 180), Unit="Bytes") == []
    assert ask("Sum", 60, (0, 180), Unit="Count") == [(0, 3), (60, 30), (120, 5)]


@pytest.mark.process
def test_statistic_sets_counts_resolutions_and_compressed_bodies(endpoint: RunningEndpoint) -> None:
    cloudwatch = client(endpoint, "cloudwatch")
    begin = (time.time() // 60 - 5) * 60
    when = datetime.fromtimestamp(begin + 13, UTC)
    summary = {"SampleCount": 4, "Sum": 10, "Minimum": 1, "Maximum": 4}
    data: list[dict[str, Any]] = [
        {"MetricName": "set", "Timestamp": when, "StatisticValues": summary},
        {"MetricName": "counts", "Timestamp": when, "Values": [1.0, 2.0], "Counts": [3.0, 1.0]},
        {"MetricName": "fine", "Timestamp": when, "Value": 1.0, "StorageResolution": 1},
    ]
    # more than 10 kB are sent compressed
    data += [{"MetricName": f"filler{number}", "Timestamp": when, "Values": [1.0] * 100} for number in range(50)]
    cloudwatch.put_metric_data(Namespace="Sets", MetricData=data)

    def ask(name: str, stat: str, period: int) -> list[Any]:
        output = fetch(cloudwatch, [query(name, stat, period, "Sets", dimensions=[])], begin, begin + 60)
        result = output["MetricDataResults"][0]
        return [*(int(when.timestamp() - begin) for when in result["Timestamps"]), *result["Values"]]

    assert ask("set", "Average", 60) == [0, 2.5]
    assert ask("set", "p99", 60) == []
    assert ask("counts", "Average", 60) == [0, 1.25]
    assert ask("counts", "p90", 60) == [0, 2]
    assert ask("fine", "Sum", 10) == [10, 1]
    assert ask("fine", "Sum", 60) == [0, 1]
    assert ask("filler49", "Sum", 60) == [0, 100]


@pytest.mark.process
def test_a_result_is_split_over_pages_and_newest_comes_first(endpoint: RunningEndpoint) -> None:
    cloudwatch = client(endpoint, "cloudwatch")
    begin = (time.time() // 60 - 30) * 60
    for minute in range(7):
        when = datetime.fromtimestamp(begin + 60 * minute, UTC)
        data = [{"MetricName": name, "Timestamp": when, "Value": float(minute)} for name in ("one", "two")]
        cloudwatch.put_metric_data(Namespace="Pages", MetricData=data)
    asked = {
        "MetricDataQueries": [
            query(name, "Sum", 60, "Pages", dimensions=[], id=name) for name in ("one", "none", "two")
        ],
        "StartTime": datetime.fromtimestamp(begin, UTC),
        "EndTime": datetime.fromtimestamp(begin + 600, UTC),
    }
    pages = list(cloudwatch.get_paginator("get_metric_data").paginate(**asked, MaxDatapoints=5))
    seen = [(r["Id"], r["StatusCode"], r["Values"]) for page in pages for r in page["MetricDataResults"]]
    assert seen == [
        ("one", "PartialData", [6, 5, 4, 3, 2]),
        ("one", "Complete", [1, 0]),
        ("none", "Complete", []),
        ("two", "PartialData", [6, 5, 4]),
        ("two", "Complete", [3, 2, 1, 0]),
    ]
    token = pages[0]["NextToken"]
    for wrong in ({"NextToken": "x"}, {"NextToken": token, "MaxDatapoints": 6}):
        with pytest.raises(ClientError) as error:
            cloudwatch.get_metric_data(**asked, **wrong)
        assert error.value.response["Error"]["Code"] == "InvalidNextToken"


def test_what_is_published_while_metrics_are_listed_does_not_disturb() -> None:
    store = MetricStore()

    def publish() -> float:
        store.add(Metric("N", f"m{len(list(store.metrics()))}", frozenset()), Cell(0, 0, "None", [1.0]))
        return 1.0

    publish()
    cloudwatch = CloudWatch(EndpointConfig(), store, publish)
    listed = cloudwatch.service.operations["ListMetrics"]({"Namespace": "N"}, Caller("us-east-1"))
    assert [metric["MetricName"] for metric in listed["Metrics"]] == ["m0", "m1"]


@pytest.mark.process
def test_metrics_are_listed_by_what_is_asked(endpoint: RunningEndpoint) -> None:
    cloudwatch = client(endpoint, "cloudwatch")
    places = [[{"Name": "Zone", "Value": value}] for value in "ab"]
    old = datetime.fromtimestamp(time.time() - 4 * 3600, UTC)
    data: list[dict[str, Any]] = [{"MetricName": "m", "Dimensions": place, "Value": 1.0} for place in places]
    data.append({"MetricName": "old", "Timestamp": old, "Value": 1.0})
    cloudwatch.put_metric_data(Namespace="Listed", MetricData=data)

    def listed(**asked: Any) -> int:
        return len(cloudwatch.list_metrics(Namespace="Listed", **asked)["Metrics"])

    deadline = time.monotonic() + 20
    while listed() < 3 and time.monotonic() < deadline:  # until the publication delay is over
        time.sleep(0.05)
    assert (listed(), listed(MetricName="m"), listed(RecentlyActive="PT3H")) == (3, 2, 2)
    assert (listed(Dimensions=[{"Name": "Zone"}]), listed(Dimensions=places[0])) == (2, 1)
    assert listed(Dimensions=[{"Name": "Other"}]) == 0

    names = [{"MetricName": f"n{number}", "Value": 1.0} for number in range(501)]
    cloudwatch.put_metric_data(Namespace="Many", MetricData=names)
    pages = cloudwatch.get_paginator("list_metrics")
    while len(found := [len(page["Metrics"]) for page in pages.paginate(Namespace="Many")]) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert found == [500, 1]


@pytest.mark.process
@pytest.mark.parametrize(
    ("queries", "reason"),
    [
        ([query("m", "Sum", id=f"q{number}") for number in range(501)], "size greater than 500"),
        ([query("m", "Sum", id="Upper")], "MetricDataQueries.member.1.Id"),
        ([query("m", "Sum", id="q"), query("n", "Sum", id="q")], "not unique"),
        ([query("m", "Sum", 7)], "member.1.MetricStat.Period"),
        ([query("m", "Sum", 90)], "multiple of 60"),
        ([query("m", "p101", id="q")], "value p101 for parameter MetricDataQueries.member.1.MetricStat.Stat"),
        ([{"Id": "q", "Expression": "a+b"}], "no MetricStat"),
    ],
)
def test_queries_that_are_refused(endpoint: RunningEndpoint, queries: list[Any], reason: str) -> None:
    with pytest.raises(ClientError, match=reason) as error:
        fetch(client(endpoint, "cloudwatch"), queries, 0, 60)
    assert error.value.response["Error"]["Code"] == "ValidationError"
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


@pytest.mark.process
def test_500_queries_are_answered_and_an_empty_window_is_refused(endpoint: RunningEndpoint) -> None:
    cloudwatch = client(endpoint, "cloudwatch")
    many = fetch(cloudwatch, [query("m", "Sum", id=f"q{number}") for number in range(500)], 0, 60)
    assert {(tuple(each["Values"]), each["StatusCode"]) for each in many["MetricDataResults"]} == {((), "Complete")}
    with pytest.raises(ClientError, match="StartTime must be less than"):
        fetch(cloudwatch, [query("m", "Sum")], 60, 60)


@pytest.mark.process
def test_data_too_old_or_without_values_is_refused(endpoint: RunningEndpoint) -> None:
    cloudwatch = client(endpoint, "cloudwatch")
    old = datetime.fromtimestamp(time.time() - 15 * DAY, UTC)
    for datum, code in (
        ({"MetricName": "m", "Timestamp": old, "Value": 1.0}, "InvalidParameterValue"),
        ({"MetricName": "m", "Values": [1.0], "Counts": [1.0, 2.0]}, "InvalidParameterValue"),
        ({"MetricName": "m"}, "MissingParameter"),
    ):
        with pytest.raises(ClientError) as error:
            cloudwatch.put_metric_data(Namespace="Bad", MetricData=[datum])
        assert error.value.response["Error"]["Code"] == code


def raw(endpoint: RunningEndpoint, headers: dict[str, str], body: bytes = b"{}") -> tuple[int, dict[str, Any]]:
    connection = HTTPConnection("127.0.0.1", endpoint.port, timeout=10)
    connection.request("POST", "/", body, headers)
    response = connection.getresponse()
    content = json.loads(response.read())
    connection.close()
    assert response.headers["Date"]
    return response.status, content


@pytest.mark.process
def test_requests_that_boto3_would_not_send(endpoint: RunningEndpoint) -> None:
    target = {"X-Amz-Target": "GraniteServiceVersion20100801.GetMetricData"}
    signed = target | {"Authorization": "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/monitoring/aws4_request"}
    status, content = raw(endpoint, target)
    assert (status, content["__type"]) == (403, "MissingAuthenticationToken")
    for headers, body in (
        (signed, b"{"),
        (signed, b"[]"),
        (signed, b"{}"),
        (signed | {"Content-Encoding": "gzip"}, b"x"),
    ):
        status, content = raw(endpoint, headers, body)
        assert (status, content["__type"]) == (400, "SerializationException")
    for headers in ({}, {"X-Amz-Target": "Nothing.Here"}, {"X-Amz-Target": "SageMaker.CreateTrainingJob"}):
        status, content = raw(endpoint, headers)
        assert (status, content["__type"]) == (404, "UnknownOperationException")


@pytest.mark.process
def test_every_nth_call_is_throttled_and_a_patient_client_does_not_notice() -> None:
    with start(EndpointConfig(service="none", throttle_every=2)) as endpoint:
        asked = [query("m", "Sum")]
        impatient = client(endpoint, "cloudwatch")
        fetch(impatient, asked, 0, 60)
        with pytest.raises(ClientError) as error:
            fetch(impatient, asked, 0, 60)
        refusal = error.value.response["Error"]
        assert (refusal["Code"], refusal["Message"]) == ("Throttling", "Rate exceeded")
        patient = client(endpoint, "cloudwatch", Config(retries={"total_max_attempts": 3, "mode": "standard"}))
        fetch(patient, asked, 0, 60)
        assert fetch(patient, asked, 0, 60)["ResponseMetadata"]["RetryAttempts"] == 1


@pytest.mark.process
def test_denied_access() -> None:
    with start(EndpointConfig(service="none", access_denied=True)) as endpoint:
        with pytest.raises(ClientError, match="not authorized to perform: cloudwatch:GetMetricData") as error:
            fetch(client(endpoint, "cloudwatch"), [query("m", "Sum")], 0, 60)
        assert error.value.response["Error"]["Code"] == "AccessDenied"
        with pytest.raises(ClientError, match="sagemaker:DescribeEndpoint") as error:
            client(endpoint, "sagemaker").describe_endpoint(EndpointName="demo")
        assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


@pytest.mark.process
def test_metrics_that_are_partial_forbidden_or_broken() -> None:
    faults = {"part": "PartialData", "no": "Forbidden", "broken": "InternalError"}
    with start(EndpointConfig(service="none", metric_faults=faults)) as endpoint:
        cloudwatch = client(endpoint, "cloudwatch")
        begin = (time.time() // 60 - 10) * 60
        for minute in range(4):
            when = datetime.fromtimestamp(begin + 60 * minute, UTC)
            data = [{"MetricName": name, "Timestamp": when, "Value": 1.0} for name in (*faults, "fine")]
            cloudwatch.put_metric_data(Namespace="F", MetricData=data)
        asked = [query(name, "Sum", 60, "F", dimensions=[], id=name) for name in (*faults, "fine")]
        first = fetch(cloudwatch, asked, begin, begin + 240)
        second = fetch(cloudwatch, asked, begin, begin + 240, NextToken=first["NextToken"])
    seen = [(r["Id"], r["StatusCode"], len(r["Values"])) for page in (first, second) for r in page["MetricDataResults"]]
    assert seen == [
        ("part", "PartialData", 2),
        ("part", "Complete", 2),
        ("no", "Forbidden", 0),
        ("broken", "InternalError", 0),
        ("fine", "Complete", 4),
    ]
    assert "NextToken" not in second


@pytest.mark.process
def test_an_endpoint_is_described_once_it_was_invoked() -> None:
    config = EndpointConfig(service="none", servers=8, instances=2, endpoint_name="known", publish_interval_s=30)
    with start(config) as endpoint:
        sagemaker = client(endpoint, "sagemaker")
        known = sagemaker.describe_endpoint(EndpointName="known")
        with pytest.raises(ClientError, match=r"Could not find endpoint .*eu-west-1.*/other") as error:
            sagemaker.describe_endpoint(EndpointName="other")
        assert error.value.response["Error"]["Code"] == "ValidationException"
        client(endpoint, "sagemaker-runtime").invoke_endpoint(EndpointName="other", Body=b"{}")
        assert sagemaker.describe_endpoint(EndpointName="other")["EndpointName"] == "other"
        described = sagemaker.describe_endpoint_config(EndpointConfigName=known["EndpointConfigName"])
        with pytest.raises(ClientError, match="Could not find endpoint configuration"):
            sagemaker.describe_endpoint_config(EndpointConfigName="known")
    assert known["EndpointStatus"] == "InService"
    assert known["ProductionVariants"][0]["CurrentInstanceCount"] == 2
    assert known["MetricsConfig"]["MetricPublishFrequencyInSeconds"] == 30
    assert abs(known["CreationTime"].timestamp() - time.time()) < 60
    variant = described["ProductionVariants"][0]
    assert (variant["VariantName"], variant["InstanceType"]) == ("AllTraffic", "ml.g5.xlarge")


# --- the truth


def drive(endpoint: RunningEndpoint) -> int:
    """Four connections, each a request and a pause of 20 ms: about half of the endpoint's capacity."""
    with ThreadPoolExecutor(4) as pool:
        counts = pool.map(lambda _: len(post(endpoint, 90, pause_s=0.02)), range(4))
        return sum(counts) + sum(len(each) for each in pool.map(lambda _: post(endpoint, 5), range(4)))


def present(log: dict[str, list[Any]]) -> Iterator[int]:
    """How many requests were in the endpoint when each joined them, by the log."""
    for when in log["queued_ns"]:
        spans = zip(log["queued_ns"], log["finish_ns"], strict=True)
        yield sum(queued <= when < done for queued, done in spans)


@pytest.mark.process
def test_what_cloudwatch_says_is_what_the_endpoint_did() -> None:
    with start(EndpointConfig(servers=4, service_s=0.02, publish_interval_s=1, publication_delay_s=0.2)) as endpoint:
        cloudwatch = client(endpoint, "cloudwatch")
        time.sleep(1.1)  # a whole interval without anything
        begin = time.time()
        sent = drive(endpoint)
        end = time.time()
        await_total(cloudwatch, "Invocations", begin, sent)
        log = endpoint.arrivals()
        asked = [query("ModelLatency", stat, 3600) for stat in ("p99", "SampleCount", "Minimum")]
        asked.append(query("OverheadLatency", "Average", 3600))
        one = fetch(cloudwatch, asked, begin - 60, begin + 3000)
        p99, count, least, overhead = (each["Values"][0] for each in one["MetricDataResults"])
        gauges = [hardware("CPUUtilization", "Average", 1), hardware("MemoryUtilization", "Average", 1)]
        cpu, memory = fetch(cloudwatch, gauges, math.ceil(begin), math.floor(end))["MetricDataResults"]
        for name in ("Invocation4XXErrors", "Invocation5XXErrors", "InvocationModelErrors"):
            assert total(cloudwatch, name, begin) == 0
        concurrency = total(cloudwatch, "ConcurrentRequestsPerModel", begin, "Maximum")
        listed = cloudwatch.list_metrics(RecentlyActive="PT3H", Dimensions=[{"Name": "EndpointName", "Value": "demo"}])
    taken = sorted(done - queued for done, queued in zip(log["finish_ns"], log["queued_ns"], strict=True))
    assert count == sent == len(taken)
    assert p99 == pytest.approx(taken[math.ceil(0.99 * sent) - 1] / 1000, rel=0.01)
    assert least == pytest.approx(20_000, rel=0.001)
    whole = zip(log["answered_ns"], log["arrival_ns"], log["finish_ns"], log["queued_ns"], strict=True)
    spent = [(answered - arrived) - (done - queued) for answered, arrived, done, queued in whole]
    assert overhead == pytest.approx(sum(spent) / sent / 1000, abs=1.5)
    seconds = math.floor(end) - math.ceil(begin)
    assert len(cpu["Values"]) == seconds > 1
    busy = busy_servers(log, math.ceil(begin), math.floor(end))
    assert sum(cpu["Values"]) / seconds == pytest.approx(100 * busy, rel=0.02)
    assert sum(memory["Values"]) / seconds == pytest.approx(20 + 10 * busy, rel=0.02)
    assert concurrency == max(present(log))
    assert {"CPUUtilization", "GPUMemoryUtilization", "ModelLatency"} <= {m["MetricName"] for m in listed["Metrics"]}


@pytest.mark.process
def test_a_wrong_namespace_or_dimension_set_finds_nothing(endpoint: RunningEndpoint) -> None:
    cloudwatch = client(endpoint, "cloudwatch")
    begin = time.time()
    post(endpoint, 3)
    await_total(cloudwatch, "Invocations", begin, total(cloudwatch, "ModelLatency", begin, "SampleCount") or 3)
    only_name = [{"Name": "EndpointName", "Value": "demo"}]
    wrong: list[dict[str, Any]] = [
        {"namespace": "/aws/sagemaker/Endpoints"},
        {"dimensions": only_name},
        {"dimensions": []},
    ]
    for more in wrong:
        assert total(cloudwatch, "ModelLatency", begin, "SampleCount", **more) is None


@pytest.mark.process
def test_errors_are_counted_by_their_kind_and_instances_report_one_by_one() -> None:
    config = EndpointConfig(
        servers=2, instances=2, service_s=0.3, queue_limit=0, error_share=0.5, publish_interval_s=1, seed=3
    )
    with start(config) as endpoint:
        cloudwatch = client(endpoint, "cloudwatch")
        begin = time.time()
        with ThreadPoolExecutor(5) as pool:
            statuses = [status for each in pool.map(lambda _: post(endpoint, 2), range(5)) for status in each]
        statuses += post(endpoint, 2, "/v1/chat/completions")
        await_total(cloudwatch, "Invocations", begin, len(statuses))
        failed = sum(status != 200 for status in statuses)
        errors = [total(cloudwatch, f"Invocation{kind}", begin) for kind in ("4XXErrors", "5XXErrors", "ModelErrors")]
        share = total(cloudwatch, "InvocationModelErrors", begin, "Average")
        served = total(cloudwatch, "ModelLatency", begin, "SampleCount")
        per_instance = total(cloudwatch, "InvocationsPerInstance", begin)
        counted = await_gauge(cloudwatch, hardware("CPUUtilization", "SampleCount", 1), begin)
    assert statuses.count(400) == 2
    assert statuses.count(503) > 0
    assert statuses.count(500) > 0
    assert errors == [2, failed - 2, failed]
    assert share == pytest.approx(failed / len(statuses))
    assert served == len(statuses) - statuses.count(503) - 2
    assert per_instance == len(statuses) / 2
    assert counted == 2


@pytest.mark.process
@pytest.mark.parametrize(
    ("status", "answered", "code", "kind"),
    [
        (400, 400, "ValidationError", "4XX"),
        (404, 424, "ModelError", "4XX"),
        (429, 400, "ThrottlingException", "4XX"),
        (500, 500, "InternalFailure", "5XX"),
        (502, 424, "ModelError", "5XX"),
        (503, 503, "ServiceUnavailable", "5XX"),
        (530, 530, "InternalDependencyException", "5XX"),
    ],
)
def test_an_error_is_reported_as_sagemaker_would_and_counted_as_the_models(
    status: int, answered: int, code: str, kind: str
) -> None:
    config = EndpointConfig(service="none", error_share=1, error_status=status, publish_interval_s=1)
    with start(config) as endpoint:
        begin = time.time()
        with pytest.raises(ClientError) as failed:
            client(endpoint, "sagemaker-runtime").invoke_endpoint(EndpointName="demo", Body=b"{}")
        cloudwatch = client(endpoint, "cloudwatch")
        await_total(cloudwatch, "Invocations", begin, 1)
        counted = {each: total(cloudwatch, f"Invocation{each}Errors", begin) for each in ("4XX", "5XX")}
        assert endpoint.arrivals()["status"] == [answered]
    response = failed.value.response
    assert (response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]) == (answered, code)
    assert response.get("OriginalStatusCode") == (status if code == "ModelError" else None)
    assert error_key(failed.value).split().count(code) == 1
    assert counted == {"4XX": 0, "5XX": 0, kind: 1}


@pytest.mark.process
def test_a_request_waits_for_its_model_and_the_metrics_say_so() -> None:
    config = EndpointConfig(
        service="none", models_in_memory=2, model_load_s=0.3, publish_interval_s=1, publication_delay_s=0
    )
    with start(config) as endpoint:
        runtime, cloudwatch = client(endpoint, "sagemaker-runtime"), client(endpoint, "cloudwatch")
        begin = time.time()
        took = []
        for model in ("a", "b", "a", "c", "b", "c"):
            before = time.monotonic()
            answer = runtime.invoke_endpoint(EndpointName="demo", TargetModel=model, Body=b"{}")
            assert answer["Body"].read()
            took.append(time.monotonic() - before)
        await_total(cloudwatch, "Invocations", begin, 6)

        def value(name: str, stat: str) -> float | None:
            return total(cloudwatch, name, begin, stat)

        assert min(took[0], took[1], took[3], took[4]) >= 0.3
        assert (value("ModelCacheHit", "Sum"), value("ModelCacheHit", "SampleCount")) == (2, 6)
        assert (value("ModelLoadingWaitTime", "SampleCount"), value("ModelUnloadingTime", "SampleCount")) == (4, 2)
        assert value("ModelLoadingWaitTime", "Average") == 300_000
        assert value("ModelDownloadingTime", "Sum") == value("ModelLoadingTime", "Sum") == 4 * 150_000
        # the wait for a model is not the model's own latency
        assert value("ModelLatency", "Maximum") == 0
        overhead = value("OverheadLatency", "Maximum")
        assert overhead is not None
        assert overhead >= 300_000
        assert await_gauge(cloudwatch, hardware("LoadedModelCount", "Average", 1), time.time()) == 2


@pytest.mark.process
def test_a_burst_for_a_model_loads_it_once() -> None:
    config = EndpointConfig(service="none", models_in_memory=1, model_load_s=0.5, publish_interval_s=1)
    with start(config) as endpoint:
        cloudwatch = client(endpoint, "cloudwatch")
        begin = time.time()
        runtime = client(endpoint, "sagemaker-runtime", Config(max_pool_connections=8))

        def invoke(_: int) -> None:
            runtime.invoke_endpoint(EndpointName="demo", TargetModel="m", Body=b"{}")["Body"].read()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(invoke, range(8)))
        await_total(cloudwatch, "Invocations", begin, 8)
        assert total(cloudwatch, "ModelLoadingTime", begin, "SampleCount") == 1


@pytest.mark.process
def test_nothing_is_visible_before_its_publication_delay() -> None:
    with start(EndpointConfig(service="none", publish_interval_s=1, publication_delay_s=3600)) as endpoint:
        cloudwatch = client(endpoint, "cloudwatch")
        begin = time.time()
        post(endpoint, 3)
        time.sleep(1.2)
        assert total(cloudwatch, "Invocations", begin) is None
        assert cloudwatch.list_metrics()["Metrics"] == []
