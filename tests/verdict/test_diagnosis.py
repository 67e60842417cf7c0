"""What server metrics are made to say: a wave and rows of metrics, and the remarks that follow."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.facts.client_use import LoopDelay, WorkerUse
from inference_benchmarker.facts.server_metric import Hardware, LogLine, ServerLog, ServerMetric
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.records.columns import SCHEMA, Records
from inference_benchmarker.report.summary_json import summary_of
from inference_benchmarker.report.text import server_text, to_text
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.server import diagnose, log_since
from inference_benchmarker.verdict.server.cold_start import cold_start
from inference_benchmarker.verdict.server.hardware_use import Use, used_hardware
from inference_benchmarker.verdict.server.time_remarks import whole_percents
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.words.units import NS
from tests.mentions import mentions
from tests.parts import in_memory
from tests.waves import MS, observe, on_time, open_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Floats
    from inference_benchmarker.records.record import RequestRecord

SAGEMAKER, INSTANCES = "AWS/SageMaker", "/aws/sagemaker/Endpoints"
DEMO = {"EndpointName": "demo", "VariantName": "AllTraffic"}
G5 = Hardware("ml.g5.12xlarge", 2, vcpus=48, gpus=4)
START = 1_700_000_000.0  # of every wave of `observe`


def row(name: str, namespace: str = SAGEMAKER, *, unit: str | None = None, **given: Any) -> ServerMetric:
    named = {key: given.pop(key) for key in ("dimensions", "hardware", "start", "end") if key in given}
    stream = "cloudwatch" if namespace.startswith(("AWS", "/aws")) else "prometheus"
    values = {statistic: None if value is None else float(value) for statistic, value in given.items()}
    return ServerMetric(stream, name, values, unit=unit, namespace=namespace, **{"dimensions": DEMO, **named})


def model_ms(average: float, **more: Any) -> ServerMetric:
    return row("ModelLatency", unit="Microseconds", Average=average * 1000, **more)


def around(metric: ServerMetric, ahead_s: float = 0) -> ServerMetric:
    """The metric read from the buckets around the wave, by a clock that is ahead."""
    return replace(metric, start=START + ahead_s - 17, end=START + ahead_s + 43)


def overhead_ms(average: float) -> ServerMetric:
    return row("OverheadLatency", unit="Microseconds", Average=average * 1000)


def cpu(average: float | None = None, maximum: float | None = None, hardware: Hardware | None = G5) -> ServerMetric:
    return row("CPUUtilization", INSTANCES, Average=average, Maximum=maximum, hardware=hardware)


def wave(
    *metrics: ServerMetric,
    latency_ms: float = 20,
    change: Callable[[RequestRecord], RequestRecord] = lambda record: record,
    slos: str = "",
    **more: Any,
) -> WaveFacts:
    """1,000 requests at 100/s."""
    plan = replace(open_plan("100", "10"), slos=tuple(map(Slo.parse, slos.split())), **more)
    records = [change(record) for record in on_time(plan, round(latency_ms * MS))]
    return observe(plan, records, server_metrics=metrics)


def remarks(facts: WaveFacts, limited_by: str | None = None) -> dict[str, str]:
    return {remark.code: remark.text for remark in diagnose(facts, summarise(facts), limited_by)}


def failing(share: float) -> Callable[[RequestRecord], RequestRecord]:
    return lambda r: r._replace(outcome="failed", error="HttpError 503") if r.index % 1000 < 1000 * share else r


@pytest.mark.parametrize("metrics", [None, ()])
def test_without_metrics_there_is_nothing_to_say(metrics: tuple[ServerMetric, ...] | None) -> None:
    facts = replace(wave(), server_metrics=metrics)
    assert remarks(facts) == {}
    assert "→" not in to_text(facts, summarise(facts), judge(facts, summarise(facts)))


class TestWhereTheTimeWent:
    def test_the_client_s_latency_is_taken_apart(self) -> None:
        assert remarks(wave(model_ms(17), overhead_ms(1.5))) == {
            "time": "Where the time went: mean latency 20 ms = network and client 1.5 ms (8%) + "
            "OverheadLatency 1.5 ms (7%) + ModelLatency 17 ms (85%)."
        }

    def test_a_part_of_less_than_a_percent_is_not_shown_as_one(self) -> None:
        assert remarks(wave(model_ms(19.65), overhead_ms(0.08)))["time"].endswith(
            "= network and client 0.27 ms (1%) + OverheadLatency 0.08 ms (<1%) + ModelLatency 19.7 ms (98%)."
        )
        assert "network and client 0 ms (0%) + " in remarks(wave(model_ms(20)))["time"]

    @pytest.mark.parametrize(
        ("namespace", "name", "unit", "value"),
        [
            ("AWS/ApplicationELB", "TargetResponseTime", "Seconds", 0.017),
            ("AWS/Lambda", "Duration", "Milliseconds", 17),
            ("AWS/Bedrock", "InvocationLatency", "Milliseconds", 17),
        ],
    )
    def test_every_platform_has_its_name_for_it(self, namespace: str, name: str, unit: str, value: float) -> None:
        found = remarks(wave(row(name, namespace, unit=unit, Average=value)))
        assert found["time"].endswith(f"= network and client 3 ms (15%) + {name} 17 ms (85%).")

    @pytest.mark.parametrize(
        ("shares", "percents"),
        [
            ([0.364, 0.044, 0.592], [36, 5, 59]),
            ([0.355, 0.055, 0.59], [36, 5, 59]),
            ([0.02, 0.012, 0.968], [2, 1, 97]),
            ([0.0, 1.01], [0, 101]),
            ([1.0], [100]),
            ([1 / 3] * 3, [34, 33, 33]),
        ],
    )
    def test_whole_percents_have_the_sum_of_what_they_are_made_from(
        self, shares: list[float], percents: list[int]
    ) -> None:
        assert whole_percents(shares) == percents

    def test_without_an_average_there_is_none(self) -> None:
        assert remarks(wave(row("ModelLatency", unit="Microseconds", p99=17_000.0))) == {}
        assert remarks(wave(row("ModelLatency", unit="Microseconds", Average=None))) == {}

    def test_several_endpoints_count_by_their_requests(self) -> None:
        one, other = ({"EndpointName": name, "VariantName": "AllTraffic"} for name in "ab")
        rows = [model_ms(10, dimensions=one), model_ms(18, dimensions=other)]
        counts = [row("Invocations", Sum=750, dimensions=one), row("Invocations", Sum=250, dimensions=other)]
        assert "ModelLatency 12 ms" in remarks(wave(*rows, *counts))["time"]
        assert remarks(wave(*rows)) == {}, "without counts their mean is not known"

    def test_a_metric_of_other_dimensions_is_not_counted_again(self) -> None:
        zone = {**DEMO, "AvailabilityZone": "a"}
        assert "ModelLatency 17 ms" in remarks(wave(model_ms(17), model_ms(2, dimensions=zone)))["time"]

    def test_a_server_that_says_more_than_the_client_saw_answered_others(self) -> None:
        assert mentions(remarks(wave(model_ms(30)))["time"], "ModelLatency", "30 ms", "150%", "20 ms")
        assert "network and client 0 ms (0%)" in remarks(wave(model_ms(20.2)))["time"]

    def test_a_request_without_an_end_has_no_latency_to_take_apart(self) -> None:
        """Percentiles count those abandoned at their age; the server has no time of theirs."""
        abandoned = wave(
            model_ms(17), change=lambda r: r._replace(outcome="abandoned", done=r.sent + NS) if r.index >= 900 else r
        )
        assert mentions(remarks(abandoned)["time"], "20 ms", "3 ms", "15%")
        assert remarks(wave(model_ms(17), change=lambda r: r._replace(outcome="abandoned"))) == {}

    def test_a_balancer_s_time_ends_where_a_stream_begins(self) -> None:
        """TargetResponseTime: until the target starts to send the response headers."""

        def stream(record: RequestRecord) -> RequestRecord:
            return record._replace(first_token=record.sent + 25 * MS, last_token=record.done, done=record.sent + 2 * NS)

        balancer = row("TargetResponseTime", "AWS/ApplicationELB", unit="Seconds", Average=0.02)
        assert remarks(wave(balancer, change=stream)) == {}
        assert "time" in remarks(wave(model_ms(1900), change=stream)), "SageMaker's lasts until the end of the answer"

    def test_an_asynchronous_endpoint_works_when_the_client_has_its_answer(self) -> None:
        asynchronous = row("TimeInBacklog", unit="Milliseconds", Average=100)
        assert remarks(wave(model_ms(2000), asynchronous)) == {}


class TestModelLatency:
    @pytest.mark.parametrize(
        ("latency", "model", "slos", "said"),
        [
            (150, 120, "", True),
            (150, 99, "", False),
            (300, 140, "", False),
            (20, 17, "p99<10ms", True),
            (20, 17, "p99<100ms success>=1", False),
            (20, 17, "ttft.p99<1s", True),
        ],
    )
    def test_it_is_said_where_it_is_long_or_too_long(self, latency: float, model: float, slos: str, said: bool) -> None:
        assert ("model_latency" in remarks(wave(model_ms(model), latency_ms=latency, slos=slos))) is said

    @pytest.mark.parametrize(
        ("used", "said"),
        [
            (None, "Profile the inference code"),
            (0.95 * 4800, "The hardware is saturated (95%): use more or larger instances, or autoscaling. Profile"),
            (0.3 * 4800, "The hardware is not saturated (30%): look for too few workers"),
            (0.7 * 4800, "Profile the inference code"),
        ],
    )
    def test_what_to_do_depends_on_the_hardware(self, used: float | None, said: str) -> None:
        hardware = [] if used is None else [cpu(used)]
        text = remarks(wave(model_ms(120), *hardware, latency_ms=150))["model_latency"]
        assert f"ModelLatency is the largest part: 120 ms on average. {said}" in text


@pytest.mark.parametrize(("milliseconds", "said"), [(9.9, False), (10, True), (40, True)])
def test_overhead_beyond_single_digits_is_said(milliseconds: float, said: bool) -> None:
    found = remarks(wave(model_ms(17), overhead_ms(milliseconds), latency_ms=100))
    assert ("overhead_latency" in found) is said
    if said:
        assert f"OverheadLatency is {milliseconds:g} ms on average" in found["overhead_latency"]


@pytest.mark.parametrize(("hits", "loading"), [(0.1, True), (0.9, False)])
def test_overhead_that_is_the_loading_of_models_is_called_so(hits: float, loading: bool) -> None:
    loads = [row("ModelCacheHit", Average=hits), row("ModelLoadingWaitTime", unit="Microseconds", Average=170_000)]
    found = remarks(wave(model_ms(20), overhead_ms(160), *loads, latency_ms=200))
    assert ("Most of it is time spent loading models" in found["overhead_latency"]) is loading
    assert ("Check the sizes" in found["overhead_latency"]) is not loading


@pytest.mark.parametrize(("latency", "said"), [(22, False), (21.9, False), (25, True), (200, True)])
def test_a_large_share_of_network_is_said(latency: float, said: bool) -> None:
    assert ("network" in remarks(wave(model_ms(17), latency_ms=latency))) is said


def test_a_client_at_its_own_limit_is_named_before_the_network() -> None:
    facts = wave(model_ms(17), latency_ms=100)
    limited = remarks(facts, "client")["network"]
    assert limited.endswith("This client was the limit: fix that first (the findings say how).")
    assert mentions(remarks(facts)["network"], "83 ms", "83%")


@pytest.mark.parametrize(
    ("cpu_share", "said", "place"),
    [
        (None, "(83%) of the latency. Run this client in", True),
        (0.2, "(83%) of the latency. Run this client in", True),
        (3.0, "of the latency, 30 ms of it this client's own CPU. Make invoke faster: a request takes 30 ms", True),
        (7.0, "of the latency, 70 ms of it this client's own CPU. Make invoke faster: a request takes 70 ms", False),
        (20.0, "of the latency, 83 ms of it this client's own CPU. Make invoke faster: a request takes 83 ms", False),
    ],
)
def test_what_the_client_computes_is_no_distance(cpu_share: float | None, said: str, place: bool) -> None:
    """At 100/s a core that is fully used is 10 ms a request."""
    worker = WorkerUse(cpu_share=cpu_share)
    text = remarks(replace(wave(model_ms(17), latency_ms=100), workers=(worker,)))["network"]
    assert said in text
    assert ("endpoint's region" in text) == place


def test_building_payloads_is_not_in_the_latency() -> None:
    def built(record: RequestRecord) -> RequestRecord:
        return record._replace(sent=record.due + 50 * MS, done=record.due + 150 * MS, build_ns=50 * MS)

    facts = replace(wave(model_ms(17), change=built), workers=(WorkerUse(cpu_share=5.0),))
    assert "own CPU" not in remarks(facts)["network"]


class TestHardware:
    @pytest.mark.parametrize(
        ("share", "said"),
        [
            (0.29, "Mostly idle at this rate"),
            (0.3, ""),
            (0.59, ""),
            (0.6, "This is a good average utilization to plan for."),
            (0.69, "This is a good average utilization to plan for."),
            (0.7, "This leaves little room for peaks."),
            (0.8, "Nearly used up: use more or larger instances"),
            (0.9, "Used up: use more or larger instances"),
            (1.0, "Used up"),
        ],
    )
    def test_a_share_of_the_whole_and_what_it_means(self, share: float, said: str) -> None:
        text = remarks(wave(cpu(4800 * share, 4800)))["cpu"]
        most = "" if share == 1 else ", peak 100%"
        assert text.startswith(f"CPU: {share:.0%} ({4800 * share:,.0f}% of 4,800%){most}, on 2 x ml.g5.12xlarge.")
        assert text.partition("ml.g5.12xlarge. ")[2].startswith(said)
        assert bool(said) == ("ml.g5.12xlarge. " in text)

    def test_of_unknown_hardware_no_share_is_made_up(self) -> None:
        text = remarks(wave(cpu(312.44, 394, hardware=None)))["cpu"]
        assert mentions(text, "CPU", "312.4%", "394%", "sagemaker:DescribeEndpoint")
        assert "InstanceType" in text

    def test_gpus_are_counted_memory_is_not(self) -> None:
        rows = [
            row(name, INSTANCES, Average=value, hardware=G5)
            for name, value in (("GPUUtilization", 100), ("GPUMemoryUtilization", 380), ("MemoryUtilization", 85))
        ]
        found = remarks(wave(*rows))
        assert "GPU: 25% (100% of 400%), on 2 x ml.g5.12xlarge. Mostly idle" in found["gpu"]
        assert "GPU memory: 95% (380% of 400%)" in found["gpu_memory"]
        assert "KV cache" in found["gpu_memory"]
        assert found["memory"].startswith("Memory: 85%. Nearly used up: a container that runs out of memory is killed")

    def test_buckets_around_the_wave_hold_idle_time(self) -> None:
        low, high = (around(cpu(maximum=4800 * share)) for share in (0.2, 0.85))
        assert mentions(remarks(wave(low))["cpu"], "CPU", "20%", "960%", "4,800%", "2 x", "ml.g5.12xlarge")
        assert "Nearly used up" in remarks(wave(high))["cpu"]

    @pytest.mark.parametrize("ahead_s", [-100, 100])
    def test_whatever_this_clock_says(self, ahead_s: float) -> None:
        diluted, inside = around(cpu(480), ahead_s), replace(cpu(480), start=START + ahead_s, end=START + ahead_s + 10)
        assert "this includes idle time around the wave" in remarks(wave(diluted))["cpu"]
        near = replace(inside, bounds={"Average": "about"})
        assert "this includes idle time around the wave" in remarks(wave(near))["cpu"]
        assert "Mostly idle" in remarks(wave(inside))["cpu"]

    def test_what_idle_time_dilutes_explains_nothing_else(self) -> None:
        found = remarks(wave(model_ms(150), around(cpu(480)), latency_ms=160, change=failing(0.1)))
        assert found["model_latency"].startswith("ModelLatency is the largest part: 150 ms on average. Profile")
        assert "hardware" not in found["server_errors"]
        full = remarks(wave(model_ms(150), around(cpu(4560)), latency_ms=160))
        assert "The hardware is saturated (95%)" in full["model_latency"]

    @pytest.mark.parametrize(("share", "slos", "said"), [(0.01, "", True), (0.02, "", False), (0, "p50<1ms", False)])
    def test_a_server_that_fails_or_is_too_slow_is_not_too_large(self, share: float, slos: str, said: bool) -> None:
        facts = wave(cpu(480), row("MemoryUtilization", INSTANCES, Average=20), change=failing(share), slos=slos)
        found = remarks(facts)
        assert ("Mostly idle" in found["cpu"]) is said
        assert found["memory"] == "Memory: 20%." + (" Most of it is unused at this rate." if said else "")

    @pytest.mark.parametrize(
        ("namespace", "name", "resource"),
        [
            ("AWS/ECS", "CPUUtilization", "CPU"),
            ("AWS/ECS", "MemoryUtilization", "memory"),
            (INSTANCES, "CPUUtilizationNormalized", "CPU"),
            ("/aws/sagemaker/InferenceComponents", "GPUMemoryUtilizationNormalized", "GPU memory"),
        ],
    )
    def test_others_give_a_share_already(self, namespace: str, name: str, resource: str) -> None:
        (use,) = used_hardware([row(name, namespace, Average=55, Maximum=60)])
        assert (use.resource, use.share, use.peak) == (resource, 0.55, 0.6)

    def test_several_endpoints_are_distinguished(self) -> None:
        rows = [replace(cpu(480), dimensions={"EndpointName": name, "VariantName": "AllTraffic"}) for name in "ab"]
        assert [use.of for use in used_hardware(rows)] == ["a", "b"]

    def test_what_has_no_value_is_no_use(self) -> None:
        assert used_hardware([cpu(None, None)]) == []

    def test_inference_servers_tell_of_each_gpu(self) -> None:
        rows = [row("gpu_use", "dcgm", unit="Percent", Average=a, Maximum=m) for a, m in ((80, 90), (20, 100))]
        assert used_hardware(rows) == [Use("GPU", 50.0, 100, 100.0, of="2 GPUs")]
        assert remarks(wave(*rows))["gpu"] == "GPU (2 GPUs): 50%, peak 100%."

    def test_two_who_tell_of_the_same_gpu_are_not_mixed(self) -> None:
        """Triton's page and DCGM's, each in its own unit."""
        rows = [
            row("gpu_use", "triton", unit="Ratio", Average=0.9, Maximum=0.95),
            row("gpu_use", "dcgm", unit="Percent", Average=91, Maximum=96),
            row("gpu_memory_used", "triton", unit="Bytes", Average=20e9),
            row("gpu_memory_total", "triton", unit="Bytes", Average=25e9),
            row("gpu_memory_used", "dcgm", unit="Mebibytes", Average=19_000),
            row("gpu_memory_free", "dcgm", unit="Mebibytes", Average=1_000),
        ]
        assert [(use.resource, use.of, use.share) for use in used_hardware(rows)] == [
            ("GPU", "triton", 0.9),
            ("GPU", "dcgm", 0.91),
            ("GPU memory", "triton", 0.8),
            ("GPU memory", "dcgm", 0.95),
        ]

    def test_inference_servers_tell_of_their_cache(self) -> None:
        rows = [row("kv_cache_use", "vllm", unit="Ratio", Average=0.93, Maximum=0.999)]
        assert remarks(wave(*rows))["kv_cache"].startswith("KV cache: 93%, peak 99.9%. Used up: requests wait")

    @pytest.mark.parametrize("beside", [("gpu_memory_total", 40.0), ("gpu_memory_free", 30.0)])
    def test_memory_that_is_used_is_a_share_of_what_there_is(self, beside: tuple[str, float]) -> None:
        rows = [row("gpu_memory_used", "x", Average=10.0), row(beside[0], "x", Average=beside[1])]
        assert [use.share for use in used_hardware(rows)] == [0.25]


class TestErrors:
    def test_they_are_counted_with_the_log_that_says_why(self) -> None:
        found = remarks(wave(row("Invocation5XXErrors", Sum=23), row("Invocations", Sum=1000)))
        assert found == {
            "server_errors": "23 of 1,000 requests ended in a server error (2.3%, by Invocation5XXErrors). "
            "CloudWatch's log group /aws/sagemaker/Endpoints/demo says why."
        }

    @pytest.mark.parametrize(
        ("dimensions", "group"),
        [
            ({"InferenceComponentName": "ic"}, "/aws/sagemaker/InferenceComponents/ic"),
            ({"FunctionName": "f"}, "/aws/lambda/f"),
        ],
    )
    def test_every_platform_has_its_log_group(self, dimensions: dict[str, str], group: str) -> None:
        found = remarks(wave(row("Invocation5XXErrors", Sum=1, dimensions=dimensions)))
        assert f"log group {group} says why" in found["server_errors"]

    def test_without_a_count_of_the_server_the_client_s_counts(self) -> None:
        found = remarks(wave(cpu(2880), change=failing(0.1)))
        assert mentions(found["server_errors"], "100", "1,000 requests", "10%")

    def test_the_client_s_errors_are_a_share_of_the_client_s_requests(self) -> None:
        found = remarks(wave(row("Invocations", Sum=2000), change=failing(0.1)))
        assert mentions(found["server_errors"], "100", "1,000 requests", "10%")

    @pytest.mark.parametrize(
        ("key", "since"),
        [
            ("HttpError 503", 0.5),
            ("ModelError", 0.5),
            ("ModelError 500", 0.5),
            ("ClientError InternalFailure", 0.5),
            ("ServiceUnavailable", 0.5),
            ("ServiceUnavailableException", 0.5),
            ("InternalDependencyException", 0.5),
            ("EventStreamError ModelStreamError", 0.5),
            ("FunctionError ValueError", 0.5),
            ("RpcError UNAVAILABLE", 0.5),
            ("AioRpcError UNAVAILABLE", 0.5),
            ("RpcError DATA_LOSS", 0.5),
            ("RpcError RESOURCE_EXHAUSTED", None),
            ("RpcError DEADLINE_EXCEEDED", None),
            ("APIError unknown", None),
            ("ModelError 400", None),
            ("HttpError 429", None),
            ("ModelNotReadyException", None),
            ("ThrottlingException", None),
            ("ReadTimeoutError", None),
            ("ConnectionError", None),
        ],
    )
    def test_a_log_is_read_from_shortly_before_the_first_server_error_on(self, key: str, since: float | None) -> None:
        at = 548
        facts = wave(change=lambda r: r._replace(outcome="failed", error=key) if r.index == at else r)
        assert log_since(facts, summarise(facts), ()) == (None if since is None else pytest.approx(since))

    def test_errors_that_only_the_server_counted_are_looked_for_in_the_whole_wave(self) -> None:
        facts = wave()
        assert log_since(facts, summarise(facts), [row("Invocation5XXErrors", Sum=1)]) == 0
        assert log_since(facts, summarise(facts), [row("Invocation5XXErrors", Sum=0)]) is None
        assert log_since(facts, summarise(facts), [row("Invocation5XXErrors", Sum=None)]) is None

    @pytest.mark.parametrize(
        ("log", "said", "lines"),
        [
            (
                ServerLog("g", 0, 1, 1234, (LogLine("RuntimeError: x", 1000), LogLine("ERROR", 2)), errors=True),
                "has 1,234 events of the wave's window. The most frequent lines that look like errors:",
                ["1,000 x RuntimeError: x", "2 x ERROR"],
            ),
            (
                ServerLog("g", 0, 1, 3, (LogLine("ping", 3),)),
                "has 3 events of the wave's window. No line looks like an error. The most frequent:",
                ["3 x ping"],
            ),
            (ServerLog("g", 0, 1), "has no event of the wave's window. Log lines may arrive late: ", []),
            (ServerLog("g", 0, 1, reason="nobody may"), "was not read: nobody may.", []),
            (
                ServerLog("g", 0, 1, 20_000, (LogLine("ERROR", 2),), errors=True, reason="there are more"),
                "was read in part, its first 20,000 events of the wave's window: there are more. The",
                ["2 x ERROR"],
            ),
            (
                ServerLog("g", 0, 1, 1, (LogLine("\x1b[2J\nVALID" + "x" * 999, 1),), errors=True, reason="\x1b[2Jz"),
                "event of the wave's window: [2Jz. The most",
                ["1 x [2J VALID" + "x" * 150 + "…"],
            ),
        ],
        ids=["errors", "no errors", "nothing", "not read", "in part", "hostile"],
    )
    def test_what_the_log_said_stands_below_the_errors(self, log: ServerLog, said: str, lines: list[str]) -> None:
        facts = replace(wave(row("Invocation5XXErrors", Sum=23)), server_logs=(log,))
        summary = summarise(facts)
        errors, found = diagnose(facts, summary)
        assert mentions(errors.text, "23", "1,000 requests", "2.3%")
        assert found.code == "server_log"
        assert found.text.startswith("CloudWatch's log group g ")
        assert said in found.text
        assert list(found.lines) == lines
        text = server_text(facts, summary, judge(facts, summary))
        assert [line for line in text.splitlines() if line.startswith(" " * 8)] == [f"        {line}" for line in lines]
        assert json.dumps(encoded(summary_of(facts, summary, judge(facts, summary))))

    def test_each_log_says_its_own(self) -> None:
        logs = tuple(ServerLog(name, 0, 1, reason="not allowed") for name in "ab")
        facts = replace(wave(row("Invocation5XXErrors", Sum=23)), server_logs=logs)
        _, *found = diagnose(facts, summarise(facts))
        assert [each.measured for each in found] == [
            f"CloudWatch's log group {name} was not read: not allowed" for name in "ab"
        ]

    def test_other_failures_are_not_the_server_s(self) -> None:
        facts = wave(cpu(2880), change=lambda r: r._replace(outcome="failed", error="HttpError 400"))
        assert "server_errors" not in remarks(facts)

    @pytest.mark.parametrize(("share", "used", "said"), [(0.1, 960, True), (0.005, 960, False), (0.1, 2880, False)])
    def test_errors_of_idle_hardware_are_the_container_s(self, share: float, used: float, said: bool) -> None:
        text = remarks(wave(cpu(used), change=failing(share)))["server_errors"]
        assert ("The hardware was not saturated (20%)" in text) is said

    @pytest.mark.parametrize(
        ("metric", "key", "said"),
        [
            (
                row("Invocation4XXErrors", Sum=187),
                "X",
                "187 of 1,000 requests were refused (18.7%, by Invocation4XXErrors)",
            ),
            (row("Invocation4XXErrors", Sum=0), "HttpError 429", ""),
            (cpu(2880), "HttpError 429", "100 of 1,000 requests were refused (10%, by the client's count)"),
            (cpu(2880), "ThrottlingException", "100 of 1,000 requests were refused"),
            (cpu(2880), "HttpError 503", ""),
        ],
    )
    def test_refusals_come_first_with_what_they_ask_for(self, metric: ServerMetric, key: str, said: str) -> None:
        facts = wave(metric, change=lambda r: r._replace(outcome="failed", error=key) if r.index < 100 else r)
        assert remarks(facts).get("refused", "").startswith(said)
        if said:
            assert next(iter(remarks(facts))) == "refused"


class TestQueueing:
    @pytest.mark.parametrize(("most", "said"), [(2, False), (9, False), (10, True), (200, True)])
    def test_more_in_the_endpoint_than_its_rate_accounts_for(self, most: float, said: bool) -> None:
        """100/s x 20 ms = 2 at work; 2 x 2 + 3 x sqrt(2) + 1 = 9.2."""
        found = remarks(wave(model_ms(20), row("ConcurrentRequestsPerModel", Maximum=most)))
        assert ("queueing" in found) is said
        if said:
            assert found["queueing"].startswith(
                f"Up to {most:.0f} requests were in the endpoint at once, but about 2 are expected "
                "(100/s x ModelLatency 20 ms). "
            )

    @pytest.mark.parametrize(("waiting", "said"), [(0.5, False), (0.6, True), (None, False)])
    def test_an_inference_server_tells_of_its_queue(self, waiting: float | None, said: bool) -> None:
        found = remarks(wave(row("queue_length", "vllm", Average=waiting, Maximum=12)))
        assert ("queueing" in found) is said
        if said:
            assert mentions(found["queueing"], "0.6 requests", "12")

    def test_several_queues_are_distinguished(self) -> None:
        rows = [
            row("queue_length", "vllm", Average=3, dimensions={"instance": "host:8000", "model_name": name})
            for name in "ab"
        ]
        found = [each.text for each in diagnose(wave(*rows), summarise(wave()))]
        assert [text.partition(".")[0] for text in found] == [
            f"3 requests waited at the server on average (model_name={name})" for name in "ab"
        ]


SERVICES_OF_40_MS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "jitter of 5%": lambda draw, size: draw.normal(40, 2, size),
    "jitter of 40%": lambda draw, size: draw.gamma(6.25, 6.4, size),
    "a cache that answers a third in 1 ms": lambda draw, size: np.where(
        draw.random(size) < 1 / 3, 1, draw.normal(40, 2, size)
    ),
    "a quarter sleeps 40 ms": lambda draw, size: 5 + draw.exponential(0.5, size) + 40.1 * (draw.random(size) < 0.25),
    "batches of 40 ms that a first request opens": lambda draw, size: 3 + _until_batch(draw, size),
    "batches by a clock of 40 ms": lambda draw, size: 3 + 40 - np.cumsum(draw.exponential(20, size)) % 40,
    "batches by a clock of 40 ms, every 20 ms": lambda _, size: 3 + 40 - np.linspace(7, 7 + 20 * (size - 1), size) % 40,
}


def _until_batch(draw: np.random.Generator, size: int) -> Floats:
    """The time that each of these arrivals, 50 a second, waits for the end of a batch that the first of it opened."""
    waits, end = np.empty(size), 0.0
    for place, at in enumerate(np.cumsum(draw.exponential(20, size))):
        end = at + 40 if at >= end else end
        waits[place] = end - at
    return waits


class TestDelayedAcknowledgements:
    """As seen: http.server with HTTP/1.1 answers in 0.3 to 10 ms or in 40.1 to 60 ms, and in nothing between."""

    @pytest.mark.parametrize(
        ("slow_ms", "fast", "said"),
        [
            (41, lambda index: index % 8 == 0, True),
            (41, lambda index: index < 5, True),
            (41, lambda index: index < 4, False),  # a service time of 41 ms that the first answers have not
            (41, lambda _: False, False),
            (31, lambda index: index % 8 == 0, False),
            (62, lambda index: index % 8 == 0, False),
            (41, lambda index: index % 8 != 0, False),  # 12.5% only: a part of the answers may take 40 ms by itself
            (41, lambda index: index % 5 < 3, False),
            (41, lambda index: index % 5 < 2, True),
        ],
    )
    def test_two_clusters_40_ms_apart(self, slow_ms: float, fast: Callable[[int], bool], said: bool) -> None:
        def change(record: RequestRecord) -> RequestRecord:
            latency_ms = 1 + record.index % 7 / 2 if fast(record.index) else slow_ms + record.index % 9
            return record._replace(done=record.sent + round(latency_ms * MS))

        found = remarks(wave(change=change))
        assert ("delayed_ack" in found) is said
        if said:
            assert mentions(found["delayed_ack"], "40 ms", "TCP_NODELAY")

    @pytest.mark.parametrize("service", SERVICES_OF_40_MS)
    @pytest.mark.parametrize("seed", range(5))
    def test_what_takes_40_ms_by_itself_is_not_blamed_on_it(self, service: str, seed: int) -> None:
        latency_ms = SERVICES_OF_40_MS[service](np.random.default_rng(seed), 1000)
        facts = wave(
            change=lambda record: record._replace(done=record.sent + round(float(latency_ms[record.index]) * MS))
        )
        assert "delayed_ack" not in remarks(facts)

    def test_a_continuous_latency_has_no_clusters(self) -> None:
        facts = wave(change=lambda record: record._replace(done=record.sent + round((1 + record.index % 60) * MS)))
        assert "delayed_ack" not in remarks(facts)


class TestMultiModel:
    def test_models_that_push_each_other_out(self) -> None:
        found = remarks(
            wave(
                row("ModelCacheHit", Average=0.875),
                row("ModelLoadingWaitTime", unit="Microseconds", Average=512_000),
                row("LoadedModelCount", INSTANCES, Maximum=3),
            )
        )
        assert mentions(found["model_cache"], "87.5%", "512 ms", "3 models")

    def test_a_cache_that_holds_needs_nothing(self) -> None:
        text = remarks(wave(row("ModelCacheHit", Average=0.95)))["model_cache"]
        assert text == "95% of the requests found their model in memory."


class TestColdStart:
    def test_the_first_requests_took_longer(self) -> None:
        facts = wave(cpu(2880), change=lambda r: r._replace(done=r.sent + 900 * MS) if r.index < 50 else r)
        assert mentions(remarks(facts)["cold_start"], "10 requests", "900 ms", "20 ms", "500 ms", "--warmup 2")

    @pytest.mark.parametrize(
        ("longest_ms", "hold_s", "said"),
        [
            (None, 0.01, "These numbers include the endpoint's cold start, or this client's first connections: use"),
            (900, 0.01, "These numbers include a cold start (the server took up to 900 ms): use --warmup"),
            (30, 0.01, "The endpoint took 30 ms at most, so the time went to the network or this client"),
            (
                None,
                0.5,
                "That is mostly this client's own start-up, since its code ran for 500 ms without a break",
            ),
            (900, 0.5, "That is mostly this client's own start"),
        ],
    )
    def test_whose_start_it_was_takes_evidence(self, longest_ms: float | None, hold_s: float, said: str) -> None:
        rows = [cpu(2880)]
        if longest_ms is not None:
            rows.append(row("ModelLatency", unit="Microseconds", Maximum=1000 * longest_ms))
        facts = wave(*rows, change=lambda r: r._replace(done=r.sent + 900 * MS) if r.index == 0 else r)
        worker = WorkerUse(loop_delay=LoopDelay(count=100, p50_s=0.0, p95_s=0.0, p99_s=0.0, max_s=hold_s))
        assert said in remarks(replace(facts, workers=(worker,)))["cold_start"]

    def test_the_very_first_took_longer(self) -> None:
        facts = wave(cpu(2880), change=lambda r: r._replace(done=r.sent + 900 * MS) if r.index == 0 else r)
        assert mentions(remarks(facts)["cold_start"], "900 ms", "20 ms")

    @pytest.mark.parametrize(("first_ms", "is_cold"), [(700, False), (900, True)])
    def test_the_tail_lies_between_two_values_where_it_does(self, first_ms: int, is_cold: bool) -> None:
        """Of the 151 others the 149th took 20 ms and the 150th 500 ms: their p99 is 260 ms, a third of 780 ms."""
        took_ms = {0: first_ms, 60: 500, 90: 500}
        plan = open_plan("152", "1")
        records = [r._replace(done=r.sent + took_ms.get(r.index, 20) * MS) for r in on_time(plan)]
        assert (cold_start(observe(plan, records)) is not None) == is_cold

    def test_a_warm_up_took_it(self) -> None:
        plan = replace(open_plan("100", "10"), warmup_s=Decimal(2))
        warm = [r._replace(index=r.index - 200, due=r.due - 2 * NS, sent=r.sent - 2 * NS) for r in on_time(plan)[:200]]
        records = [r._replace(done=r.sent + (900 if r.index < -150 else 20) * MS) for r in warm] + on_time(plan)
        facts = observe(plan, records, server_metrics=(cpu(2880),))
        assert remarks(facts)["cold_start"].endswith(
            "The warm-up of 2 s absorbed it: no number of the wave includes it."
        )

    @pytest.mark.parametrize("latency_ms", [1, 5])
    def test_some_milliseconds_are_none(self, latency_ms: int) -> None:
        facts = wave(latency_ms=1, change=lambda r: r._replace(done=r.sent + latency_ms * MS) if r.index < 50 else r)
        assert cold_start(facts) is None

    def test_chance_makes_none(self) -> None:
        """Of 200 waves of 300 exponential latencies, one or two may seem to start cold."""
        random = np.random.default_rng(1)
        plain = wave()
        found = 0
        for _ in range(200):
            latency = np.round(random.exponential(50 * MS, 1000)).astype(np.int64)
            table = in_memory(plain.records).table
            done = pa.array(table.column("sent").to_numpy() + latency)
            position = table.schema.get_field_index("done")
            records = Records(table.set_column(position, SCHEMA.field("done"), done))
            found += cold_start(replace(plain, records=records)) is not None
        assert found <= 4

    def test_nothing_answered(self) -> None:
        assert cold_start(wave(change=failing(1))) is None


@pytest.mark.parametrize(("counted", "said"), [(999, False), (1000, False), (1001, True), (5000, True)])
def test_more_requests_than_ours_are_somebody_s(counted: float, said: bool) -> None:
    found = remarks(wave(replace(row("Invocations", Sum=counted), asked=False)))
    assert ("foreign_traffic" in found) is said
    if counted == 5000:
        assert mentions(found["foreign_traffic"], "5,000 requests", "1,000", "4,000 came")


def test_a_task_of_a_locust_file_is_any_number_of_requests() -> None:
    rows = [model_ms(5), row("ConcurrentRequestsPerModel", Maximum=20)]
    tasks: dict[str, Any] = {"locust_file": Path("locustfile.py"), "factories_file": None}
    assert remarks(wave(*rows, row("Invocations", Sum=3000), **tasks)) == {}
    assert "time" in remarks(wave(*rows, row("Invocations", Sum=1000), **tasks)), "one request a task"


def test_what_a_lost_worker_sent_is_not_somebody_else_s() -> None:
    facts = replace(wave(row("Invocations", Sum=1020)), lost_workers=(0,))
    assert remarks(facts) == {}


def test_remarks_stand_between_metrics_and_findings_and_in_the_summary() -> None:
    facts = wave(model_ms(17), cpu(2880), slos="p99<1ms")
    summary = summarise(facts)
    verdict = judge(facts, summary)
    text = to_text(facts, summary, verdict)
    assert text.index("   ModelLatency: Average") < text.index("   → Where the time went") < text.index("slo_missed")
    assert all(len(line) <= 100 for line in text.splitlines() if line.startswith(("   → ", "     ")))
    codes = [remark["code"] for remark in encoded(summary_of(facts, summary, verdict))["diagnosis"]]
    assert codes == ["time", "model_latency", "cpu"]
