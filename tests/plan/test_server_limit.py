"""Limits on server metrics, as users write them."""

from typing import Any

import pytest

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.server_limit import ServerLimit, is_server_limit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("server.CPUUtilization<70%", ("CPUUtilization", "", "<", 0.7, "share")),
        ("server.CPUUtilization.Maximum <= 92.5%", ("CPUUtilization", "Maximum", "<=", 0.925, "share")),
        ("server.GPUUtilization.Average<0.9", ("GPUUtilization", "Average", "<", 0.9, "")),
        ("server.ModelLatency.p99.9<200ms", ("ModelLatency", "p99.9", "<", 0.2, "s")),
        ("server.queue_length<4", ("queue_length", "", "<", 4.0, "")),
        ("server.vllm:kv_cache_usage_perc>=0.1", ("vllm:kv_cache_usage_perc", "", ">=", 0.1, "")),
        ('server.requests{model="a b"}.Rate>3', ('requests{model="a b"}', "Rate", ">", 3.0, "")),
    ],
)
def test_a_limit_names_a_metric_a_statistic_and_a_value(text: str, expected: tuple[Any, ...]) -> None:
    assert ServerLimit.parse(f" {text} ") == ServerLimit(text, *expected)
    assert is_server_limit(text)


@pytest.mark.parametrize(
    "text", ["server.CPU", "server.<70%", "server.CPU<70 percent", "CPUUtilization<70%", "server.CPÜ<1"]
)
def test_what_is_no_limit_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BenchmarkError, match=r"server\.CPUUtilization<70%"):
        ServerLimit.parse(text)


def test_a_bare_percentile_is_no_limit_on_a_metric() -> None:
    assert not is_server_limit("p99<200ms")
