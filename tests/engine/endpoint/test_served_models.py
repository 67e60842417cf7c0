"""The model of a server that is asked for it, by what a server on loopback answers."""

from __future__ import annotations

import json

import pytest

from inference_benchmarker.embedded.running import listen
from inference_benchmarker.engine.endpoint import served_models
from inference_benchmarker.engine.endpoint.served_models import only_model
from inference_benchmarker.errors import BenchmarkError
from tests.mentions import mentions
from tests.scripted_server import ScriptedServer, answer, chunked_head


def listed(*names: str) -> bytes:
    return answer(json.dumps({"object": "list", "data": [{"id": name} for name in names]}).encode())


def test_the_only_one_is_taken_and_the_headers_arrive() -> None:
    with ScriptedServer([[listed("llama")]]) as server:
        assert only_model(f"{server.url}/v1/models", {"Authorization": "Bearer key"}).name == "llama"
    (asked,) = server.asked
    assert (asked.line, asked.headers["authorization"]) == ("GET /v1/models HTTP/1.1", "Bearer key")


@pytest.mark.parametrize(
    ("more", "owner"),
    [('"owned_by": "vllm"', "vllm"), ('"owned_by": null', ""), ('"owned_by": 3', "3"), ('"x": 1', "")],
)
def test_its_list_says_which_software_it_is(more: str, owner: str) -> None:
    with ScriptedServer([[answer(f'{{"data": [{{"id": "m", {more}}}]}}'.encode())]]) as server:
        assert only_model(f"{server.url}/v1/models", {}) == ("m", owner)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (listed("a", "b"), "The server has several models: a, b. Choose one with --model."),
        (listed(*map(str, range(12))), "several models: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more."),
        (listed(), "lists no model. Name it with --model."),
        (answer(b"<html>"), "its answer is not a list of models. Give --model NAME."),
        (answer(b'{"data": [1]}'), "its answer is not a list of models."),
        (answer(b"", "404 Not Found"), "it answered 404. Give --model NAME."),
        (answer(b"", "401 Unauthorized"), "it answered 401 (a key is missing or wrong?). Give --model NAME."),
        (b"nonsense\r\n\r\n", "models: nonsense"),
        (b"more\rnon\x85sense\r\n\r\n", "models: more non sense. Give --model NAME."),
    ],
)
def test_anything_else_is_said(said: bytes, expected: str) -> None:
    with ScriptedServer([[said]]) as server, pytest.raises(BenchmarkError) as raised:
        only_model(f"{server.url}/v1/models", {})
    assert expected in str(raised.value)


@pytest.mark.parametrize("head", [pytest.param(b"", id="head"), pytest.param(chunked_head(), id="body")])
def test_an_answer_a_byte_at_a_time_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, head: bytes) -> None:
    monkeypatch.setattr(served_models, "TIMEOUT_S", 0.5)
    drops = [part for _ in range(200) for part in (b"1\r\n \r\n" if head else b"H", 0.1)]
    with ScriptedServer([[head, *drops]]) as server, pytest.raises(BenchmarkError) as raised:
        only_model(f"{server.url}/v1/models", {})
    assert mentions(str(raised.value), "0.5 s", "--model NAME")


def test_nobody_else_gets_the_headers() -> None:
    with ScriptedServer([[listed("llama")]]) as other:
        away = answer(b"", "302 Found", Location=f"{other.url}/v1/models")
        with ScriptedServer([[away]]) as server, pytest.raises(BenchmarkError) as raised:
            only_model(f"{server.url}/v1/models", {"Authorization": "Bearer key"})
    assert f"it answered 302 and sends on to {other.url}/v1/models." in str(raised.value)
    assert other.asked == []


def test_a_server_that_is_not_there_is_said() -> None:
    with listen(0) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(BenchmarkError, match=r"models: Connection refused \(is the server running there\?\)"):
        only_model(f"http://127.0.0.1:{port}/v1/models", {})
