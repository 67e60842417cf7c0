"""The LLM engine behind HTTP: a wave of conversations, whose records are held against the engine's own log."""

from __future__ import annotations

import json
import time
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.embedded.config import EndpointConfig, WrongEndpointError
from inference_benchmarker.embedded.running import start
from tests.case import case

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.embedded.running import RunningEndpoint
    from tests.bench import Bench

QUICK = {"llm": "8b-h100", "kv_tokens": 4096, "prefill_ms": (0.0, 0.001, 1.0), "step_ms": (0.0, 0.0, 2.0, 0.0)}


@pytest.fixture(scope="module")
def engine() -> Iterator[RunningEndpoint]:
    with start(EndpointConfig(**QUICK, tokens_per_piece=2)) as endpoint:  # type: ignore[arg-type]
        yield endpoint


def asked(endpoint: RunningEndpoint, path: str, **body: Any) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", endpoint.port, timeout=20)
    connection.request("POST", path, json.dumps(body))
    response = connection.getresponse()
    return response.status, response.read()


@pytest.mark.process
def test_the_records_of_a_wave_are_the_engines_own(bench: Bench) -> None:
    folder = bench.folder()
    with bench.endpoint(**QUICK) as endpoint:
        block = {"stream": "prometheus", "scrape_url": f"{endpoint.url}/metrics"}
        blocks = [{**block, "preset": preset} for preset in ("vllm", "vllm_detailed")]
        (folder / "config.json").write_text(json.dumps(blocks))
        wave = bench.run(
            *(f"{endpoint.url}/v1", "--turns", 3, "--input-tokens", 200, "--output-tokens", 30),
            *("--client-rps", 10, "--obs-time", 2, "--endpoint-config", "config.json", "--output-dir", "runs"),
            factories=None,
            folder=folder,
        )
        log, page = endpoint.arrivals(), endpoint.metrics()
    assert wave.exit_code == 0, wave.err
    rows = wave.rows
    reported = sorted((row["tokens_in"], row["metric.cached_tokens"], row["tokens_out"]) for row in rows)
    assert reported == sorted(zip(log["prompt_tokens"], log["cached_tokens"], log["output_tokens"], strict=True))
    assert len(reported) == 60
    assert sum(log["cached_tokens"]) > 0
    for prompt, cached, output, computed, preemptions in zip(
        *(log[name] for name in ("prompt_tokens", "cached_tokens", "output_tokens", "computed_tokens", "preemptions")),
        strict=True,
    ):
        assert preemptions or prompt - cached + output - 1 == computed
    firsts = sorted(row["first_token"] - row["sent"] for row in rows)
    served = sorted(map(int.__sub__, log["first_token_ns"], log["arrival_ns"]))
    assert all(client >= server for client, server in zip(firsts, served, strict=True))
    counted = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    labels = '{model_name="demo",engine="0"}'
    for name, value in (
        ("prompt_tokens_total", sum(log["prompt_tokens"])),
        ("prefix_cache_queries_total", sum(log["prompt_tokens"])),
        ("prefix_cache_hits_total", sum(log["cached_tokens"])),
        ("generation_tokens_total", sum(log["output_tokens"])),
        ("num_preemptions_total", sum(log["preemptions"])),
        ("num_requests_running", 0),
        ("num_requests_waiting", 0),
        ("time_to_first_token_seconds_count", 60),
        ("time_to_first_token_seconds_sum", pytest.approx(sum(served) / 1e9, rel=0.05)),
    ):
        with case(name):
            assert float(counted[f"vllm:{name}{labels}"]) == value
    found = {metric["name"]: metric for metric in wave.summary["server_metrics"]}
    assert {"queue_length", "running_requests", "kv_cache_use"} <= found.keys()
    assert [name for name, metric in found.items() if metric["reason"]] == []
    for name, statistic, value in (
        ("output_tokens", "Total", 60 * 30),
        ("input_tokens", "Total", sum(log["prompt_tokens"])),
        ("prefix_cache_hits", "Total", sum(log["cached_tokens"])),
        ("prefix_cache_hit_rate", "Average", pytest.approx(sum(log["cached_tokens"]) / sum(log["prompt_tokens"]))),
        ("requests", "Total", 60),
        ("time_to_first_token", "Average", pytest.approx(sum(served) / 60e9, rel=0.05)),
    ):
        with case(name):
            assert found[name]["statistics"][statistic] == value


@pytest.mark.process
def test_answers_tell_what_the_cache_had_of_their_prompts(engine: RunningEndpoint) -> None:
    prompt = " ".join(f"w{number}" for number in range(100))
    for path, body in (
        ("/v1/completions", {"prompt": prompt}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": prompt}]}),
    ):
        for stream in (False, True):
            with case(path, stream):
                options = {"stream": stream, "stream_options": {"include_usage": True}}
                status, content = asked(engine, path, max_tokens=5, **body, **options)
                assert status == 200
                last = content.split(b"data: ")[-2] if stream else content
                expected = 0 if path == "/v1/completions" and not stream else 96
                assert json.loads(last)["usage"] == {
                    "prompt_tokens": 100,
                    "completion_tokens": 5,
                    "total_tokens": 105,
                    "prompt_tokens_details": {"cached_tokens": expected},
                }
                assert content.count(b"finish_reason") == (4 if stream else 1)  # pieces of two tokens, and the end


@pytest.mark.process
def test_requests_that_the_engine_cannot_compute_are_refused(engine: RunningEndpoint) -> None:
    for path, body, status, says in (
        ("/v1/completions", {"prompt": "a", "max_tokens": 4096}, 400, "maximum context length is 4096 tokens"),
        ("/v1/completions", {"prompt": " "}, 400, "at least one word"),
        ("/v1/embeddings", {"input": "a"}, 404, "error"),
        ("/", {}, 404, "UnknownOperation"),
    ):
        with case(path, body):
            found, content = asked(engine, path, **body)
            assert (found, says in content.decode()) == (status, True), content


@pytest.mark.process
def test_a_request_whose_client_is_gone_ends() -> None:
    with start(EndpointConfig(llm="8b-h100", step_ms=(0, 0, 1000, 0))) as endpoint:
        for _ in range(2):  # the second comes within a step of the first, and waits for its end
            connection = HTTPConnection("127.0.0.1", endpoint.port, timeout=20)
            body = json.dumps({"prompt": "a b c", "max_tokens": 1000, "stream": True})
            connection.request("POST", "/v1/completions", body)
            connection.getresponse().readline()
            connection.close()
        ended = 'vllm:request_success_total{model_name="demo",engine="0",finished_reason="abort"} 2\n'
        deadline = time.monotonic() + 20
        while ended not in (page := endpoint.metrics()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert ended in page
        assert 'vllm:kv_cache_usage_perc{model_name="demo",engine="0"} 0.0' in page
        log = endpoint.arrivals()
    assert (log["status"], log["finish_ns"], log["output_tokens"]) == ([0, 0], [None, None], [None, None])


def test_what_no_engine_heeds_is_wrong_beside_one() -> None:
    for config, fields in (
        ({"llm": "9b"}, ["llm"]),
        ({"kv_tokens": 100, "step_ms": (1, 2, 3, 4)}, ["kv_tokens", "step_ms"]),
        ({"llm": "8b-h100", "servers": 5, "swap_share": 0.1}, ["servers", "swap_share"]),
        ({"llm": "8b-h100", "kv_tokens": 1, "prefill_ms": (1, 2, -3)}, ["kv_tokens", "prefill_ms"]),
    ):
        with case(config):
            with pytest.raises(WrongEndpointError) as caught:
                EndpointConfig(**config)
            assert [field for field, _ in caught.value.problems] == fields
