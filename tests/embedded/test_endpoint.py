from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPResponse, IncompleteRead
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from inference_benchmarker.embedded.fates import Fate, fates
from inference_benchmarker.embedded.http.messages import Request
from inference_benchmarker.embedded.log import ArrivalLog
from inference_benchmarker.embedded.running import EndpointConfig, RunningEndpoint, listen, start
from inference_benchmarker.errors import BenchmarkError
from tests.bench import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

MS = 1_000_000
pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def instant() -> Iterator[RunningEndpoint]:
    """An endpoint whose service takes no time, for everything that is not about time."""
    with start(EndpointConfig(service="none")) as endpoint:
        yield endpoint


@pytest.fixture(autouse=True)
def _empty_log(request: pytest.FixtureRequest) -> None:
    if "instant" in request.fixturenames:
        request.getfixturevalue("instant").clear()


def connect(endpoint: RunningEndpoint) -> HTTPConnection:
    return HTTPConnection("127.0.0.1", endpoint.port, timeout=10)


def ask(
    endpoint: RunningEndpoint, method: str = "POST", path: str = "/invocations", body: Any = b"{}"
) -> tuple[int, bytes]:
    connection = connect(endpoint)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def raw(endpoint: RunningEndpoint, data: bytes) -> bytes:
    """Everything that is answered until the endpoint closes the connection."""
    with socket.create_connection(("127.0.0.1", endpoint.port), timeout=10) as sock:
        sock.sendall(data)
        return b"".join(iter(lambda: sock.recv(65536), b""))


def at_once(endpoint: RunningEndpoint, requests: int) -> list[int]:
    with ThreadPoolExecutor(requests) as pool:
        return [status for status, _ in pool.map(lambda _: ask(endpoint), range(requests))]


def logged(endpoint: RunningEndpoint, rows: int) -> dict[str, list[Any]]:
    """The log once it has that many finished rows."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        columns = endpoint.arrivals()
        if len(columns["status"]) == rows and None not in columns["status"]:
            return columns
        time.sleep(0.01)
    raise AssertionError(f"no {rows} finished rows: {columns}")


def chat(endpoint: RunningEndpoint, connection: HTTPConnection, **options: object) -> HTTPResponse:
    body = {"model": "m", "messages": [{"role": "user", "content": "one two three"}], **options}
    connection.request("POST", "/v1/chat/completions", json.dumps(body))
    return connection.getresponse()


def test_one_connection_serves_many_requests_and_the_log_has_them_all(instant: RunningEndpoint) -> None:
    connection = connect(instant)
    for number in range(5):
        connection.request("POST", "/invocations", b"{}", {"X-Request-Id": f"r{number}"})
        response = connection.getresponse()
        assert (response.status, json.loads(response.read())) == (200, {"predictions": [0.5]})
    log = logged(instant, 5)
    assert log["id"] == [f"r{number}" for number in range(5)]
    assert len(set(log["connection"])) == 1
    assert set(log["route"]) == {"/invocations"}
    assert log["queued_ns"] == log["start_ns"] == log["finish_ns"] == sorted(log["queued_ns"])
    assert all(q >= a for q, a in zip(log["queued_ns"], log["arrival_ns"], strict=True))
    assert all(a >= f for a, f in zip(log["answered_ns"], log["finish_ns"], strict=True))
    connection.close()


def test_clearing_the_log_keeps_counting(instant: RunningEndpoint) -> None:
    ask(instant)
    before = logged(instant, 1)["sequence"][0]
    instant.clear()
    assert instant.arrivals()["sequence"] == []
    ask(instant)
    assert logged(instant, 1)["sequence"] == [before + 1]


@pytest.mark.parametrize("pieces", [[], [b"a"], [b"x" * 70_000, b"y" * 3, b"z" * 500_000]])
def test_chunked_bodies_of_any_shape_are_read_to_their_end(instant: RunningEndpoint, pieces: list[bytes]) -> None:
    connection = connect(instant)
    for _ in range(2):
        connection.request("POST", "/invocations", iter(pieces), encode_chunked=True)
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b'{"predictions":[0.5]}')
    assert len(set(logged(instant, 2)["connection"])) == 1
    connection.close()


def test_a_body_of_20_megabytes_arrives_when_its_head_does_and_starts_when_it_is_whole(
    instant: RunningEndpoint,
) -> None:
    assert ask(instant, body=bytes(20_000_000))[0] == 200
    log = logged(instant, 1)
    assert log["arrival_ns"] < log["start_ns"]


def test_pipelined_requests_in_pieces_are_answered_in_order(instant: RunningEndpoint) -> None:
    request = b"POST /invocations HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nX-Request-Id: %d\r\n\r\nabc"
    data = b"".join(request % number for number in range(20)) + b"GET /nowhere HTTP/1.0\r\n\r\n"
    with socket.create_connection(("127.0.0.1", instant.port), timeout=10) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for begin in range(0, len(data), 37):
            sock.sendall(data[begin : begin + 37])
        answered = b"".join(iter(lambda: sock.recv(65536), b""))
    assert answered.count(b"HTTP/1.1 200 OK\r\n") == 20
    assert answered.count(b"HTTP/1.1 404 Not Found\r\n") == 1
    assert logged(instant, 20)["id"] == [str(number) for number in range(20)]


def test_a_client_that_waits_for_100_continue_gets_it(instant: RunningEndpoint) -> None:
    with socket.create_connection(("127.0.0.1", instant.port), timeout=10) as sock:
        sock.sendall(b"POST /invocations HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert sock.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(b"{}")
        assert sock.recv(1000).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /ping HTTP/1.1\r\n\r\n", 400),
        (b"GET /ping HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n", 400),
        (b"GET /ping HTTP/1.1\r\nHost : h\r\n\r\n", 400),
        (b"GET /ping HTTP/2.0\r\nHost: h\r\n\r\n", 505),
        (b"POST /invocations HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /invocations HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST /invocations HTTP/1.1\r\nHost: h\r\nContent-Length: 999999999999\r\n\r\n", 413),
        (b"POST /invocations HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"POST /invocations HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\n", 400),
        (b"POST /invocations HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc", 400),
        (b"GET /ping HTTP/1.1\r\nHost: h\r\nX: " + b"x" * 70_000, 431),
    ],
)
def test_malformed_requests_are_refused_and_the_connection_ends(
    instant: RunningEndpoint, request_head: bytes, status: int
) -> None:
    answer = raw(instant, request_head)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"\r\nConnection: close\r\n" in answer
    assert instant.arrivals()["sequence"] == []


def test_what_cannot_be_served_leaves_the_connection_usable(instant: RunningEndpoint) -> None:
    connection = connect(instant)
    for method, path, status, allow in (
        ("GET", "/nowhere", 404, None),
        ("POST", "/endpoints//invocations", 404, None),
        ("GET", "/invocations", 405, "POST"),
        ("PUT", "/arrivals", 405, "GET, DELETE, HEAD"),
        ("POST", "/stall?seconds=-1", 400, None),
        ("POST", "/stall?seconds=1e300", 400, None),
        ("POST", "/v1/chat/completions", 400, None),
        ("GET", "/ping?x=1", 200, None),
        ("GET", "/v1/models", 200, None),
    ):
        connection.request(method, path)
        response = connection.getresponse()
        assert (response.status, response.headers["Allow"]) == (status, allow), path
        json.loads(response.read())
    connection.request("HEAD", "/ping")
    response = connection.getresponse()
    assert (response.status, response.headers["Content-Length"], response.read()) == (200, "20", b"")
    assert instant.arrivals()["sequence"] == []
    connection.close()


@pytest.mark.parametrize(
    ("version", "connection", "closes"),
    [("1.1", "close", True), ("1.0", "", True), ("1.0", "keep-alive", False)],
)
def test_the_client_decides_whether_the_connection_stays(
    instant: RunningEndpoint, version: str, connection: str, closes: bool
) -> None:
    once = f"GET /ping HTTP/{version}\r\nHost: h\r\nConnection: {connection}\r\n\r\n".encode()
    last = b"GET /ping HTTP/1.0\r\n\r\n"
    assert raw(instant, once + last).count(b"200 OK") == (1 if closes else 2)


def test_boto3_invokes_and_reads_the_errors() -> None:
    def client(endpoint: RunningEndpoint) -> Any:
        return boto3.client(
            "sagemaker-runtime",
            endpoint_url=endpoint.url,
            region_name="us-east-1",
            aws_access_key_id="none",
            aws_secret_access_key="none",
            config=Config(retries={"total_max_attempts": 1, "mode": "standard"}),
        )

    with start(EndpointConfig(servers=1, service_s=0.3, queue_limit=0)) as endpoint:
        runtime = client(endpoint)
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(runtime.invoke_endpoint, EndpointName="e", Body=b"\xff", ContentType="image/png")
            while endpoint.arrivals()["sequence"] == []:
                time.sleep(0.005)
            with pytest.raises(ClientError) as full:
                runtime.invoke_endpoint(EndpointName="e", Body=b"{}")
        response = first.result()
        assert json.loads(response["Body"].read()) == {"predictions": [0.5]}
        assert response["InvokedProductionVariant"] == "AllTraffic"
        assert response["ContentType"] == "application/json"
        assert response["ResponseMetadata"]["RequestId"] == "00000000-0000-4000-8000-000000000000"
        assert full.value.response["Error"]["Code"] == "ServiceUnavailable"
        assert full.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
        assert logged(endpoint, 2)["status"] == [200, 503]
        assert endpoint.arrivals()["route"] == ["/endpoints/{name}/invocations"] * 2
    with (
        start(EndpointConfig(service="none", error_share=1)) as endpoint,
        pytest.raises(ClientError, match=r"InternalFailure.*as configured") as failed,
    ):
        client(endpoint).invoke_endpoint(EndpointName="e", Body=b"{}")
    assert failed.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    with (
        start(EndpointConfig(service="none", error_share=1, error_status=503)) as endpoint,
        pytest.raises(ClientError, match=r"ServiceUnavailable.*as configured"),
    ):
        client(endpoint).invoke_endpoint(EndpointName="e", Body=b"{}")


def test_a_chat_completion_in_one_piece(instant: RunningEndpoint) -> None:
    connection = connect(instant)
    answer = json.loads(chat(instant, connection, max_completion_tokens=3).read())
    assert answer["object"] == "chat.completion"
    assert answer["model"] == "m"
    assert answer["choices"][0]["message"] == {"role": "assistant", "content": "0 1 2"}
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"] == {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}
    assert json.loads(chat(instant, connection).read())["usage"]["completion_tokens"] == 20
    refused = chat(instant, connection, max_tokens=0)
    assert refused.status == 400
    assert json.loads(refused.read())["error"]["type"] == "invalid_request_error"
    connection.close()


def test_a_chat_stream_has_a_token_an_event_then_finish_usage_and_done() -> None:
    with start(EndpointConfig(service_s=0.05, tokens=4)) as endpoint:
        connection = connect(endpoint)
        for _ in range(2):
            response = chat(endpoint, connection, stream=True, stream_options={"include_usage": True})
            assert response.headers["Content-Type"] == "text/event-stream"
            seen = [(time.monotonic_ns(), line.removeprefix(b"data: ")) for line in response if line.strip()]
            *events, (_, done) = seen
            assert done == b"[DONE]\n"
            chunks = [json.loads(data) for _, data in events]
            *tokens, finish, usage = chunks
            assert [t["choices"][0]["delta"].get("content") for t in tokens] == ["0", " 1", " 2", " 3"]
            assert [t["choices"][0]["delta"].get("role") for t in tokens] == ["assistant", None, None, None]
            assert finish["choices"][0]["finish_reason"] == "stop"
            assert usage["choices"] == []
            assert usage["usage"] == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
            log = endpoint.arrivals()
            instants = [at for at, _ in events[:4]]
            due = [log["start_ns"][-1] + 50 * MS * (j + 1) // 4 for j in range(4)]
            assert all(at >= earliest for at, earliest in zip(instants, due, strict=True))
        assert len(set(log["connection"])) == 1
        assert json.loads(chat(endpoint, connection, stream=False).read())["usage"]["total_tokens"] == 7
        connection.close()


def test_past_the_queue_limit_requests_get_503_and_the_model_is_kept_exactly() -> None:
    with start(EndpointConfig(servers=2, service_s=0.3, queue_limit=3)) as endpoint:
        assert sorted(at_once(endpoint, 9)) == [200] * 5 + [503] * 4
        log = logged(endpoint, 9)
        assert log["status"] == [200] * 5 + [503] * 4
        assert log["start_ns"][5:] == log["finish_ns"][5:] == [None] * 4
        queued, begin, finish = (log[name][:5] for name in ("queued_ns", "start_ns", "finish_ns"))
        assert [f - s for s, f in zip(begin, finish, strict=True)] == [300 * MS] * 5
        assert begin == [queued[0], queued[1], finish[0], finish[1], finish[2]]
        assert all(a >= f for a, f in zip(log["answered_ns"][:5], finish, strict=True))


def test_a_stall_moves_the_answers_by_its_length() -> None:
    with start(EndpointConfig(servers=1, service_s=0.2)) as endpoint, ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(ask, endpoint) for _ in range(2)]
        while len(endpoint.arrivals()["sequence"]) < 2:
            time.sleep(0.005)
        before = endpoint.arrivals()
        assert before["start_ns"] == [before["queued_ns"][0], None]
        endpoint.stall(0.4)
        assert [answer.result()[0] for answer in answers] == [200, 200]
        log = logged(endpoint, 2)
        assert log["finish_ns"] == [before["start_ns"][0] + moved * MS for moved in (600, 800)]
        assert log["start_ns"] == [log["queued_ns"][0], log["finish_ns"][0]]
        assert all(a >= f for a, f in zip(log["answered_ns"], log["finish_ns"], strict=True))


def spans(log: dict[str, list[Any]]) -> list[tuple[int, int, int]]:
    """Queued, start and finish of each request, by the model."""
    return list(zip(log["queued_ns"], log["start_ns"], log["finish_ns"], strict=True))


def test_the_last_come_is_served_first() -> None:
    with start(EndpointConfig(servers=1, service_s=0.2, discipline="lifo")) as endpoint:
        at_once(endpoint, 4)
        log = logged(endpoint, 4)
        (_, _, finish), *others = spans(log)
        assert all(queued < finish for queued, _, _ in others), "all came while the first was served"
        assert [begin for _, begin, _ in others] == [finish + later * 200 * MS for later in (2, 1, 0)]
        assert all(a >= f for a, f in zip(log["answered_ns"], log["finish_ns"], strict=True))


def test_requests_share_a_server_that_shares_itself() -> None:
    with start(EndpointConfig(servers=1, service_s=0.2, discipline="ps")) as endpoint:
        at_once(endpoint, 2)
        log = logged(endpoint, 2)
        (first, _, first_finish), (second, begin, second_finish) = spans(log)
        assert begin == second
        assert (first_finish - second, second_finish - first) == (2 * (first + 200 * MS - second), 400 * MS)
        assert all(a >= f for a, f in zip(log["answered_ns"], log["finish_ns"], strict=True))


def test_a_batch_is_served_together() -> None:
    with start(EndpointConfig(servers=1, service_s=0.1, batch_size=3, batch_delay_s=5)) as endpoint:
        at_once(endpoint, 3)
        log = logged(endpoint, 3)
        last = log["queued_ns"][-1]
        assert [span[1:] for span in spans(log)] == [(last, last + 100 * MS)] * 3


def test_a_stream_stands_still_in_a_pause_and_starts_slowly() -> None:
    pauses = EndpointConfig(
        service_s=0.05, tokens=4, pause_every_s=0.08, pause_s=0.05, slow_start_requests=1, slow_start_factor=2
    )
    with start(pauses) as endpoint:
        connection = connect(endpoint)
        events = [time.monotonic_ns() for line in chat(endpoint, connection, stream=True) if line.strip()]
        begin, finish = (logged(endpoint, 1)[name][0] for name in ("start_ns", "finish_ns"))
        assert finish - begin == 150 * MS
        assert all(at >= begin + due * MS for at, due in zip(events, (25, 50, 75, 150), strict=False))
        connection.close()


def test_the_first_request_of_each_server_is_slower_by_the_cold_start() -> None:
    with start(EndpointConfig(servers=2, service_s=0.01, cold_start_s=0.1)) as endpoint:
        for _ in range(4):
            ask(endpoint)
        log = logged(endpoint, 4)
        service = [f - s for s, f in zip(log["start_ns"], log["finish_ns"], strict=True)]
        assert service == [110 * MS, 110 * MS, 10 * MS, 10 * MS]


def test_errors_fall_on_the_requests_the_seed_says() -> None:
    config = EndpointConfig(service="none", error_share=0.3, seed=5)
    draw = fates(config)
    expected = [500 if draw() is Fate.ERROR else 200 for _ in range(300)]
    with start(config) as endpoint:
        connection = connect(endpoint)
        statuses = []
        for _ in range(300):
            connection.request("POST", "/invocations", b"{}")
            response = connection.getresponse()
            response.read()
            statuses.append(response.status)
        connection.close()
        assert statuses == expected == logged(endpoint, 300)["status"]
    assert 60 < expected.count(500) < 120


@pytest.mark.parametrize("stream", [False, True])
def test_a_closed_connection_leaves_half_an_answer(stream: bool) -> None:
    with start(EndpointConfig(service_s=0.01, close_share=1, tokens=4)) as endpoint:
        connection = connect(endpoint)
        with contextlib.closing(connection), pytest.raises(IncompleteRead):
            chat(endpoint, connection, stream=stream).read()
        log = logged(endpoint, 1)
        assert log["status"] == [0]
        assert log["answered_ns"][0] is not None


def test_a_request_that_hangs_is_never_answered_but_occupies_its_server() -> None:
    with start(EndpointConfig(servers=1, service_s=0.05, hang_share=1)) as endpoint:
        with socket.create_connection(("127.0.0.1", endpoint.port), timeout=0.3) as sock:
            sock.sendall(b"POST /invocations HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n" * 2)
            with pytest.raises(TimeoutError):
                sock.recv(1)
        log = logged(endpoint, 1)
        assert (log["status"], log["answered_ns"]) == ([0], [None])
        assert log["finish_ns"][0] - log["start_ns"][0] == 50 * MS


def test_a_client_that_leaves_early_is_logged_as_not_answered() -> None:
    with start(EndpointConfig(servers=1, service_s=0.1)) as endpoint:
        with socket.create_connection(("127.0.0.1", endpoint.port)) as sock:
            sock.sendall(b"POST /invocations HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
            while not endpoint.arrivals()["sequence"]:
                time.sleep(0.005)
        assert logged(endpoint, 1)["status"] == [0]


def test_metrics_count_requests_and_the_time_of_the_servers() -> None:
    with start(EndpointConfig(servers=2, service_s=0.05, queue_limit=1)) as endpoint:
        statuses = at_once(endpoint, 4)
        logged(endpoint, 4)
        lines = [line for line in endpoint.metrics().splitlines() if not line.startswith("#")]
    samples = {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}
    prefix = "demo_endpoint_"
    ok, full = statuses.count(200), statuses.count(503)
    requests = f'{prefix}requests_total{{route="/invocations",status='
    assert samples[f'{requests}"200"}}'] == ok
    assert samples.get(f'{requests}"503"}}', 0) == full
    assert samples[f"{prefix}busy_seconds_total"] == pytest.approx(0.05 * ok)
    assert samples[f"{prefix}service_seconds_count"] == samples[f"{prefix}queue_wait_seconds_count"] == ok
    assert samples[f"{prefix}service_seconds_sum"] == pytest.approx(0.05 * ok)
    assert samples[f'{prefix}service_seconds_bucket{{le="0.05"}}'] == ok
    assert samples[f'{prefix}service_seconds_bucket{{le="0.025"}}'] == 0
    for name, value in {"in_flight": 0, "queue_length": 0, "busy_servers": 0, "servers": 2, "instances": 1}.items():
        assert samples[f"{prefix}{name}"] == value


def refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # it ended just then
        return False
    return False


def test_stopping_reaps_the_process_and_frees_the_port() -> None:
    endpoint = start(EndpointConfig())
    assert not refused(endpoint.port)
    endpoint.stop()
    endpoint.stop()
    assert refused(endpoint.port)
    with pytest.raises(ChildProcessError):
        os.waitpid(endpoint.pid, os.WNOHANG)
    with start(EndpointConfig(), port=endpoint.port) as successor:
        assert successor.port == endpoint.port


def test_the_endpoint_ends_when_its_parent_is_killed() -> None:
    program = (
        "import time\n"
        "from inference_benchmarker.embedded.running import EndpointConfig, start\n"
        "endpoint = start(EndpointConfig())\n"
        "print(endpoint.port, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=ROOT)
    assert parent.stdout
    with parent:
        port = int(parent.stdout.readline())
        alive = not refused(port)
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while not refused(port) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert alive
    assert refused(port)


def test_a_taken_port_is_said() -> None:
    with listen() as sock:
        port = sock.getsockname()[1]
        with pytest.raises(BenchmarkError, match=f"port {port} .*in use.* Give another port"):
            start(EndpointConfig(), port=port)
    with pytest.raises(BenchmarkError, match="port 70000"):
        listen(70_000)


def test_a_body_that_was_seen_before_takes_its_part_of_the_time_whatever_the_protocol() -> None:
    config = EndpointConfig(service_s=0.02, cache_size=8, cache_speedup=10, queue_limit=0, servers=1)
    paths = ("/invocations", "/endpoints/demo/invocations", "/v1/chat/completions")
    body = json.dumps({"messages": [{"role": "user", "content": "one"}]})
    with start(config) as endpoint:
        for path in paths:
            assert [ask(endpoint, path=path, body=body)[0] for _ in range(2)] == [200, 200]
        log = logged(endpoint, 6)
        assert [f - s for s, f in zip(log["start_ns"], log["finish_ns"], strict=True)] == [20 * MS] + [2 * MS] * 5
        metrics = endpoint.metrics()
    assert "demo_endpoint_cache_lookups_total 6\n" in metrics
    assert "demo_endpoint_cache_hits_total 5\n" in metrics


def test_servers_that_were_added_under_load_are_shown_and_stay() -> None:
    with start(EndpointConfig(servers=1, most_servers=2, grow_delay_s=0.01)) as endpoint:
        assert "demo_endpoint_servers 1\n" in endpoint.metrics()
        assert at_once(endpoint, 8) == [200] * 8
        assert "demo_endpoint_servers 2\n" in endpoint.metrics()


def test_everything_wrong_with_a_configuration_is_said_at_once() -> None:
    with pytest.raises(BenchmarkError) as error:
        EndpointConfig(
            servers=0,
            service="slow",
            service_s=float("nan"),
            cv=-1,
            queue_limit=-1,
            error_share=2,
            error_status=200,
            cold_start_s=float("inf"),
            tokens=True,
            seed="x",  # type: ignore[arg-type]
            discipline="sjf",
            batch_size=0,
            batch_delay_s=-1,
            slow_share=1.5,
            slow_factor=0.5,
            slow_start_s=-1,
            slow_start_requests=-1,
            slow_start_factor=0,
            pause_every_s=-1,
            pause_s=float("inf"),
            most_servers=0,
            grow_queue=-1,
            grow_delay_s=-1,
            grow_keep_s=-1,
            cache_size=-1,
            cache_speedup=0.5,
            cool_down_s=-1,
            burst_s=-1,
            burst_baseline=0,
        )
    wrong = (
        "servers",
        "service ",
        "service_s",
        "cv",
        "queue_limit",
        "error_share",
        "error_status",
        "cold_start_s",
        "tokens",
        "seed",
        "discipline",
        "batch_size",
        "batch_delay_s",
        "slow_share",
        "slow_factor",
        "slow_start_s",
        "slow_start_requests",
        "slow_start_factor",
        "pause_every_s",
        "pause_s",
        "most_servers",
        "grow_queue",
        "grow_delay_s",
        "grow_keep_s",
        "cache_size",
        "cache_speedup",
        "cool_down_s",
        "burst_s",
        "burst_baseline",
    )
    assert [name for name in wrong if f"{name.strip()} is" not in str(error.value)] == []
    with pytest.raises(BenchmarkError, match="more than 1 together"):
        EndpointConfig(error_share=0.6, hang_share=0.6)
    with pytest.raises(BenchmarkError, match="service_s is 0"):
        EndpointConfig(service_s=0)
    with pytest.raises(BenchmarkError, match="batch_size is 2"):
        EndpointConfig(discipline="ps", batch_size=2)
    with pytest.raises(BenchmarkError, match="most_servers is 3: there are 4 servers at first"):
        EndpointConfig(most_servers=3)
    with pytest.raises(BenchmarkError, match="queue_limit is 16: a server is added when more than 16 wait, so none"):
        EndpointConfig(most_servers=8, batch_size=8, queue_limit=16)
    with pytest.raises(BenchmarkError, match=r"pause_s is 2: it must be less than the 1 s"):
        EndpointConfig(pause_every_s=1, pause_s=2)
    with pytest.raises(BenchmarkError, match=r"pause_every_s is 1e-05: .*at least 0.001"):
        EndpointConfig(pause_every_s=1e-5)


def resident_pages() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_million_rows_take_about_a_hundred_megabytes_at_most() -> None:
    log = ArrivalLog()
    request = Request("POST", "/invocations", "", "HTTP/1.1", {"x-request-id": "0123456789"})
    before = resident_pages()
    for number in range(200_000):
        request.arrival_ns = number
        log.open("/invocations", request, 1, "demo")
        log.serve(number, number, number)
        log.close(number, 200, number)
    assert (resident_pages() - before) * os.sysconf("SC_PAGE_SIZE") < 200_000 * 110
    assert log.columns()["id"][-1] == "0123456789"


def test_a_listening_socket_names_its_protocol_so_that_asyncio_sends_tokens_without_delay() -> None:
    with listen() as sock:
        assert sock.proto == socket.IPPROTO_TCP


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/v1/responses",
        "/generate",
        "/endpoints/demo/invocations",
        "/v2/models/m/infer",
        "/2015-03-31/functions/demo/invocations",
        "/anything",
    ],
)
def test_a_body_that_is_nested_too_deeply_is_answered(instant: RunningEndpoint, path: str) -> None:
    status, _ = ask(instant, "POST", path, b"[" * 200_000)
    assert status in (200, 400, 404)
