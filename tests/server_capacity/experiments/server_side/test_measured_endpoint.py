"""What is known of the endpoint that was measured."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.errors import BenchmarkError
from server_capacity.experiments.server_side.measured_endpoint import endpoint_facts, made_with, measured_endpoint
from server_capacity.metrics.cloudwatch.block import CloudWatchBlock
from server_capacity.results.types.bounds import Endpoint
from tests.fake_cloudwatch import alone

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench import Bench

MADE = Endpoint(kind="variant", variant="AllTraffic", instance_type="ml.m5.xlarge", instances=2)
ALL = {"VariantName": "AllTraffic", "ModelName": "m", "InstanceType": "ml.m5.xlarge"}
LEAST = {"RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}}


@pytest.mark.parametrize(
    ("configured", "modes", "kind", "instance_type", "routing"),
    [
        ([ALL], set(), "variant", "ml.m5.xlarge", "RANDOM"),
        ([{**ALL, **LEAST}], {"SingleModel"}, "variant", "ml.m5.xlarge", "LEAST_OUTSTANDING_REQUESTS"),
        ([ALL], {"MultiModel"}, "multi-model", "ml.m5.xlarge", "RANDOM"),
        ([{**ALL, "ModelName": None}], set(), "inference-component", "ml.m5.xlarge", "RANDOM"),
        ([{**ALL, "ServerlessConfig": {"MaxConcurrency": 5}}], set(), "serverless", None, None),
        ([ALL, {**ALL, "VariantName": "B", "InstanceType": "ml.c5.large"}], set(), "mixed", None, "RANDOM"),
        ([{**ALL, "InstancePools": [{"InstanceType": "a"}]}], set(), "mixed", None, "RANDOM"),
    ],
)  # fmt: skip
def test_a_configuration_tells_of_what_kind_it_is(
    configured: list[dict[str, Any]], modes: set[str], kind: str, instance_type: str | None, routing: str | None
) -> None:
    running = {"ProductionVariants": [{"VariantName": "AllTraffic", "CurrentInstanceCount": 2}]}
    found = endpoint_facts(running, {"ProductionVariants": configured}, None, modes)
    assert (found.kind, found.instance_type, found.routing) == (kind, instance_type, routing)
    assert found.instances == (None if kind == "serverless" else 2)


def test_its_address_has_no_password_be_it_a_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    alone(monkeypatch, tmp_path)
    assert measured_endpoint("http://me:12345678@host/x", None, None, None).name == "http://[hidden]@host/x"


def test_arguments_go_before_what_nobody_tells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    alone(monkeypatch, tmp_path)
    found = measured_endpoint("http://127.0.0.1:80/x", {"instance_type": "ml.t2.medium", "instances": 3}, {"n": 1}, 2.5)
    assert encoded(found) == {
        "name": "http://127.0.0.1:80/x",
        "arguments": {"instance_type": "ml.t2.medium", "instances": 3},
        "payload_arguments": {"n": 1},
        "kind": None,
        "instance_type": "ml.t2.medium",
        "instances": 3,
        "region": None,
        "variant": None,
        "routing": None,
        "seconds_to_create": 2.5,
    }
    assert measured_endpoint("my-endpoint", None, None, None).kind is None


@pytest.mark.parametrize(
    ("there", "given", "said"),
    [
        ({}, {"instance_type": "ml.c5.large"}, "on ml.m5.xlarge, and .* given instance_type=ml.c5.large"),
        ({}, {"instance_type": "ml.m5.xlarge", "instances": 3}, "on 2 instances, and .* given instances=3"),
        ({}, {"instance_count": 1}, "on 2 instances, and endpoint_factory was given instance_count=1"),
        ({"kind": "multi-model"}, {"instances": 1}, "on 2 instances"),
        ({"kind": "inference-component"}, {"instance_type": "ml.c5.large"}, "on ml.m5.xlarge"),
    ],
)  # fmt: skip
def test_a_factory_that_ignores_its_arguments_is_refused(
    there: dict[str, Any], given: dict[str, Any], said: str
) -> None:
    described = replace(MADE, **there)
    with pytest.raises(BenchmarkError, match="e-1: SageMaker runs it " + said):
        made_with(described, given, "e-1", is_whole=True)


@pytest.mark.parametrize(
    ("there", "given", "expected"),
    [
        ({}, {"instance_type": "ml.m5.xlarge", "instances": 2}, ("ml.m5.xlarge", 2)),
        ({}, {}, ("ml.m5.xlarge", 2)),
        ({"kind": "inference-component"}, {"instances": 5}, ("ml.m5.xlarge", 5)),
        ({"kind": "serverless", "instance_type": None, "instances": None}, {"instance_type": "a"}, (None, None)),
        ({"kind": "mixed", "instance_type": None}, {"instances": 4}, (None, 4)),
        ({"kind": None, "instance_type": None, "instances": None}, {"instance_type": "a", "instances": 4}, ("a", 4)),
        ({"instances": None}, {"instances": 4}, ("ml.m5.xlarge", 4)),
    ],
)
def test_what_sagemaker_says_goes_before_a_factorys_arguments(
    there: dict[str, Any], given: dict[str, Any], expected: tuple[str | None, int | None]
) -> None:
    found = made_with(replace(MADE, **there), given, "e-1", is_whole=True)
    assert (found.instance_type, found.instances) == expected


def test_instances_of_one_of_several_variants_are_not_all_that_were_made() -> None:
    assert made_with(MADE, {"instances": 5}, "e-1", is_whole=False).instances == 5


@pytest.mark.process
def test_the_embedded_endpoint_is_described(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    block = CloudWatchBlock("AWS/SageMaker", (("EndpointName", "demo"), ("VariantName", "AllTraffic")), 60, 0.0, ())
    with bench.endpoint(instances=2) as endpoint:
        for name, value in endpoint.aws_environment.items():
            monkeypatch.setenv(name, value)
        found = measured_endpoint(None, None, None, None, [block])
        with pytest.raises(
            BenchmarkError, match="demo: SageMaker runs it on 2 instances, and endpoint_factory was given"
        ):
            measured_endpoint(None, {"instances": 3}, None, 1.0, [block])
    assert (found.name, found.kind, found.instances, found.region) == ("demo", "variant", 2, "us-east-1")
    assert found.instance_type is not None
    assert found.instance_type.startswith("ml.")
