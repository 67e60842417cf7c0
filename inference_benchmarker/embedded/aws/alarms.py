"""CloudWatch's alarms of scaling policies: those that target tracking made, and those that set step scaling off.

Where it differs from AWS: an alarm is there for a policy that was put before it, which has one above and one below a
threshold. It goes when its policy does.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.aws.alarm_requests import alarm_of, operator_of
from inference_benchmarker.embedded.aws.application_autoscaling import alarm_arn, policy_arn
from inference_benchmarker.embedded.aws.aws_json import AwsError, Caller, Operation
from inference_benchmarker.embedded.aws.metric_data import invalid
from inference_benchmarker.embedded.aws.paging import page
from inference_benchmarker.embedded.scaling.records import AlarmRecord
from inference_benchmarker.embedded.scaling.step_scaling import StepScaling

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inference_benchmarker.embedded.aws.fleets import Fleets
    from inference_benchmarker.embedded.aws.scaling import EndpointScaling
    from inference_benchmarker.embedded.scaling.records import HistoryItem, Policy, Target

_MOST = 100


class Alarms:
    """The operations."""

    def __init__(self, fleets: Fleets) -> None:
        self._fleets = fleets
        self.operations: Mapping[str, Operation] = {
            "PutMetricAlarm": self._put,
            "DeleteAlarms": self._delete,
            "DescribeAlarms": self._describe_alarms,
            "DescribeAlarmHistory": self._describe_history,
        }

    def _put(self, request: dict[str, Any], caller: Caller) -> dict[str, Any]:
        name, actions, alarm = request["AlarmName"], request.get("AlarmActions") or [], alarm_of(request)
        scaler, target, policy = self._policy_of(actions, caller)
        if not isinstance(policy.rule, StepScaling):
            raise invalid(f"The policy {policy.name} tracks a target: it has alarms of its own.")
        others = [other for other in policy.alarms if other.name != name]
        if taken := [other.name for other in others if other.alarm.above is alarm.above]:
            way = "above" if alarm.above else "below"
            raise invalid(f"The policy {policy.name} has an alarm {way} a threshold already, {taken[0]}.")
        self._remove([name])
        source = scaler.metrics.named(target.endpoint_name, request)
        at = scaler.wall(time.monotonic_ns())
        policy.alarms.append(AlarmRecord(name, alarm, source, at, request.get("AlarmDescription", "")))
        policy.rule.watch(alarm)
        return {}

    def _policy_of(self, actions: list[str], caller: Caller) -> tuple[EndpointScaling, Target, Policy]:
        """The policy that the actions of an alarm name, its target and what scales that. Raises AwsError."""
        for scaler in self._fleets.scalers():
            for target, policy in scaler.autoscaler.policies():
                if actions == [policy_arn(target, policy, caller)]:
                    return scaler, target, policy
        text = ", ".join(actions) or "empty"
        raise invalid(f"AlarmActions is {text}: here it is the ARN that PutScalingPolicy gave, and no other.")

    def _delete(self, request: dict[str, Any], _: Caller) -> dict[str, Any]:
        names = request["AlarmNames"]
        known = {record.name for _, policy in self._policies() for record in policy.alarms}
        if unknown := [name for name in names if name not in known]:
            raise AwsError("ResourceNotFound", f"There is no alarm {', '.join(unknown)}.", 404)
        self._remove(names)
        return {}

    def _remove(self, names: list[str]) -> None:
        """Remove the alarms of step scaling that have such names."""
        for _, policy in self._policies():
            for record in [each for each in policy.alarms if each.name in names]:
                if not isinstance(policy.rule, StepScaling):
                    raise invalid(f"The alarm {record.name} goes with its policy, {policy.name}.")
                policy.rule.forget(record.alarm)
                policy.alarms.remove(record)

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
    alarm, source = record.alarm, record.source
    arn = policy_arn(target, policy, caller)
    of_policy = f"Belongs to the target tracking policy {arn}: do not change it."
    fields: dict[str, Any] = {
        "AlarmName": record.name,
        "AlarmArn": alarm_arn(record.name, caller),
        "AlarmDescription": of_policy if record.description is None else record.description,
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
        "Period": source.period_s,
        "EvaluationPeriods": alarm.periods,
        "DatapointsToAlarm": alarm.periods,
        "Threshold": alarm.threshold,
        "ComparisonOperator": operator_of(alarm),
        "TreatMissingData": alarm.if_missing,
    }
    return fields if source.unit is None else {**fields, "Unit": source.unit}


def _described_item(record: AlarmRecord, item: HistoryItem) -> dict[str, Any]:
    return {
        "AlarmName": record.name,
        "AlarmType": "MetricAlarm",
        "Timestamp": item.at,
        "HistoryItemType": item.kind,
        "HistorySummary": item.summary,
        "HistoryData": json.dumps(item.data),
    }
