"""Streams from end to end: a factories file that reads server-sent events, against servers that send all kinds."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench import Bench

pytestmark = pytest.mark.process

FACTORIES = """
import json
import os
from geventhttpclient import HTTPClient
from inference_benchmarker import Response


class StreamError(Exception):
    def __init__(self, error):
        super().__init__(error["message"])
        self.status = error["code"]


client = HTTPClient.from_url(os.environ["TARGET"], concurrency=100, network_timeout=20)


def invoke_factory():
    def invoke(payload):
        response = client.post("/v1/chat/completions", body=json.dumps(payload).encode())
        assert response.status_code == 200
        while line := response.readline(b"\\n"):
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            if "error" in event:
                raise StreamError(event["error"])
            for choice in event["choices"]:
                yield choice["delta"].get("content")
            if usage := event.get("usage"):
                yield Response(tokens_in=usage["prompt_tokens"], tokens_out=usage["completion_tokens"])

    return invoke


def payload_factory():
    if os.environ.get("SCRIPTS"):
        return {"pre_computed": True, "input": os.environ["SCRIPTS"].split(), "label": str}
    asked = {"stream": True, "max_tokens": 8, "stream_options": {"include_usage": True}}
    return {"pre_computed": True, "input": [{**asked, "messages": [{"role": "user", "content": "one two"}]}]}
"""


def piece(text: str | None) -> str:
    return "data: " + json.dumps({"choices": [{"delta": {} if text is None else {"content": text}}]})


def usage(tokens_in: int, tokens_out: int) -> str:
    counts = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out}
    return "data: " + json.dumps({"choices": [], "usage": counts})


ERROR = "data: " + json.dumps({"error": {"message": "the engine died", "code": 500}})
DONE = "data: [DONE]"
CUT = "(the connection closes here)"
SCRIPTS = {
    "plain": [piece("a"), piece("b"), piece("c"), DONE],
    "several": [piece("a b c"), piece("d e f"), usage(2, 6), DONE],  # pieces with several tokens
    "empty": [piece(""), piece("a"), piece(None), piece(""), piece("b"), DONE],
    "usage": [usage(3, 0), DONE],  # a usage-only piece and no token
    "nothing": [DONE],
    "error": [piece("a"), piece("b"), ERROR, DONE],
    "cut": [piece("a"), piece("b"), CUT],
}


class _Scripted(BaseHTTPRequestHandler):
    """Answers a payload that names a script with its events, an HTTP chunk each."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        name = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in SCRIPTS[name]:
            if event == CUT:
                self.close_connection = True
                return
            data = f"{event}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def scripted() -> Iterator[str]:
    """The address of a server of the scripts."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Scripted) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_every_kind_of_stream_is_recorded_as_what_it_is(bench: Bench) -> None:
    flags = ["--client-rps", 50, "--num-requests", len(SCRIPTS), "--success-threshold", "0.5", "--goodput", "ttft<20s"]
    with scripted() as url:
        run = bench.run(*flags, factories=FACTORIES, target=url, environment={"SCRIPTS": " ".join(SCRIPTS)})
    assert run.exit_code == 0, run.out
    rows = {row["label"]: row for row in run.rows}
    columns = ("outcome", "error", "chunks", "tokens_in", "tokens_out", "bytes")
    assert {label: tuple(row[name] for name in columns) for label, row in rows.items()} == {
        "plain": ("ok", None, 3, None, None, 3),
        "several": ("ok", None, 2, 2, 6, 10),
        "empty": ("ok", None, 2, None, None, 2),
        "usage": ("ok", None, 0, 3, 0, None),
        "nothing": ("ok", None, 0, None, None, None),
        "error": ("failed", "StreamError 500", 2, None, None, 2),
        "cut": ("failed", rows["cut"]["error"], 2, None, None, 2),
    }
    assert rows["cut"]["error"] not in (None, "StreamError 500")
    assert {label for label, row in rows.items() if row["first_token"] is None} == {"usage", "nothing"}
    assert [len(rows[label]["gaps"]) for label in ("plain", "several", "empty", "nothing")] == [2, 1, 1, 0]
    reported = run.summary
    counts = [reported[name]["count"] for name in ("latency", "failed_latency", "ttft", "itl", "tpot")]
    assert counts == [5, 2, 3, 4, 3]  # only over requests that have the thing
    tokens = reported["tokens"]
    assert (tokens["tokens_in"], tokens["tokens_out"], tokens["counted"]) == (5, 11, "usage and pieces")
    assert [tokens[f"tokens_{name}_per_request"]["count"] for name in ("in", "out", "out_per_s")] == [2, 5, 3]
    assert reported["goodput"]["share"] == pytest.approx(3 / 7)


def test_streams_of_the_embedded_endpoint_some_of_them_cut(bench: Bench) -> None:
    flags = ["--client-rps", 50, "--num-requests", 50, "--success-threshold", 0]
    with bench.endpoint(servers=50, service_s=0.05, close_share=0.3) as endpoint:
        run = bench.run(*flags, factories=FACTORIES, target=endpoint)
        cut = endpoint.arrivals()["status"].count(0)
    assert 0 < cut < 50
    assert (run.ledger["failed"], run.ledger["ok"]) == (cut, 50 - cut)
    assert {(row["chunks"], row["tokens_in"], row["tokens_out"]) for row in run.rows if row["outcome"] == "ok"} == {
        (8, 2, 8)
    }
    assert run.summary["ttft"]["count"] == 50 - cut


@pytest.mark.parametrize("more", [[], ["--turns", "2"]])
def test_pieces_of_several_tokens_have_a_gap_for_each_token(bench: Bench, more: list[str]) -> None:
    with bench.endpoint(servers=50, service_s=0.05, tokens_per_piece=4) as endpoint:
        address = (f"{endpoint.url}/v1", "--model", "m", "--output-tokens", "18", "--set", "CONTINUOUS_USAGE=true")
        load = ("--client-rps", 20, "--num-requests", 4, "--output-dir", "runs")
        run = bench.run(*address, *load, *more, factories=None)
    assert run.exit_code == 0, run.out
    assert len(run.rows) == (8 if more else 4)
    for row in run.rows:
        gaps = row["gaps"]
        assert (row["chunks"], row["tokens_out"], row["metric.pieces"]) == (15, 18, 5)  # 4, and of the first but one
        pieces = [gaps[:4], gaps[4:8], gaps[8:12], gaps[12:]]
        assert [len(piece) for piece in pieces] == [4, 4, 4, 2]
        assert all(max(piece) - min(piece) <= 1 for piece in pieces)
        assert 0 <= row["last_token"] - row["first_token"] - 1000 * sum(gaps) < 1000 * len(gaps)
    assert run.summary["itl"]["count"] == 14 * len(run.rows)
