"""Endpoints whose answers do not end, or are far more than they seem."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from inference_benchmarker.words.units import MIB
from tests.bench import factories
from tests.faults.fault import SHORT, Ending, Fault, Stage, arrived_at
from tests.scripted_server import ScriptedServer, answer, chunked_head

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT = ("--max-answer-size", "1MiB")
SLOWLY = ("--client-rps", "2", "--obs-time", "1", "--workers", "1", "--drain-timeout", "5")
MOST_MEMORY = 400 * MIB  # of a worker: its own, and a few answers at a time
RECORDS = "a failed request for each, with its error"
REST = "the rest of the answers"
BLOCK = b"x" * 65536
ENDLESS = 5_000  # times a block; nobody reads as far


def _client(call: str) -> str:
    return factories(
        "pass",
        f"""
from inference_benchmarker.clients import EventReader, HttpClient

client = HttpClient(os.environ["TARGET"])


def post(payload):
    {call}
""",
    )


IDS = 'headers={"X-Request-Id": str(payload)}'
WHOLE = _client(f'return client.post({{}}, "/", {IDS})')
EVENTS = _client(f'return len(list(EventReader.over(client.stream({{}}, "/", {IDS}))))')


def fails(
    key: str, *script: bytes, text: str = WHOLE, flags: tuple[str, ...] = (*SHORT, *LIMIT)
) -> Callable[[Stage], Ending]:
    """A wave whose requests all fail under this key, without much memory."""

    def play(stage: Stage) -> Ending:
        with ScriptedServer([script]) as server:
            finished = stage.start(*flags, text=text, target=server.url).finish()
            ending = Ending(finished, arrived_at(server))
        assert {error["key"] for error in finished.summary["errors"]} == {key}, finished.summary["errors"]
        workers = finished.summary["client"]["workers"]
        assert max(each["max_rss_bytes"] for each in workers) < MOST_MEMORY, workers
        return ending

    return play


ANSWERS = (
    Fault(
        "endless-body",
        "the endpoint's answers have bodies without end (`--max-answer-size 1MiB`)",
        RECORDS,
        REST,
        1,
        fails("AnswerTooLargeError", chunked_head(), *[b"%x\r\n%b\r\n" % (len(BLOCK), BLOCK)] * ENDLESS),
        slow=True,
    ),
    Fault(
        "endless-trailers",
        "the endpoint's answers have trailers without end",
        RECORDS,
        REST,
        1,
        fails("AnswerTooLargeError", chunked_head(), b"2\r\n{}\r\n0\r\n", *[b"abc: def\r\n" * 5000] * ENDLESS),
        slow=True,
    ),
    Fault(
        "many-headers",
        "the endpoint's answers have 60,000 headers, one of them twice",
        "everything",
        "nothing",
        0,
        lambda stage: succeeds(stage, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + _headers(60_000) + b"\r\n"),
        slow=True,
    ),
    Fault(
        "decompression-bomb",
        "the endpoint's answers of 200 kB hold 200 MB (`--max-answer-size 1MiB`)",
        RECORDS,
        REST,
        1,
        fails("AnswerTooLargeError", answer(gzip.compress(bytes(200_000_000), 9), Content_Encoding="gzip")),
        slow=True,
    ),
    Fault(
        "endless-line",
        "the endpoint's streams have a line without end",
        RECORDS,
        REST,
        1,
        fails(
            "EndlessLineError", chunked_head(), *[b"a\r\naaaaaaaaaa\r\n" * 4000] * ENDLESS, text=EVENTS, flags=SLOWLY
        ),
        slow=True,
    ),
)


def _headers(number: int) -> bytes:
    return b"".join(b"a%x:\r\n" % name for name in range(number)) + b"a1:\r\n"


def succeeds(stage: Stage, *script: bytes) -> Ending:
    """A wave at a low rate, as each answer takes its time."""
    with ScriptedServer([script]) as server:
        return Ending(stage.start(*SLOWLY, text=WHOLE, target=server.url).finish(), arrived_at(server))
