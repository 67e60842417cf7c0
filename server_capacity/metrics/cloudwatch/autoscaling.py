"""Asks Application Auto Scaling and CloudWatch's alarms what they did to a variant's instances, once the wave is over.

https://docs.aws.amazon.com/autoscaling/application/APIReference/API_DescribeScalingActivities.html
https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarmHistory.html
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from inference_benchmarker.facts.instances import ScalingEvent
from inference_benchmarker.words.text import said
from server_capacity.metrics import aws_client
from server_capacity.metrics.aws_failures import UNREADABLE, call_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAMESPACE, DIMENSION = "sagemaker", "sagemaker:variant:DesiredInstanceCount"
CONNECT_S, READ_S, ATTEMPTS = 2, 5, 2
MOST_PAGES, MOST_ALARMS, MOST_EVENTS = 10, 20, 500
_MOST_OF_A_TEXT = 300
_ASKED_FOR = re.compile(r"instance count to (\d{1,9})\b")
_DATAPOINTS = re.compile(r"datapoints? \[[^\]]*\]")
_TRACKING = re.compile(r"TargetTracking-.*-(AlarmHigh|AlarmLow)-[\w-]+")


def make_clients(region: str) -> tuple[Any, Any] | None:
    """Clients of Application Auto Scaling and of CloudWatch; None where AWS's configuration makes none."""
    from botocore.exceptions import BotoCoreError

    names = ("application-autoscaling", "cloudwatch")
    patience = {"attempts": ATTEMPTS, "connect_s": CONNECT_S, "read_s": READ_S}
    try:
        scaling, alarms = (aws_client.make_client(name, region, **patience) for name in names)
    except (BotoCoreError, ValueError):
        return None
    return scaling, alarms


@dataclass(frozen=True, slots=True)
class Autoscaling:
    """The service that scales one variant. Instants are unix seconds by AWS's clock."""

    scaling: Any
    alarms: Any
    endpoint: str
    variant: str

    def scaling_events(self, start: float, end: float) -> tuple[list[ScalingEvent], list[str]]:
        """The events from ``start`` to ``end``, and sentences on what was not reported. Raises nothing of AWS's."""
        events, remarks = [], []
        for ask, client, permission, what in (
            (self._activities, self.scaling, "application-autoscaling:DescribeScalingActivities", "who requested them"),
            (self._alarms, self.alarms, "cloudwatch:DescribeAlarmHistory", "when alarms fired"),
        ):
            found, reason = _asked(ask, client, permission, start, end)
            events += found
            if reason is not None:
                remarks.append(f"For the instances of {self.endpoint}, {what} is not known: {reason}.")
        return sorted(events, key=lambda event: event.at), remarks

    @property
    def _target(self) -> dict[str, str]:
        resource = f"endpoint/{self.endpoint}/variant/{self.variant}"
        return {"ServiceNamespace": NAMESPACE, "ResourceId": resource, "ScalableDimension": DIMENSION}

    def _activities(self, start: float, end: float) -> Iterator[ScalingEvent]:
        """The scaling activities of that time, and what was decided not to be done. The newest come first."""
        token: dict[str, Any] = {}
        for _ in range(MOST_PAGES):
            page = self.scaling.describe_scaling_activities(**self._target, IncludeNotScaledActivities=True, **token)
            for activity in page.get("ScalingActivities", []):
                at = activity["StartTime"].timestamp()
                if at < start:
                    return
                if at <= end:
                    yield _of_activity(activity, at)
            if not page.get("NextToken"):
                return
            token = {"NextToken": page["NextToken"]}

    def _alarms(self, start: float, end: float) -> Iterator[ScalingEvent]:
        """The state updates of the alarms of the variant's policies to ALARM."""
        for name in self._alarm_names():
            history = self.alarms.describe_alarm_history(
                AlarmName=name,
                HistoryItemType="StateUpdate",
                StartDate=datetime.fromtimestamp(start, UTC),
                EndDate=datetime.fromtimestamp(end, UTC),
                ScanBy="TimestampAscending",
            )
            for item in history.get("AlarmHistoryItems", []):
                state, reason = _new_state(item)
                if state == "ALARM":
                    text = f"alarm {_short(name)} fired" + (f": {_shown(reason)}" if reason else "")
                    yield ScalingEvent(item["Timestamp"].timestamp(), "alarm", said(text, _MOST_OF_A_TEXT))

    def _alarm_names(self) -> list[str]:
        policies = self.scaling.describe_scaling_policies(**self._target).get("ScalingPolicies", [])
        return [alarm["AlarmName"] for policy in policies for alarm in policy.get("Alarms", [])][:MOST_ALARMS]


def _asked(
    ask: Callable[[float, float], Iterator[ScalingEvent]], client: Any, permission: str, start: float, end: float
) -> tuple[list[ScalingEvent], str | None]:
    """The events that one call reports, and why not more."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    found: list[ScalingEvent] = []
    try:
        for event in ask(start, end):
            found.append(event)  # what came before a failure stays
            if len(found) >= MOST_EVENTS:
                return found, f"there are more than {MOST_EVENTS}"
    except (BotoCoreError, ClientError, ResponseParserError, *UNREADABLE) as error:
        return found, call_failure(error, client, _permission(error, permission)).text
    return found, None


def _permission(error: Exception, otherwise: str) -> str:
    """The failed call's name in IAM: the alarms' names are asked of the policies."""
    operation = getattr(error, "operation_name", None)
    return "application-autoscaling:DescribeScalingPolicies" if operation == "DescribeScalingPolicies" else otherwise


def _of_activity(activity: dict[str, Any], at: float) -> ScalingEvent:
    description, status = str(activity.get("Description", "")), str(activity.get("StatusCode", ""))
    asked_for = _ASKED_FOR.search(description)
    number = None if asked_for is None else float(asked_for[1])
    ended = activity.get("EndTime")
    if reasons := activity.get("NotScaledReasons"):
        codes = ", ".join(str(reason.get("Code")) for reason in reasons)
        return ScalingEvent(at, "failed", said(f"nothing was requested: {codes}", _MOST_OF_A_TEXT), number)
    if status in ("Failed", "Unfulfilled", "Overridden"):
        text = f"{status.lower()}: {description} {activity.get('StatusMessage', '')}"
        return ScalingEvent(at, "failed", said(text, _MOST_OF_A_TEXT), number)
    done = None if ended is None or status != "Successful" else ended.timestamp()
    return ScalingEvent(at, "asked", said(description, _MOST_OF_A_TEXT), number, done)


def _new_state(item: dict[str, Any]) -> tuple[str, str]:
    """The state that an alarm came to, and why; from the summary where the data is of another form."""
    try:
        state = json.loads(item["HistoryData"])["newState"]
        return str(state["stateValue"]), str(state.get("stateReason", ""))
    except UNREADABLE:
        return str(item.get("HistorySummary", "")).rpartition(" ")[2], ""


def _shown(reason: str) -> str:
    """The reason without its numbers, of which there may be many, and without what the word before it says."""
    return _DATAPOINTS.sub("datapoints", reason).removeprefix("Threshold Crossed: ")


def _short(name: str) -> str:
    """AlarmHigh, of a name that target tracking has made; else the name."""
    made = _TRACKING.fullmatch(name)
    return made[1] if made else name
