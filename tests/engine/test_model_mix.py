"""A mix of models in real waves: what the server is asked, by whom, and the rows of the report."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker import cli
from inference_benchmarker.plan.model_mix import ModelMix
from tests.scripted_server import ScriptedServer, chunked_head, chunks

if TYPE_CHECKING:
    from tests.bench import Bench

MIX = "big=3,small=1"
EVENT = {"model": "the router", "choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}
STREAM = f"data: {json.dumps(EVENT)}\n\ndata: [DONE]\n\n".encode()
ANSWER = [chunked_head(Content_Type="text/event-stream"), chunks(STREAM)]


@pytest.mark.process
def test_requests_ask_the_models_of_a_mix_and_have_their_rows(bench: Bench) -> None:
    with ScriptedServer([ANSWER]) as server:
        flags = ("--model-mix", MIX, "--client-rps", "50", "--num-requests", "40", "--seed", "4", "--workers", "2")
        finished = bench.run(f"{server.url}/v1", *flags, "--output-dir", "runs", factories=None)
    mix, asked = ModelMix.parse(MIX), [json.loads(each.body)["model"] for each in server.asked]
    assert {row["index"]: row["label"] for row in finished.rows} == {n: mix.choose(4, n) for n in range(40)}
    assert sorted(asked) == sorted(row["label"] for row in finished.rows)
    rows = {row["label"]: row["sent"] for row in finished.summary["labels"]}
    assert rows == {name: asked.count(name) for name in ("big", "small")}
    assert f"models {MIX}" in finished.out + finished.err


@pytest.mark.process
def test_all_turns_of_a_session_ask_the_same_model(bench: Bench) -> None:
    with ScriptedServer([ANSWER]) as server:
        flags = ("--turns", "3", "--session-header", "X-Session", "--client-rps", "30", "--num-requests", "12")
        lines = ("--model-mix", MIX, "--seed", "1", "--workers", "2", "--output-dir", "runs")
        finished = bench.run(f"{server.url}/v1", *flags, *lines, factories=None)
    models = defaultdict(list)
    for each in server.asked:
        models[each.headers["x-session"]].append(json.loads(each.body)["model"])
    assert len(models) == 12
    assert all(len(asked) == 3 and len(set(asked)) == 1 for asked in models.values())
    assert {asked[0] for asked in models.values()} == {"big", "small"}
    assert {row["label"] for row in finished.rows} == {"big", "small"}


@pytest.mark.process
def test_canaries_ask_the_models_alone_and_under_load(bench: Bench) -> None:
    with bench.endpoint(service_s=0.01, servers=20, echo=True) as endpoint:
        flags = ("--model-mix", MIX, "--expect", "canary:30%", "--client-rps", "50", "--num-requests", "40")
        finished = bench.run(f"{endpoint.url}/v1", *flags, "--output-dir", "runs", factories=None)
    assert {row["label"] for row in finished.rows} == {"big", "small", "canary"}
    assert {row["metric.canary_differs"] for row in finished.rows if row["label"] == "canary"} == {0.0}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["http://127.0.0.1:9/v1", "--model-mix", "a,b", "--model", "a"], "Give either --model or --model-mix"),
        (["http://127.0.0.1:9/x", "--model-mix", "a,b"], "--model-mix: only for an OpenAI-compatible API"),
        (["http://127.0.0.1:9/v1", "--model-mix", "a,a"], "is not a mix of models"),
    ],
)
def test_a_mix_that_cannot_be_is_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    assert said in capsys.readouterr().err
