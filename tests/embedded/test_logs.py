"""The embedded endpoint's CloudWatch Logs, asked by boto3: its server errors, as a container tells them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from inference_benchmarker.embedded.aws.aws_json import AwsError, Caller
from inference_benchmarker.embedded.aws.container_log import ContainerLog, LogEvent
from inference_benchmarker.embedded.aws.logs import CloudWatchLogs, page
from inference_benchmarker.embedded.config import LOGS_FAULTS, EndpointConfig
from inference_benchmarker.embedded.running import RunningEndpoint, start

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUP = "/aws/sagemaker/Endpoints/"
RAISED = "RuntimeError: The model failed, as configured."
FAILURES = 3
pytestmark = pytest.mark.process


def client(endpoint: RunningEndpoint, service: str) -> Any:
    session = boto3.Session("demo", "demo", region_name="us-east-1")
    once = Config(retries={"total_max_attempts": 1, "mode": "standard"})
    return session.client(service, endpoint_url=endpoint.url, config=once)


def invoke(endpoint: RunningEndpoint, name: str, times: int) -> None:
    runtime = client(endpoint, "sagemaker-runtime")
    for _ in range(times):
        with suppress(ClientError):
            runtime.invoke_endpoint(EndpointName=name, Body=b"{}")


def messages(found: dict[str, Any]) -> list[str]:
    return [event["message"] for event in found["events"]]


@pytest.fixture(scope="module")
def failing() -> Iterator[RunningEndpoint]:
    """An endpoint of two instances that failed some requests for ``mine``."""
    config = EndpointConfig(service="none", error_share=1, error_status=502, publication_delay_s=0, instances=2)
    with start(config) as endpoint:
        invoke(endpoint, "mine", FAILURES)
        yield endpoint


def test_server_errors_are_logged_for_the_endpoint_that_was_invoked(failing: RunningEndpoint) -> None:
    logs = client(failing, "logs")
    found = logs.filter_log_events(logGroupName=f"{GROUP}mine")
    assert messages(found).count(RAISED) == FAILURES
    assert {event["logStreamName"] for event in found["events"]} == {f"AllTraffic/i-{n:017x}" for n in range(2)}
    assert [event["timestamp"] for event in found["events"]] == sorted(e["timestamp"] for e in found["events"])
    assert RAISED not in messages(logs.filter_log_events(logGroupName=f"{GROUP}demo"))
    by_arn = f"arn:aws:logs:us-east-1:123456789012:log-group:{GROUP}mine"
    assert logs.filter_log_events(logGroupIdentifier=by_arn)["events"] == found["events"]


def test_pages_bring_all_in_order(failing: RunningEndpoint) -> None:
    logs = client(failing, "logs")
    whole = logs.filter_log_events(logGroupName=f"{GROUP}mine")
    asked: dict[str, Any] = {"logGroupName": f"{GROUP}mine", "limit": 4}
    found, tokens = [], 0
    while True:
        one = logs.filter_log_events(**asked)
        assert len(one["events"]) <= 4
        found += one["events"]
        if "nextToken" not in one:
            break
        asked["nextToken"] = one["nextToken"]
        tokens += 1
    assert found == whole["events"]
    assert tokens == (len(found) - 1) // 4


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"logGroupName": f"{GROUP}other"}, "ResourceNotFoundException"),
        ({"logGroupName": "mine"}, "ResourceNotFoundException"),
        ({"logGroupName": f"{GROUP}mine", "nextToken": "x"}, "InvalidParameterException"),
        ({"logGroupName": f"{GROUP}mine", "filterPattern": "ERROR"}, "InvalidParameterException"),
        ({}, "InvalidParameterException"),
    ],
)
def test_what_is_refused(failing: RunningEndpoint, asked: dict[str, Any], code: str) -> None:
    with pytest.raises(ClientError, match=code):
        client(failing, "logs").filter_log_events(**asked)


@pytest.mark.parametrize("fault", LOGS_FAULTS)
def test_faults_of_the_service(fault: str) -> None:
    service = CloudWatchLogs(EndpointConfig(logs_fault=fault), dict, lambda: 0.0).service
    with pytest.raises(AwsError) as raised:
        service.operations["FilterLogEvents"]({"logGroupName": f"{GROUP}demo"}, Caller("us-east-1"))
    assert raised.value.code == fault


@pytest.mark.parametrize(("now", "visible"), [(60.9, 0), (61.0, 1), (64.9, 1), (65.0, 7)])
def test_lines_come_late(now: float, visible: int) -> None:
    log = ContainerLog(["s"], 1000)
    log.failed(500, 5000, in_service=True)
    service = CloudWatchLogs(EndpointConfig(publication_delay_s=60), lambda: {"demo": log}, lambda: now).service
    found = service.operations["FilterLogEvents"]({"logGroupName": f"{GROUP}demo"}, Caller("us-east-1"))
    assert len(found["events"]) == visible


def test_what_is_the_clients_fault_is_not_logged_and_a_full_queue_is_one_line() -> None:
    log = ContainerLog(["s"], 0)
    log.failed(424, 1, in_service=True)
    log.failed(400, 1, in_service=False)
    log.failed(503, 1, in_service=False)
    assert [event.message for event in log.events()][1:] == ["[WARNING] request 1: the queue is full, answered 503"]


def test_a_page_holds_a_megabyte_and_one_event_at_least() -> None:
    events = [LogEvent(1, "s", str(number), "x" * 600_000) for number in range(2)]
    huge = [LogEvent(1, "s", "0", "x" * 2_000_000)]
    assert len(page(events, {})["events"]) == 1
    assert len(page(events, {"nextToken": page(events, {})["nextToken"]})["events"]) == 1
    assert len(page(huge, {})["events"]) == 1
