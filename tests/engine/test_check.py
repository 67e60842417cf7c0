"""`benchmark check`: one request, sent as a worker sends it, and what is told of it."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.engine.processes.children import note_asked_for
from inference_benchmarker.facts.address import Address
from inference_benchmarker.facts.probe import Probe, Seen, size_of, type_name
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.records.response import Response
from inference_benchmarker.report.check import SAGEMAKER_LIMIT, Check, Ended
from inference_benchmarker.words.redact import ASKED_FOR, excerpt
from tests.mentions import mentions
from tests.waves import MS, streamed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench import Bench, Finished

PLAIN = RequestRecord(0, 0, 0, 0, 20 * MS, bytes=21)
SEEN = Seen(100, 38, 39, "bytes", 38, "returned", "bytes", '{"a": 1}')
SAGEMAKER = replace(SEEN, is_sagemaker=True)
STREAM_SEEN = replace(SEEN, answer="streamed", answer_type="str", preview="a\nb")


@pytest.mark.parametrize(
    ("payload", "size"),
    [
        (b"abc", 3),
        (bytearray(4), 4),
        (memoryview(b"abcd").cast("H"), 4),
        ("äö", 4),
        ("\ud800", 3),
        ({"a": 1}, 8),
        ([1, 2], 6),
        (7, 1),
        (None, 4),
        (object(), None),
        ({"a": b"x"}, None),
    ],
)
def test_the_size_of_a_payload_is_that_of_what_is_sent(payload: object, size: int | None) -> None:
    assert size_of(payload) == size


def test_a_type_is_named_as_people_write_it() -> None:
    assert [type_name(value) for value in (b"", None, Decimal())] == ["bytes", "NoneType", "decimal.Decimal"]


class _Answered:
    def __init__(self, status: object) -> None:
        self.status_code = status


class _Broken:
    @property
    def status(self) -> int:
        raise RuntimeError

    def __str__(self) -> str:
        raise ValueError


def seen(answer: object) -> Seen:
    """What is seen of one answer."""
    probe = Probe(lambda _: answer)
    given = probe("payload")
    if hasattr(given, "__next__") and given is not answer:
        list(given)
    return probe.seen(["payload", "p"], partial(excerpt, also=["secret"]))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b'{"a": "secret"}', Seen(answer="returned", answer_type="bytes", preview='{"a": "[hidden]"}')),
        (None, Seen(answer="returned", answer_type="NoneType")),
        (b"\xff" * 5000, Seen(answer="returned", answer_type="bytes", preview="\ufffd" * 200)),
        (Response(tokens_in=3), Seen(answer="returned", answer_type="inference_benchmarker.records.response.Response")),
        (iter([1]), Seen(answer="returned", answer_type="list_iterator", unread=True)),
        (_Answered(500), Seen(answer="returned", answer_type=f"{__name__}._Answered", status=500)),
        (_Answered("ok"), Seen(answer="returned", answer_type=f"{__name__}._Answered")),
        (_Broken(), Seen(answer="returned", answer_type=f"{__name__}._Broken", preview="(ValueError)")),
        ((x for x in ("a", "", "b")), Seen(answer="streamed", answer_type="str", preview="ab")),
        ((x for x in ("a", b"b", Response())), Seen(answer="streamed", answer_type="str and bytes", preview="ab")),
        ((x for x in [None]), Seen(answer="streamed")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_answer_is_seen_as_what_it_is(answer: object, expected: Seen) -> None:
    found = seen(answer)
    assert (found.payloads, found.smallest, found.largest) == (2, 1, 7)
    assert (found.payload_type, found.payload_bytes) == ("str", 7)
    assert found.preview == expected.preview or found.preview == str(answer)[:200]
    of_answer = ("answer", "answer_type", "unread", "status")
    assert [getattr(found, name) for name in of_answer] == [getattr(expected, name) for name in of_answer]


@pytest.mark.parametrize("as_stream", [False, True], ids=["returned", "streamed"])
def test_no_part_of_a_secret_is_left_where_the_preview_ends(as_stream: bool) -> None:
    secret = "x" * 20
    answer = "." * 190 + secret + "." * 100
    probe = Probe(lambda _: (piece for piece in [answer]) if as_stream else answer)
    result = probe(b"")
    if as_stream:
        list(result)
    preview = probe.seen(None, partial(excerpt, also=[secret])).preview
    assert preview == "." * 190 + "[hidden].."


def test_a_request_that_raised_has_no_answer() -> None:
    probe = Probe(lambda payload: payload / 0)
    with pytest.raises(ZeroDivisionError):
        probe(1)
    found = probe.seen(None, excerpt)
    assert (found.payloads, found.payload_type, found.answer) == (None, "int", None)


def check(record: RequestRecord = PLAIN, seen: Seen = SEEN, error_text: str | None = None) -> Check:
    return Check("f.py", record, seen, error_text)


def row(text: str, name: str) -> str:
    """What stands behind a name."""
    (found,) = [line.split(":", 1)[1].strip() for line in text.splitlines() if line.strip().startswith(f"{name}:")]
    return found


@pytest.mark.parametrize(
    ("given", "name", "text"),
    [
        (check(), "Payloads", "100 pre-computed, 38 to 39 bytes"),
        (check(seen=replace(SEEN, smallest=39)), "Payloads", "100 pre-computed, 39 bytes"),
        (check(seen=replace(SEEN, smallest=None, largest=None)), "Payloads", "100 pre-computed"),
        (check(seen=replace(SEEN, payloads=None)), "Payloads", "built for each request"),
        (check(PLAIN._replace(session=0, turn=1)), "Payloads", "the first turn of a session"),
        (check(), "Sent", "bytes, 38 bytes"),
        (check(seen=replace(SEEN, payload_type="dict")), "Sent", "dict, 38 bytes as JSON"),
        (check(seen=replace(SEEN, payload_type="a.B", payload_bytes=None)), "Sent", "a.B, of unknown size"),
        (check(seen=Seen()), "Sent", "nothing"),
        (check(), "Answer", 'returned bytes, 21 bytes: {"a": 1}'),
        (check(streamed(0, 50, (10, 30)), STREAM_SEEN), "Answer", "streamed str, 3 pieces: a b"),
        (check(), "Times", "latency 20 ms"),
        (
            check(streamed(0, 50, (10, 30), tokens_out=5, build_ns=MS)),
            "Times",
            "building 1 ms, latency 90 ms, TTFT 50 ms, ITL mean 20 ms, longest gap 30 ms, TPOT 10 ms",
        ),
        (check(streamed(0, 50, (), outcome="failed", error="E")), "Times", "failed after 50 ms, TTFT 50 ms"),
        (check(streamed(0, 50, (10,))), "Tokens", "2 out (counted pieces)"),
        (check(streamed(0, 50, (10,), tokens_in=4, tokens_out=9)), "Tokens", "4 in, 9 out (the server's usage)"),
        (check(PLAIN._replace(tokens_in=4)), "Tokens", "4 in"),
        (check(PLAIN._replace(label="a\nb")), "Label", "a b"),
        (check(seen=replace(SEEN, addresses=[Address("::1", 8)])), "To", "[::1]:8 (loopback: this host)"),
        (check(seen=replace(SEEN, raised_at="f.py, line 7, in a")), "Raised", "f.py, line 7, in a"),
        (check(seen=replace(SEEN, in_hand=["body = a\nb"])), "With", "body = a b"),
    ],
)
def test_each_fact_is_told_in_a_line(given: Check, name: str, text: str) -> None:
    assert row(given.to_text(), name) == text


def test_what_is_not_there_has_no_line() -> None:
    text = check().to_text()
    assert not [name for name in ("Label:", "Tokens:", "TTFT", "!") if name in text]
    assert text.endswith("\n\nOK\n")


def test_what_failed_before_anything_came_tells_of_no_answer() -> None:
    nothing = PLAIN._replace(chunks=0, gaps=(), bytes=None, outcome="failed", error="E")
    for text in (check(nothing, STREAM_SEEN, "no").to_text(), check(nothing._replace(chunks=None), Seen()).to_text()):
        assert not [name for name in ("Answer:", "Tokens:", "latency", " OK") if name in text]
        assert row(text, "Times") == "failed after 20 ms"
    assert row(check(nothing._replace(tokens_in=4), STREAM_SEEN).to_text(), "Tokens") == "4 in"


def test_a_stream_that_broke_keeps_what_had_come() -> None:
    broken = check(streamed(0, 50, (10,), outcome="failed", error="E"), STREAM_SEEN, "broken").to_text()
    assert row(broken, "Answer") == "streamed str, 2 pieces: a b"
    assert row(broken, "Tokens") == "2 out (counted pieces)"
    assert row(broken, "Times").startswith("failed after 60 ms, TTFT 50 ms")


def test_an_error_is_told_with_key_and_text() -> None:
    failed = check(PLAIN._replace(outcome="failed", error="HttpError 503"), Seen(), "503: try\nlater")
    assert failed.to_text().endswith("\n\nFAILED: HttpError 503: 503: try later\n")
    error: dict[str, Any] = {"key": "HttpError 503", "text": "503: try\nlater", "raised_at": None, "with": []}
    assert failed.to_json()["error"] == error


@pytest.mark.parametrize(
    ("given", "codes"),
    [
        (check(), []),
        (check(seen=replace(SAGEMAKER, payload_bytes=SAGEMAKER_LIMIT, largest=SAGEMAKER_LIMIT)), []),
        (check(seen=replace(SAGEMAKER, payload_bytes=SAGEMAKER_LIMIT + 1)), ["payload_size"]),
        (check(seen=replace(SEEN, payload_bytes=SAGEMAKER_LIMIT + 1)), []),  # of another platform
        (check(seen=replace(SAGEMAKER, largest=SAGEMAKER_LIMIT + 1)), ["payload_size"]),  # not the one that was sent
        (check(seen=replace(SEEN, payloads=None, smallest=None, largest=None)), []),
        (check(seen=replace(SEEN, unread=True)), ["unread_answer"]),
        (check(seen=replace(SEEN, status=200)), []),
        (check(seen=replace(SEEN, status=400)), ["error_status"]),
        (check(streamed(0, 50, (10,)), STREAM_SEEN), []),
        (check(PLAIN._replace(chunks=0, gaps=()), STREAM_SEEN), ["no_piece"]),
        (check(PLAIN._replace(chunks=2, gaps=(9,), tokens_out=1), STREAM_SEEN), ["impossible_usage"]),
        (check(PLAIN._replace(chunks=2, gaps=(9,), tokens_out=2), STREAM_SEEN), []),
        (check(PLAIN._replace(chunks=0, gaps=(), outcome="failed", error="E"), STREAM_SEEN), []),
    ],
)
def test_it_warns_of_what_would_spoil_a_wave(given: Check, codes: list[str]) -> None:
    assert list(given.warnings()) == codes
    assert [warning["code"] for warning in given.to_json()["warnings"]] == codes
    text = given.to_text()
    assert all(f"! {code}: " in text for code in codes)
    assert max(map(len, text.splitlines())) <= 120


def test_json_has_the_facts_as_values() -> None:
    told = json.loads(json.dumps(check(streamed(0, 50, (10, 30), tokens_in=4, label="m"), STREAM_SEEN).to_json()))
    assert told["payload"] == {
        "pre_computed": 100,
        "smallest_bytes": 38,
        "largest_bytes": 39,
        "type": "bytes",
        "bytes": 38,
    }
    assert told["answer"] == {"kind": "streamed", "type": "str", "bytes": None, "pieces": 3, "preview": "a\nb"}
    assert told["tokens"] == {"tokens_in": 4, "tokens_out": 3, "counted": "pieces"}
    assert told["times"] == {"latency": 0.09, "ttft": 0.05, "itl": 0.02, "longest_gap": 0.03, "tpot": 0.02}
    assert (told["outcome"], told["label"], told["error"]) == ("ok", "m", None)


def test_a_process_that_ended_tells_no_more_than_that() -> None:
    ended = Ended("f.py", "the process ended with exit code 7")
    assert ended.to_text().splitlines()[2:] == ["   File:             f.py", "", f"FAILED: {ended.how}"]
    assert ended.to_json()["error"] == {"key": "ProcessEnded", "text": ended.how}
    assert not ended.ok


HANGING = "import time\ntime.sleep(60)\ndef invoke_factory(): return print\ndef payload_factory(): return 1"


def run(bench: Bench, source: str, *flags: object, **options: Any) -> Finished:
    """Check a factories file."""
    folder = bench.folder()
    (folder / "f.py").write_text(source)
    return bench.run("check", "--factories-file", "f.py", *flags, factories=None, folder=folder, **options)


def printed(done: Finished) -> list[str]:
    """The lines of standard error, but for those that say what is waited for: a busy machine may have them said."""
    waited = {"Loading the endpoint ...", "Waiting for the answer ..."}
    return [line for line in done.err.splitlines() if line not in waited]


@pytest.mark.process
class TestProcess:
    def test_a_stream_runs_in_a_patched_process_and_is_understood(self, bench: Bench) -> None:
        source = """
import socket, threading, time
import gevent.socket
from inference_benchmarker import Response

def invoke_factory(endpoint_name=None):
    def invoke(payload):
        assert socket.socket is gevent.socket.socket
        assert type(gevent.getcurrent()) is gevent.Greenlet
        for text in ("a", "", "b", "c"):
            time.sleep(0.01)
            yield text
        yield Response(tokens_in=payload["n"], tokens_out=7, model=endpoint_name)
    return invoke

def payload_factory():
    return {"pre_computed": True, "input": [{"n": 5}, {"n": 1000}], "weights": [1, 0]}
"""
        done = run(bench, source, "--endpoint-name", "mine", "--json")
        assert (done.code, printed(done)) == (0, [])
        told = json.loads(done.out)
        assert told["payload"] == {
            "pre_computed": 2,
            "smallest_bytes": 8,
            "largest_bytes": 11,
            "type": "dict",
            "bytes": 8,
        }
        assert told["answer"] == {"kind": "streamed", "type": "str", "bytes": 3, "pieces": 3, "preview": "abc"}
        assert told["tokens"] == {"tokens_in": 5, "tokens_out": 7, "counted": "usage"}
        assert (told["outcome"], told["label"]) == ("ok", "mine")
        assert 0.01 <= told["times"]["ttft"] < told["times"]["latency"]

    def test_a_plain_request_to_the_embedded_endpoint(self, bench: Bench) -> None:
        folder = bench.folder()
        with bench.endpoint() as endpoint:
            line = ["check", "--factories-file", "g.py"]
            copied = bench.run("factory", "demo", factories=None, folder=folder)
            (folder / "g.py").write_text(copied.out)
            done = bench.run(*line, factories=None, folder=folder, environment={"BENCHMARK_DEMO_URL": endpoint.url})
            arrived = len(endpoint.arrivals()["sequence"])
        assert (done.code, arrived) == (0, 1)
        assert row(done.out, "Payloads") == "100 pre-computed, 38 to 39 bytes"
        assert row(done.out, "To") == f"{endpoint.url.removeprefix('http://')} (loopback: this host)"
        assert row(done.out, "Answer") == 'returned bytes, 21 bytes: {"predictions":[0.5]}'

    def test_a_failure_is_told_and_what_was_printed_is_kept_without_secrets(self, bench: Bench) -> None:
        source = """
import os, sys
import botocore.session
botocore.session.Session().get_service_model("sagemaker-runtime")
print("loading")
class HttpError(Exception):
    status = 503
def invoke_factory():
    def invoke(payload):
        print("password is", os.environ["MY_PASSWORD"], file=sys.stderr, end="")
        answer = {"told": os.environ["MY_PASSWORD"]}
        raise HttpError("busy, " + os.environ["MY_PASSWORD"])
    return invoke
def payload_factory():
    return {"pre_computed": False, "input": lambda: b"x" * 6_291_457, "label": lambda p: "big"}
"""
        done = run(bench, source, environment={"MY_PASSWORD": "correct-horse"})
        assert done.code == 1
        assert printed(done) == ["loading", "password is [hidden]"]
        assert row(done.out, "Payloads") == "built for each request"
        assert row(done.out, "Sent") == "bytes, 6,291,457 bytes"
        assert "Answer:" not in done.out
        assert mentions(done.out, "!", "payload_size", "6,291,457 bytes")
        assert done.out.endswith("FAILED: HttpError 503: busy, [hidden]\n")
        assert row(done.out, "Raised").startswith("f.py, line 12, in invoke: raise HttpError(")
        assert row(done.out, "With") == "answer = {'told': '[hidden]'}"

    def test_a_factory_that_raises_with_a_secret_is_told_without_it(self, bench: Bench) -> None:
        source = """
import base64, os
def invoke_factory():
    key = os.environ["MY_PASSWORD"]
    raise RuntimeError(f"{key} {base64.b64encode(('user:' + key).encode()).decode()} api_key=zq9xw8vu7")
def payload_factory():
    return {}
"""
        done = run(bench, source, environment={"MY_PASSWORD": "correct-horse"})
        assert (done.code, done.out) == (2, "")
        assert "line 5: invoke_factory() raised RuntimeError: [hidden] " in done.err
        for leak in ("correct-horse", "Y29ycmVjd", "vcnJlY3Qta", "jb3JyZWN0L", "zq9xw8vu7"):
            assert leak not in done.err

    @pytest.mark.parametrize(
        ("source", "said"),
        [
            ("def invoke_factory(: pass", "f.py, line 1: not valid Python"),
            (
                "print('words')\ndef invoke_factory(): pass\ndef payload_factory(): pass",
                "line 2: invoke_factory returned",
            ),
            ("def invoke_factory(): return print\ndef payload_factory(): 1 / 0", "line 2: payload_factory() raised"),
        ],
        ids=["syntax", "invoke", "payloads"],
    )
    def test_a_file_that_cannot_be_used_is_bad_input(self, bench: Bench, source: str, said: str) -> None:
        done = run(bench, source)
        assert (done.code, done.out) == (2, "")
        *words, told = printed(done)
        assert said in told
        assert words == (["words"] if "words" in source else [])

    def test_a_file_that_is_not_loaded_in_time_is_bad_input(self, bench: Bench) -> None:
        done = run(bench, HANGING, "--load-timeout", "3")
        assert (done.code, done.out) == (2, "")
        *waiting, told = done.err.splitlines()
        assert waiting == ["Loading the endpoint ..."]
        assert told.endswith("was not loaded within 3 s. Make it faster, or allow more time with --load-timeout.")

    @pytest.mark.parametrize(
        ("body", "key"),
        [
            ("import os; os.write(1, b'last words'); os._exit(7)", "the process ended with exit code 7"),
            ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "the process ended by signal 9"),
            ("import sys; sys.exit(3)", "SystemExit: 3"),
            ("import time; time.sleep(60)", "RequestTimeout: 0.2 seconds"),
        ],
        ids=["exits", "killed", "system exit", "hangs"],
    )
    def test_a_request_that_does_not_come_back_has_failed(self, bench: Bench, body: str, key: str) -> None:
        source = f"""
def invoke_factory():
    def invoke(payload):
        {body}
    return invoke
def payload_factory():
    return {{"pre_computed": True, "input": [1]}}
"""
        done = run(bench, source, "--request-timeout", "0.2")
        assert done.code == 1
        assert f"FAILED: {key}" in done.out
        assert ("Times:" in done.out) == ("process ended" not in key)  # nothing is made up
        assert printed(done) == (["last words"] if "last words" in body else [])

    def test_a_thread_that_never_ends_does_not_hold_it_up(self, bench: Bench) -> None:
        source = """
import threading, time
def invoke_factory():
    threading.Thread(target=time.sleep, args=(3600,)).start()
    return lambda payload: payload
def payload_factory():
    return {"pre_computed": True, "input": ["text"]}
"""
        done = run(bench, source)
        assert (done.code, row(done.out, "Answer")) == (0, "returned str, 4 bytes: text")

    def test_an_interrupt_ends_it_and_what_was_printed_is_kept(self, bench: Bench) -> None:
        source = """
import pathlib, time
def invoke_factory():
    def invoke(payload):
        print("waiting")
        pathlib.Path("sent").touch()
        time.sleep(60)
    return invoke
def payload_factory():
    return {"pre_computed": True, "input": [1]}
"""
        folder = bench.folder()
        (folder / "f.py").write_text(source)
        running = bench.start("check", "--factories-file", "f.py", factories=None, folder=folder)
        running.wait_for((folder / "sent").exists, "the request is sent")
        running.signal(signal.SIGINT)
        done = running.finish()
        assert (done.code, done.out) == (130, "")
        assert printed(done) == ["waiting", "Interrupted before the request was over."]


def test_what_an_earlier_file_asked_for_stays_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files of one command, as A and B are: the words on the first come after the second."""
    monkeypatch.setenv(ASKED_FOR, "")
    for name in ("FIRST_TENANT", "SECOND_TENANT"):
        monkeypatch.setenv(name, "3f9a0c77d2e14b58")
        (tmp_path / "file.py").write_text(f'os.environ["{name}"]')
        note_asked_for(tmp_path / "file.py")
    assert os.environ[ASKED_FOR] == "FIRST_TENANT,SECOND_TENANT"
