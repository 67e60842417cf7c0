"""Limits on server metrics, compared with what the server reported of a wave."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.facts.server_metric import Hardware, ServerMetric
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.server_limit import ServerLimit
from inference_benchmarker.report.headline import headline
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.limit_rows import limit_rows
from inference_benchmarker.verdict.server.limit_checks import held_against
from inference_benchmarker.verdict.verdict import judge
from tests.waves import observe, on_time, open_plan

if TYPE_CHECKING:
    from inference_benchmarker.facts.server_metric import Bound
    from inference_benchmarker.facts.wave_facts import WaveFacts

FOUR_CORES = Hardware("ml.m5.xlarge", 1, 4, 0)


def metric(
    name: str, namespace: str | None, values: dict[str, float | None], unit: str | None = None, hardware: bool = False
) -> ServerMetric:
    stream = "cloudwatch" if namespace and "/" in namespace else "prometheus"
    of = FOUR_CORES if hardware else None
    return ServerMetric(stream, name, values, unit=unit, namespace=namespace, hardware=of)


CPU = metric("CPUUtilization", "/aws/sagemaker/Endpoints", {"Average": 268.0, "Maximum": 312.0}, "Percent", True)
NOBODY_KNOWS = replace(CPU, hardware=None)
LATENCY = metric("ModelLatency", "AWS/SageMaker", {"Average": 20_000.0, "p99": 199_000.0}, "Microseconds")
QUEUE = metric("queue_length", "vllm", {"Average": 3.5, "Maximum": 9.0}, "Count")
CACHE = metric("kv_cache_use", "vllm", {"Average": 0.85}, "Ratio")
QUERY = metric("errors", None, {"Value": 0.2})


@pytest.mark.parametrize(
    ("text", "row", "kept", "said"),
    [
        ("server.CPUUtilization<70%", CPU, True, "67%"),
        ("server.CPUUtilization<67%", CPU, False, "67%"),
        ("server.CPUUtilization<=0.67", CPU, True, "67%"),
        ("server.CPUUtilization.Maximum<70%", CPU, False, "78%"),
        ("server.ModelLatency.p99<200ms", LATENCY, True, "0.199 s"),
        ("server.ModelLatency<0.02s", LATENCY, False, "0.02 s"),
        ("server.queue_length<4", QUEUE, True, "3.5"),
        ("server.queue_length.Maximum<4", QUEUE, False, "9"),
        ("server.kv_cache_use<90%", CACHE, True, "85%"),
        ("server.kv_cache_use<0.8", CACHE, False, "85%"),
        ("server.errors<1", QUERY, True, "0.2"),
        ("server.errors>=1", QUERY, False, "0.2"),
    ],
)
def test_a_limit_is_held_against_the_whole_or_the_number(text: str, row: ServerMetric, kept: bool, said: str) -> None:
    held = held_against(ServerLimit.parse(text), [row])
    assert held.kept is kept
    assert held.text == said


@pytest.mark.parametrize(
    ("text", "row", "why"),
    [
        ("server.CPUUtilization<70%", NOBODY_KNOWS, "InstanceType"),
        ("server.CPUUtilization<70", CPU, "write 70%"),
        ("server.CPUUtilization<70ms", CPU, "is not a time"),
        ("server.CPUUtilization.p99<70%", CPU, "has no p99, only Average, Maximum"),
        ("server.queue_length<70%", QUEUE, "not known which queue_length is 100%"),
        ("server.GPUUtilization<70%", CPU, "no GPUUtilization, only CPUUtilization"),
        ("server.CPUUtilization<70%", replace(CPU, complete=False, reason="late"), "late"),
        ("server.CPUUtilization<70%", replace(CPU, statistics={"Average": None}, reason="none came"), "none came"),
    ],
)
def test_what_cannot_be_known_keeps_no_limit_and_says_why(text: str, row: ServerMetric, why: str) -> None:
    held = held_against(ServerLimit.parse(text), [row])
    assert held.kept is None
    assert why in held.reason


HISTOGRAM = metric("wait_seconds", None, {"p99": 0.25, "Average": 0.6}, "Seconds")


@pytest.mark.parametrize(
    ("text", "side", "kept", "said"),
    [
        ("server.wait_seconds.p99<400ms", "at_least", None, "wait_seconds only known to be ≥0.25 s"),
        ("server.wait_seconds.p99<200ms", "at_least", False, "wait_seconds ≥0.25 s"),
        ("server.wait_seconds.p99>=200ms", "at_least", True, "wait_seconds ≥0.25 s"),
        ("server.wait_seconds.p99>400ms", "at_least", None, "wait_seconds only known to be ≥0.25 s"),
        ("server.wait_seconds.p99<400ms", "at_most", True, "wait_seconds ≤0.25 s"),
        ("server.wait_seconds.p99<0.2", "at_most", None, "wait_seconds only known to be ≤0.25"),
        ("server.wait_seconds.p99>400ms", "at_most", False, "wait_seconds ≤0.25 s"),
        ("server.wait_seconds.p99<400ms", "about", None, "wait_seconds only known to be ≈0.25 s"),
        ("server.wait_seconds.p99<200ms", "about", None, "wait_seconds only known to be ≈0.25 s"),
        ("server.wait_seconds.Average<700ms", "at_least", True, "wait_seconds 0.6 s"),
    ],
)
def test_a_bound_proves_one_side_of_a_limit_alone(text: str, side: Bound, kept: bool | None, said: str) -> None:
    row = replace(HISTOGRAM, bounds={"p99": side})
    held = held_against(ServerLimit.parse(text), [row])
    assert held.kept is kept
    assert held.measured == said
    assert kept is not None or side == "about" or "wait_seconds's buckets" in held.reason


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("server.wait_seconds.p99<700ms", None),  # 0.625 is interpolated between 0.25 and 1: all may be 0.9
        ("server.wait_seconds.p99<400ms", None),  # or 0.3
        ("server.wait_seconds.p99>=0.7", None),
        ("server.wait_seconds.p99<1s", True),
        ("server.wait_seconds.p99<1.1", True),
        ("server.wait_seconds.p99<=250ms", False),
        ("server.wait_seconds.p99>=250ms", True),
        ("server.wait_seconds.p99>1s", False),
    ],
)
def test_a_quantile_that_is_interpolated_proves_a_limit_outside_of_its_bucket_alone(
    text: str, kept: bool | None
) -> None:
    row = replace(HISTOGRAM, statistics={"p99": 0.625}, buckets={"p99": (0.25, 1.0)})
    held = held_against(ServerLimit.parse(text), [row])
    assert held.kept is kept
    assert (held.side == "about") is (kept is None)
    assert ("above 0.25 and at most 1" in held.reason) is (kept is None)


def test_what_idle_time_dilutes_keeps_no_limit_and_says_what_to_do() -> None:
    why = "no whole bucket of 60 s lies inside the window; take 180 s or more"
    held = held_against(
        ServerLimit.parse("server.CPUUtilization<70%"), [replace(CPU, bounds={"Average": "about"}, reason=why)]
    )
    assert (held.kept, held.text, held.reason) == (None, "≈67%", why)


@pytest.mark.parametrize(("limit", "kept"), [("10ms", None), ("50ms", True), ("1ms", False)])
def test_a_mean_with_others_requests_proves_a_limit_outside_of_its_range_alone(limit: str, kept: bool | None) -> None:
    row = replace(LATENCY, buckets={"Average": (5_000.0, 40_000.0)})
    assert held_against(ServerLimit.parse(f"server.ModelLatency<{limit}"), [row]).kept is kept


def test_of_several_rows_a_limit_that_one_surely_misses_is_missed() -> None:
    rows = [replace(HISTOGRAM, bounds={"p99": "at_least"}), replace(HISTOGRAM, statistics={"p99": 0.5})]
    assert held_against(ServerLimit.parse("server.wait_seconds.p99<400ms"), rows).kept is False


def test_a_bound_that_proves_nothing_keeps_no_limit_of_a_wave() -> None:
    facts = limited("server.wait_seconds.p99<400ms")
    reported = replace(facts, server_metrics=(replace(HISTOGRAM, bounds={"p99": "at_least"}),))
    (finding,) = judge(reported, summarise(reported)).findings
    assert finding.measured == "wait_seconds only known to be ≥0.25 s"
    assert limit_rows(reported, summarise(reported))[-1].outcome == "missed"


@pytest.mark.parametrize(("text", "worst"), [("server.gpu_use<90%", 0.95), ("server.gpu_use>=20%", 0.3)])
def test_of_several_gpus_each_must_keep_it(text: str, worst: float) -> None:
    rows = [metric("gpu_use", "dcgm", {"Average": value}, "Ratio") for value in (0.5, 0.95, 0.3)]
    assert held_against(ServerLimit.parse(text), rows).value == worst


def limited(*texts: str) -> WaveFacts:
    plan = open_plan("100", server_limits=tuple(map(ServerLimit.parse, texts)))
    return observe(plan, on_time(plan))


def test_a_limit_waits_for_its_metric_and_then_holds_or_not() -> None:
    facts = limited("server.CPUUtilization<70%", "server.CPUUtilization.Maximum<70%")
    waiting = judge(facts, summarise(facts))
    assert (waiting.word, waiting.exit_code, waiting.findings) == ("PENDING", 1, ())
    assert headline(summarise(facts), waiting).startswith("PENDING: server.CPUUtilization<70% waits for the server's")
    reported = replace(facts, server_metrics=(CPU,))
    final = judge(reported, summarise(reported))
    assert (final.word, final.exit_code) == ("VALID", 1)
    assert [finding.measured for finding in final.findings] == ["CPUUtilization 78%"]


@pytest.mark.parametrize(
    ("text", "reason", "advice"),
    [
        ("server.CPUUtilization<70%", "the server has no sample", "The server has no sample."),
        ("server.cpu<70ms", "", "cpu is not a time, but a plain number: write the limit without a unit."),
    ],
)
def test_a_reason_is_a_sentence_and_a_name_stays_as_it_is(text: str, reason: str, advice: str) -> None:
    facts = limited(text)
    row = metric("cpu", None, {"Average": 1.0}) if not reason else replace(CPU, complete=False, reason=reason)
    found = judge(replace(facts, server_metrics=(row,)), summarise(facts)).findings
    assert [each.advice for each in found if each.code == "slo_missed"] == [advice]


def test_limits_survive_a_plan_file() -> None:
    plan = limited("server.CPUUtilization<70%").plan
    assert plan.to_json()["slos"] == ["server.CPUUtilization<70%"]
    assert WavePlan.from_json(plan.to_json()) == plan
