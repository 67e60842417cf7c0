"""Values of the user's own from end to end, held against what the embedded endpoint saw."""

from __future__ import annotations

import json
import re

import pytest

from inference_benchmarker import Wave
from tests.bench import Bench, ids

pytestmark = pytest.mark.process

FACTORIES = """
from sender import post
from inference_benchmarker import Response


def invoke_factory():
    def invoke(payload):
        post(payload)
        rare = payload if payload % 10 == 0 else None
        return Response(metrics={"number": payload, "odd": payload % 2 == 1, "rare": rare})

    return invoke


def payload_factory():
    return {"pre_computed": True, "input": list(range(10_000))}
"""


def test_each_value_is_with_the_request_that_the_endpoint_answered(bench: Bench) -> None:
    limits = ("metric.odd.mean>=0.4", "metric.number.max<100", "metric.nobody.mean<1")
    with bench.endpoint(servers=20, error_share=0.1, seed=3) as endpoint:
        run = bench.run(
            *("--client-rps", 100, "--num-requests", 100, "--workers", 2, "--success-threshold", 0, "--warmup", "0.2"),
            *(flag for limit in limits for flag in ("--slo", limit)),
            factories=FACTORIES,
            target=endpoint,
        )
        log = endpoint.arrivals()
    answered = [number for number, status in zip(ids(log), log["status"], strict=True) if status == 200]
    rows = [row for row in run.rows if row["index"] >= 0]
    assert len(rows) == 100
    for row in rows:
        number = row["index"] if row["outcome"] == "ok" else None
        assert row["metric.number"] == number
        assert row["metric.odd"] == (None if number is None else number % 2)
        assert row["metric.rare"] == (None if number is None or number % 10 else number)
    reported = run.summary["metrics"]
    numbers = [row["index"] for row in rows if row["outcome"] == "ok"]
    assert numbers == sorted(number for number in answered if number < 100), "the warm-up sends the last payloads"
    assert reported["number"]["count"] == len(numbers)
    assert reported["number"]["mean"] == pytest.approx(sum(numbers) / len(numbers))
    assert reported["odd"]["mean"] == pytest.approx(sum(number % 2 for number in numbers) / len(numbers))
    assert set(reported) == {"number", "odd", "rare"}
    missed = [finding["limit"] for finding in run.summary["findings"] if finding["code"] == "slo_missed"]
    assert missed == ["metric.nobody.mean<1"]
    again = Wave.load(run.folder)
    assert json.loads(json.dumps(again.to_json()))["metrics"] == reported
    assert sorted(again.frame(["metric.number"])["metric.number"].dropna()) == sorted(numbers)


CHATS = """
import os
from inference_benchmarker.clients import OpenAIClient


def invoke_factory():
    return OpenAIClient(os.environ["TARGET"] + "/v1").stream_chat


def payload_factory():
    contents = [f"one two {number}" for number in range(5)]
    return {"pre_computed": True, "input": [{"messages": [{"role": "user", "content": each}]} for each in contents]}
"""


def test_the_tokens_that_a_servers_cache_had_are_reported_of_each_chat(bench: Bench) -> None:
    with bench.endpoint(servers=20, cache_size=100) as endpoint:
        run = bench.run("--client-rps", 50, "--num-requests", 40, factories=CHATS, target=endpoint)
        page = endpoint.metrics()
    hits = int(float(re.findall(r"^demo_endpoint_cache_hits_total\S* (\S+)$", page, re.MULTILINE)[0]))
    assert hits == 35
    assert sorted(row["metric.cached_tokens"] for row in run.rows) == [0.0] * 5 + [3.0] * hits
    assert run.summary["metrics"]["cached_tokens"]["mean"] == pytest.approx(3 * hits / 40)
