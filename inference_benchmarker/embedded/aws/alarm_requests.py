"""PutMetricAlarm's requests: the alarm that one makes for a policy of step scaling, or a ValidationError."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.aws.metric_data import invalid
from inference_benchmarker.embedded.aws.scaling_requests import STATISTICS
from inference_benchmarker.embedded.scaling.target_tracking import PERIOD_S, MetricAlarm

if TYPE_CHECKING:
    from collections.abc import Collection

_TAKEN = {
    "ActionsEnabled",
    "AlarmActions",
    "AlarmDescription",
    "AlarmName",
    "ComparisonOperator",
    "DatapointsToAlarm",
    "Dimensions",
    "EvaluationPeriods",
    "MetricName",
    "Namespace",
    "Period",
    "Statistic",
    "Threshold",
    "TreatMissingData",
    "Unit",
}
# (above, the threshold itself is beyond), by operator.
_OPERATORS = {
    "GreaterThanThreshold": (True, False),
    "GreaterThanOrEqualToThreshold": (True, True),
    "LessThanThreshold": (False, False),
    "LessThanOrEqualToThreshold": (False, True),
}
_MISSING = ("missing", "breaching", "notBreaching")


def alarm_of(request: dict[str, Any]) -> MetricAlarm:
    """The alarm that a request describes: one metric, every minute, all of its datapoints. Raises AwsError."""
    if further := sorted(name for name in request.keys() - _TAKEN if request[name]):
        raise invalid(f"{further[0]} is not spoken here: an alarm has one metric, and a scaling policy as its action.")
    periods = request["EvaluationPeriods"]
    if periods < 1:
        raise invalid(f"EvaluationPeriods is {periods}: it must be at least 1.")
    _check(request, "Period", (PERIOD_S,))
    _check(request, "Statistic", STATISTICS)
    _check(request, "ActionsEnabled", (True,), True)
    _check(request, "DatapointsToAlarm", (periods,), periods)
    _check(request, "ComparisonOperator", _OPERATORS)
    _check(request, "TreatMissingData", _MISSING, _MISSING[0])
    above, inclusive = _OPERATORS[request["ComparisonOperator"]]
    missing = request.get("TreatMissingData", _MISSING[0])
    return MetricAlarm(float(request["Threshold"]), periods, above=above, inclusive=inclusive, if_missing=missing)


def operator_of(alarm: MetricAlarm) -> str:
    """The operator by which an alarm compares."""
    return next(name for name, comparison in _OPERATORS.items() if comparison == (alarm.above, alarm.inclusive))


def _check(request: dict[str, Any], name: str, allowed: Collection[object], otherwise: object = None) -> None:
    given = request.get(name, otherwise)
    if given not in allowed:
        raise invalid(f"{name} is {given}: here it must be one of {', '.join(map(str, allowed))}.")
