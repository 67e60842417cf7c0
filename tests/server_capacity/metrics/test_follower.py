"""Following instances: how often, what a failure costs, and what SageMaker and Application Auto Scaling are asked."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from inference_benchmarker.embedded.running import EndpointConfig, start
from inference_benchmarker.facts.instances import CannotCountError, Count, Followed, ScalingEvent, gathered
from inference_benchmarker.facts.server_metric import Interval, ServerMetric
from server_capacity.metrics.cloudwatch.autoscaling import MOST_PAGES, Autoscaling
from server_capacity.metrics.cloudwatch.instances import VariantInstances, by_samples
from server_capacity.metrics.config import load_config, make_sources
from server_capacity.metrics.follower import Follower, interval_s, pause_s
from tests.fake_cloudwatch import cloudwatch_block
from tests.fake_sagemaker import DENIED, UNREACHABLE, refused
from tests.mentions import mentions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

T0 = 1_700_000_000


@pytest.mark.parametrize(("wave_s", "expected"), [(None, 5), (3, 0.5), (400, 2), (600, 3), (7200, 5)])
def test_a_longer_wave_is_asked_less_often(wave_s: float | None, expected: float) -> None:
    assert interval_s(wave_s) == expected


@pytest.mark.parametrize(
    ("failures", "drawn", "expected"),
    [(0, 0.0, 1.0), (0, 0.5, 2.0), (0, 1.0, 3.0), (1, 0.5, 4.0), (3, 0.5, 16.0), (5, 0.5, 60.0), (10**6, 1.0, 90.0)],
)
def test_who_is_refused_waits_longer_and_nobody_keeps_step(failures: int, drawn: float, expected: float) -> None:
    assert pause_s(2.0, failures, drawn) == expected


class Scripted:
    """An instance source that answers what a test wants, the last for ever."""

    of, source = "e/v", "DescribeEndpoint"

    def __init__(self, *answers: float | CannotCountError, events: tuple[ScalingEvent, ...] = ()) -> None:
        self._answers = list(answers)
        self._events = list(events)
        self.asked = threading.Event()
        self.wanted: float | None = None

    def count(self) -> Count:
        self.asked.set()
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, CannotCountError):
            raise answer
        return Count(T0, answer, answer if self.wanted is None else self.wanted)

    def scaling_events(self, start: float, end: float) -> tuple[list[ScalingEvent], list[str]]:
        assert start < end
        return self._events, ["Not reported."]


ALARM = ScalingEvent(T0, "alarm", "alarm fired")
OFTEN, GONE, NONE = (
    CannotCountError("throttled"),
    CannotCountError("denied", final=True),
    CannotCountError("", final=True),
)


@pytest.mark.parametrize(
    ("source", "numbers", "remarks"),
    [
        (Scripted(2), [2, 2], []),
        (Scripted(2, 3), [2, 3], ["Not reported."]),
        (Scripted(2, events=(ALARM,)), [2, 2], ["Not reported."]),
        (
            Scripted(OFTEN, 2),
            [2],
            ["The instances of e/v were not reported 1 of 2 times, the last time because throttled."],
        ),
        (Scripted(GONE), [], ["The instances of e/v were not counted: denied."]),
    ],
)
def test_what_was_counted_is_kept_and_what_was_not_is_said(
    source: Scripted, numbers: list[float], remarks: list[str]
) -> None:
    lines: list[dict[str, Any]] = []
    follower = Follower([source], 10)
    with follower.following(lines.append):
        assert source.asked.wait(30), "it counts at once, and once more at the end"
    (followed,) = follower.followed(Interval.past(T0, T0 + 1))
    assert [count.current for count in followed.counts] == numbers
    assert list(followed.remarks) == remarks
    assert [count for each in gathered(lines) for count in each.counts] == list(followed.counts)


def test_the_live_view_has_the_last_count_and_what_is_asked_for() -> None:
    source = Scripted(2)
    follower = Follower([source], 10)
    assert follower.latest() == []
    with follower.following(lambda _: None):
        pass
    assert [(reading.name, reading.value) for reading in follower.latest()] == [("instances", 2)]
    follower = Follower([growing := Scripted(2)], 10)
    growing.wanted = 5
    with follower.following(lambda _: None):
        pass
    assert [(reading.name, reading.value) for reading in follower.latest()] == [("instances", 2), ("asked for", 5)]


def test_a_service_that_never_ends_its_answer_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server_capacity.metrics.follower.EVENTS_S", 0.05)
    source, answered = Scripted(2, 3), threading.Event()
    monkeypatch.setattr(source, "scaling_events", lambda *_: ([], [str(answered.wait(60))]))
    follower = Follower([source], 10)
    with follower.following(lambda _: None):
        assert source.asked.wait(30)
    (followed,) = follower.followed(Interval.past(T0, T0 + 1))
    answered.set()
    assert followed.remarks == ("The scaling activities of e/v did not all arrive within 0.05 s.",)


def test_who_has_no_instances_is_nobody() -> None:
    follower = Follower([Scripted(NONE)], 10)
    with follower.following(lambda _: None):
        pass
    assert follower.followed(Interval.past(T0, T0 + 1)) == []


def test_samples_count_where_nobody_may_describe() -> None:
    whole = {"EndpointName": "e", "VariantName": "v"}
    metrics = [
        ServerMetric(
            "cloudwatch", "CPUUtilization", {}, dimensions=dimensions, instances=((60.0, number), (120.0, number))
        )
        for dimensions, number in ((whole, 3.0), ({**whole, "InstanceId": "i"}, 1.0))
    ]
    follower = Follower([source := Scripted(GONE)], 10)
    with follower.following(lambda _: None):
        assert source.asked.wait(30)
    (denied,), counted = (
        follower.followed(Interval.past(T0, T0 + 1)),
        Followed("e/v", "DescribeEndpoint", (Count(1, 2),)),
    )
    assert denied.remarks == ("The instances of e/v were not counted: denied.",)
    (found,) = by_samples([replace(denied, remarks=(*denied.remarks, "another."))], metrics)
    assert (found.source, found.counts) == ("inferred from SampleCount", (Count(60.0, 3.0), Count(120.0, 3.0)))
    assert found.remarks == ("another.",), "no 'not counted' beside a number"
    assert list(by_samples([counted], metrics)) == [counted]
    for points in (((60.0, 22.0), (120.0, 2.0)), ((60.0, 3.0),)):
        doubtful = [replace(metrics[0], instances=points)]
        assert list(by_samples([denied], doubtful)) == [denied], "several samples a period are no instances"
    assert list(by_samples([denied], [])) == [denied]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[EndpointConfig]:
    with start(config := EndpointConfig(instances=3)) as endpoint:
        for name, value in endpoint.aws_environment.items():
            monkeypatch.setenv(name, value)
        yield config


@pytest.mark.usefixtures("served")
def test_the_variants_that_a_configuration_names_are_counted(tmp_path: Path) -> None:
    blocks = [cloudwatch_block(name, {"A": ["Sum"]}) for name in ("AWS/SageMaker", "/aws/sagemaker/Endpoints")]
    other = {**blocks[0], "Dimensions": [{"Name": "InferenceComponentName", "Value": "c"}]}
    (tmp_path / "c.json").write_text(json.dumps([*blocks, other]))
    (source,) = make_sources(load_config(tmp_path / "c.json"), {})
    (variant,) = source.instances()
    assert variant.of == "demo/AllTraffic"
    count = variant.count()
    assert (count.current, count.desired, count.status) == (3, 3, "InService")


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize(
    ("variant", "final", "reason"),
    [
        (("demo", "green"), True, "^$"),
        (("other", "AllTraffic"), True, "sagemaker:DescribeEndpoint was answered with ValidationException: Could not"),
    ],
)
def test_what_is_not_there_is_not_asked_again(variant: tuple[str, str], final: bool, reason: str) -> None:
    with pytest.raises(CannotCountError, match=reason) as raised:
        VariantInstances(variant, "us-east-1").count()
    assert raised.value.final == final


@pytest.mark.parametrize(
    ("error", "final", "reason"),
    [
        (DENIED, True, r"these credentials may not call sagemaker:DescribeEndpoint \(AccessDeniedException: no\)"),
        (refused("ThrottlingException", "Rate exceeded"), False, "sagemaker:DescribeEndpoint was throttled"),
        (UNREACHABLE, False, "no connection to"),
        (KeyError("x"), False, "is not AWS's"),
    ],
)
def test_a_refusal_is_final_and_trouble_on_the_way_is_not(
    error: Exception, final: bool, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "x")
    source = VariantInstances(("e", "v"), "us-east-1")

    def refuse(**_: Any) -> None:
        raise error

    monkeypatch.setattr(source._client, "describe_endpoint", refuse)
    with pytest.raises(CannotCountError, match=reason) as raised:
        source.count()
    assert raised.value.final == final


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(T0 + seconds, UTC)


class Scaler:
    """Both services as boto3 answers for them; an exception is raised."""

    meta = SimpleNamespace(region_name="us-east-1", endpoint_url="https://autoscaling")

    def __init__(self, pages: list[list[dict[str, Any]]] | ClientError, history: Any = ()) -> None:
        self._pages = pages
        self._history = history
        self.calls = 0

    def describe_scaling_activities(self, NextToken: str = "0", **_: Any) -> dict[str, Any]:  # noqa: N803
        self.calls += 1
        if isinstance(self._pages, ClientError):
            raise self._pages
        page = int(NextToken)
        more = {"NextToken": str(page + 1)} if page + 1 < len(self._pages) else {}
        return {"ScalingActivities": self._pages[page], **more}

    def describe_scaling_policies(self, **_: Any) -> dict[str, Any]:
        return {"ScalingPolicies": [{"Alarms": [{"AlarmName": "TargetTracking-endpoint/e/variant/v-AlarmHigh-1-2"}]}]}

    def describe_alarm_history(self, **_: Any) -> dict[str, Any]:
        if isinstance(self._history, ClientError):
            raise self._history
        return {"AlarmHistoryItems": self._history}


def activity(start: float, number: int, status: str = "Successful", end: float | None = None) -> dict[str, Any]:
    ended = {} if end is None else {"EndTime": at(end)}
    text = f"Setting desired instance count to {number}."
    return {"StartTime": at(start), "Description": text, "StatusCode": status, **ended}


REASON = "Threshold Crossed: 3 datapoints [2.0 (22/11/26 14:00:00), 3.0, 3.0] were greater than the threshold (1.0)"


def update(seconds: float, state: str) -> dict[str, Any]:
    data = {"version": "1.0", "newState": {"stateValue": state, "stateReason": REASON}}
    return {"Timestamp": at(seconds), "HistoryData": json.dumps(data)}


def reported(scaler: Scaler) -> tuple[list[ScalingEvent], list[str]]:
    return Autoscaling(scaler, scaler, "e", "v").scaling_events(T0, T0 + 100)


def test_events_are_those_of_the_wave_in_order() -> None:
    not_scaled = {**activity(40, 9, "Failed"), "NotScaledReasons": [{"Code": "AlreadyAtMaxCapacity", "MaxCapacity": 5}]}
    summary = {"Timestamp": at(60), "HistorySummary": "Alarm updated from OK to ALARM"}
    pages = [
        [activity(200, 7), activity(90, 6, "Failed"), activity(50, 5, end=70)],
        [not_scaled, activity(30, 4, "InProgress"), activity(-10, 3)],
        [activity(-20, 2)],
    ]
    scaler = Scaler(pages, [update(20, "ALARM"), update(25, "OK"), summary])
    events, remarks = reported(scaler)
    assert remarks == []
    assert [(event.at - T0, event.kind, event.instances, event.done and event.done - T0) for event in events] == [
        (20, "alarm", None, None),
        (30, "asked", 4, None),
        (40, "failed", 9, None),
        (50, "asked", 5, 70),
        (60, "alarm", None, None),
        (90, "failed", 6, None),
    ]
    assert mentions(events[0].text, "AlarmHigh", "3 datapoints", "1.0")
    assert "AlreadyAtMaxCapacity" in events[2].text
    assert scaler.calls == 2, "older ones are not read"


def test_what_may_not_be_asked_is_said_and_takes_nothing_else_with_it() -> None:
    denied = refused("AccessDeniedException", "no")
    events, remarks = reported(Scaler(denied, [update(20, "ALARM")]))
    assert [event.kind for event in events] == ["alarm"]
    assert remarks == [
        "For the instances of e, who requested them is not known: these credentials may not call "
        "application-autoscaling:DescribeScalingActivities (AccessDeniedException: no)."
    ]
    events, remarks = reported(Scaler([[activity(5, 2)]], denied))
    assert [event.kind for event in events] == ["asked"]
    assert "cloudwatch:DescribeAlarmHistory" in remarks[0]


def test_pages_without_end_are_given_up() -> None:
    scaler = Scaler([[] for _ in range(100)])
    assert reported(scaler) == ([], [])
    assert scaler.calls == MOST_PAGES
