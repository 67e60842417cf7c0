"""SageMaker's control plane: endpoints made, used and removed by an unmodified boto3."""

from __future__ import annotations

import time
from collections import Counter
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.running import start
from tests.boto3_runtime import client, runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inference_benchmarker.embedded.running import RunningEndpoint

pytestmark = pytest.mark.process
ROLE = "arn:aws:iam::123456789012:role/demo"
CONTAINER = {"Image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/model:1"}
SOON: dict[str, Any] = {"create_s": 0.2, "service_s": 0.01, "publish_interval_s": 1, "publication_delay_s": 0.1}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[RunningEndpoint]:
    with start(EndpointConfig(**SOON, type_quota={"ml.c5.large": 3}, type_servers={"ml.inf9.xlarge": 3})) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def sagemaker(endpoint: RunningEndpoint) -> Any:
    return client(endpoint, "sagemaker")


def define(sagemaker: Any, name: str, model: dict[str, Any] | None = None, **variant: Any) -> None:
    """A model and an endpoint configuration of that name."""
    sagemaker.create_model(ModelName=name, PrimaryContainer={**CONTAINER, **(model or {})}, ExecutionRoleArn=ROLE)
    if not variant.keys() & {"ServerlessConfig", "InstanceType"}:
        variant["InstanceType"] = "ml.m5.large"
    if "InstanceType" in variant:
        variant.setdefault("InitialInstanceCount", 1)
    sagemaker.create_endpoint_config(
        EndpointConfigName=name, ProductionVariants=[{"VariantName": "main", "ModelName": name, **variant}]
    )


def create(sagemaker: Any, name: str, **variant: Any) -> dict[str, Any]:
    """An endpoint in service."""
    define(sagemaker, name, **variant)
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    return in_service(sagemaker, name)


def in_service(sagemaker: Any, name: str) -> dict[str, Any]:
    sagemaker.get_waiter("endpoint_in_service").wait(
        EndpointName=name, WaiterConfig={"Delay": 0.05, "MaxAttempts": 100}
    )
    found: dict[str, Any] = sagemaker.describe_endpoint(EndpointName=name)
    return found


def gone(sagemaker: Any, name: str) -> None:
    waiter = sagemaker.get_waiter("endpoint_deleted")
    waiter.wait(EndpointName=name, WaiterConfig={"Delay": 0.05, "MaxAttempts": 100})


def refused(call: Callable[..., Any], **arguments: Any) -> tuple[str, str]:
    """The code and the sentence with which boto3 is refused."""
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


def test_an_endpoint_from_its_model_to_its_end() -> None:
    with start(EndpointConfig(create_s=60, time_factor=40)) as endpoint:
        live(endpoint, client(endpoint, "sagemaker"))


def live(endpoint: RunningEndpoint, sagemaker: Any) -> None:
    invoke = runtime(endpoint).invoke_endpoint
    define(sagemaker, "life", InitialInstanceCount=2)
    tags = [{"Key": "run", "Value": "r1"}]
    made = sagemaker.create_endpoint(EndpointName="life", EndpointConfigName="life", Tags=tags)
    arn = made["EndpointArn"]
    assert arn == "arn:aws:sagemaker:us-east-1:123456789012:endpoint/life"
    assert sagemaker.describe_endpoint(EndpointName="life")["EndpointStatus"] == "Creating"
    in_progress = ("ValidationException", f'Cannot update in-progress endpoint "{arn}".')
    assert refused(sagemaker.delete_endpoint, EndpointName="life") == in_progress
    missing = ("ValidationError", "Endpoint life of account 123456789012 not found.")
    assert refused(invoke, EndpointName="life", Body=b"{}") == missing
    reported = in_service(sagemaker, "life")
    assert reported["ProductionVariants"][0]["VariantName"] == "main"
    assert reported["ProductionVariants"][0]["CurrentInstanceCount"] == 2
    assert reported["CreationTime"] < reported["LastModifiedTime"]
    answer = invoke(EndpointName="life", Body=b"{}")
    assert (answer["Body"].read(), answer["InvokedProductionVariant"]) == (b'{"predictions":[0.5]}', "main")
    assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == tags
    sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "more", "Value": ""}])
    sagemaker.delete_tags(ResourceArn=arn, TagKeys=["run"])
    assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "more", "Value": ""}]

    sagemaker.delete_endpoint(EndpointName="life")
    assert refused(invoke, EndpointName="life", Body=b"{}") == missing
    gone(sagemaker, "life")
    assert refused(sagemaker.delete_endpoint, EndpointName="life")[1] == f'Could not find endpoint "{arn}".'
    assert sagemaker.describe_endpoint_config(EndpointConfigName="life")["EndpointConfigName"] == "life"
    for call, member in (
        (sagemaker.delete_endpoint_config, "EndpointConfigName"),
        (sagemaker.delete_model, "ModelName"),
    ):
        call(**{member: "life"})
        code, text = refused(call, **{member: "life"})
        assert (code, text[:15]) == ("ValidationException", "Could not find ")
    assert "life" in endpoint.arrivals()["endpoint"]


def test_types_differ_in_servers_and_speed(endpoint: RunningEndpoint, sagemaker: Any) -> None:
    """Of 6 requests at once: 1 server of 10 ms takes 60 ms, 2 servers of 8 ms take 24, and a worker of them 48."""
    create(sagemaker, "slow")
    create(sagemaker, "fast", InstanceType="ml.c5.xlarge")
    define(sagemaker, "one", {"Environment": {"SAGEMAKER_MODEL_SERVER_WORKERS": "1"}}, InstanceType="ml.c5.xlarge")
    sagemaker.create_endpoint(EndpointName="one", EndpointConfigName="one")
    create(sagemaker, "given", InstanceType="ml.inf9.xlarge")
    in_service(sagemaker, "one")
    endpoint.clear()
    service = {"slow": (10, 1), "fast": (8, 2), "one": (8, 1), "given": (10, 3)}
    connections = [(name, HTTPConnection("127.0.0.1", endpoint.port)) for name in service for _ in range(6)]
    endpoint.stall(0.5)  # so that all wait together, however slowly they come
    for name, connection in connections:
        connection.request("POST", f"/endpoints/{name}/invocations", b"{}")
    assert {connection.getresponse().status for _, connection in connections} == {200}
    log = endpoint.arrivals()
    for name, (service_ms, servers) in service.items():
        rows = [row for row, found in enumerate(log["endpoint"]) if found == name]
        spans = [(log["start_ns"][row], log["finish_ns"][row]) for row in rows]
        assert {end - begin for begin, end in spans} == {service_ms * 1_000_000}
        assert max(sum(begin <= at < end for begin, end in spans) for at, _ in spans) == servers
    for name in service:
        sagemaker.delete_endpoint(EndpointName=name)


def test_each_endpoint_has_its_own_metrics(endpoint: RunningEndpoint, sagemaker: Any) -> None:
    begin = time.time()
    create(sagemaker, "counted", InitialInstanceCount=2)
    for _ in range(4):
        runtime(endpoint).invoke_endpoint(EndpointName="counted", Body=b"")["Body"].read()
    sagemaker.delete_endpoint(EndpointName="counted")  # what is left of its interval is reported nevertheless
    dimensions = [{"Name": "EndpointName", "Value": "counted"}, {"Name": "VariantName", "Value": "main"}]
    cloudwatch = client(endpoint, "cloudwatch")

    def total(name: str) -> float:
        metric = {"Namespace": "AWS/SageMaker", "MetricName": name, "Dimensions": dimensions}
        asked = [{"Id": "m", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"}}]
        found = cloudwatch.get_metric_data(MetricDataQueries=asked, StartTime=begin - 60, EndTime=begin + 600)
        return float(sum(found["MetricDataResults"][0]["Values"]))

    for _ in range(100):
        if total("Invocations") == 4:  # they may be of two publications
            break
        time.sleep(0.05)
    assert (total("Invocations"), total("InvocationsPerInstance")) == (4, 2)


def test_what_cannot_be_had_fails_and_can_be_removed(sagemaker: Any) -> None:
    define(sagemaker, "none", InstanceType="ml.p5.48xlarge")
    sagemaker.create_endpoint(EndpointName="none", EndpointConfigName="none")
    with pytest.raises(Exception, match="EndpointInService"):
        in_service(sagemaker, "none")
    reported = sagemaker.describe_endpoint(EndpointName="none")
    assert reported["EndpointStatus"] == "Failed"
    assert "InsufficientInstanceCapacity" in reported["FailureReason"]
    failed = sagemaker.list_endpoints(StatusEquals="Failed")["Endpoints"]
    assert [each["EndpointName"] for each in failed] == ["none"]
    sagemaker.delete_endpoint(EndpointName="none")
    gone(sagemaker, "none")
    define(sagemaker, "many", InstanceType="ml.c5.large", InitialInstanceCount=4)
    code, text = refused(sagemaker.create_endpoint, EndpointName="many", EndpointConfigName="many")
    assert code == "ResourceLimitExceeded"
    assert "'ml.c5.large for endpoint usage' is 3 Instances" in text


def test_a_serverless_endpoint_throttles_what_is_beyond_its_concurrency(
    endpoint: RunningEndpoint, sagemaker: Any
) -> None:
    reported = create(sagemaker, "less", ServerlessConfig={"MemorySizeInMB": 1024, "MaxConcurrency": 2})
    (variant,) = reported["ProductionVariants"]
    assert variant["CurrentServerlessConfig"]["MaxConcurrency"] == 2
    assert "CurrentInstanceCount" not in variant
    endpoint.clear()
    connections = [HTTPConnection("127.0.0.1", endpoint.port) for _ in range(40)]
    for connection in connections:
        connection.request("POST", "/endpoints/less/invocations", b"{}")
    codes = Counter(connection.getresponse().getheader("x-amzn-ErrorType") for connection in connections)
    assert set(codes) == {None, "ThrottlingException"}
    log = endpoint.arrivals()
    spans = [span for span in zip(log["start_ns"], log["finish_ns"], strict=True) if span[0] is not None]
    assert len(spans) == codes[None]
    for queued, start_ns in zip(log["queued_ns"], log["start_ns"], strict=True):
        busy = sum(begin <= queued < end for begin, end in spans)
        assert busy == 2 if start_ns is None else busy <= 2
    target = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": "endpoint/less/variant/main",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    scaling = client(endpoint, "application-autoscaling")
    assert refused(scaling.register_scalable_target, **target, MinCapacity=1, MaxCapacity=2)[0] == "ValidationException"
    sagemaker.delete_endpoint(EndpointName="less")


def test_a_component_serves_those_that_name_it(endpoint: RunningEndpoint, sagemaker: Any) -> None:
    variant = {"VariantName": "main", "InstanceType": "ml.m5.large", "InitialInstanceCount": 2}
    sagemaker.create_endpoint_config(EndpointConfigName="parts", ProductionVariants=[variant], ExecutionRoleArn=ROLE)
    sagemaker.create_endpoint(EndpointName="parts", EndpointConfigName="parts")
    in_service(sagemaker, "parts")
    required = {"ComputeResourceRequirements": {"MinMemoryRequiredInMb": 128}, "Container": CONTAINER}

    def component(name: str, copies: int) -> str:
        sagemaker.create_inference_component(
            InferenceComponentName=name,
            EndpointName="parts",
            VariantName="main",
            Specification=required,
            RuntimeConfig={"CopyCount": copies},
        )
        while (reported := described(name))["InferenceComponentStatus"] == "Creating":
            time.sleep(0.02)
        return str(reported["InferenceComponentStatus"])

    def described(name: str) -> dict[str, Any]:
        found: dict[str, Any] = sagemaker.describe_inference_component(InferenceComponentName=name)
        return found

    assert (component("a", 2), component("b", 1)) == ("InService", "Failed")
    assert described("a")["RuntimeConfig"] == {"DesiredCopyCount": 2, "CurrentCopyCount": 2}
    assert "hardware resources" in described("b")["FailureReason"]
    invoke = runtime(endpoint).invoke_endpoint
    assert invoke(EndpointName="parts", InferenceComponentName="a", Body=b"")["Body"].read()
    code, text = refused(invoke, EndpointName="parts", Body=b"")
    assert (code, text[:35]) == ("ValidationError", "Inference Component Name header is ")
    assert refused(sagemaker.delete_endpoint, EndpointName="parts")[0] == "ValidationException"
    listed = sagemaker.list_inference_components(EndpointNameEquals="parts", SortBy="Name", SortOrder="Ascending")
    assert [each["InferenceComponentName"] for each in listed["InferenceComponents"]] == ["a", "b"]
    for name in "ab":
        sagemaker.delete_inference_component(InferenceComponentName=name)
    while sagemaker.list_inference_components(EndpointNameEquals="parts")["InferenceComponents"]:
        time.sleep(0.02)
    assert refused(invoke, EndpointName="parts", InferenceComponentName="a", Body=b"")[0] == "ValidationError"
    sagemaker.delete_endpoint(EndpointName="parts")
    gone(sagemaker, "parts")


def test_an_endpoint_that_was_made_is_resized_and_scaled_by_itself(endpoint: RunningEndpoint, sagemaker: Any) -> None:
    create(sagemaker, "sized")
    wanted = [{"VariantName": "main", "DesiredInstanceCount": 3}]
    sagemaker.update_endpoint_weights_and_capacities(EndpointName="sized", DesiredWeightsAndCapacities=wanted)
    reported = sagemaker.describe_endpoint(EndpointName="sized")
    assert (reported["EndpointStatus"], reported["ProductionVariants"][0]["DesiredInstanceCount"]) == ("Updating", 3)
    target = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": "endpoint/sized/variant/main",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    scaling = client(endpoint, "application-autoscaling")
    scaling.register_scalable_target(**target, MinCapacity=1, MaxCapacity=3)
    (found,) = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
    assert found["ResourceId"] == target["ResourceId"]
    assert sagemaker.describe_endpoint(EndpointName="demo")["ProductionVariants"][0]["DesiredInstanceCount"] == 1
    assert refused(sagemaker.delete_endpoint, EndpointName="sized")[1].startswith("Cannot update in-progress")
    scaling.deregister_scalable_target(**target)


def test_lists_come_in_pages_and_in_order(sagemaker: Any) -> None:
    for number in range(3):
        sagemaker.create_model(ModelName=f"page-{number}", PrimaryContainer=CONTAINER, ExecutionRoleArn=ROLE)
    pages = sagemaker.get_paginator("list_models").paginate(
        NameContains="page-", SortBy="Name", SortOrder="Ascending", PaginationConfig={"PageSize": 2}
    )
    assert [[each["ModelName"] for each in page["Models"]] for page in pages] == [["page-0", "page-1"], ["page-2"]]
    assert sagemaker.describe_model(ModelName="page-1")["PrimaryContainer"] == CONTAINER
    assert "demo" in [each["EndpointName"] for each in sagemaker.list_endpoints()["Endpoints"]]


def test_what_is_wrong_is_refused_in_sagemakers_words(sagemaker: Any) -> None:
    define(sagemaker, "twice")
    arn = "arn:aws:sagemaker:us-east-1:123456789012"
    variant = {"VariantName": "v", "ModelName": "twice", "InstanceType": "ml.m5.large", "InitialInstanceCount": 1}
    config = {"EndpointConfigName": "wrong", "ProductionVariants": [variant]}
    known = {"ModelName": "twice", "PrimaryContainer": CONTAINER, "ExecutionRoleArn": ROLE}
    cases: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
        (sagemaker.create_model, known, f'Cannot create already existing model "{arn}:model/twice".'),
        (sagemaker.create_model, {"ModelName": "no_name", "PrimaryContainer": CONTAINER}, "regular expression"),
        (sagemaker.create_endpoint_config, {**config, "ProductionVariants": [variant, variant]}, "2 production"),
        (
            sagemaker.create_endpoint_config,
            {**config, "ProductionVariants": [{**variant, "ModelName": "nowhere"}]},
            f'Could not find model "{arn}:model/nowhere".',
        ),
        (
            sagemaker.create_endpoint,
            {"EndpointName": "e", "EndpointConfigName": "nowhere"},
            f'Could not find endpoint configuration "{arn}:endpoint-config/nowhere".',
        ),
        (
            sagemaker.create_endpoint,
            {"EndpointName": "demo", "EndpointConfigName": "twice"},
            f'Cannot create already existing endpoint "{arn}:endpoint/demo".',
        ),
        (sagemaker.delete_endpoint, {"EndpointName": "demo"}, "nobody created it"),
        (sagemaker.list_tags, {"ResourceArn": f"{arn}:model/nowhere"}, "Could not find resource"),
    ]
    for call, arguments, expected in cases:
        code, text = refused(call, **arguments)
        assert code == "ValidationException", arguments
        assert expected in text, arguments
