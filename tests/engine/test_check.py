"""`benchmark check`: one request, sent as a worker sends it."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.engine.processes.children import note_addresses, note_asked_for
from inference_benchmarker.words.redact import ADDRESSES, ASKED_FOR, redact
from tests.mentions import mentions, row

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench import Bench, Finished

HANGING = "import time\ntime.sleep(60)\ndef invoke_factory(): return print\ndef payload_factory(): return 1"


def run(bench: Bench, source: str, *flags: object, **options: Any) -> Finished:
    """Check a factories file."""
    folder = bench.folder()
    (folder / "f.py").write_text(source)
    return bench.run("check", "--factories-file", "f.py", *flags, factories=None, folder=folder, **options)


def printed(done: Finished) -> list[str]:
    """The lines of standard error, but for those that say what is waited for: a busy machine may have them said."""
    waited = {"Loading the endpoint's code ...", "Waiting for the answer ..."}
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
        fields = json.loads(done.out)
        assert fields["payload"] == {
            "pre_computed": 2,
            "smallest_bytes": 8,
            "largest_bytes": 11,
            "type": "dict",
            "bytes": 8,
        }
        assert fields["answer"] == {"kind": "streamed", "type": "str", "bytes": 3, "pieces": 3, "preview": "abc"}
        assert fields["tokens"] == {"tokens_in": 5, "tokens_out": 7, "counted": "usage"}
        assert (fields["outcome"], fields["label"]) == ("ok", "mine")
        assert 0.01 <= fields["times"]["ttft"] < fields["times"]["latency"]

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

    def test_a_failure_is_reported_and_what_was_printed_is_kept_without_secrets(self, bench: Bench) -> None:
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

    def test_a_factory_that_raises_with_a_secret_is_reported_without_it(self, bench: Bench) -> None:
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
        *words, reported = printed(done)
        assert said in reported
        assert words == (["words"] if "words" in source else [])

    def test_a_file_that_is_not_loaded_in_time_is_bad_input(self, bench: Bench) -> None:
        done = run(bench, HANGING, "--load-timeout", "3")
        assert (done.code, done.out) == (2, "")
        *waiting, reported = done.err.splitlines()
        assert waiting == ["Loading the endpoint's code ..."]
        assert reported.endswith("was not loaded within 3 s. Make it faster, or allow more time with --load-timeout.")

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


def test_a_password_in_an_address_of_a_wave_is_hidden_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADDRESSES, "")
    note_addresses("http://me:f1rst-pass@a", None, "model-name", "http://b/path", '{"to": "http://me:pass-pass@b"}')
    note_addresses("host, http://me:s3cond-pass@c,jdbc:x://me:th1rd-pass@d")
    assert os.environ[ADDRESSES] == "http://me:f1rst-pass@ http://me:s3cond-pass@ jdbc:x://me:th1rd-pass@"
    assert redact("f1rst-pass, s3cond-pass, th1rd-pass") == "[hidden], [hidden], [hidden]"
