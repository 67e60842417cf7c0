"""Waves that go well, judged by the log of the endpoint they were sent to."""

from __future__ import annotations

import csv
import json
import os
import socket
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack, suppress
from typing import Any
from urllib.parse import quote

import psutil
import pyarrow.parquet as pq
import pytest

from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.records.columns import SCHEMA
from inference_benchmarker.wave.wave import Wave
from tests.bench import MARK, NS, ROOT, Bench, Finished, files_holding, ids, most_in_flight

pytestmark = pytest.mark.process


def test_every_count_of_a_wave_is_the_one_of_the_endpoints_log(bench: Bench) -> None:
    with bench.endpoint(servers=20, error_share=0.1, seed=3) as endpoint:
        wave = bench.run(
            *("--client-rps", 100, "--obs-time", "1.5", "--workers", 2, "--seed", 11, "--name", "the name"),
            *("--slo", "success>=0.5", "--slo", "p99<60s"),
            target=endpoint,
        )
        log = endpoint.arrivals()
    statuses = Counter(log["status"])
    assert sorted(ids(log)) == list(range(150))
    assert set(statuses) == {200, 500}
    wave.check_books("100")
    assert wave.ledger["scheduled"] == wave.ledger["sent"] == 150
    assert (wave.ledger["ok"], wave.ledger["failed"]) == (statuses[200], statuses[500])
    assert wave.errors() == {"HttpError 500": statuses[500]}
    status_of = dict(zip(map(int, log["id"]), log["status"], strict=True))
    assert {row["index"]: row["outcome"] == "ok" for row in wave.rows} == {
        index: status == 200 for index, status in status_of.items()
    }
    assert wave.locust_totals() == {"requests": 150, "failures": statuses[500]}
    assert wave.exit_code == 1, "90% is less than the 95% that must succeed"
    check_instants(wave, log)
    check_files(wave)
    check_that_it_loads_back(bench, wave)


def check_instants(wave: Finished, log: dict[str, list[Any]]) -> None:
    """The client's instants enclose the endpoint's, on the one clock of the host."""
    t0 = wave.summary["window"]["t0_monotonic_ns"]
    rows = {row["index"]: row for row in wave.rows}
    for number, queued, finish in zip(log["id"], log["queued_ns"], log["finish_ns"], strict=True):
        row = rows[int(number)]
        assert row["due"] <= row["sent"] <= queued - t0
        assert finish - t0 <= row["done"]


def check_files(wave: Finished) -> None:
    """The run directory holds what is promised."""
    assert pq.read_schema(wave.folder / "requests.parquet").equals(SCHEMA)
    plan = json.loads((wave.folder / "plan.json").read_text())
    assert WavePlan.from_json(plan).to_json().items() <= plan.items()
    assert (plan["seed"], plan["name"], plan["schema_version"]) == (11, "the name", 1)
    assert wave.summary["schema_version"] == 1
    assert wave.summary["environment"]["seed"] == 11
    assert wave.summary["environment"]["payloads"] == 10_000
    assert not (wave.folder / "spool.bin").exists()
    assert not list(wave.folder.rglob("*.part"))
    assert {"primary.log", "worker_0.log", "worker_1.log"} == {path.name for path in (wave.folder / "logs").iterdir()}


def check_that_it_loads_back(bench: Bench, wave: Finished) -> None:
    """What is read from the directory is what was printed and written."""
    loaded = Wave.load(wave.folder)
    assert loaded.to_json() == wave.summary
    assert wave.out.partition("\n\n")[2].startswith("RESULTS – InferenceBenchmarker\n------------------------------\n")
    again = bench.report(wave.folder)
    assert (again.code, again.err) == (wave.code, "")
    stored = (wave.folder / "summary.txt").read_text()
    for text in (stored, again.out, loaded.text()):
        assert _but_the_directory(text) == _but_the_directory(wave.out)
    assert json.loads(bench.report(wave.folder, "--json").out) == wave.summary


def _but_the_directory(text: str) -> list[str]:
    *lines, last = text.strip().splitlines()
    assert last.startswith("Run directory: ")
    return lines


LABELLED = """
from sender import post


def invoke_factory():
    return post


def payload_factory():
    return {
        "pre_computed": True,
        "input": [0, 1, 2],
        "weights": [1, 2, 5],
        "label": "model {}".format,
    }
"""


def test_poisson_arrivals_and_drawn_payloads_are_the_same_for_any_number_of_workers(bench: Bench) -> None:
    waves = []
    with ExitStack() as stack:
        started = []
        for workers in (1, 2):
            endpoint = stack.enter_context(bench.endpoint(service="none"))
            flags = ("--client-rps", 120, "--arrivals", "poisson", "--obs-time", 1, "--seed", 5, "--workers", workers)
            started.append((endpoint, bench.start(*flags, factories=LABELLED, target=endpoint)))
        for endpoint, running in started:
            wave = running.finish()
            wave.check_books()
            assert Counter(ids(endpoint.arrivals())) == Counter(int(row["label"][-1]) for row in wave.rows)
            waves.append(wave)
    plan = WavePlan.from_json(json.loads((waves[0].folder / "plan.json").read_text()))
    planned = [(token.index, token.due) for token in TokenBucket.of(plan).arrivals(0)]
    for wave in waves:
        assert [(row["index"], row["due"]) for row in wave.rows] == planned
        assert {row["label"] for row in wave.summary["labels"]} == {"model 0", "model 1", "model 2"}
    one, two = ([(row["index"], row["label"]) for row in wave.rows] for wave in waves)
    assert one == two
    assert {row["worker"] for row in waves[1].rows} == {0, 1}


@pytest.mark.parametrize(
    ("rate", "bounds", "workers", "expected"),
    [
        ("7.3", ("--num-requests", "11"), 3, 11),
        pytest.param("50", ("--obs-time", "0.5", "--num-requests", "900"), 1, 25, marks=pytest.mark.slow),
        pytest.param("3", ("--num-requests", "1"), 2, 1, marks=pytest.mark.slow),
    ],
)
def test_the_open_loop_sends_exactly_its_number(
    bench: Bench, rate: str, bounds: tuple[str, ...], workers: int, expected: int
) -> None:
    with bench.endpoint(service="none") as endpoint:
        wave = bench.run("--client-rps", rate, *bounds, "--workers", workers, target=endpoint)
        assert sorted(ids(endpoint.arrivals())) == list(range(expected))
    wave.check_books(rate)
    assert wave.ledger["scheduled"] == wave.ledger["ok"] == expected
    assert wave.exit_code == 0


@pytest.mark.parametrize("number", [200, pytest.param(3, marks=pytest.mark.slow)])
def test_the_closed_loop_keeps_exactly_its_concurrency(bench: Bench, number: int) -> None:
    with bench.endpoint(servers=20, service_s=0.03) as endpoint:
        wave = bench.run("--concurrency", 5, "--num-requests", number, "--workers", 2, target=endpoint)
        log = endpoint.arrivals()
    wave.check_books()
    sent = wave.ledger["sent"]
    assert number == sent == wave.ledger["ok"]
    assert sorted(ids(log)) == list(range(number))
    assert most_in_flight(log) <= 5
    assert most_in_flight(log) == 5 or number == 3
    assert wave.summary["response_time"] is None
    assert wave.exit_code == 0


@pytest.mark.parametrize(
    "load", [("--client-rps", "50", "--workers", "2"), pytest.param(("--concurrency", "4"), marks=pytest.mark.slow)]
)
def test_the_warm_up_is_sent_and_stands_in_no_count(bench: Bench, load: tuple[str, ...]) -> None:
    with bench.endpoint(servers=20, error_share=0.2) as endpoint:
        wave = bench.run(*load, "--obs-time", 1, "--warmup", 1, "--success-threshold", 0, target=endpoint)
        arrivals = len(endpoint.arrivals()["id"])
    wave.check_books()
    warmup = [row for row in wave.everything if row["index"] < 0]
    window = wave.rows
    assert len(warmup) + len(window) == arrivals
    assert len(window) == wave.ledger["sent"]
    assert len(warmup) == wave.summary["warmup"]["sent"] > 10
    assert all(row["due"] < 0 for row in warmup)
    assert all(row["due"] >= 0 for row in window)
    if load[0] == "--client-rps":
        assert [row["index"] for row in wave.everything] == list(range(-50, 50))
    failed = sum(row["outcome"] == "failed" for row in window)
    assert wave.ledger["failed"] == failed
    assert wave.locust_totals() == {"requests": len(window), "failures": failed}
    assert Wave.load(wave.folder).to_json() == wave.summary
    assert wave.exit_code == 0


def test_arrivals_at_the_cap_are_dropped_and_counted(bench: Bench) -> None:
    with bench.endpoint(servers=100, service_s=1.5) as endpoint:
        flags = ("--client-rps", 50, "--obs-time", 1, "--workers", 2, "--max-in-flight", 7)
        wave = bench.run(*flags, target=endpoint)
        log = endpoint.arrivals()
    wave.check_books("50")
    assert wave.ledger["scheduled"] == 50
    assert len(log["id"]) == wave.ledger["sent"] == wave.ledger["ok"] == 7
    assert wave.ledger["dropped"] == 43
    assert most_in_flight(log) == 7
    assert wave.invalid == {"dropped_arrivals", "rate_missed"}
    assert wave.code == 3
    assert "✗ dropped_arrivals: 43 arrivals" in wave.out


def test_what_is_in_flight_when_the_drain_ends_is_abandoned_at_its_age(bench: Bench) -> None:
    with bench.endpoint(service="none", hang_share=0.4, seed=1) as endpoint:
        wave = bench.run(*("--client-rps", 30, "--obs-time", 1, "--drain-timeout", "0.7"), target=endpoint)
        log = endpoint.arrivals()
    wave.check_books("30")
    hung = {int(number) for number, status in zip(log["id"], log["status"], strict=True) if status == 0}
    assert 0 < len(hung) < 30
    assert {row["index"] for row in wave.rows if row["outcome"] == "abandoned"} == hung
    assert wave.ledger["abandoned"] == len(hung)
    assert all(row["done"] - row["sent"] >= 0.6 * NS for row in wave.rows if row["outcome"] == "abandoned")
    assert wave.summary["latency"]["count"] == 30
    assert wave.summary["latency"]["lower_bound_from"] >= 0.6
    assert wave.locust_totals() == {"requests": 30, "failures": len(hung)}
    assert wave.findings["unfinished_requests"] == "warning"
    assert "≥" in wave.out
    assert wave.exit_code == 1


def test_a_request_that_takes_too_long_is_ended_and_failed(bench: Bench) -> None:
    with bench.endpoint(service="none", hang_share=0.4, seed=1) as endpoint:
        flags = ("--client-rps", 30, "--obs-time", 1, "--request-timeout", "0.4")
        wave = bench.run(*flags, target=endpoint)
        log = endpoint.arrivals()
    wave.check_books("30")
    hung = log["status"].count(0)
    assert wave.errors() == {"RequestTimeout": hung}
    late = [row for row in wave.rows if row["outcome"] == "failed"]
    assert all(row["done"] - row["sent"] >= 0.39 * NS for row in late)
    assert wave.ledger["abandoned"] == 0
    assert wave.exit_code == 1


STREAMS = """
import http.client
import json
from urllib.parse import urlsplit

from inference_benchmarker import Response
from sender import url

place = urlsplit(url)
asked = {
    "messages": [{"role": "user", "content": "one two three"}],
    "stream": True,
    "stream_options": {"include_usage": True},
}


def invoke_factory():
    def invoke(payload):
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=20)
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(asked), {"X-Request-Id": str(payload)})
            response = connection.getresponse()
            assert response.status == 200
            for line in response:
                if line.startswith(b"data: {"):
                    event = json.loads(line[6:])
                    if event["choices"]:
                        yield event["choices"][0]["delta"].get("content")
                    if event["usage"]:
                        usage = event["usage"]
                        yield Response(tokens_in=usage["prompt_tokens"], tokens_out=usage["completion_tokens"])
            if not line.strip() == b"" or not event["usage"]:
                raise ConnectionError("the stream broke off")
        finally:
            connection.close()

    return invoke


def payload_factory():
    return {"pre_computed": True, "input": list(range(1000))}
"""


def test_streams_are_measured_token_by_token_and_keep_ttft_when_they_break(bench: Bench) -> None:
    with bench.endpoint(servers=50, service_s=0.2, tokens=8, close_share=0.3, seed=2) as endpoint:
        wave = bench.run(
            *("--client-rps", 40, "--obs-time", 1, "--slo", "ttft.p50>24ms"),
            factories=STREAMS,
            target=endpoint,
        )
        log = endpoint.arrivals()
    wave.check_books("40")
    closed = {int(number) for number, status in zip(log["id"], log["status"], strict=True) if status == 0}
    assert 0 < len(closed) < 40
    assert sorted(ids(log)) == list(range(40))
    assert {row["index"] for row in wave.rows if row["outcome"] == "failed"} == closed
    t0 = wave.summary["window"]["t0_monotonic_ns"]
    start_of = dict(zip(map(int, log["id"]), log["start_ns"], strict=True))
    for row in wave.rows:
        assert row["first_token"] + t0 >= start_of[row["index"]] + 0.025 * NS, "a piece every 25 ms"
        assert row["sent"] < row["first_token"] <= row["last_token"] <= row["done"]
        assert len(row["gaps"]) == row["chunks"] - 1
        assert abs(sum(row["gaps"]) * 1000 - (row["last_token"] - row["first_token"])) <= 1000 * len(row["gaps"])
        if row["outcome"] == "ok":
            assert (row["chunks"], row["tokens_in"], row["tokens_out"]) == (8, 3, 8)
            assert row["bytes"] == len("0 1 2 3 4 5 6 7")
        else:
            assert row["chunks"] == 4, "it closes within the fifth piece"
            assert row["tokens_out"] is None
    ok = 40 - len(closed)
    assert wave.summary["tokens"]["tokens_out"] == 8 * ok
    assert wave.summary["ttft"]["count"] == wave.summary["tpot"]["count"] == ok
    assert wave.summary["itl"]["count"] == 7 * ok
    assert "slo_missed" not in wave.findings
    assert wave.exit_code == 1


FORMS = """
import gevent
from inference_benchmarker import Response


class ClientError(Exception):
    response = {"Error": {"Code": "ThrottlingException", "Message": "slow down"}}


class Refused(Exception):
    def __init__(self, status):
        super().__init__("the free text")
        self.status_code = status


def tokens():
    yield "a"
    yield ""
    yield b"bcd"
    yield None
    yield Response(tokens_out=7)


def breaks():
    yield "a"
    raise Refused(429)


async def asynchronous():
    return b""


def fail(error):
    raise error


FORMS = {
    "bytes": lambda: b"12345",
    "str": lambda: "h\\u00e9",
    "none": lambda: None,
    "object": lambda: {"a": 1},
    "response": lambda: Response(tokens_in=3, tokens_out=4, bytes=5, model="m"),
    "empty response": lambda: Response(),
    "stream": tokens,
    "empty stream": lambda: (piece for piece in ()),
    "broken stream": breaks,
    "status": lambda: fail(Refused(503)),
    "aws": lambda: fail(ClientError("slow down")),
    "refused": lambda: fail(ConnectionRefusedError(111, "refused")),
    "exit": lambda: fail(SystemExit(3)),
    "greenlet exit": lambda: fail(gevent.GreenletExit()),
    "end of its greenlet": lambda: gevent.getcurrent().kill(),
    "keyboard": lambda: fail(KeyboardInterrupt()),
    "base": lambda: fail(BaseException("bare")),
    "timeout": lambda: fail(gevent.Timeout(1)),
    "coroutine": asynchronous,
}


def invoke_factory(endpoint_name):
    assert endpoint_name is None

    def invoke(payload):
        return FORMS[payload]()

    return invoke


def payload_factory():
    return {"pre_computed": True, "input": list(FORMS), "label": str}
"""
OF_FORMS: dict[str, tuple[str | None, dict[str, Any]]] = {
    "bytes": (None, {"bytes": 5}),
    "str": (None, {"bytes": 3}),
    "none": (None, {"bytes": None, "chunks": None, "first_token": None, "gaps": None}),
    "object": (None, {"bytes": None}),
    "response": (None, {"tokens_in": 3, "tokens_out": 4, "bytes": 5, "chunks": None}),
    "empty response": (None, {"tokens_in": None, "tokens_out": None, "bytes": None}),
    "stream": (None, {"chunks": 2, "tokens_out": 7, "bytes": 4}),
    "empty stream": (None, {"chunks": 0, "first_token": None, "gaps": []}),
    "broken stream": ("Refused 429", {"chunks": 1, "bytes": 1, "gaps": []}),
    "status": ("Refused 503", {}),
    "aws": ("ClientError ThrottlingException", {}),
    "refused": ("ConnectionRefusedError", {}),
    "exit": ("SystemExit", {}),
    "greenlet exit": ("GreenletExit", {}),
    "end of its greenlet": ("GreenletExit", {}),
    "keyboard": ("KeyboardInterrupt", {}),
    "base": ("BaseException", {}),
    "timeout": ("Timeout", {}),
    "coroutine": ("TypeError", {}),
}


def test_every_way_an_invoke_can_end_is_a_record_and_none_ends_a_worker(bench: Bench) -> None:
    number = 3 * len(OF_FORMS)
    wave = bench.run("--client-rps", 150, "--num-requests", number, factories=FORMS)
    wave.check_books()
    assert wave.ledger["sent"] == number
    assert not wave.invalid
    assert wave.exit_code == 1
    for row in wave.rows:
        assert row["label"] == list(OF_FORMS)[row["index"] % len(OF_FORMS)]
        error, facts = OF_FORMS[row["label"]]
        assert row["error"] == error, row
        assert {name: row[name] for name in facts} == facts, row
    failures = sum(3 for error, _ in OF_FORMS.values() if error)
    assert wave.locust_totals() == {"requests": number, "failures": failures}
    texts = {row["key"]: row["texts"] for row in wave.summary["errors"]}
    assert texts["Refused 503"] == ["the free text"]


BUILT = """
import itertools
import time
from sender import post

numbers = itertools.count()


def build():
    number = next(numbers)
    time.sleep(0.05)
    if number == 3:
        raise ValueError("no payload")
    return number


def invoke_factory(endpoint_name=None):
    assert endpoint_name == "the endpoint"
    return post


def payload_factory():
    return {"pre_computed": False, "input": build}
"""


def test_building_a_payload_is_timed_apart(bench: Bench) -> None:
    with bench.endpoint(service="none") as endpoint:
        wave = bench.run(
            *("--client-rps", 20, "--obs-time", 1, "--endpoint-name", "the endpoint"), factories=BUILT, target=endpoint
        )
        assert sorted(ids(endpoint.arrivals())) == [number for number in range(20) if number != 3]
    wave.check_books("20")
    assert wave.errors() == {"PayloadError ValueError": 1}
    for row in wave.rows:
        assert row["build_ns"] >= 0.049 * NS
        assert row["sent"] - row["due"] >= row["build_ns"]
    assert wave.summary["latency"]["count"] == 19
    assert wave.invalid == {"payload_failed"}, "one in twenty was never offered"
    assert wave.code == 3


UNEQUAL = """
import os
from sender import post


def invoke_factory():
    return post


def payload_factory():
    try:
        os.close(os.open("first", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return {"pre_computed": True, "input": [1, 2, 3]}
    return {"pre_computed": True, "input": [1, 2]}
"""
WRONG = {
    "raises": ('raise ValueError("no client")', "line 4: invoke_factory() raised ValueError: no client."),
    "exits": ('import sys; sys.exit("no key")', "line 4: invoke_factory() raised SystemExit: no key."),
}


def test_payload_lists_of_different_lengths_are_an_error_before_any_request(bench: Bench) -> None:
    with bench.endpoint() as endpoint:
        running = bench.start("--client-rps", 50, "--obs-time", 1, "--workers", 2, factories=UNEQUAL, target=endpoint)
        wave = running.finish()
        assert ids(endpoint.arrivals()) == []
    assert wave.code == 2
    assert "lists of different lengths in different workers: 2, 3." in wave.err
    assert (wave.out, running.run_dirs()) == ("", [])


@pytest.mark.parametrize("kind", ["raises", pytest.param("exits", marks=pytest.mark.slow)])
def test_a_wrong_factories_file_is_one_message_and_leaves_nothing(bench: Bench, kind: str) -> None:
    body, expected = WRONG[kind]
    text = f"import sender\n\ndef invoke_factory():\n    {body}\n\ndef payload_factory():\n    return None\n"
    with bench.endpoint() as endpoint:
        running = bench.start(
            *("--client-rps", 50, "--obs-time", 1, "--workers", 2, "--quiet"), factories=text, target=endpoint
        )
        wave = running.finish()
        assert ids(endpoint.arrivals()) == []
    assert wave.code == 2
    assert expected in wave.err
    assert len(wave.err.splitlines()) == 1
    assert "factories.py" in wave.err
    assert "Traceback" not in wave.err
    assert (wave.out, running.run_dirs()) == ("", [])


NOTEBOOK = """
import json, signal, socket, sys, threading
from decimal import Decimal
from pathlib import Path

import psutil
from inference_benchmarker import BenchmarkError, Bounds, ClosedLoop, OpenLoop, Wave, WavePlan, run_wave

plain_socket = socket.socket
handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]


def plan(load, file="factories.py", **bounds):
    return WavePlan(load, Bounds(**bounds), factories_file=Path(file), output_dir=Path("runs"))


waves = [run_wave(plan(OpenLoop(Decimal(40)), duration_s=Decimal(1)))]
thread = threading.Thread(target=lambda: waves.append(run_wave(plan(ClosedLoop(3), num_requests=30))))
thread.start()
thread.join()
try:
    run_wave(plan(ClosedLoop(3), file="wrong.py", num_requests=30))
except BenchmarkError as error:
    wrong = str(error)
loaded = [Wave.load(wave.run_dir.path) for wave in waves]
print(json.dumps({
    "patched": sorted({"gevent", "locust"} & set(sys.modules)) or socket.socket is not plain_socket,
    "handlers": handlers == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)],
    "children": [str(child) for child in psutil.Process().children(recursive=True)],
    "open": psutil.Process().num_fds(),
    "wrong": wrong,
    "sent": [wave.ledger.sent for wave in waves],
    "frames": [len(wave.frame()) for wave in waves],
    "alike": [a.to_json() == b.to_json() and a.text() == b.text() and list(a.records) == list(b.records)
              for a, b in zip(waves, loaded, strict=True)],
}))
"""


def test_a_notebook_runs_waves_unpatched_keeps_its_handlers_and_has_no_file_left_open(bench: Bench) -> None:
    folder = bench.folder()
    with bench.endpoint(service="none") as endpoint:
        bench.run("--version", target=endpoint, folder=folder)  # writes the factories
        (folder / "wrong.py").write_text("def invoke_factory():\n    1 / 0\ndef payload_factory():\n    pass\n")
        (folder / "notebook.py").write_text(NOTEBOOK)
        done = subprocess.run(
            [sys.executable, "-P", "-W", "always::ResourceWarning", "notebook.py"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TARGET": endpoint.url, MARK: "notebook"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        arrivals = len(endpoint.arrivals()["id"])
    assert done.returncode == 0, done.stderr
    fields = json.loads(done.stdout)
    assert fields["patched"] is False
    assert fields["handlers"] is True
    assert fields["children"] == [], "a zombie counts as well"
    assert fields["open"] < 20
    assert "wrong.py, line 2: invoke_factory() raised ZeroDivisionError" in fields["wrong"]
    assert fields["sent"] == fields["frames"] == [40, 30]
    assert fields["alike"] == [True, True]
    assert arrivals == 70
    assert [line for line in done.stderr.splitlines() if not line.startswith("Loading the endpoint's code: ")] == []


def test_json_is_all_that_stands_on_standard_output_and_quiet_is_silent(bench: Bench) -> None:
    with bench.endpoint(service="none") as endpoint:
        wave = bench.run("--client-rps", 30, "--obs-time", "0.5", "--json", "--quiet", target=endpoint)
    fields = json.loads(wave.out)
    assert fields["ledger"]["ok"] == 15
    assert wave.err == ""


HOSTILE = {
    "queue.py": "raise SystemExit('queue.py of the user')",
    "json.py": "raise SystemExit('json.py of the user')",
    "locust.py": "raise SystemExit('locust.py of the user')",
    "numpy.py": "raise SystemExit('numpy.py of the user')",
    "inference_benchmarker.py": "raise SystemExit('inference_benchmarker.py of the user')",
    "locust.conf": "users = 9\nrun-time = 1s\nheadless = true\nhost = http://127.0.0.1:1\nloglevel = NONSENSE\n",
    "pyproject.toml": "[tool.locust]\nusers = 9\nmaster-bind-port = 1\nnonsense = true\n",
    "locustfile.py": "raise SystemExit('locustfile.py of the user')",
}
PATCHED = """
from gevent.monkey import is_module_patched
from sender import post

assert is_module_patched("socket"), "LOCUST_SKIP_MONKEY_PATCH reached the worker"


def invoke_factory():
    return post


def payload_factory():
    return {"pre_computed": True, "input": list(range(1000))}
"""
LOCUST_VARIABLES = {
    "LOCUST_USERS": "7",
    "LOCUST_RUN_TIME": "1s",
    "LOCUST_SKIP_MONKEY_PATCH": "1",
    "LOCUST_LOCUSTFILE": "nowhere.py",
    "LOCUST_HOST": "http://127.0.0.1:1",
    "LOCUST_STOP_TIMEOUT": "nonsense",
    "LOCUST_MASTER_NODE_PORT": "1",
    "LOCUST_EXPECT_WORKERS": "nonsense",
    "LOCUST_CSV": "stolen",
}


def test_nothing_that_lies_about_the_user_changes_a_wave(bench: Bench) -> None:
    folder = bench.folder()
    for name, text in HOSTILE.items():
        (folder / name).write_text(text)
    (folder / ".locust.conf").write_text("nonsense = true\nusers = 9\n")
    with bench.endpoint(servers=50, service_s=0.2) as endpoint:
        wave = bench.run(
            *("--client-rps", 40, "--obs-time", 1),
            factories=PATCHED,
            target=endpoint,
            folder=folder,
            environment={**LOCUST_VARIABLES, "HOME": str(folder)},
        )
        log = endpoint.arrivals()
    wave.check_books("40")
    assert sorted(ids(log)) == list(range(40))
    assert most_in_flight(log) > 2, "requests of a worker overlap"
    assert wave.exit_code == 0
    assert not list(folder.glob("stolen*"))


KEY, TOKEN, PASSWORD = "k-7f3a9c-benchmark-key", "s3cr3t-of-the-exception", "pa55-of-the-url"
TELLING = f"""
import atexit, logging, os, time
from sender import post

try:
    os.close(os.open("first", os.O_CREAT | os.O_EXCL))
    print("the key is", os.environ["BENCHMARK_API_KEY"])
    logging.getLogger("user").error("logged %s", os.environ["BENCHMARK_API_KEY"])
except FileExistsError:
    pass  # the log of this worker is clean until its last words
atexit.register(lambda: (time.sleep(0.8), print("at exit", os.environ["BENCHMARK_API_KEY"])))


def invoke_factory():
    def invoke(payload):
        if payload % 2:
            raise RuntimeError("401 for Authorization: Bearer {TOKEN} with " + os.environ["BENCHMARK_API_KEY"])
        raise RuntimeError("https://user:{PASSWORD}@host/ api_key={TOKEN}")

    return invoke


def payload_factory():
    return {{"pre_computed": True, "input": [0, 1]}}
"""
TELLING_LOCUST = f"""
import os
from locust import HttpUser, task


class Telling(HttpUser):
    @task
    def tell(self):
        print("the key is", os.environ["BENCHMARK_API_KEY"])
        with self.client.post("/invocations", json={{}}, catch_response=True) as response:
            response.failure("denied: token={TOKEN} " + os.environ["BENCHMARK_API_KEY"])

    @task
    def tell_by_raising(self):
        raise RuntimeError("Bearer {TOKEN} " + os.environ["BENCHMARK_API_KEY"])
"""


@pytest.mark.parametrize("kind", ["factories", pytest.param("locust", marks=pytest.mark.slow)])
def test_secrets_stand_in_no_file_and_in_no_argument_of_our_processes(bench: Bench, kind: str) -> None:
    folder = bench.folder()
    (folder / "locust_telling.py").write_text(TELLING_LOCUST)
    secrets = (KEY, TOKEN, PASSWORD)
    with bench.endpoint(service="none") as endpoint:
        url = endpoint.url.replace("//", f"//user:{PASSWORD}@")
        own = ("--output-dir", "runs", "--locust-file", "locust_telling.py", "--url", url)
        running = bench.start(
            *(own if kind == "locust" else ()),
            *("--client-rps", 20, "--obs-time", "1.5", "--workers", 2, "--debug", "--sample-client-hw"),
            factories=TELLING if kind == "factories" else None,
            target=endpoint,
            folder=folder,
            environment={"BENCHMARK_API_KEY": KEY},
        )
        arguments: list[str] = []

        def three_at_once() -> bool:
            with suppress(psutil.NoSuchProcess, IndexError):
                arguments[:] = [" ".join(child.cmdline()) for child in (running.primary(), *running.workers())]
            return len(arguments) == 3

        running.wait_for(three_at_once, "a primary and two workers")
        wave = running.finish()
    assert len(arguments) == 3
    assert not [text for text in arguments if any(secret in text for secret in secrets)]
    assert wave.ledger["failed"] == 30
    assert files_holding(wave.folder, secrets) == []
    assert not any(secret in wave.out + wave.err for secret in secrets)
    assert files_holding(wave.folder, ["[hidden]"]), "what was hidden is seen to have been"


ODD_CLIENT = """
import base64, os
from urllib.parse import quote
from inference_benchmarker import Response
from sender import post

KEY = os.environ["BENCHMARK_API_KEY"]
SPELT = " ".join([KEY, quote(KEY, safe=""), *(base64.b64encode(b"u" * n + KEY.encode()).decode() for n in range(3))])


class ClientError(Exception):
    response = {"Error": {"Code": KEY}}


class Unspeakable(BaseException):
    def __str__(self):
        raise SystemExit


def invoke_factory():
    def invoke(payload):
        post(payload)
        if payload % 4 == 0:
            raise ClientError(SPELT + " a." * 10_000 + SPELT)
        if payload % 4 == 1:
            raise Unspeakable
        return Response(model=Unspeakable() if payload % 4 == 2 else f"=of {KEY}")

    return invoke


def payload_factory():
    return {"pre_computed": True, "input": list(range(40))}
"""


def test_a_client_that_raises_and_tells_what_it_likes_ends_no_worker_and_leaves_no_secret(bench: Bench) -> None:
    key = "k/7f3a9c+benchmark?key"
    with bench.endpoint(service="none") as endpoint:
        wave = bench.run(
            *("--client-rps", 40, "--obs-time", 1),
            factories=ODD_CLIENT,
            target=endpoint,
            environment={"BENCHMARK_API_KEY": key},
        )
        assert sorted(ids(endpoint.arrivals())) == list(range(40))
    wave.check_books("40")
    assert wave.summary["lost_workers"] == []
    assert wave.errors() == {"ClientError [hidden]": 10, "Unspeakable": 10, "SystemExit": 10}
    assert {row["label"] for row in wave.rows} == {"", "=of [hidden]"}
    log = (wave.folder / "logs" / "worker_0.log").read_text()
    assert log.count(" failed: ClientError [hidden]: [hidden]") == 3, "of the first of each kind the place is shown"
    assert log.count("factories.py, line ") >= 9
    in_base64 = ("ay83ZjNhOW", "svN2YzYTlj", "rLzdmM2E5Y")
    assert files_holding(wave.folder, (key, quote(key, safe=""), *in_base64)) == []
    assert not any(part in wave.out + wave.err for part in (key, *in_base64))
    with (wave.folder / "locust_stats" / "locust_stats.csv").open() as file:
        assert "'=of [hidden]" in {row["Name"] for row in csv.DictReader(file)}


def test_the_primary_listens_on_loopback_alone_and_on_the_port_it_was_given(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with bench.endpoint(service="none") as endpoint:
        running = bench.start("--client-rps", 30, "--obs-time", 2, "--port", port, target=endpoint)
        running.wait_for_arrivals(endpoint, 1)
        listening = [
            connection.laddr
            for process in (running.primary(), *running.workers())
            for connection in process.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        ]
        wave = running.finish()
    assert [tuple(address) for address in listening] == [("127.0.0.1", port)]
    assert wave.exit_code == 0
    assert wave.ledger["ok"] == 60


def test_two_waves_at_once_do_not_touch_each_other(bench: Bench) -> None:
    folder = bench.folder()
    flags = ("--client-rps", 40, "--obs-time", 1)
    with bench.endpoint(service="none") as one, bench.endpoint(service="none") as other:
        started = [bench.start(*flags, target=endpoint, folder=folder) for endpoint in (one, other)]
        waves = [running.finish() for running in started]
        for endpoint in (one, other):
            assert sorted(ids(endpoint.arrivals())) == list(range(40))
    assert len({wave.folder for wave in waves}) == 2
    for wave in waves:
        wave.check_books("40")
        assert wave.ledger["ok"] == 40


def test_a_place_that_cannot_be_written_is_an_error_before_the_wave(bench: Bench) -> None:
    folder = bench.folder()
    (folder / "file").write_text("")
    wave = bench.run("--client-rps", 30, "--obs-time", 1, "--output-dir", "file/below", folder=folder)
    assert wave.code == 2
    assert "cannot be written (Not a directory)" in wave.err
    assert "--output-dir" in wave.err
    assert len(wave.err.splitlines()) == 1
