"""What an endpoint wrote while requests failed: asked of CloudWatch Logs once, and whatever becomes of that."""

from __future__ import annotations

import email.utils
import time
from threading import Event
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config

from inference_benchmarker.data.decoded import decoded, encoded
from inference_benchmarker.embedded.aws.boto3_settings import boto3_settings
from inference_benchmarker.facts.server_metric import Interval, LogLine, ServerLog, logged, renewed_logs
from server_capacity.metrics.cloudwatch import logs, make_source
from server_capacity.metrics.cloudwatch.block import read_block
from server_capacity.metrics.cloudwatch.fetch import make_client
from server_capacity.metrics.cloudwatch.logs import LogReader, groups_of
from server_capacity.metrics.cloudwatch.source import CloudWatch
from tests.fake_cloudwatch import Clock, FakeCloudWatch, alone, cloudwatch_block, error, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Reading = Callable[..., list[ServerLog]]

NOON = 1_782_129_600
WAVE = Interval(begin=NOON, start=NOON + 17.0004, end=NOON + 30.0004, sent=10)
GROUP = "/aws/sagemaker/Endpoints/demo"
SAGEMAKER = "AWS/SageMaker"
BLOCK = cloudwatch_block(SAGEMAKER, {"Invocations": ["Sum"]})


def said(message: str, stream: str = "AllTraffic/i-0") -> dict[str, Any]:
    return {"logStreamName": stream, "timestamp": NOON * 1000, "message": message, "eventId": "1"}


def pages(*content: list[str]) -> Callable[[str, dict[str, Any]], tuple[int, dict[str, Any]] | None]:
    """Answers FilterLogEvents with these pages, one after the other."""

    def answer(operation: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        if operation != "FilterLogEvents":
            return None
        place = int(request.get("nextToken", 0))
        more = {"nextToken": str(place + 1)} if place + 1 < len(content) else {}
        return 200, {"events": [said(line) for line in content[place]], "searchedLogStreams": [], **more}

    return answer


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[FakeCloudWatch, Any]]:
    """A fake and one client of its logs: to make one takes longer than a test."""
    fake = FakeCloudWatch(Clock(WAVE.end))
    once = Config(retries={"total_max_attempts": 1, "mode": "standard"})
    with serving(fake) as address:
        yield fake, boto3.Session("k", "s", region_name="us-east-1").client("logs", endpoint_url=address, config=once)


@pytest.fixture
def fake(served: tuple[FakeCloudWatch, Any]) -> FakeCloudWatch:
    fake, _ = served
    fake.date = None
    fake.requests.clear()
    return fake


@pytest.fixture
def read(served: tuple[FakeCloudWatch, Any]) -> Callable[..., list[ServerLog]]:
    """Reads the log groups of the blocks."""

    def found(*blocks: dict[str, Any], **more: Any) -> list[ServerLog]:
        groups = groups_of(map(read_block, blocks or (BLOCK,)))
        logs = LogReader(served[1], WAVE, lambda *_: None, **more).read(groups)
        assert [decoded(encoded(each), ServerLog) for each in logs] == logs
        return logs

    return found


@pytest.fixture
def _aws(served: tuple[FakeCloudWatch, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment that leads boto3 to the fake."""
    alone(monkeypatch, tmp_path)
    monkeypatch.setattr(logs, "ATTEMPTS", 1)
    for name, value in boto3_settings(served[1].meta.endpoint_url).items():
        monkeypatch.setenv(name, value)


def test_all_pages_over_the_window(fake: FakeCloudWatch, read: Reading) -> None:
    fake.fault = pages(["ERROR 1"], [], ["ERROR 2", "fine"])
    (log,) = read()
    assert log == ServerLog(GROUP, WAVE.start, WAVE.end, 3, (LogLine("ERROR 1", 2),), errors=True)
    asked = {"logGroupName": GROUP, "startTime": NOON * 1000 + 17_000, "endTime": NOON * 1000 + 30_001}
    assert fake.requests == [asked, {**asked, "nextToken": "1"}, {**asked, "nextToken": "2"}]


def test_each_group_says_its_own(fake: FakeCloudWatch, read: Reading) -> None:
    fake.fault = lambda _, request: (200, {"events": [said(f"ERROR of {request['logGroupName'].rpartition('/')[2]}")]})
    component = {**BLOCK, "Dimensions": [{"Name": "InferenceComponentName", "Value": "part"}]}
    function = {**BLOCK, "Namespace": "AWS/Lambda", "Dimensions": [{"Name": "FunctionName", "Value": "f"}]}
    balancer = {**BLOCK, "Dimensions": [{"Name": "LoadBalancer", "Value": "app/x/1"}]}
    found = read(BLOCK, BLOCK, component, function, balancer)
    assert [(log.group, log.lines[0].text) for log in found] == [
        (GROUP, "ERROR of demo"),
        ("/aws/sagemaker/InferenceComponents/part", "ERROR of part"),
        ("/aws/lambda/f", "ERROR of f"),
    ]


def test_many_groups_are_not_all_asked() -> None:
    blocks = [cloudwatch_block(SAGEMAKER, {"Invocations": ["Sum"]}, endpoint=f"e{number}") for number in range(9)]
    assert len(groups_of(map(read_block, blocks))) == logs.MOST_GROUPS


@pytest.mark.usefixtures("_aws")
def test_the_users_secrets_stand_in_no_line(fake: FakeCloudWatch) -> None:
    fake.fault = pages(["ERROR with hunter2hunter2"])
    (log,) = make_source([read_block(BLOCK)], {"MY_TOKEN": "hunter2hunter2"}).logs(WAVE, lambda *_: None)
    assert log.lines == (LogLine("ERROR with [hidden]", 1),)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            error("AccessDeniedException"),
            "these credentials may not read it: allow logs:FilterLogEvents on "
            f"arn:aws:logs:us-east-1:*:log-group:{GROUP}:* (AccessDeniedException: said so)",
        ),
        (error("ResourceNotFoundException"), "there is no such group in us-east-1; the endpoint has written nothing"),
        (error("ThrottlingException"), "CloudWatch throttled the queries, also at attempt 1 (ThrottlingException"),
        (error("ExpiredTokenException"), "the AWS credentials have expired: renew them"),
        (error("ServiceUnavailableException", status=503), "CloudWatch failed with HTTP 503"),
        (error("InvalidParameterException", "\x1b[2J" + "x" * 5000), "CloudWatch refused the query (Invalid"),
        ((200, {"events": [{"timestamp": 1}]}), "is not CloudWatch's (KeyError: 'message')"),
        ((200, {"events": [{"message": 7}]}), "is not CloudWatch's (TypeError"),
    ],
)
def test_what_errors_become(
    fake: FakeCloudWatch, read: Reading, answer: tuple[int, dict[str, Any]], reason: str
) -> None:
    fake.fault = lambda *_: answer
    (log,) = read()
    assert (log.events, log.lines, log.errors) == (0, (), False)
    assert reason in (log.reason or "")
    assert (log.reason or "").isprintable()
    assert len(log.reason or "") <= 500


@pytest.mark.usefixtures("_aws")
def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def reason() -> str | None:
        (log,) = LogReader(logs.make_client("us-east-1"), WAVE, lambda *_: None).read([GROUP])
        return log.reason

    monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH_LOGS", "http://127.0.0.1:9")
    assert (reason() or "").startswith("no connection to http://127.0.0.1:9: check network, proxy and region us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH_LOGS", "nowhere")
    assert reason() == "the AWS configuration makes no client for CloudWatch Logs"


@pytest.mark.parametrize(
    ("limits", "events", "reason"),
    [
        ({"MOST_EVENTS": 3}, 3, "there are more than the tool reads"),
        ({"MOST_CHARACTERS": 15}, 2, "there are more than the tool reads"),
        ({"MOST_PAGES": 2}, 4, "they are on more pages than the tool reads"),
        ({"MOST_S": -1.0}, 0, "that took longer than -1 s; `benchmark report DIR --endpoint-config FILE` asks again"),
        ({"MOST_EVENTS": 6}, 6, None),
    ],
)
def test_an_answer_that_is_too_long(
    served: tuple[FakeCloudWatch, Any], read: Reading, limits: dict[str, Any], events: int, reason: str | None
) -> None:
    served[0].fault = pages(["ERROR 1", "ERROR 2"], ["ERROR 3", "ERROR 4"], ["ERROR 5", "ERROR 6"])
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in limits.items():
            patch.setattr(logs, name, limit)
        (log,) = read()
    assert (log.events, log.reason) == (events, reason)
    assert [line.count for line in log.lines] == [events] * bool(events)


def test_a_token_that_comes_again_ends_it(fake: FakeCloudWatch, read: Reading) -> None:
    fake.fault = lambda *_: (200, {"events": [said("ERROR")], "nextToken": "same"})
    assert (read()[0].events, len(fake.requests)) == (2, 2)


def reader(answer: Callable[..., Any], say: Callable[[str], None] = lambda *_: None, **more: Any) -> LogReader:
    return LogReader(SimpleNamespace(filter_log_events=answer, meta=None), WAVE, say, **more)


def test_an_interrupt_ends_it_with_what_came() -> None:
    def answer(**request: Any) -> dict[str, Any]:
        if "nextToken" in request:
            raise KeyboardInterrupt
        return {"events": [said("ERROR 1")], "nextToken": "1"}

    first, second = reader(answer).read([GROUP, "other"])
    reason = "the wait was interrupted; `benchmark report DIR --endpoint-config FILE` asks again"
    assert (first.events, first.lines, first.reason) == (1, (LogLine("ERROR 1", 1),), reason)
    assert (second.events, second.lines, second.reason) == (0, (), reason)


@pytest.mark.usefixtures("_aws")
def test_the_log_is_read_as_the_metrics_were_waited_for(fake: FakeCloudWatch) -> None:
    """By CloudWatch's clock; and whoever did not wait for metrics does not wait for logs."""

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    fake.fault = lambda *_: None
    fake.date = email.utils.formatdate(time.time() + 600, usegmt=True)
    client = make_client(1)
    patient = CloudWatch([read_block(BLOCK)], client, fake.clock, fake.clock.sleep)
    patient.collect(WAVE, lambda *_: None)
    patient.logs(WAVE, lambda *_: None)
    (asked,) = [request for request in fake.requests if "logGroupName" in request]
    assert asked["startTime"] - NOON * 1000 == pytest.approx(617_000, abs=60_000)
    assert asked["endTime"] - asked["startTime"] in (13_000, 13_001)
    fake.requests.clear()
    hasty = CloudWatch([read_block(BLOCK)], client, Clock(WAVE.end), interrupt)
    hasty.collect(WAVE, lambda *_: None)
    assert "the wait was interrupted" in (hasty.logs(WAVE, lambda *_: None)[0].reason or "")
    assert not [request for request in fake.requests if "logGroupName" in request]


def test_what_takes_longer_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "QUIET_S", 0.01)
    lines: list[str] = []
    heard = Event()

    def say(text: str) -> None:
        lines.append(text)
        heard.set()

    def answer(**_: Any) -> dict[str, Any]:
        assert heard.wait(30)
        return {"events": []}

    reader(answer, say).read([GROUP])
    assert lines == ["   cloudwatch: reading the endpoint's log, 20 s at most (Ctrl-C: report what has arrived)"]


def test_what_is_quick_is_not_said() -> None:
    lines: list[str] = []
    reader(lambda **_: {"events": []}, lines.append).read([GROUP])
    assert lines == []


def test_a_fault_of_ours_costs_no_wave(capsys: pytest.CaptureFixture[str]) -> None:
    class Faulty(CloudWatch):
        def logs(self, *_: object) -> list[ServerLog]:
            raise LookupError("x")

    (log,) = logged(Faulty([], None), WAVE, lambda *_: None)
    assert (log.group, log.reason) == ("faulty", "reading it failed (LookupError)")
    assert "LookupError: x" in capsys.readouterr().err


def test_a_later_reading_replaces_an_earlier_one_unless_it_brings_nothing() -> None:
    def log(group: str, *lines: str, reason: str | None = None) -> ServerLog:
        return ServerLog(group, 0, 1, len(lines), tuple(LogLine(line, 1) for line in lines), reason=reason)

    before = [log("a", "old"), log("b", "old"), log("c", reason="denied"), log("d", "old")]
    now = [log("a", "new"), log("b", reason="denied"), log("c", reason="throttled"), log("e")]
    assert renewed_logs(before, now) == (now[0], before[1], now[2], before[3], now[3])
