"""Images, audio, embeddings and reranking by address: what the server gets, and the rows of the report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import cli
from inference_benchmarker.plan.media import Audio, Images, Media
from tests.scripted_server import ScriptedServer, chunked_head, chunks

if TYPE_CHECKING:
    from tests.bench import Bench, Finished

EVENT = {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}], "model": "m"}
STREAM = f"data: {json.dumps(EVENT)}\n\ndata: [DONE]\n\n".encode()
ANSWER = [chunked_head(Content_Type="text/event-stream"), chunks(STREAM)]
SPECIFIED = ("16x16:2:share=50%", "0.1s:share=50%")


def run(bench: Bench, workers: int, *flags: str) -> tuple[Finished, list[dict[str, Any]]]:
    """A wave with images and audio, and the requests that came."""
    with ScriptedServer([ANSWER]) as server:
        media = ("--image", SPECIFIED[0], "--audio", SPECIFIED[1], "--input-tokens", "5", "--seed", "3")
        load = ("--client-rps", "50", "--num-requests", "30", "--workers", str(workers), "--output-dir", "runs")
        finished = bench.run(f"{server.url}/v1", *media, *load, *flags, factories=None)
    return finished, [json.loads(each.body) for each in server.asked]


@pytest.mark.process
def test_the_server_gets_the_images_and_sounds_of_the_seed_however_many_workers_there_are(bench: Bench) -> None:
    finished, asked = run(bench, 2, "--model", "m")
    media = Media(Images.parse(SPECIFIED[0]), Audio.parse(SPECIFIED[1]), "3")
    expected = [media.parts(number) for number in range(30)]
    came = [request["messages"][0]["content"] for request in asked]
    assert sorted(map(repr, (content[:-1] for content in came))) == sorted(map(repr, expected))
    assert all(content[-1]["type"] == "text" and len(content[-1]["text"].split()) == 5 for content in came)
    assert all(request["stream"] and request["stream_options"] == {"include_usage": True} for request in asked)
    assert all(request["model"] == "m" and request["max_tokens"] == 128 for request in asked)
    kinds = {"text", "text + audio", "text + 2 images", "text + 2 images + audio"}
    assert {row["label"] for row in finished.rows} == kinds
    assert {row["label"] for row in finished.summary["labels"]} == kinds


@pytest.mark.process
def test_models_and_modalities_have_rows_together(bench: Bench) -> None:
    finished, asked = run(bench, 1, "--model-mix", "a,b")
    assert {request["model"] for request in asked} == {"a", "b"}
    assert {"a, text", "b, text + audio"} <= {row["label"] for row in finished.rows}


@pytest.mark.process
@pytest.mark.parametrize(
    ("path", "flags"), [("/v1/rerank", ["--model", "m"]), ("/rerank", []), ("/v1/embeddings", ["--model", "m"])]
)
def test_an_address_of_scores_or_vectors_needs_no_file(bench: Bench, path: str, flags: list[str]) -> None:
    with bench.endpoint(service_s=0.001) as endpoint:
        load = ("--client-rps", "50", "--num-requests", "5", "--input-tokens", "7", "--output-dir", "runs")
        finished = bench.run(f"{endpoint.url}{path}", *flags, *load, factories=None)
        assert endpoint.arrivals()["route"] == [path] * 5
    assert {row["outcome"] for row in finished.rows} == {"ok"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["http://127.0.0.1:9/v1/embeddings", "--image", "8x8"], "only chats have images and audio"),
        (["http://127.0.0.1:9/v1", "--image", "8x8", "--turns", "2"], "leave --turns out"),
        (["http://127.0.0.1:9/v1", "--audio", "1s", "--body", "{}"], "leave --body out"),
        (["http://127.0.0.1:9/x", "--audio", "1s"], "--audio: only for an OpenAI-compatible API"),
        (["http://127.0.0.1:9/v1/rerank", "--audio", "1s"], "--audio: reranking has queries and texts"),
        (["http://127.0.0.1:9/rerank", "--model", "m"], "TEI's /rerank has one model"),
        (["http://127.0.0.1:9/v1", "--image", "8"], "is not an image size"),
    ],
)
def test_media_where_they_cannot_be_are_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    assert said in capsys.readouterr().err
