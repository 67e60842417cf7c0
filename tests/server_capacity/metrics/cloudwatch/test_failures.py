"""Whatever becomes of the server's metrics: a clear sentence, and the wave's own result as it would be without them."""

from __future__ import annotations

import json
import re
import signal
import socket
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from tests.fake_cloudwatch import cloudwatch_block, nothing_configured, of_this_machine
from tests.mentions import mentions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inference_benchmarker.embedded.running import RunningEndpoint
    from tests.bench import Bench, Finished, Running

SAGEMAKER, INSTANCES = "AWS/SageMaker", "/aws/sagemaker/Endpoints"
RATE, SECONDS = 20, 2
LATENCY = {"ModelLatency": ["Average", "p99"]}
COUNT = {"Invocations": ["Sum"]}
FAULTS = {"metric_faults": {"ModelLatency": "Forbidden", "Invocations": "PartialData"}}


def wave(
    bench: Bench,
    endpoint: RunningEndpoint,
    *asked: dict[str, Any],
    environment: Mapping[str, str] | None = None,
    seconds: float = SECONDS,
) -> Running:
    """A wave against the endpoint with these blocks of metrics."""
    folder = bench.folder()
    (folder / "metrics.json").write_text(json.dumps(asked))
    return bench.start(
        *("--client-rps", RATE, "--obs-time", seconds, "--endpoint-config", "metrics.json"),
        target=endpoint,
        environment={**endpoint.aws_environment, **(environment or {})},
        folder=folder,
    )


def check_the_wave_is_kept(finished: Finished, sent: int, *, code: int = 0) -> None:
    """Printed block, books and exit code are those of the wave without its metrics, and nobody sees a traceback."""
    assert f"Total requests fired: {sent}" in finished.out
    assert len(finished.everything) == finished.ledger["sent"] == sent
    finished.check_books(str(RATE))
    assert finished.exit_code == code
    assert "Traceback" not in finished.out + finished.err
    assert finished.err.count("⏳ Fetching server metrics: cloudwatch") == 1


def row(finished: Finished, name: str) -> dict[str, Any]:
    (found,) = [each for each in finished.summary["server_metrics"] if each["name"] == name and each["asked"]]
    assert isinstance(found, dict)
    return found


def line(finished: Finished, name: str) -> str:
    """What the report says of a metric."""
    (found,) = [text for text in finished.out.splitlines() if text.startswith(f"   {name}: ")]
    return found


def check_missing(finished: Finished, reason: str, name: str = "ModelLatency") -> None:
    """The values are None, the reason stands beside them, and there is a finding."""
    assert set(row(finished, name)["statistics"].values()) == {None}
    assert reason in row(finished, name)["reason"]
    assert reason in line(finished, name)
    assert "N/A" in line(finished, name)
    assert finished.findings["server_metrics"] == "warning"


@pytest.mark.process
@pytest.mark.parametrize(
    ("like", "reason", "code"),
    [
        (
            {"access_denied": True, "error_share": 1.0},
            "allow cloudwatch:GetMetricData (AccessDenied: User: arn:aws",
            1,
        ),
        (FAULTS, "CloudWatch forbids reading this metric (another account or region?)", 0),
    ],
    ids=["credentials that may not, and the server fails", "one metric forbidden, another in parts"],
)
def test_what_is_refused(bench: Bench, like: dict[str, Any], reason: str, code: int) -> None:
    with bench.endpoint(publish_interval_s=1, **like) as endpoint:
        finished = wave(bench, endpoint, cloudwatch_block(SAGEMAKER, {**LATENCY, **COUNT}, period=1)).finish()
    check_missing(finished, reason)
    check_the_wave_is_kept(finished, RATE * SECONDS, code=code)
    denied = "was not read: these credentials may not read it: allow logs:FilterLogEvents on arn:aws:logs:us-east-1:*:"
    assert (denied in " ".join(finished.out.split())) == ("error_share" in like)
    expected = None if "access_denied" in like else RATE * SECONDS
    assert row(finished, "Invocations")["statistics"] == {"Sum": expected}


@pytest.mark.process
def test_no_network(bench: Bench) -> None:
    with socket.socket() as closed, bench.endpoint(publish_interval_s=1) as endpoint:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        nowhere = {"AWS_ENDPOINT_URL_CLOUDWATCH": address, "AWS_ENDPOINT_URL_SAGEMAKER": address}
        finished = wave(bench, endpoint, cloudwatch_block(SAGEMAKER, LATENCY, period=1), environment=nowhere).finish()
    check_missing(finished, f"no connection to {address}: check network, proxy and region us-east-1")
    check_the_wave_is_kept(finished, RATE * SECONDS)


@pytest.mark.process
def test_an_endpoint_that_does_not_exist(bench: Bench) -> None:
    with bench.endpoint(publish_interval_s=1) as endpoint:
        other = cloudwatch_block(SAGEMAKER, LATENCY, endpoint="other", period=1)
        finished = wave(bench, endpoint, other).finish()
    check_missing(finished, "there is no endpoint 'other' in us-east-1")
    assert mentions(
        line(finished, "ModelLatency"), "CloudWatch", "ModelLatency", "EndpointName=demo", "VariantName=AllTraffic"
    )
    check_the_wave_is_kept(finished, RATE * SECONDS)


@pytest.mark.process
@pytest.mark.slow
def test_600_queries_with_every_other_call_throttled(bench: Bench) -> None:
    percentiles = [f"p{tenth / 10:g}" for tenth in range(400, 1000)]
    with bench.endpoint(publish_interval_s=1, throttle_every=2) as endpoint:
        finished = wave(bench, endpoint, cloudwatch_block(SAGEMAKER, {"ModelLatency": percentiles}, period=1)).finish()
    found = row(finished, "ModelLatency")
    assert (found["reason"], found["complete"]) == (None, True)
    values = [found["statistics"][percentile] for percentile in percentiles]
    assert values == sorted(values)
    assert values[0] >= 20_000
    assert "server_metrics" not in finished.findings
    check_the_wave_is_kept(finished, RATE * SECONDS)


def wait_for_polls(running: Running, endpoint: RunningEndpoint) -> None:
    """Wait until there were two polls and more after the wave: of three calls at most, or of one with its attempts."""

    def calls() -> int:
        return sum(map(int, re.findall(r'requests_total\{route="/",status="\d+"\} (\d+)', endpoint.metrics())))

    running.wait_for(lambda: "⏳" in running.err, "the metrics are waited for")
    before = calls()
    running.wait_for(lambda: calls() > before + 8, "9 calls")


@pytest.mark.process
@pytest.mark.parametrize(
    ("like", "number", "reason"),
    [
        ({"publication_delay_s": 3600}, signal.SIGINT, "when the wait was interrupted, "),
        pytest.param(
            {"metric_faults": {"ModelLatency": "InternalError"}},
            signal.SIGTERM,
            "CloudWatch had an internal error",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"throttle_every": 1},
            signal.SIGINT,
            "also at attempt 4 (Throttling: Rate exceeded)",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["nothing published", "an internal error", "everything throttled"],
)
def test_ctrl_c_while_metrics_are_waited_for(
    bench: Bench, like: dict[str, Any], number: signal.Signals, reason: str
) -> None:
    with bench.endpoint(publish_interval_s=1, **like) as endpoint:
        late = {**cloudwatch_block(SAGEMAKER, {**LATENCY, **COUNT}, period=5), "Wait": 600.0}
        running = wave(bench, endpoint, late)
        wait_for_polls(running, endpoint)
        assert f"Total requests fired: {RATE * SECONDS}" in running.out, "the wave is shown before the metrics come"
        assert {"summary.json", "requests.parquet"} <= {path.name for path in running.run_dirs()[0].iterdir()}
        running.signal(number)
        finished = running.finish()
    check_missing(finished, reason)
    check_the_wave_is_kept(finished, RATE * SECONDS)


@pytest.mark.process
def test_metrics_that_did_not_come_can_be_asked_for_again(bench: Bench) -> None:
    with bench.endpoint(publish_interval_s=1) as endpoint:
        page = {"stream": "prometheus", "scrape_url": f"{endpoint.url}/metrics", "metrics": ["demo_endpoint_servers"]}
        nowhere = dict.fromkeys(("AWS_ENDPOINT_URL_CLOUDWATCH", "AWS_ENDPOINT_URL_SAGEMAKER"), "http://127.0.0.1:9")
        running = wave(bench, endpoint, cloudwatch_block(SAGEMAKER, COUNT, period=1), page, environment=nowhere)
        finished = running.finish()
        assert row(finished, "Invocations")["statistics"] == {"Sum": None}
        before = row(finished, "demo_endpoint_servers")
        flags = ("report", finished.folder, "--endpoint-config", running.folder / "metrics.json")
        again = bench.run(*flags, factories=None, environment=endpoint.aws_environment)
    assert f"Invocations: Sum={RATE * SECONDS}" in again.out
    assert "server_metrics" not in again.out
    counted, watched = json.loads((finished.folder / "summary.json").read_text())["server_metrics"]
    assert counted["statistics"] == {"Sum": RATE * SECONDS}
    assert watched == before, "a page keeps no past: what was read of it stays"


@pytest.mark.process
def test_five_seconds_with_a_period_of_a_minute(bench: Bench) -> None:
    """The values of the minutes around the wave are put by the test; Ctrl-C ends the waiting for the minute's end."""
    with bench.endpoint(publish_interval_s=1, publication_delay_s=0) as endpoint:
        cpu = cloudwatch_block(INSTANCES, {"CPUUtilization": ["Average", "Maximum", "Minimum"]}, endpoint="minutes")
        running = wave(bench, endpoint, cpu, cloudwatch_block(SAGEMAKER, COUNT, period=1), seconds=5)
        running.wait_for_arrivals(endpoint, 1)
        put_minutes(endpoint, cpu["Dimensions"], 60.0)
        wait_for_polls(running, endpoint)
        running.signal(signal.SIGINT)
        finished = running.finish()
    found = row(finished, "CPUUtilization")
    assert found["statistics"] == {"Average": 60, "Maximum": 60, "Minimum": None}
    assert mentions(line(finished, "CPUUtilization"), "60 s", "5.0 s", "180 s", "Period")
    assert row(finished, "Invocations")["statistics"] == {"Sum": 5 * RATE}
    assert finished.findings["server_metrics"] == "warning"
    check_the_wave_is_kept(finished, 5 * RATE)


def put_minutes(endpoint: RunningEndpoint, dimensions: Sequence[dict[str, str]], busy: float) -> None:
    """CPUUtilization of the running minute and of those beside it."""
    client = boto3.Session("demo", "demo", region_name="us-east-1").client("cloudwatch", endpoint_url=endpoint.url)
    now = datetime.now(UTC).timestamp() // 60 * 60
    client.put_metric_data(
        Namespace=INSTANCES,
        MetricData=[
            {
                "MetricName": "CPUUtilization",
                "Dimensions": dimensions,
                "Timestamp": datetime.fromtimestamp(now + 60 * minute, UTC),
                "Value": busy,
            }
            for minute in (-1, 0, 1)
        ],
    )


@pytest.mark.process
@pytest.mark.parametrize(
    ("given", "problems"),
    [
        ({}, ["there are no AWS credentials", "there is no AWS region"]),
        ({"AWS_ACCESS_KEY_ID": "a b", "AWS_SECRET_ACCESS_KEY": "s"}, ["key is malformed", "there is no AWS region"]),
    ],
    ids=["absent", "malformed"],
)
def test_credentials_that_cannot_be_right_end_it_before_anything_is_sent(
    bench: Bench, given: dict[str, str], problems: list[str]
) -> None:
    folder = bench.folder()
    (folder / "metrics.json").write_text(json.dumps([cloudwatch_block(SAGEMAKER, LATENCY)]))
    with bench.endpoint(service="none") as endpoint:
        finished = bench.run(
            *("--client-rps", RATE, "--obs-time", 1, "--endpoint-config", "metrics.json"),
            target=endpoint,
            folder=folder,
            environment={**nothing_configured(folder), **given},
            before=" ".join(["unset", "NOTHING", *(set(of_this_machine()) - {*nothing_configured(folder), *given})]),
        )
        assert endpoint.arrivals()["id"] == []
    assert finished.code == 2
    assert [problem in reported for problem, reported in zip(problems, finished.err.splitlines(), strict=True)] == [
        True,
        True,
    ]
    assert finished.out == ""
