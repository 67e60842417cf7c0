"""CloudWatch's DescribeAlarms and DescribeAlarmHistory, of the alarms that scaling policies made."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.aws.application_autoscaling import alarm_arn, policy_arn
from inference_benchmarker.embedded.aws.aws_json import AwsError, Caller, Operation
from inference_benchmarker.embedded.aws.paging import page
from inference_benchmarker.embedded.scaling.target_tracking import PERIOD_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inference_benchmarker.embedded.aws.fleets import Fleets
    from inference_benchmarker.embedded.scaling.records import AlarmRecord, HistoryItem, Policy, Target

_MOST = 100


class Alarms:
    """The operations."""

    def __init__(self, fleets: Fleets) -> None:
        self._fleets = fleets
        self.operations: Mapping[str, Operation] = {
            "DescribeAlarms": self._describe_alarms,
            "DescribeAlarmHistory": self._describe_history,
        }

    def _describe_alarms(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        if "MetricAlarm" not in (request.get("AlarmTypes") or ["MetricAlarm"]):
            return {"MetricAlarms": [], "CompositeAlarms": []}
        found = [
            _described(target, policy, record, caller)
            for target, policy in self._policies()
            for record in policy.alarms
        ]
        asked = [alarm for alarm in found if _is_asked_for(alarm, request)]
        asked.sort(key=lambda alarm: alarm["AlarmName"])
        return {"CompositeAlarms": [], **_page("MetricAlarms", asked, request)}

    def _describe_history(self, request: dict[str, Any], _: Caller) -> dict[str, Any]:
        name, kind = request.get("AlarmName"), request.get("HistoryItemType")
        since, until = request.get("StartDate", 0), request.get("EndDate", float("inf"))
        found = [
            (record, item)
            for _, policy in self._policies()
            for record in policy.alarms
            for item in record.history
            if name in (None, record.name) and kind in (None, item.kind) and since <= item.at < until
        ]
        newest_first = request.get("ScanBy", "TimestampDescending") == "TimestampDescending"
        found.sort(key=lambda each: each[1].at)
        items = [_described_item(record, item) for record, item in (found[::-1] if newest_first else found)]
        return _page("AlarmHistoryItems", items, request)

    def _policies(self) -> list[tuple[Target, Policy]]:
        return [each for scaler in self._fleets.scalers() for each in scaler.autoscaler.policies()]


def _is_asked_for(alarm: dict[str, Any], request: dict[str, Any]) -> bool:
    names, state = request.get("AlarmNames"), request.get("StateValue")
    if request.get("AlarmNamePrefix") and names:
        raise AwsError("ValidationError", "AlarmNamePrefix and AlarmNames exclude each other.")
    return (
        (not names or alarm["AlarmName"] in names)
        and alarm["AlarmName"].startswith(request.get("AlarmNamePrefix") or "")
        and alarm["AlarmActions"][0].startswith(request.get("ActionPrefix") or "")
        and state in (None, alarm["StateValue"])
    )


def _page(name: str, found: Sequence[dict[str, Any]], request: dict[str, Any]) -> dict[str, Any]:
    size = request.get("MaxRecords", _MOST)
    if not 1 <= size <= _MOST:
        raise AwsError("ValidationError", f"MaxRecords is {size}: it must be from 1 to {_MOST}.")
    bad_token = AwsError("InvalidNextToken", "The next token is of no earlier answer.")
    return page(name, found, request.get("NextToken"), size, bad_token)


def _described(target: Target, policy: Policy, record: AlarmRecord, caller: Caller) -> dict[str, Any]:
    alarm, source = record.alarm, policy.source
    arn = policy_arn(target, policy, caller)
    told: dict[str, Any] = {
        "AlarmName": record.name,
        "AlarmArn": alarm_arn(record.name, caller),
        "AlarmDescription": f"Belongs to the target tracking policy {arn}: do not change it.",
        "AlarmConfigurationUpdatedTimestamp": record.created_at,
        "ActionsEnabled": True,
        "OKActions": [],
        "AlarmActions": [arn],
        "InsufficientDataActions": [],
        "StateValue": alarm.state,
        "StateReason": record.reason,
        "StateReasonData": json.dumps(record.reason_data),
        "StateUpdatedTimestamp": record.updated_at,
        "StateTransitionedTimestamp": record.updated_at,
        "MetricName": source.name,
        "Namespace": source.namespace,
        "Statistic": source.statistic,
        "Dimensions": [{"Name": name, "Value": value} for name, value in source.dimensions],
        "Period": PERIOD_S,
        "EvaluationPeriods": alarm.periods,
        "DatapointsToAlarm": alarm.periods,
        "Threshold": alarm.threshold,
        "ComparisonOperator": "GreaterThanThreshold" if alarm.above else "LessThanThreshold",
        "TreatMissingData": "missing",
    }
    return told if source.unit is None else {**told, "Unit": source.unit}


def _described_item(record: AlarmRecord, item: HistoryItem) -> dict[str, Any]:
    return {
        "AlarmName": record.name,
        "AlarmType": "MetricAlarm",
        "Timestamp": item.at,
        "HistoryItemType": item.kind,
        "HistorySummary": item.summary,
        "HistoryData": json.dumps(item.data),
    }
