"""What is said of the server metrics before anything is sent: never wrong, never a reason not to start."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import EndpointConnectionError

from inference_benchmarker.verdict.server.known_metrics import warning
from server_capacity.metrics import prometheus
from server_capacity.metrics.cloudwatch import source as cloudwatch_source
from server_capacity.metrics.cloudwatch.block import CloudWatchBlock, read_block
from server_capacity.metrics.cloudwatch.source import CloudWatch
from server_capacity.metrics.cloudwatch.warnings import warnings
from server_capacity.metrics.config import load_config
from server_capacity.metrics.prometheus import make_source
from server_capacity.metrics.prometheus.block import PageBlock, ServerBlock
from tests.fake_cloudwatch import cloudwatch_block, nothing_configured
from tests.fake_prometheus import fake as page_of
from tests.fake_sagemaker import DENIED, NOT_FOUND, UNREACHABLE, SageMaker, produced

if TYPE_CHECKING:
    from tests.bench import Bench

SAGEMAKER, INSTANCES = "AWS/SageMaker", "/aws/sagemaker/Endpoints"
EXAMPLES = sorted(Path(cloudwatch_source.__file__).parents[2].glob("server_metrics_configs/*.json"))
VARIANT = ("EndpointName", "VariantName")
CPU = {"CPUUtilization": ["Average"], "GPUUtilization": ["Average"]}


@pytest.mark.parametrize(
    ("namespace", "name", "dimensions", "statistics", "expected"),
    [
        (
            INSTANCES,
            "CPUUtilisation",
            VARIANT,
            ["Average"],
            "/aws/sagemaker/Endpoints has no metric 'CPUUtilisation' that this tool knows. Did you mean "
            "'CPUUtilization'?",
        ),
        (SAGEMAKER, "Foo", VARIANT, ["Sum"], "AWS/SageMaker has no metric 'Foo' that this tool knows."),
        (
            "AWS/Sagemaker",
            "ModelLatency",
            VARIANT,
            ["Average"],
            "CloudWatch has no namespace 'AWS/Sagemaker' that this tool knows. Did you mean 'AWS/SageMaker'?",
        ),
        (
            INSTANCES,
            "ModelLatency",
            VARIANT,
            ["p99"],
            "ModelLatency lives in AWS/SageMaker, not in /aws/sagemaker/Endpoints",
        ),
        (
            SAGEMAKER,
            "ModelLatency",
            ["EndpointName"],
            ["p99"],
            "ModelLatency is published with EndpointName and VariantName: add the dimension VariantName (often",
        ),
        (
            SAGEMAKER,
            "Invocations",
            VARIANT,
            ["p99"],
            "AWS/SageMaker documents Sum and SampleCount for Invocations, not p99",
        ),
        (
            "AWS/Lambda",
            "Durations",
            ["FunctionName"],
            ["p99"],
            "AWS/Lambda has no metric 'Durations' that this tool knows.",
        ),
        (SAGEMAKER, "ModelLatency", VARIANT, ["p99"], ""),
        (SAGEMAKER, "ModelLatency", (*VARIANT, "InstanceId"), ["p99"], ""),
        ("MyCompany/Inference", "QueueDepth", ["Host"], ["p99"], ""),
        ("MyCompany/Inference", "ModelLatency", ["Host"], ["p99"], ""),
        ("AWS/EC2", "CPUUtilization", ["InstanceId"], ["Average"], ""),
        ("ContainerInsights", "node_cpu_utilization", ["ClusterName"], ["Average"], ""),
        ("AWS/Lambda", "Duration", [], ["p99"], ""),
        ("AWS/Lambda", "IteratorAge", ["FunctionName"], ["Maximum"], ""),
        ("AWS/ApplicationELB", "HTTPCode_ELB_502_Count", ["LoadBalancer"], ["Sum"], ""),
        ("AWS/ApplicationELB", "ProcessedBytes", ["LoadBalancer"], ["Sum"], ""),
    ],
)
def test_what_documentation_warns_of(
    namespace: str, name: str, dimensions: list[str], statistics: list[str], expected: str
) -> None:
    said = warning(namespace, name, dimensions, statistics)
    assert said.startswith(expected)
    assert bool(said) == bool(expected)


def of(*blocks: dict[str, Any], seconds: float | None = None) -> list[str]:
    return warnings([read_block(block) for block in blocks], seconds)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_no_example_is_warned_of(path: Path) -> None:
    blocks = [block for block in load_config(path) if isinstance(block, CloudWatchBlock)]
    assert warnings(blocks, 180) == []


def test_what_metrics_of_a_block_share_is_said_once() -> None:
    latencies = cloudwatch_block(INSTANCES, {"ModelLatency": ["p99"], "OverheadLatency": ["Sum"]})
    assert of(latencies, latencies) == [
        "ModelLatency lives in AWS/SageMaker, not in /aws/sagemaker/Endpoints; the same holds for OverheadLatency"
    ]
    misspelt = cloudwatch_block("aws/sagemaker/Endpoints", CPU)
    assert len(of(misspelt)) == 1


@pytest.mark.parametrize(
    ("period", "seconds", "doubted"),
    [(60, 20, True), (60, 180, False), (60, None, False), (1, 3, False), (1, 2, True), (10, 29, True)],
)
def test_gauges_need_three_periods(period: int, seconds: float | None, doubted: bool) -> None:
    said = of(cloudwatch_block(INSTANCES, CPU, period=period), seconds=seconds)
    text = (
        f"a wave of {seconds} s is shorter than 3 periods of {period} s, and idle time dilutes CPUUtilization and"
        f" GPUUtilization: take {3 * period} s or more{', or a shorter Period' if period > 1 else ''}"
    )
    assert said == ([text] if doubted else [])
    assert of(cloudwatch_block(SAGEMAKER, {"ModelLatency": ["p99"]}, period=period), seconds=seconds) == []


class NoCloudWatch:
    """Of a region where nobody answers."""

    meta = SimpleNamespace(endpoint_url="http://nowhere", region_name="us-east-1")

    def get_metric_data(self, **_: object) -> dict[str, Any]:
        raise EndpointConnectionError(endpoint_url=self.meta.endpoint_url)


@pytest.mark.parametrize(
    ("sagemaker", "expected"),
    [
        (SageMaker(), []),
        (SageMaker(NOT_FOUND), ["there is no endpoint 'demo' in us-east-1"]),
        (SageMaker(produced({"VariantName": "blue"})), ["endpoint 'demo' has no variant 'AllTraffic', only blue"]),
        (
            SageMaker(DENIED),
            [
                "endpoint 'demo': these credentials may not call sagemaker:DescribeEndpoint (AccessDeniedException: no)"
                ": its instances are not followed"
            ],
        ),
        (SageMaker(UNREACHABLE), []),
        (None, []),
    ],
)
def test_only_a_clear_no_is_said_of_an_endpoint(sagemaker: SageMaker | None, expected: list[str]) -> None:
    block = read_block(cloudwatch_block(SAGEMAKER, {"ModelLatency": ["p99"]}))
    assert CloudWatch([block, block], client=NoCloudWatch(), sagemaker=sagemaker).warnings(60) == expected


def test_a_control_plane_that_hangs_does_not_hold_up_the_wave(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    class Hanging(SageMaker):
        def describe_endpoint(self, EndpointName: str) -> dict[str, Any]:  # noqa: ARG002, N803 - boto3's name
            released.wait(60)
            raise NOT_FOUND

    monkeypatch.setattr(cloudwatch_source, "LOOK_UP_S", 0.05)
    block = read_block(cloudwatch_block(SAGEMAKER, {"ModelLatency": ["p99"]}))
    began = time.monotonic()
    assert CloudWatch([block], client=NoCloudWatch(), sagemaker=Hanging()).warnings(60) == []
    assert time.monotonic() - began < 30
    released.set()


@pytest.mark.parametrize(
    ("page", "metrics", "expected"),
    [
        ((200, "a 1\nb 2\n"), ["a", "c"], ""),
        ((200, "a 1\n"), ['a{x="1"}'], 'the page has no a{x="1"}'),
        ((200, "a 1\n"), ["c", "d"], "the page has none of the 2 metrics asked for: no c, and so on"),
        ((404, "nothing"), ["a"], "HTTP 404 Not Found: nothing"),
        ((200, "<html>", "text/html"), ["a"], "it is an HTML page, not a metrics page: its path is often /metrics"),
        ((200, "{}"), ["a"], "line 1 is not in Prometheus' text format"),
    ],
)
def test_a_page_is_read_once_before_the_wave(page: tuple[Any, ...], metrics: list[str], expected: str) -> None:
    with page_of(*page) as server:
        block = {"stream": "prometheus", "scrape_url": f"{server.url}/metrics?key=1", "metrics": metrics}
        said = make_source([prometheus.read_block(block)]).warnings(60)
    place = server.url.removeprefix("http://")
    assert [each.startswith(f"{place}/metrics: {expected}") for each in said] == ([True] if expected else [])


def test_a_page_out_of_reach_is_said_and_a_server_is_not_asked() -> None:
    page = PageBlock("http://127.0.0.1:1/metrics", (("a", ()),))
    server = ServerBlock("http://127.0.0.1:1", (("a", "a"),))
    (said,) = make_source([page, server]).warnings(None)
    assert said.startswith("127.0.0.1:1/metrics: 127.0.0.1:1 cannot be reached (")


@pytest.mark.process
@pytest.mark.parametrize("flag", [pytest.param("--json", marks=pytest.mark.slow), "--quiet"])
def test_warnings_come_before_the_first_request_and_stop_nothing(bench: Bench, flag: str) -> None:
    folder = bench.folder()
    asked = cloudwatch_block(INSTANCES, {"CPUUtilisation": ["Average"]}, endpoint="other", period=1)
    page = {"stream": "prometheus", "scrape_url": "http://127.0.0.1:1/metrics", "metrics": ["a"]}
    (folder / "metrics.json").write_text(json.dumps([asked, page]))
    with bench.endpoint(service="none", publish_interval_s=1) as endpoint:
        finished = bench.run(
            *("--client-rps", 10, "--obs-time", 1, "--endpoint-config", "metrics.json", flag),
            target=endpoint,
            environment={**nothing_configured(folder), **endpoint.aws_environment},
            folder=folder,
        )
        assert len(endpoint.arrivals()["id"]) == 10
    assert finished.exit_code == 0
    said = [line for line in finished.err.splitlines() if line.startswith("metrics.json: ")]
    assert "that this tool knows" not in finished.out.partition("{")[0]
    if flag == "--quiet":
        assert said == []
        return
    assert [line.partition(": ")[2].partition("(")[0] for line in said] == [
        "/aws/sagemaker/Endpoints has no metric 'CPUUtilisation' that this tool knows. Did you mean 'CPUUtilization'?",
        "there is no endpoint 'other' in us-east-1",
        "127.0.0.1:1/metrics: 127.0.0.1:1 cannot be reached ",
    ]
    assert finished.err.splitlines()[: len(said)] == said, "before there is any progress to tell"
    assert json.loads(finished.out)["ledger"]["sent"] == 10
