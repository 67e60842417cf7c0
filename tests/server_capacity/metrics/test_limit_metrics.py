"""Limits on metrics that an endpoint configuration does not ask for."""

from typing import Any

import pytest

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.server_limit import ServerLimit
from server_capacity.metrics import cloudwatch, prometheus
from server_capacity.metrics.config import with_limits
from tests.fake_cloudwatch import cloudwatch_block

INSTANCES, REQUESTS = "/aws/sagemaker/Endpoints", "AWS/SageMaker"


def asked(blocks: list[dict[str, Any]], *texts: str) -> list[Any]:
    read = [(cloudwatch if each["stream"] == "cloudwatch" else prometheus).read_block(each) for each in blocks]
    return with_limits(read, [ServerLimit.parse(text) for text in texts], "config.json")


def test_a_statistic_joins_the_metric_that_is_asked_for_and_its_course_is_of_the_average() -> None:
    (block,) = asked([cloudwatch_block(INSTANCES, {"CPUUtilization": ["p90"]})], "server.CPUUtilization.Maximum<90%")
    assert block.metrics == (("CPUUtilization", ("Average", "Maximum", "p90")),)


def test_a_documented_metric_joins_the_block_of_its_namespace_or_gets_one() -> None:
    blocks = [cloudwatch_block(REQUESTS, {"ModelLatency": ["Average"]})]
    found = asked(blocks, "server.CPUUtilization<70%", "server.Invocations.Sum<1000")
    assert found[0].metrics == (("ModelLatency", ("Average",)), ("Invocations", ("Sum",)))
    assert (found[1].namespace, found[1].names) == (INSTANCES, ("CPUUtilization",))
    assert found[1].dimensions == found[0].dimensions != ()


def test_a_preset_has_its_items_and_a_page_any_metric() -> None:
    page = {"stream": "prometheus", "scrape_url": "http://127.0.0.1:1/metrics", "preset": "vllm", "metrics": ["a_b"]}
    (found,) = asked([page], "server.kv_cache_use<90%", "server.a_b.Maximum<2", "server.vllm:lora_requests<3")
    assert dict(found.metrics) == {"a_b": ("Average", "Maximum"), "vllm:lora_requests": ()}


def test_a_prometheus_server_is_asked_for_the_mean_over_the_window() -> None:
    server = {"stream": "prometheus", "url": "http://127.0.0.1:1", "queries": {"up": "up"}}
    (found,) = asked([server], "server.up>=1", "server.node_load1<4")
    assert dict(found.queries) == {"up": "up", "node_load1": "avg_over_time(node_load1[{window}])"}


@pytest.mark.parametrize("name", ["CPUUtilisation", "kv_cache_use"])
def test_a_metric_that_nobody_has_is_refused_with_those_there_are(name: str) -> None:
    blocks = [cloudwatch_block(INSTANCES, {"CPUUtilization": ["Average"]})]
    with pytest.raises(BenchmarkError, match=r"config\.json has no metric '.*'; it asks for CPUUtilization\."):
        asked(blocks, f"server.{name}<70%")


def test_a_slip_of_the_pen_beside_a_preset_is_no_metric_of_the_page() -> None:
    page = {"stream": "prometheus", "scrape_url": "http://127.0.0.1:1/metrics", "preset": "vllm"}
    with pytest.raises(BenchmarkError, match="Did you mean 'kv_cache_use'"):
        asked([page], "server.kv_cach_use<90%")


def test_two_limits_on_one_metric_of_a_page_are_read_together() -> None:
    page = {"stream": "prometheus", "scrape_url": "http://127.0.0.1:1/metrics", "metrics": ["c_d"]}
    (found,) = asked([page], "server.a_b<3", "server.a_b.Maximum<4")
    assert dict(found.metrics)["a_b"] == ("Average", "Maximum"), "the first one is on the Average"


def test_a_block_is_renamed_and_waited_for_where_that_has_a_meaning() -> None:
    block = cloudwatch.read_block(cloudwatch_block(INSTANCES, {"CPUUtilization": ["p90"]}, endpoint="old"))
    assert block.of_endpoint("new").dimensions == (("EndpointName", "new"), ("VariantName", "AllTraffic"))
    assert block.waiting(7.0).wait == 7.0
    server = prometheus.read_block({"url": "http://127.0.0.1:1", "queries": {"up": "up"}})
    assert server.of_endpoint("new").waiting(7.0) == server
