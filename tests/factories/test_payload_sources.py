"""The examples whose payloads come from a file or are generated: what they make of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.embedded.running import EndpointConfig, start
from inference_benchmarker.engine.endpoint.factories_file import load
from inference_benchmarker.errors import BenchmarkError
from tests.shipped import FACTORIES, run_example

if TYPE_CHECKING:
    from pathlib import Path

QUESTION = {"messages": [{"role": "user", "content": "Why?"}]}


def payloads(name: str) -> list[dict[str, Any]]:
    found = load(FACTORIES / f"payload_sources/factories_{name}.py").payloads
    assert found is not None
    return [*found]


@pytest.fixture
def prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "prompts.jsonl"
    monkeypatch.setenv("PROMPTS_FILE", str(file))
    return file


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "trace.csv"
    monkeypatch.setenv("TRACE_FILE", str(file))
    return file


def test_each_line_of_a_file_is_a_request(prompts: Path) -> None:
    lines = [json.dumps(QUESTION), "", json.dumps({**QUESTION, "model": "mine", "max_tokens": 5})]
    prompts.write_text("\n".join(lines), encoding="utf-8")
    assert payloads("jsonl") == [
        {"model": "demo", "max_tokens": 64, **QUESTION},
        {"model": "mine", "max_tokens": 5, **QUESTION},
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "No such file"),
        ("\n", "prompts.jsonl, which is empty: expected a JSON object a line"),
        (f"{json.dumps(QUESTION)}\n[1]", r"prompts.jsonl, line 2: expected a JSON object, found '\[1\]'"),
        ("{", "line 1: expected a JSON object, found '{'"),
    ],
)
def test_a_wrong_file_of_requests_is_reported_by_its_line(prompts: Path, content: str | None, expected: str) -> None:
    if content is not None:
        prompts.write_text(content, encoding="utf-8")
    with pytest.raises(BenchmarkError, match=expected):
        payloads("jsonl")


def test_generated_prompts_have_the_tokens_that_are_asked_for(tmp_path: Path) -> None:
    build = load(FACTORIES / "payload_sources/factories_generated_prompts.py").build
    assert build is not None
    texts = [build()["messages"][0]["content"] for _ in range(100)]
    assert {len(text.split(" ")) for text in texts} == {512}
    assert len({text[:60] for text in texts}) == len(texts)
    with start(EndpointConfig()) as endpoint:
        wave = run_example("payload_sources/factories_generated_prompts", endpoint.url, tmp_path)
    tokens_in, tokens_out = (wave.summary["tokens"][f"tokens_{way}_per_request"] for way in ("in", "out"))
    assert (tokens_in["min"], tokens_in["max"], tokens_out["max"]) == (512, 512, 64)


def test_rows_of_a_trace_are_sent_in_their_order_without_those_that_had_no_answer(trace: Path, tmp_path: Path) -> None:
    trace.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n0,30,4\n1,7,0\n2,900,120\n", encoding="utf-8")
    sizes = [(len(p["messages"][0]["content"].split(" ")), p["max_tokens"]) for p in payloads("trace")]
    assert sizes == [(30, 4), (900, 120)]
    with start(EndpointConfig()) as endpoint:
        wave = run_example(
            "payload_sources/factories_trace", endpoint.url, tmp_path, environment={"TRACE_FILE": str(trace)}
        )
    tokens = wave.summary["tokens"]
    assert (tokens["tokens_in"], tokens["tokens_out"]) == (9300, 1240)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "No such file"),
        ("a,GeneratedTokens\n1,2\n", r"has no ContextTokens, but \['a', 'GeneratedTokens'\]"),
        ("ContextTokens,GeneratedTokens\n5,0\n", "has no row with tokens in both"),
        ("", "has no ContextTokens, GeneratedTokens"),
    ],
)
def test_a_wrong_trace_is_reported(trace: Path, content: str | None, expected: str) -> None:
    if content is not None:
        trace.write_text(content, encoding="utf-8")
    with pytest.raises(BenchmarkError, match=expected):
        payloads("trace")


def test_the_made_up_trace_has_small_requests_and_large_ones() -> None:
    build = load(FACTORIES / "payload_sources/factories_trace.py").build
    assert build is not None
    sizes = sorted(len(build()["messages"][0]["content"].split(" ")) for _ in range(500))
    assert sizes[0] < 50
    assert sizes[-1] > 1000


def test_a_recording_is_sent_with_its_rate_and_its_sizes(tmp_path: Path) -> None:
    rows = [(0, 30, 4), (100, 900, 120), (100, 7, 5), (450, 60, 2)]
    lines = [json.dumps({"timestamp": at, "input_length": size, "output_length": out}) for at, size, out in rows]
    (tmp_path / "trace.jsonl").write_text("\n".join(lines), encoding="utf-8")
    load = ("--replay", str(tmp_path / "trace.jsonl"), "--workers", "2")
    with start(EndpointConfig()) as endpoint:
        wave = run_example("payload_sources/factories_trace", endpoint.url, tmp_path, load=load)
    tokens = wave.summary["tokens"]
    assert wave.counts == (4, 0)
    assert (tokens["tokens_in"], tokens["tokens_out"]) == (997, 131)
    assert wave.summary["rates"]["target"] == pytest.approx(4 / 0.6)


def test_with_a_recording_a_request_has_the_sizes_of_its_row() -> None:
    build = load(FACTORIES / "payload_sources/factories_trace.py", with_rows=True).build
    assert build is not None
    for row, sizes in (
        ({"TIMESTAMP": "2023-11-16", "ContextTokens": 30, "GeneratedTokens": 0}, (30, 1)),
        ({"timestamp": 5, "input_length": 7, "output_length": 12, "hash_ids": [1]}, (7, 12)),
    ):
        payload = build(row)
        assert (len(payload["messages"][0]["content"].split(" ")), payload["max_tokens"]) == sizes
    with pytest.raises(ValueError, match=r"has none of .*ContextTokens.* but \['a'\]"):
        build({"a": 1})
