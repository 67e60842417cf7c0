"""What a plan becomes on aiperf's command line, and what is reported before any load is sent."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from inference_benchmarker.plan.load import Bounds, ClosedLoop, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from server_capacity.aiperf.arguments import SESSIONS, Requests, brings_input, flags, named, problems_of, words
from server_capacity.aiperf.inputs import MOST_INPUTS
from server_capacity.aiperf.making import planned_inputs

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
URL = "http://127.0.0.1:8000"
INPUTS = Path("inputs.json")


def plan(load: OpenLoop | ClosedLoop, duration: str | None = None, number: int | None = None, **more: Any) -> WavePlan:
    return WavePlan(load, Bounds(None if duration is None else Decimal(duration), number), **more)


def line(of: WavePlan, body: dict[str, Any] | None = CHAT, **given: Any) -> list[str]:
    return words(flags(of, URL, named(given), Requests(INPUTS, SESSIONS, body) if body else None))


def value(line: list[str], flag: str) -> str:
    assert line.count(flag) == 1, line
    return line[line.index(flag) + 1]


def test_an_open_loop_is_a_rate() -> None:
    got = line(plan(OpenLoop(Decimal("0.1"), "poisson"), number=7, seed=3))
    assert value(got, "--request-rate") == "0.1"
    assert value(got, "--arrival-pattern") == "poisson"
    assert value(got, "--request-count") == "7"
    assert value(got, "--random-seed") == "3"
    assert "--concurrency" not in got
    assert "--benchmark-duration" not in got


def test_a_closed_loop_is_a_concurrency() -> None:
    got = line(plan(ClosedLoop(4), "30", warmup_s=Decimal(2), drain_timeout_s=Decimal(9), request_timeout_s=Decimal(5)))
    assert value(got, "--concurrency") == "4"
    assert "--request-rate" not in got
    assert value(got, "--benchmark-duration") == "30"
    assert value(got, "--benchmark-grace-period") == "9"
    assert value(got, "--warmup-duration") == "2"
    assert value(got, "--request-timeout-seconds") == "5.0"


@pytest.mark.parametrize(("key", "kind"), [("messages", "chat"), ("prompt", "completions"), ("input", "embeddings")])
def test_the_first_payload_tells_model_api_and_stream(key: str, kind: str) -> None:
    got = line(plan(ClosedLoop(1), number=1), {"model": "m", key: [], "stream": False})
    assert value(got, "--model") == "m"
    assert value(got, "--endpoint-type") == kind
    assert "--streaming" not in got
    assert "--streaming" in line(plan(ClosedLoop(1), number=1))


def test_what_is_given_replaces_adds_and_leaves_out() -> None:
    given: dict[str, Any] = {"k": 50, "m": "Qwen/Qwen2.5-0.5B", "streaming": False, "ui_type": "simple"}
    given |= {"goodput": ["a:1", "b:2"], "request-rate": 1.5, "--verbose": True}
    got = line(plan(OpenLoop(Decimal(5)), "3"), **given)
    assert value(got, "--k") == "50"
    assert value(got, "--model") == "Qwen/Qwen2.5-0.5B"
    assert value(got, "--ui") == "simple"
    assert value(got, "--request-rate") == "1.5"
    assert "--streaming" not in got
    assert [got[at + 1] for at, word in enumerate(got) if word == "--goodput"] == ["a:1", "b:2"]
    assert got[-1] == "--verbose"


def test_a_switch_that_is_given_takes_the_place_of_its_opposite() -> None:
    got = line(plan(ClosedLoop(1), number=1), server_metrics="http://127.0.0.1:8000/metrics", gpu_telemetry=True)
    assert value(got, "--server-metrics") == "http://127.0.0.1:8000/metrics"
    assert "--gpu-telemetry" in got
    assert "--no-server-metrics" not in got
    assert "--no-gpu-telemetry" not in got


@pytest.mark.parametrize(
    ("short", "long"), [("H", "header"), ("-b", "batch-size"), ("v", "verbose"), ("-vv", "extra-verbose")]
)
def test_a_letter_is_the_flag_that_it_stands_for(short: str, long: str) -> None:
    assert named({short: "x"}) == {long: "x"}


def test_requests_of_the_users_own_take_the_place_of_ours() -> None:
    given = named({"input_file": "mine.jsonl", "model": "m"})
    assert brings_input(given)
    got = words(flags(plan(ClosedLoop(1), number=1), URL, given, None))
    assert value(got, "--input-file") == "mine.jsonl"
    assert "--custom-dataset-type" not in got
    assert brings_input(named({"input-file": False}))
    assert not brings_input(named({"model": "m"}))


def test_a_model_or_an_api_that_nobody_names_is_asked_for() -> None:
    assert problems_of({}, CHAT) == []
    assert problems_of({"model": "m"}, None) == []
    model, api = problems_of({}, {"inputs": "x"})
    assert "model" in model
    assert "endpoint-type" in api
    assert problems_of({"model": "m", "endpoint-type": "raw"}, {"inputs": "x"}) == []


@pytest.mark.parametrize(
    ("of", "count"),
    [
        (plan(OpenLoop(Decimal("2.5")), "3"), 8),
        (plan(OpenLoop(Decimal("2.5")), "3", 5), 5),
        (plan(OpenLoop(Decimal("0.1")), "3"), 1),
        (plan(ClosedLoop(3), number=12), 12),
        (plan(ClosedLoop(3), "12"), MOST_INPUTS),
        (plan(OpenLoop(Decimal(1000)), "3600"), MOST_INPUTS),
    ],
)
def test_one_request_is_made_for_each_that_is_planned(of: WavePlan, count: int) -> None:
    assert planned_inputs(of) == count
