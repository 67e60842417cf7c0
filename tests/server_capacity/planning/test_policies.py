"""Policy files: taken unchanged by botocore's validation, moto and the embedded endpoint, which then scales by them."""

from __future__ import annotations

import time
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import boto3
import numpy as np
import pytest
import yaml
from botocore.session import get_session
from botocore.validate import ParamValidator

from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.running import start
from server_capacity.models.fleet.demand import Step, Steps
from server_capacity.models.fleet.policies import PodScaling, TargetTracking
from server_capacity.models.fleet.service import Service
from server_capacity.models.fleet.simulate import simulate
from server_capacity.planning.case import Case
from server_capacity.planning.content import endpoint_plan
from server_capacity.planning.demand import demand_of
from server_capacity.planning.kubernetes import kubernetes_files, label
from server_capacity.planning.measured import Measured, measured
from server_capacity.planning.policies import NAME, POLICY_ARN, VARIANT, policy_files
from server_capacity.planning.request import PlanRequest
from server_capacity.planning.targets import targets_of
from server_capacity.results.types.plan import EndpointPlan
from tests.boto3_runtime import client
from tests.capacities import searched
from tests.moto_server import moto_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.embedded.running import RunningEndpoint

DEMO = {"name": "demo", "variant": "AllTraffic", "kind": "variant", "instance_type": "ml.m5.xlarge", "instances": 1}
CPU = {"metric": "CPUUtilization", "idle": 0.02, "demand_s": 0.008, "at_low": 0.82, "reason": ""}
SERVICE_S = 0.02
DEMO_CPU = {**CPU, "idle": 0.0, "demand_s": SERVICE_S / 4}
"""Of the embedded endpoint: a core is busy for as long as a server is, of the four that an ml.m5.xlarge has."""

OF_DEMO = {"ServiceNamespace": "sagemaker", "ResourceId": "endpoint/demo/variant/AllTraffic"}
PATIENCE_S = 20
OPERATIONS = {
    "scalable_target.json": ("application-autoscaling", "RegisterScalableTarget"),
    "scaling_policy.json": ("application-autoscaling", "PutScalingPolicy"),
    "scaling_policy_concurrency.json": ("application-autoscaling", "PutScalingPolicy"),
    "scaling_policy_cpu.json": ("application-autoscaling", "PutScalingPolicy"),
    "scaling_policy_step.json": ("application-autoscaling", "PutScalingPolicy"),
    "alarm_out.json": ("cloudwatch", "PutMetricAlarm"),
    "alarm_in.json": ("cloudwatch", "PutMetricAlarm"),
}


def made(
    endpoint: dict[str, Any] | None = None,
    low: float = 100.0,
    *,
    name: str = "",
    mean_s: float = 0.05,
    cpu: dict[str, Any] = CPU,
    **asked: Any,
) -> tuple[EndpointPlan, dict[str, dict[str, Any]], list[str]]:
    """A plan for ten times ``low``, its policy files, and what is said of those that are missing."""
    data = searched(
        rate=low * 1.05,
        interval={"low": low, "high": low * 1.1},
        endpoint=DEMO if endpoint is None else endpoint,
        where_time_went={"mean_s": 2 * mean_s},
        curve=[{"rate": share * low, "mean": mean_s} for share in (0.3, 0.9)],
        resources={"all": [cpu]},
    )
    search = measured(data, "x")
    assert isinstance(search, Measured)
    question = PlanRequest((), **{"target_rps": 10 * low, **asked})
    plan = endpoint_plan(Case(question, [search], demand_of(question, None), lambda *_: None))
    assert isinstance(plan, EndpointPlan)
    return plan, *policy_files(plan, search, name)


def tracking(files: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    configuration: dict[str, Any] = files[name]["TargetTrackingScalingPolicyConfiguration"]
    return configuration


@pytest.mark.parametrize("endpoint", [DEMO, {}, {**DEMO, "kind": "inference-component"}], ids=["demo", "unknown", "ic"])
def test_botocore_takes_every_file(endpoint: dict[str, Any]) -> None:
    _, files, _ = made(endpoint)
    for name, parameters in files.items():
        service, operation = OPERATIONS[name]
        shape = get_session().get_service_model(service).operation_model(operation).input_shape
        report = ParamValidator().validate(parameters, shape)
        assert not report.has_errors(), f"{name}: {report.generate_report()}"
    assert set(files) >= set(OPERATIONS) - {"scaling_policy_cpu.json"}


def test_targets_are_what_an_instance_does_at_the_planned_use() -> None:
    """100/s at 70%: 70/s; with 50 ms each 3.5 in flight; of 4 cores 2% + 70 x 0.8% are busy."""
    plan, files, missing = made()
    assert tracking(files, "scaling_policy.json")["TargetValue"] == 70 * 60
    assert tracking(files, "scaling_policy_concurrency.json")["TargetValue"] == pytest.approx(3.5)
    assert tracking(files, "scaling_policy_cpu.json")["TargetValue"] == 232
    assert files["scalable_target.json"]["MinCapacity"] == plan.chosen.minimum
    assert files["scalable_target.json"]["MaxCapacity"] == plan.chosen.maximum
    assert [each for each in missing if POLICY_ARN not in each] == []


MEAN_S, LOW = 0.01, 53.9
"""One server, exponential services: at the lower end an answer takes twice as long as at half of it."""


def planned(share: float, **more: Any) -> tuple[EndpointPlan, Measured]:
    """A plan for 20 such instances at a share of their lower end."""
    queue = {"fits": True, "servers": 1, "overhead_s": 0.0, "services_s": EXPONENTIAL, "limit": "p99<100ms"}
    limit = {"expression": "p99<100ms", "bound": 0.1, "allowed": 0.01}
    interval = {"low": LOW, "high": LOW * 1.02}
    latency = {"where_time_went": {"mean_s": latency_s(LOW)}, "twin": queue}
    search = measured(searched(rate=LOW, interval=interval, endpoint=DEMO, limits=[limit], **{**latency, **more}), "x")
    assert isinstance(search, Measured)
    question = PlanRequest((), target_rps=20 * share * LOW, utilisation=share, minimum=2, maximum=60)
    plan = endpoint_plan(Case(question, [search], demand_of(question, None), lambda *_: None))
    assert isinstance(plan, EndpointPlan)
    return plan, search


def latency_s(rate: float) -> float:
    """The mean time in such a queue (M/M/1), seconds."""
    return 1 / (1 / MEAN_S - rate)


EXPONENTIAL = (-np.log1p(-(np.arange(256) + 0.5) / 256) * MEAN_S).tolist()
CURVE = [{"rate": rate, "mean": latency_s(rate)} for rate in (8.0, 24.0, 36.0, 53.9)]


@pytest.mark.parametrize("share", [0.5, 0.588, 0.7])
@pytest.mark.parametrize("more", [{}, {"twin": None, "curve": CURVE}], ids=["by the model", "as measured"])
def test_requests_in_flight_are_those_at_the_planned_rate(share: float, more: dict[str, Any]) -> None:
    plan, search = planned(share, **more)
    target = targets_of(plan, search).concurrency
    rate = share * LOW
    assert target == pytest.approx(rate * latency_s(rate), rel=0.02)


def test_the_use_that_each_policy_leads_to_is_the_one_that_is_planned() -> None:
    """A rate of which 20 instances at 58.8% are the plan, begun with fewer and with more."""
    plan, search = planned(0.588)
    targets, service = targets_of(plan, search), Service.of(search.data.twin, 1)
    assert isinstance(service, Service)
    assert isinstance(targets.concurrency, float)
    rate = 20 * targets.rps
    bounds: dict[str, Any] = {"minimum": 2, "maximum": 60, "instance_start_s": 60}
    concurrency = TargetTracking(metric="concurrency", target=targets.concurrency, **bounds)
    for policy, first in (
        (TargetTracking(metric="invocations", target=targets.invocations, **bounds), 12),
        (PodScaling(metric="requests", target=targets.rps, **bounds), 28),
        (concurrency, 12),
        (concurrency, 28),
    ):
        load = Steps((Step(rate, rate, 2400.0),))
        run = simulate(service, load, policy, "random", bound_s=0.1, allowed=0.01, seed=5, instances=first)
        instances = np.mean([minute.instances for minute in run.minutes[30:]])
        assert 0.9 * 0.588 < rate / instances / LOW < 1.02 * 0.588, policy.name


def test_steps_leave_no_gap_and_the_lower_alarm_does_not_undo_the_upper_one() -> None:
    for minimum in (1, 2, 5, 20):
        plan, files, _ = made(minimum=minimum, maximum=40)
        steps = files["scaling_policy_step.json"]["StepScalingPolicyConfiguration"]["StepAdjustments"]
        assert [each.get("MetricIntervalUpperBound") for each in steps[:-1]] == [
            each["MetricIntervalLowerBound"] for each in steps[1:]
        ]
        assert "MetricIntervalLowerBound" not in steps[0]
        assert "MetricIntervalUpperBound" not in steps[-1]
        high, low = (files[f"alarm_{way}.json"]["Threshold"] for way in ("out", "in"))
        assert high == plan.chosen.invocations_per_instance
        for count in range(minimum + 1, 41):
            left = count - max(1, count // 10)
            assert low * count / left < high


def test_what_is_not_known_is_a_placeholder_and_said() -> None:
    _, files, missing = made({})
    assert files["scalable_target.json"]["ResourceId"] == f"endpoint/{NAME}/variant/{VARIANT}"
    assert any(f"Replace {NAME} and {VARIANT} in the files, or give --endpoint-name" in each for each in missing)
    assert any("scaling_policy_cpu.json was not written: the instance type" in each for each in missing)
    gone = {**DEMO, "name": "made-for-the-search", "arguments": {}}
    assert made(gone)[1]["scalable_target.json"]["ResourceId"] == f"endpoint/{NAME}/variant/AllTraffic"
    named = made(gone, name="mine")[1]["scaling_policy_cpu.json"]
    assert named["ResourceId"] == "endpoint/mine/variant/AllTraffic"
    dimensions = named["TargetTrackingScalingPolicyConfiguration"]["CustomizedMetricSpecification"]["Dimensions"]
    assert dimensions[0] == {"Name": "EndpointName", "Value": "mine"}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"resources": None}, "scaling_policy_cpu.json was not written: CPUUtilization was not measured"),
        ({"resources": {"all": [{**CPU, "reason": "bent"}]}}, "does not grow linearly"),
        ({"curve": [{"rate": 168, "mean": 0.05}]}, "scaling_policy_concurrency.json was not written: mean latency"),
    ],
)
def test_a_policy_that_nothing_tells_the_target_of_is_not_written(more: dict[str, Any], said: str) -> None:
    curve = [{"rate": rate, "mean": 0.05} for rate in (60.0, 168.0)]
    data: dict[str, Any] = {
        "endpoint": DEMO,
        "where_time_went": {"mean_s": 0.05},
        "curve": curve,
        "resources": {"all": [CPU]},
    }
    search = measured(searched(**{**data, **more}), "x")
    assert isinstance(search, Measured)
    question = PlanRequest((), target_rps=500)
    plan = endpoint_plan(Case(question, [search], demand_of(question, None), lambda *_: None))
    assert isinstance(plan, EndpointPlan)
    assert any(said in each for each in policy_files(plan, search)[1])


def test_kubernetes_files_say_the_same() -> None:
    plan, _, _ = made()
    files = {name: yaml.safe_load(text) for name, text in kubernetes_files(plan, 'My "model": 1').items()}
    hpa, keda = files["hpa.yaml"], files["keda.yaml"]
    assert (hpa["apiVersion"], hpa["kind"]) == ("autoscaling/v2", "HorizontalPodAutoscaler")
    assert (hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"]) == (2, 15)
    assert hpa["spec"]["metrics"][0]["pods"]["target"]["averageValue"] == "70000m"
    assert (keda["apiVersion"], keda["kind"]) == ("keda.sh/v1alpha1", "ScaledObject")
    assert (keda["spec"]["minReplicaCount"], keda["spec"]["maxReplicaCount"]) == (2, 15)
    assert "cooldownPeriod" not in keda["spec"], "it acts on the step to zero alone"
    behaviour = keda["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert behaviour == hpa["spec"]["behavior"]
    assert behaviour["scaleDown"]["stabilizationWindowSeconds"] == 300
    (trigger,) = keda["spec"]["triggers"]
    assert trigger["metadata"]["threshold"] == "70"
    assert 'deployment="my-model-1"' in trigger["metadata"]["query"]
    assert hpa["metadata"]["name"] == keda["spec"]["scaleTargetRef"]["name"] == "my-model-1"


@pytest.mark.parametrize(
    ("name", "made_of_it"), [("A_b.c", "a-b-c"), ("--", "endpoint"), ("é" * 3, "endpoint"), ("x" * 99, "x" * 63)]
)
def test_names_are_what_kubernetes_takes(name: str, made_of_it: str) -> None:
    assert label(name) == made_of_it


@pytest.mark.process
def test_moto_takes_the_files() -> None:
    _, files, _ = made()
    with moto_server() as url:

        def of(service: str) -> Any:
            keys = {"aws_access_key_id": "none", "aws_secret_access_key": "none"}
            return boto3.client(service, endpoint_url=url, region_name="us-east-1", **keys)

        scaling, cloudwatch = of("application-autoscaling"), of("cloudwatch")
        scaling.register_scalable_target(**files["scalable_target.json"])
        for name in (name for name in files if name.startswith("scaling_policy")):
            scaling.put_scaling_policy(**files[name])
        for name in ("alarm_out.json", "alarm_in.json"):
            cloudwatch.put_metric_alarm(**files[name])
        stored = {
            each["PolicyName"]: each
            for each in scaling.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"]
        }
        assert set(stored) == {"planned-invocations", "planned-concurrency", "planned-cpu", "planned-step"}
        assert len(cloudwatch.describe_alarms()["MetricAlarms"]) >= 2


@pytest.mark.process
@pytest.mark.parametrize("kind", ["", "_concurrency", pytest.param("_cpu", marks=pytest.mark.slow)])
def test_the_embedded_endpoint_scales_as_the_plan_says(kind: str) -> None:
    """An instance is sure to hold 20/s, and 36/s at 70% need 3 of them; a minute lasts 400 ms here.

    Ten seconds of it are short: the requests in them that are one more than on average may ask for one instance more.
    """
    plan, files, _ = made(low=20.0, target_rps=36, spare=0, mean_s=SERVICE_S, cpu=DEMO_CPU)
    assert plan.chosen.instances == 3
    with scaled(files, time_factor=150) as endpoint:
        client(endpoint, "application-autoscaling").put_scaling_policy(**files[f"scaling_policy{kind}.json"])
        assert load_until(endpoint, 3) >= 3 if kind == "_concurrency" else load_until(endpoint, 3) == 3


@pytest.mark.process
def test_the_embedded_endpoint_takes_the_steps_of_the_plan() -> None:
    """A minute lasts 100 ms, so that one request more or less may be a step; in the end the minimum is left."""
    plan, files, _ = made(low=20.0, target_rps=36, spare=0)
    with scaled(files, time_factor=600) as endpoint:
        scaling, cloudwatch = client(endpoint, "application-autoscaling"), client(endpoint, "cloudwatch")
        arn = scaling.put_scaling_policy(**files["scaling_policy_step.json"])["PolicyARN"]
        for way in ("out", "in"):
            cloudwatch.put_metric_alarm(**{**files[f"alarm_{way}.json"], "AlarmActions": [arn]})
        assert load_until(endpoint, 3) >= 3
        sagemaker = client(endpoint, "sagemaker")
        for _ in range(20 * PATIENCE_S):
            if instances_of(sagemaker) == plan.chosen.minimum:
                break
            time.sleep(0.05)
        assert instances_of(sagemaker) == plan.chosen.minimum
        (policy,) = scaling.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"]
        steps = policy["StepScalingPolicyConfiguration"]
        assert steps == files["scaling_policy_step.json"]["StepScalingPolicyConfiguration"]
        put = [files[f"alarm_{way}.json"]["AlarmName"] for way in ("out", "in")]
        assert [alarm["AlarmName"] for alarm in policy["Alarms"]] == put
        fields = {alarm["AlarmName"]: alarm for alarm in cloudwatch.describe_alarms()["MetricAlarms"]}
        for way, name in zip(("out", "in"), put, strict=True):
            given = {**files[f"alarm_{way}.json"], "AlarmActions": [arn]}
            assert {key: fields[name][key] for key in given if key != "Dimensions"} == {
                key: value for key, value in given.items() if key != "Dimensions"
            }
        causes = [each["Cause"] for each in scaling.describe_scaling_activities(**OF_DEMO)["ScalingActivities"]]
        assert put[0] in causes[-2]
        assert put[1] in causes[0]
        cloudwatch.delete_alarms(AlarmNames=put)
        assert cloudwatch.describe_alarms()["MetricAlarms"] == []


@contextmanager
def scaled(files: dict[str, dict[str, Any]], time_factor: float) -> Iterator[RunningEndpoint]:
    """The endpoint as a scalable target, with two servers an instance."""
    config = EndpointConfig(
        servers=2, service_s=SERVICE_S, time_factor=time_factor, instance_start_s=60, publish_interval_s=1
    )
    with start(config) as endpoint:
        client(endpoint, "application-autoscaling").register_scalable_target(**files["scalable_target.json"])
        yield endpoint


def load_until(endpoint: RunningEndpoint, instances: int) -> int:
    """Send 36 requests a second until there are as many instances, and tell how many there are."""
    sagemaker, began = client(endpoint, "sagemaker"), time.monotonic()
    for number in range(36 * PATIENCE_S):
        time.sleep(max(0.0, began + number / 36 - time.monotonic()))
        invoke(endpoint)
        if not number % 9 and instances_of(sagemaker) >= instances:
            break
    return instances_of(sagemaker)


def invoke(endpoint: RunningEndpoint) -> None:
    connection = HTTPConnection("127.0.0.1", endpoint.port)
    connection.request("POST", "/invocations", b"{}")
    assert connection.getresponse().status == 200
    connection.close()


def instances_of(sagemaker: Any) -> int:
    count: int = sagemaker.describe_endpoint(EndpointName="demo")["ProductionVariants"][0]["CurrentInstanceCount"]
    return count
