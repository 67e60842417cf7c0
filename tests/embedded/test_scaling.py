"""Instances that come and go, asked for by an unmodified boto3, and held against what the endpoint's log says."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any, Self

import pytest
from botocore.exceptions import ClientError

from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.running import start
from tests.boto3_runtime import client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inference_benchmarker.embedded.running import RunningEndpoint

VARIANT = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/demo/variant/AllTraffic",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
PREDEFINED = {"PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}}
BOUNDS = {"MinCapacity": 1, "MaxCapacity": 2}
PATIENCE_S = 20


def await_that(condition: Callable[[], Any]) -> Any:
    """What it gives, once it gives something."""
    for _ in range(PATIENCE_S * 50):
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError("it never came about")


def policy(name: str = "track", **configuration: Any) -> dict[str, Any]:
    return {
        **VARIANT,
        "PolicyName": name,
        "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": {"TargetValue": 600.0, **PREDEFINED, **configuration},
    }


def steps(**configuration: Any) -> dict[str, Any]:
    one = {"MetricIntervalLowerBound": 0.0, "ScalingAdjustment": 1}
    given = {"AdjustmentType": "ChangeInCapacity", "StepAdjustments": [one], **configuration}
    return {**VARIANT, "PolicyName": "s", "PolicyType": "StepScaling", "StepScalingPolicyConfiguration": given}


class Load:
    """Requests one after the other on a connection of its own, about so many a second, until it is ended."""

    def __init__(self, endpoint: RunningEndpoint, rate: int) -> None:
        self._endpoint = endpoint
        self._gap_s = 1 / rate
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._send)
        self.statuses: Counter[int] = Counter()

    def _send(self) -> None:
        connection = HTTPConnection("127.0.0.1", self._endpoint.port)
        while not self._ended.wait(self._gap_s):
            connection.request("POST", "/invocations", b"{}")
            answer = connection.getresponse()
            answer.read()
            self.statuses[answer.status] += 1
        connection.close()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


@pytest.mark.process
def test_instances_come_under_load_and_go_when_it_is_over() -> None:
    """A minute lasts 100 ms: so does the start of an instance."""
    config = EndpointConfig(servers=2, service_s=0.001, time_factor=600, instance_start_s=60, publish_interval_s=1)
    with start(config) as endpoint:
        scaling, sagemaker = client(endpoint, "application-autoscaling"), client(endpoint, "sagemaker")
        cloudwatch = client(endpoint, "cloudwatch")

        def variant() -> tuple[str, int, int]:
            reported = sagemaker.describe_endpoint(EndpointName="demo")
            (found,) = reported["ProductionVariants"]
            return reported["EndpointStatus"], found["CurrentInstanceCount"], found["DesiredInstanceCount"]

        def activities(**more: Any) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = scaling.describe_scaling_activities(**VARIANT, **more)["ScalingActivities"]
            return found

        assert variant() == ("InService", 1, 1)
        scaling.register_scalable_target(**VARIANT, MinCapacity=1, MaxCapacity=3)
        put = scaling.put_scaling_policy(**policy(ScaleInCooldown=60, ScaleOutCooldown=60))
        high, low = (alarm["AlarmName"] for alarm in put["Alarms"])
        assert "endpoint/demo/variant/AllTraffic-AlarmHigh-" in high
        assert "-AlarmLow-" in low
        with Load(endpoint, 100) as load:
            assert await_that(lambda: variant() == ("InService", 3, 3))
            most = [{"Code": "AlreadyAtMaxCapacity", "MaxCapacity": 3, "CurrentCapacity": 3}]
            assert await_that(
                lambda: [
                    each for each in activities(IncludeNotScaledActivities=True) if each.get("NotScaledReasons") == most
                ]
            )
            (reported,) = cloudwatch.describe_alarms(AlarmNames=[high])["MetricAlarms"]
        assert reported["StateValue"] == "ALARM"
        assert await_that(lambda: variant() == ("InService", 1, 1))
        assert set(load.statuses) == {200}
        assert len(endpoint.arrivals()["status"]) == load.statuses[200]

        done = activities()
        assert done[0]["Description"] == "Setting desired instance count to 1."
        assert done[-1]["Description"].startswith("Setting desired instance count to ")
        assert low in done[0]["Cause"]
        assert high in done[-1]["Cause"]
        for each in done:
            assert each["StatusCode"] == "Successful"
            assert each["EndTime"] >= each["StartTime"]
        history = cloudwatch.describe_alarm_history(AlarmName=high, HistoryItemType="StateUpdate")["AlarmHistoryItems"]
        fired = [item for item in history if item["HistorySummary"] == "Alarm updated from OK to ALARM"]
        fired += [item for item in history if item["HistorySummary"] == "Alarm updated from INSUFFICIENT_DATA to ALARM"]
        # the wire has floats of seconds
        assert min(item["Timestamp"] for item in fired) <= done[-1]["StartTime"]
        data = json.loads(fired[0]["HistoryData"])
        assert data["newState"]["stateValue"] == "ALARM"
        assert all(value > 600 for value in data["newState"]["stateReasonData"]["recentDatapoints"])


@pytest.mark.process
def test_instances_asked_for_by_hand_serve_when_they_have_started() -> None:
    """One instance answers 25 requests a second; the others come while some of 40 wait."""
    config = EndpointConfig(servers=1, service_s=0.04, instance_start_s=48, time_factor=60, publish_interval_s=1)
    with start(config) as endpoint:
        sagemaker = client(endpoint, "sagemaker")

        def status() -> str:
            text: str = sagemaker.describe_endpoint(EndpointName="demo")["EndpointStatus"]
            return text

        def set_count(count: int, variant: str = "AllTraffic") -> None:
            wanted = [{"VariantName": variant, "DesiredInstanceCount": count}]
            sagemaker.update_endpoint_weights_and_capacities(EndpointName="demo", DesiredWeightsAndCapacities=wanted)

        connections = [HTTPConnection("127.0.0.1", endpoint.port) for _ in range(40)]
        set_count(3)
        for connection in connections:
            connection.request("POST", "/invocations", b"{}")
        assert status() == "Updating"
        assert re.findall(r"^demo_endpoint_(?:desired_)?instances (\d)", endpoint.metrics(), re.MULTILINE) == ["1", "3"]
        assert refused(set_count, 4) == "ValidationException"
        assert {connection.getresponse().status for connection in connections} == {200}
        assert await_that(lambda: status() == "InService")
        served = sorted(zip(endpoint.arrivals()["start_ns"], endpoint.arrivals()["finish_ns"], strict=True))
        busy = [sum(begin <= at < end for begin, end in served) for at, _ in served]
        assert (busy[0], max(busy)) == (1, 3)
        set_count(1)
        assert status() == "InService"
        assert refused(set_count, 0) == "ValidationException"
        assert refused(set_count, 2, "another") == "ValidationException"


def refused(call: Callable[..., Any], *arguments: Any, **more: Any) -> str:
    """The code with which boto3 is refused."""
    with pytest.raises(ClientError) as caught:
        call(*arguments, **more)
    code: str = caught.value.response["Error"]["Code"]
    assert caught.value.response["Error"]["Message"]
    assert type(caught.value).__name__ in (code, "ClientError")
    return code


@pytest.fixture(scope="module")
def quiet() -> Iterator[RunningEndpoint]:
    with start(EndpointConfig(instances=2, service="none", time_factor=600, instance_start_s=1)) as endpoint:
        yield endpoint


@pytest.mark.process
def test_targets_and_policies_are_described_as_they_were_put(quiet: RunningEndpoint) -> None:
    scaling, cloudwatch = client(quiet, "application-autoscaling"), client(quiet, "cloudwatch")
    registered = scaling.register_scalable_target(**VARIANT, MinCapacity=1, MaxCapacity=4)
    suspended = {"DynamicScalingInSuspended": True, "ScheduledScalingSuspended": True}
    scaling.register_scalable_target(**VARIANT, MinCapacity=2, SuspendedState=suspended)
    (target,) = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
    assert target["ScalableTargetARN"] == registered["ScalableTargetARN"]
    assert {name: target[name] for name in VARIANT} == VARIANT
    assert (target["MinCapacity"], target["MaxCapacity"]) == (2, 4)
    assert target["SuspendedState"] == {**suspended, "DynamicScalingOutSuspended": False}

    first = scaling.put_scaling_policy(**policy(TargetValue=60.0))
    again = scaling.put_scaling_policy(**policy(TargetValue=70.0, ScaleInCooldown=30))
    assert again == {**first, "ResponseMetadata": again["ResponseMetadata"]}
    metric = {"MetricName": "CPUUtilization", "Namespace": "/aws/sagemaker/Endpoints", "Statistic": "Average"}
    named = [{"Name": "VariantName", "Value": "AllTraffic"}, {"Name": "EndpointName", "Value": "demo"}]
    other = policy("cpu", TargetValue=50.0, CustomizedMetricSpecification={**metric, "Dimensions": named})
    del other["TargetTrackingScalingPolicyConfiguration"]["PredefinedMetricSpecification"]
    other["TargetTrackingScalingPolicyConfiguration"]["DisableScaleIn"] = True
    assert len(scaling.put_scaling_policy(**other)["Alarms"]) == 1
    pages = scaling.get_paginator("describe_scaling_policies").paginate(
        ServiceNamespace="sagemaker", PaginationConfig={"PageSize": 1}
    )
    tracked, cpu = [each for page in pages for each in page["ScalingPolicies"]]
    configuration = {"TargetValue": 70.0, "ScaleInCooldown": 30, **PREDEFINED}
    assert tracked["TargetTrackingScalingPolicyConfiguration"] == configuration
    assert cpu["TargetTrackingScalingPolicyConfiguration"]["DisableScaleIn"] is True
    assert tracked["PolicyARN"] == first["PolicyARN"]

    alarms = cloudwatch.describe_alarms(AlarmNamePrefix="TargetTracking-endpoint/demo/")["MetricAlarms"]
    names = [alarm["AlarmName"] for each in (tracked, cpu) for alarm in each["Alarms"]]
    assert [alarm["AlarmName"] for alarm in alarms] == sorted(names)
    high, low = (next(alarm for alarm in alarms if alarm["AlarmName"] == name) for name in (names[0], names[1]))
    assert (high["Threshold"], high["ComparisonOperator"], high["EvaluationPeriods"]) == (70, "GreaterThanThreshold", 3)
    assert (low["Threshold"], low["ComparisonOperator"], low["EvaluationPeriods"]) == (63, "LessThanThreshold", 15)
    assert (high["MetricName"], high["Statistic"], high["Period"]) == ("InvocationsPerInstance", "Sum", 60)
    assert high["AlarmActions"] == [first["PolicyARN"]]
    assert cloudwatch.describe_alarms(AlarmTypes=["CompositeAlarm"])["MetricAlarms"] == []

    scaling.delete_scaling_policy(**VARIANT, PolicyName="cpu")
    assert len(cloudwatch.describe_alarms()["MetricAlarms"]) == 2
    scaling.deregister_scalable_target(**VARIANT)
    assert scaling.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"] == []
    assert cloudwatch.describe_alarms()["MetricAlarms"] == []


@pytest.mark.process
def test_bounds_that_leave_out_the_present_number_change_it(quiet: RunningEndpoint) -> None:
    scaling = client(quiet, "application-autoscaling")
    scaling.register_scalable_target(**VARIANT, MinCapacity=3, MaxCapacity=4)
    (activity,) = await_that(
        lambda: [
            each
            for each in scaling.describe_scaling_activities(ServiceNamespace="sagemaker")["ScalingActivities"]
            if "EndTime" in each
        ]
    )
    assert activity["Cause"] == "minimum capacity was set to 3"
    assert activity["Description"] == "Setting desired instance count to 3."
    (variant,) = client(quiet, "sagemaker").describe_endpoint(EndpointName="demo")["ProductionVariants"]
    assert variant["CurrentInstanceCount"] == 3
    scaling.deregister_scalable_target(**VARIANT)


@pytest.mark.process
def test_what_is_wrong_is_refused_as_boto3_knows_it(quiet: RunningEndpoint) -> None:
    scaling, cloudwatch = client(quiet, "application-autoscaling"), client(quiet, "cloudwatch")
    register, put = scaling.register_scalable_target, scaling.put_scaling_policy
    no_metric = policy()
    del no_metric["TargetTrackingScalingPolicyConfiguration"]["PredefinedMetricSpecification"]
    cases: list[tuple[str, Callable[..., Any], dict[str, Any]]] = [
        ("ValidationException", register, VARIANT),
        ("ValidationException", register, {**VARIANT, "MinCapacity": 1}),
        ("ValidationException", register, {**VARIANT, "MinCapacity": 3, "MaxCapacity": 2}),
        ("ValidationException", register, {**VARIANT, "MinCapacity": -1, "MaxCapacity": 2}),
        (
            "ValidationException",
            register,
            {**VARIANT, "ResourceId": "endpoint/demo", "MinCapacity": 1, "MaxCapacity": 2},
        ),
        ("ValidationException", register, {**VARIANT, "ResourceId": "endpoint/none/variant/AllTraffic", **BOUNDS}),
        ("ValidationException", register, {**VARIANT, "ServiceNamespace": "ecs", **BOUNDS}),
        ("ObjectNotFoundException", put, policy()),
        ("ObjectNotFoundException", scaling.deregister_scalable_target, VARIANT),
        ("ObjectNotFoundException", scaling.delete_scaling_policy, {**VARIANT, "PolicyName": "none"}),
        (
            "ValidationException",
            scaling.describe_scaling_activities,
            {"ServiceNamespace": "sagemaker", "ScalableDimension": VARIANT["ScalableDimension"]},
        ),
        ("ValidationException", scaling.describe_scalable_targets, {"ServiceNamespace": "sagemaker", "MaxResults": 51}),
        (
            "InvalidNextTokenException",
            scaling.describe_scalable_targets,
            {"ServiceNamespace": "sagemaker", "NextToken": "x"},
        ),
        ("InvalidNextToken", cloudwatch.describe_alarms, {"NextToken": "x"}),
    ]
    for code, call, arguments in cases:
        assert refused(call, **arguments) == code, arguments
    scaling.register_scalable_target(**VARIANT, MinCapacity=1, MaxCapacity=4)
    wrong = [
        {**policy(), "PolicyType": "StepScaling"},
        {**VARIANT, "PolicyName": "track", "PolicyType": "TargetTrackingScaling"},
        no_metric,
        policy(TargetValue=0.0),
        policy(ScaleInCooldown=-1),
        policy(PredefinedMetricSpecification={"PredefinedMetricType": "ECSServiceAverageCPUUtilization"}),
        policy(CustomizedMetricSpecification={"MetricName": "m", "Namespace": "n", "Statistic": "Sum"}),
    ]
    assert [refused(put, **each) for each in wrong] == ["ValidationException"] * len(wrong)
    put(**policy())
    assert refused(put, **policy("twice")) == "ValidationException"
    scaling.deregister_scalable_target(**VARIANT)


@pytest.mark.process
def test_steps_and_alarms_that_are_not_spoken_here_are_refused(quiet: RunningEndpoint) -> None:
    scaling, cloudwatch = client(quiet, "application-autoscaling"), client(quiet, "cloudwatch")
    scaling.register_scalable_target(**VARIANT, MinCapacity=1, MaxCapacity=4)
    put = scaling.put_scaling_policy
    tracking = put(**policy())
    gap = [
        {"MetricIntervalLowerBound": 0, "MetricIntervalUpperBound": 1, "ScalingAdjustment": 1},
        {"MetricIntervalLowerBound": 2, "ScalingAdjustment": 2},
    ]
    for wrong_steps in ({"StepAdjustments": gap}, {"AdjustmentType": "Doubling"}, {"MinAdjustmentMagnitude": 0}):
        assert refused(put, **steps(**wrong_steps)) == "ValidationException"
    alarm = {
        "AlarmName": "out",
        "AlarmActions": [put(**steps())["PolicyARN"]],
        "Namespace": "AWS/SageMaker",
        "MetricName": "InvocationsPerInstance",
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 3,
        "Threshold": 600.0,
        "ComparisonOperator": "GreaterThanThreshold",
    }
    not_here: list[dict[str, Any]] = [
        {"AlarmActions": [tracking["PolicyARN"]]},
        {"AlarmActions": ["arn:aws:sns:us-east-1:123456789012:topic"]},
        {"DatapointsToAlarm": 2},
        {"Period": 300},
        {"TreatMissingData": "ignore"},
        {"OKActions": [tracking["PolicyARN"]]},
        {"AlarmName": tracking["Alarms"][0]["AlarmName"]},
    ]
    for more in not_here:
        with pytest.raises(ClientError, match="ValidationError"):
            cloudwatch.put_metric_alarm(**{**alarm, **more})
    cloudwatch.put_metric_alarm(**alarm)
    with pytest.raises(ClientError, match="has an alarm above a threshold already, out"):
        cloudwatch.put_metric_alarm(**{**alarm, "AlarmName": "twice"})
    cloudwatch.put_metric_alarm(**{**alarm, "Threshold": 700.0})
    (reported,) = cloudwatch.describe_alarms(AlarmNames=["out"])["MetricAlarms"]
    assert reported["Threshold"] == 700
    for unknown in (["none"], ["out", "none"]):
        with pytest.raises(cloudwatch.exceptions.ResourceNotFound):
            cloudwatch.delete_alarms(AlarmNames=unknown)
    put(**steps(Cooldown=60))
    assert len(cloudwatch.describe_alarms(AlarmNames=["out"])["MetricAlarms"]) == 1  # of the policy that was put again
    scaling.delete_scaling_policy(**VARIANT, PolicyName="s")
    assert cloudwatch.describe_alarms(AlarmNames=["out"])["MetricAlarms"] == []
    scaling.deregister_scalable_target(**VARIANT)


@pytest.mark.process
def test_whoever_may_do_nothing_is_reported_so() -> None:
    with start(EndpointConfig(access_denied=True)) as endpoint:
        scaling = client(endpoint, "application-autoscaling")
        calls: tuple[tuple[Callable[..., Any], dict[str, Any]], ...] = (
            (scaling.register_scalable_target, VARIANT),
            (scaling.describe_scaling_activities, {"ServiceNamespace": "sagemaker"}),
            (client(endpoint, "cloudwatch").describe_alarms, {}),
        )
        codes = [refused(call, **arguments) for call, arguments in calls]
        assert codes == ["AccessDeniedException", "AccessDeniedException", "AccessDenied"]
