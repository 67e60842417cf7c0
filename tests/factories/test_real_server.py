"""Examples against a model server of others, LitServe: what its models noted is what the wave reports."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from tests.lit_server import LitServer
from tests.shipped import FACTORIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench import Bench, Finished

pytestmark = [pytest.mark.process, pytest.mark.skipif(find_spec("litserve") is None, reason="no LitServe")]

REQUESTS = 20


EXAMPLES = {
    "http": "http/factories_http",
    "chat": "openai_compatible/factories_chat",
    "stream": "openai_compatible/factories_chat_stream",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LitServer]:
    with LitServer(tmp_path_factory.mktemp("lit_server")) as server:
        yield server


@pytest.fixture(scope="module")
def waves(bench: Bench, server: LitServer) -> dict[str, Finished]:
    """A wave of each example, all at the same time."""
    flags = ("--client-rps", 40, "--num-requests", REQUESTS)
    environment = {"BENCHMARK_DEMO_URL": server.url}
    texts = {name: (FACTORIES / f"{example}.py").read_text() for name, example in EXAMPLES.items()}
    running = {name: bench.start(*flags, factories=text, environment=environment) for name, text in texts.items()}
    return {name: wave.finish() for name, wave in running.items()}


def test_a_real_server_got_each_body_once(server: LitServer, waves: dict[str, Finished]) -> None:
    wave = waves["http"]
    assert wave.outcomes() == {"ok": REQUESTS}, wave.summary["errors"]
    noted = sorted(server.noted("sums"), key=lambda body: body["id"])
    assert noted == [{"id": number, "features": [0.1, 0.2, 0.3]} for number in range(REQUESTS)]
    answers = [json.dumps({"id": body["id"], "sum": sum(body["features"])}, separators=(",", ":")) for body in noted]
    assert [row["bytes"] for row in wave.rows] == [len(answer) for answer in answers]


@pytest.mark.parametrize("name", ["chat", "stream"])
def test_a_real_server_and_the_wave_count_the_same_tokens(
    name: str, server: LitServer, waves: dict[str, Finished]
) -> None:
    wave = waves[name]
    assert wave.outcomes() == {"ok": REQUESTS}, wave.summary["errors"]
    noted = server.noted("words", stream=name == "stream")
    assert len({row["prompt"] for row in noted}) == len(noted) == REQUESTS
    reported = [(row["tokens_in"], row["tokens_out"]) for row in wave.rows]
    assert sorted(reported) == sorted((row["prompt_tokens"], row["completion_tokens"]) for row in noted)


def test_the_tokens_of_a_real_server_are_timed_as_they_come(server: LitServer, waves: dict[str, Finished]) -> None:
    """The k-th request came after the k-th was sent, and the k-th first token after the k-th left the model."""
    rows, t0 = waves["stream"].rows, waves["stream"].summary["window"]["t0_monotonic_ns"]
    noted = server.noted("words", stream=True)
    assert all(t0 + row["sent"] < at["arrived"] for row, at in zip(rows, noted, strict=True))
    first = sorted(t0 + row["first_token"] for row in rows)
    assert all(came > at["first"] for came, at in zip(first, noted, strict=True))
    assert [row["chunks"] for row in rows] == [row["tokens_out"] for row in rows]
    assert all(row["first_token"] <= row["last_token"] <= row["done"] for row in rows)
    assert any(row["first_token"] < row["last_token"] for row in rows)
