"""What is known of the endpoint that was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.data.decoded import encoded
from server_capacity.experiments.server_side.measured_endpoint import endpoint_facts, measured_endpoint
from server_capacity.metrics.cloudwatch.block import CloudWatchBlock
from tests.fake_cloudwatch import alone

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench import Bench

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


@pytest.mark.process
def test_the_embedded_endpoint_is_described(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    block = CloudWatchBlock("AWS/SageMaker", (("EndpointName", "demo"), ("VariantName", "AllTraffic")), 60, 0.0, ())
    with bench.endpoint(instances=2) as endpoint:
        for name, value in endpoint.aws_environment.items():
            monkeypatch.setenv(name, value)
        found = measured_endpoint(None, None, None, None, [block])
    assert (found.name, found.kind, found.instances, found.region) == ("demo", "variant", 2, "us-east-1")
    assert found.instance_type is not None
    assert found.instance_type.startswith("ml.")
