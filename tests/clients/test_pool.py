"""Which connection serves a request, where servers close streams' connections without having said so."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.clients import HttpClient
from tests.scripted_server import CLOSE, ScriptedServer, answer, chunked_head, chunks

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.scripted_server import Script

STREAM: Script = [chunked_head(), chunks(b"a", b"b")]
PROMISED: Script = [chunked_head(Keep_Alive="timeout=5, max=100"), chunks(b"a", b"b")]
KEEP_S = 0.06  # longer than a connection is under suspicion


def streamed(client: HttpClient) -> bytes:
    return b"".join(client.stream(b"1"))


def test_streams_that_follow_each_other_succeed_where_the_server_closes_after_each() -> None:
    """llama.cpp's server does so some moments later, which is too late to see and too early to ask again."""
    with ScriptedServer([[*PROMISED, 0.005, CLOSE]]) as server:
        client = HttpClient(server.url)
        assert [streamed(client) for _ in range(4)] == [b"ab"] * 4


def test_a_server_that_keeps_connections_is_trusted_from_then_on() -> None:
    with ScriptedServer([PROMISED]) as server:
        client = HttpClient(server.url)
        streamed(client), streamed(client)
        time.sleep(KEEP_S)
        for _ in range(5):
            streamed(client)
    used = [asked.connection for asked in server.asked]
    assert len(set(used)) <= 2
    assert len(set(used[2:])) == 1


def test_a_server_that_closed_one_is_no_longer_trusted() -> None:
    with ScriptedServer([STREAM, [*STREAM, CLOSE], [*STREAM, 0.005, CLOSE]]) as server:
        client = HttpClient(server.url)
        streamed(client)
        time.sleep(KEEP_S)
        streamed(client)
        time.sleep(KEEP_S)
        assert [streamed(client) for _ in range(4)] == [b"ab"] * 4


@pytest.mark.parametrize(
    ("script", "ask"),
    [([answer(b"ab", Keep_Alive="timeout=5")], lambda client: client.post(b"1")), (STREAM, streamed)],
    ids=["whole", "stream"],
)
def test_other_connections_are_kept_at_once(script: Script, ask: Callable[[HttpClient], bytes]) -> None:
    with ScriptedServer([script]) as server:
        client = HttpClient(server.url)
        for _ in range(4):
            assert ask(client) == b"ab"
    assert [asked.connection for asked in server.asked] == [0] * 4
