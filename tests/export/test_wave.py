"""A wave that is handed on while it runs: to a real Prometheus with every query of the dashboard, and in the end."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING, Any
from urllib.error import URLError

import pytest

from inference_benchmarker.words.units import NS
from tests.collector import collecting
from tests.exported import expressions, read_page, sample, samples
from tests.real_prometheus import ask, reading

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench import Bench, Running
    from tests.exported import Samples

pytestmark = pytest.mark.process

STREAMS = """
import json
import os
from geventhttpclient import HTTPClient
from sender import post

from inference_benchmarker import Response

client = HTTPClient.from_url(os.environ["TARGET"], concurrency=100, network_timeout=20)
ASKED = {"stream": True, "max_tokens": 4, "messages": [{"role": "user", "content": "one two"}]}


def streamed(number):
    response = client.post("/v1/chat/completions", body=json.dumps(ASKED).encode())
    while line := response.readline(b"\\n"):
        if line.startswith(b"data: {"):
            yield line
    yield Response(metrics={"cache_hit": number % 2, "cost": -0.5})


def invoke_factory():
    def invoke(number):
        if number % 5 == 0:
            raise KeyError(number)
        return streamed(number)

    return invoke


def payload_factory():
    return {"pre_computed": True, "input": list(range(1000)), "label": lambda number: f"model-{number % 3}"}
"""


def page_of(running: Running) -> str:
    found = running.wait_for(lambda: re.search(r"Figures for Prometheus: (\S+)\.\n", running.err), "its page")
    url: str = found[1]
    return url


def books(found: Samples, summary: dict[str, Any]) -> None:
    """The last page says what the summary says."""
    ledger = summary["ledger"]
    assert sample(found, "requests_sent_total") == ledger["sent"]
    for name in ("ok", "failed", "abandoned"):
        assert sample(found, "requests_total", outcome=name) == ledger[name]
    assert sample(found, "arrivals_dropped_total") == ledger["dropped"]
    assert sample(found, "arrivals_lost_total") == ledger["lost"]
    assert sample(found, "requests_in_flight") == ledger["in_flight"]
    assert sample(found, "exit_code") == summary["exit_code"]
    assert sample(found, "verdict", verdict=summary["verdict"]) == 1
    for error in summary["errors"]:
        assert sample(found, "errors_total", error=error["key"]) == error["count"]
    assert sample(found, "latency_seconds_count") == summary["latency"]["count"]
    assert sample(found, "latency_seconds_sum") == pytest.approx(
        summary["latency"]["mean"] * summary["latency"]["count"], rel=0.01
    )
    for row in summary["labels"]:
        label = {"label": row["label"]}
        for name in ("ok", "failed"):
            assert sample(found, "label_requests_total", outcome=name, **label) == row[name]
        assert sample(found, "label_latency_seconds_count", **label) == row["latency"]["count"]
    for name, reported in summary["metrics"].items():
        assert sample(found, "user_metric_count", metric=name) == reported["count"]
        assert sample(found, "user_metric_sum", metric=name) == pytest.approx(reported["mean"] * reported["count"])


def test_a_real_prometheus_answers_the_dashboard_while_a_wave_runs(tmp_path: Path, bench: Bench) -> None:
    arguments = ("--client-rps", 40, "--obs-time", 300, "--workers", 2, "--export", "prometheus:0", "--name", "shown")
    with bench.endpoint() as endpoint, collecting() as collector:
        otlp = ("--export", f"otlp={collector.url}", "--drain-timeout", 5)
        running = bench.start(*arguments, *otlp, factories=STREAMS, target=endpoint)
        page = page_of(running)
        with reading(page.split("/")[2], tmp_path) as prometheus:
            missing = set(expressions())

            def every_query_has_an_answer() -> bool:
                missing.difference_update(text for text in tuple(missing) if ask(prometheus, chosen(text)))
                return not missing

            running.wait_for(every_query_has_an_answer, f"answers to {missing}")
            running.signal(signal.SIGINT)
            finished = running.finish()
            assert finished.code == 130
            assert "Waiting up to 20 s until the verdict" in finished.err
            last = last_of(prometheus)
    books(last, finished.summary)
    books(collector.last(), finished.summary)
    assert finished.ledger["failed"] > 0
    assert set(finished.summary["errors"][0]) >= {"key", "count"}
    assert [row["label"] for row in finished.summary["labels"]] != []
    assert set(finished.summary["metrics"]) == {"cache_hit", "cost"}


def chosen(expression: str) -> str:
    """As Grafana asks, with everything chosen."""
    asked = {"$__rate_interval": "30s", '"$run"': '"shown"', '"$endpoint"': '".*"', '"$label"': '".*"'}
    for name, value in asked.items():
        expression = expression.replace(name, value)
    return expression


def last_of(prometheus: str) -> Samples:
    """The newest value of each series: the page is gone by now, and its series have ended."""
    found: Samples = {}
    for point in ask(prometheus, 'last_over_time({__name__=~"benchmark_.*", run="shown"}[10m])'):
        labels = point["metric"]
        own = ("__name__", "run", "endpoint", "job", "instance")
        key = frozenset(pair for pair in labels.items() if pair[0] not in own)
        found[labels["__name__"], key] = float(point["value"][1])
    return found


def with_verdict(found: Samples) -> Samples | None:
    """A page once the wave is over; it is gone when it was read."""
    return None if sample(found, "exit_code") is None else found


def test_what_a_killed_worker_reported_stays_and_the_last_page_and_sending_are_the_summary(bench: Bench) -> None:
    arguments = ("--concurrency", 4, "--obs-time", 300, "--workers", 2, "--export", "prometheus:0", "--export-wait", 60)
    with bench.endpoint(service_s=0.02) as endpoint, collecting() as collector:
        running = bench.start(*arguments, "--export", f"otlp={collector.url}", target=endpoint)
        url = page_of(running)
        running.wait_for(lambda: (sample(samples(read_page(url)), "requests_sent_total") or 0) > 20, "requests")
        running.workers()[0].kill()
        before = samples(read_page(url))
        running.signal(signal.SIGINT)
        last = running.wait_for(lambda: with_verdict(samples(read_page(url))), "its verdict")
        finished = running.finish()
    for key, value in before.items():
        if key[0].endswith(("_total", "_bucket", "_count")):
            assert last[key] >= value, key
    books(last, finished.summary)
    books(collector.last(), finished.summary)
    assert sample(last, "response_time_seconds_count") is None  # the closed loop has none
    with pytest.raises((URLError, OSError)):
        read_page(url)


def test_the_turns_of_sessions_are_those_of_the_stored_wave(bench: Bench) -> None:
    with bench.endpoint(service_s=0.01) as endpoint:
        address = (f"{endpoint.url}/v1", "--model", "m", "--turns", 3, "--output-tokens", 4, "--workers", 2)
        load = ("--client-rps", 20, "--num-requests", 8, "--warmup", 1, "--export", "prometheus:0")
        running = bench.start(*address, *load, "--output-dir", "runs", factories=None)
        url = page_of(running)
        last = running.wait_for(lambda: with_verdict(samples(read_page(url))), "its verdict")
        finished = running.finish()
    books(last, finished.summary)
    rows = finished.rows
    assert len([row for row in rows if row["index"] >= 0]) == 24
    for turn, of_turn in (("1", {1}), ("2+", {2, 3})):
        own = [row for row in rows if row["turn"] in of_turn and row["index"] >= 0]
        assert sample(last, "turn_requests_total", turn=turn, outcome="ok") == len(own)
        assert sample(last, "turn_requests_total", turn=turn, outcome="failed") == 0
        for name, until in (("latency", "done"), ("ttft", "first_token")):
            assert sample(last, f"turn_{name}_seconds_count", turn=turn) == len(own)
            total = sum(row[until] - row["sent"] for row in own) / NS
            assert sample(last, f"turn_{name}_seconds_sum", turn=turn) == pytest.approx(total, rel=0.01)
    assert sample(last, "sessions_total", ended="completed") == 8
