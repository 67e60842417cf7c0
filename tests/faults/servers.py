"""Endpoints that refuse, break, stall or lie."""

from __future__ import annotations

import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.bench import factories, ids
from tests.faults.fault import EVERYTHING, SECRET, SHORT, Ending, Fault, Stage, arrived_at, wave
from tests.scripted_server import CLOSE, RESET, ScriptedServer, answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The product's own client in place of the tests' sender.
CLIENT = factories(
    "pass",
    """
from inference_benchmarker.clients import HttpClient

client = HttpClient(os.environ["TARGET"], connect_timeout_s=1, read_timeout_s=1)


def post(payload):
    return client.post({}, "/invocations", headers={"X-Request-Id": str(payload)})
""",
)
RECORDS = "a failed request for each, with its error"
NOTHING = "nothing"


def says(*script: bytes | float | str) -> Callable[[Stage], Ending]:
    """A server that gives every request this answer."""
    return lambda stage: asked(stage, ScriptedServer([script]))


def asked(stage: Stage, server: ScriptedServer) -> Ending:
    """A short wave against a scripted server."""
    with server:
        finished = stage.start(*SHORT, text=CLIENT, target=server.url).finish()
        return Ending(finished, arrived_at(server))


def unreachable(url: Callable[[int], str]) -> Callable[[Stage], Ending]:
    """A wave to an address of a port that is taken and that nobody serves."""

    def play(stage: Stage) -> Ending:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            finished = stage.start(*SHORT, text=CLIENT, target=url(bound.getsockname()[1])).finish()
        return Ending(finished, [], unsent=True)

    return play


@contextmanager
def nobody_accepts() -> Iterator[str]:
    """A server whose host takes connections and whose program never looks at them."""
    with socket.create_server(("127.0.0.1", 0), backlog=200) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def half_open(stage: Stage) -> Ending:
    """Connections stand, and nobody is there."""
    with nobody_accepts() as url:
        return Ending(stage.start(*SHORT, text=CLIENT, target=url).finish(), [], unsent=True)


def encrypted_where_nobody_is(stage: Stage) -> Ending:
    """https:// against a server without TLS."""
    with stage.bench.endpoint(service="none") as endpoint:
        running = stage.start(*SHORT, text=CLIENT, target=endpoint.url.replace("http:", "https:"))
        return Ending(running.finish(), ids(endpoint.arrivals()), unsent=True)


def disappearing(stage: Stage) -> Ending:
    """In mid-wave the server closes its port and every connection."""
    with ScriptedServer([[answer(b"{}")]]) as server:
        running = stage.start("--client-rps", "40", "--obs-time", "2", text=CLIENT, target=server.url)
        running.wait_for(lambda: len(server.asked) >= 20, "20 requests")
        server.disappear()
        return Ending(running.finish(), arrived_at(server), unsent=True)


def stalling(stage: Stage) -> Ending:
    """In mid-wave every server stands still."""
    with stage.bench.endpoint(servers=50, service_s=0.01) as endpoint:
        running = stage.start(*SHORT, "--drain-timeout", "1", target=endpoint)
        running.wait_for_arrivals(endpoint, 10)
        endpoint.stall(1000)
        return Ending(running.finish(), ids(endpoint.arrivals()))


LONG_ERROR = b"a." * 10_000 + SECRET.encode() + b" at its end"

SERVERS = (
    Fault(
        "refuses",
        "nobody listens at the endpoint's address",
        RECORDS,
        NOTHING,
        1,
        unreachable("http://127.0.0.1:{}".format),
    ),
    Fault(
        "closes",
        "the endpoint closes connections within its answers",
        RECORDS,
        NOTHING,
        1,
        wave(text=CLIENT, server={"service": "none", "close_share": 0.5}),
        slow=True,
    ),
    Fault(
        "stalls",
        "the endpoint stops answering forever in the middle of the wave",
        "the answers until then; the others are abandoned when the drain ends, and count with their age",
        NOTHING,
        1,
        stalling,
        slow=True,
    ),
    Fault("resets", "the endpoint resets every connection", RECORDS, NOTHING, 1, says(RESET), slow=True),
    Fault(
        "closes-silently",
        "the endpoint closes every connection without an answer",
        RECORDS,
        NOTHING,
        1,
        says(CLOSE),
        slow=True,
    ),
    Fault(
        "garbage",
        "the endpoint's answers are not HTTP",
        RECORDS,
        NOTHING,
        1,
        says(b"\x00\xff\x1b[2Jgarbage\r\n\r\n" * 10, CLOSE),
        slow=True,
    ),
    Fault(
        "byte-by-byte",
        "the endpoint's answers arrive one byte at a time",
        EVERYTHING,
        NOTHING,
        0,
        says(*(part for byte in answer(b"{}") for part in (bytes([byte]), 0.004))),
        slow=True,
    ),
    Fault(
        "long-error",
        "the endpoint answers 500 with 20 kB and a key at their end",
        RECORDS,
        "the text beyond its beginning",
        1,
        says(answer(LONG_ERROR, "500 Internal Server Error")),
    ),
    Fault(
        "redirects",
        "the endpoint redirects every request to itself",
        f"{RECORDS}; redirects are not followed",
        NOTHING,
        1,
        says(answer(status="302 Found", Location="/")),
        slow=True,
    ),
    Fault(
        "huge-head",
        "the endpoint answers with headers of 1 MB",
        EVERYTHING,
        NOTHING,
        0,
        says(answer(b"{}", X_Long="h" * 1_000_000)),
        slow=True,
    ),
    Fault(
        "too-little",
        "the endpoint promises more than it sends",
        RECORDS,
        NOTHING,
        1,
        says(answer(b"{}" * 50)[:-60], CLOSE),
        slow=True,
    ),
    Fault(
        "half-open",
        "the endpoint's host accepts connections that no program reads",
        RECORDS,
        NOTHING,
        1,
        half_open,
        slow=True,
    ),
    Fault(
        "no-tls",
        "the address says https and the endpoint speaks http",
        RECORDS,
        NOTHING,
        1,
        encrypted_where_nobody_is,
        slow=True,
    ),
    Fault(
        "disappears", "the endpoint disappears in the middle of the wave", RECORDS, NOTHING, 1, disappearing, slow=True
    ),
    Fault(
        "503-for-all",
        "the endpoint answers 503 to everything",
        RECORDS,
        NOTHING,
        1,
        wave(text=CLIENT, server={"service": "none", "error_share": 1.0, "error_status": 503}),
        slow=True,
    ),
)
