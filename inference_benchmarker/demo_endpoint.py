"""The embedded endpoint: an inference server on loopback with a known capacity and a log of what it saw.

``start`` runs it as a child process, ``serve`` in this one. Requests pass through a queueing model (see
``queueing``) and are answered at the instants the model computed. Every queued request is logged; GET
/arrivals gives the log, so that what a client reports can be held against what the server saw. To AWS's clients
it is a SageMaker endpoint with its metrics in CloudWatch (see ``aws``).
"""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from inference_benchmarker.demo.aws import Aws
from inference_benchmarker.demo.bedrock import ConverseDialect, ConverseStreamDialect
from inference_benchmarker.demo.boto3_settings import boto3_settings
from inference_benchmarker.demo.completions import CompletionsDialect, EmbeddingsDialect
from inference_benchmarker.demo.config import EndpointConfig, Fate, fates
from inference_benchmarker.demo.dialects import Dialect, OpenAiDialect, PlainDialect, SageMakerDialect
from inference_benchmarker.demo.event_stream import SageMakerStreamDialect
from inference_benchmarker.demo.exchange import Alarm, Exchange
from inference_benchmarker.demo.http import (
    Answer,
    HttpConnection,
    HttpError,
    Request,
    Route,
    Routes,
    json_answer,
)
from inference_benchmarker.demo.lambda_function import LambdaDialect
from inference_benchmarker.demo.log import SCHEMA_VERSION, ArrivalLog, Metrics
from inference_benchmarker.demo.model_servers import KServeDialect, TorchServeDialect
from inference_benchmarker.demo.queueing import NS, QueueModel, service_times
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.host import raise_descriptor_limit

if TYPE_CHECKING:
    from types import TracebackType

    from inference_benchmarker.demo.telemetry import Traffic

__all__ = ["EndpointConfig", "RunningEndpoint", "listen", "serve", "start"]

_BACKLOG = 4096
_PATIENCE_S = 10.0
_SAGEMAKER = "/endpoints/{name}/"
_TARGET_MODEL = "x-amzn-sagemaker-target-model"

Handler = Callable[[HttpConnection, Request, str], None]


class Endpoint:
    """Routes requests, passes some of them through the queue and answers those when the model says.

    A new protocol is a dialect and a line in ``_table``.
    """

    def __init__(self, config: EndpointConfig, loop: asyncio.AbstractEventLoop) -> None:
        service = service_times(config.service, config.service_s, config.cv, config.seed)
        self._queue = QueueModel(config.servers, service, config.queue_limit, round(config.cold_start_s * NS))
        self._next_fate = fates(config)
        self._error_status = config.error_status
        self._metrics = Metrics()
        self._loop = loop
        self._aws = Aws(config, self._queue, loop)
        self._models = self._aws.models
        self._own_traffic = self._aws.telemetry.traffic(config.endpoint_name)
        table = self._table(config)
        self._routes = Routes(table)
        self._log = ArrivalLog([route.path for route in table])
        self._numbers = count()
        self._connections: set[HttpConnection] = set()
        # A heap of (due, sequence, exchange): every accepted and unfinished exchange stands in it once.
        self._due: list[tuple[int, int, Exchange]] = []
        self._alarm = Alarm(loop, lambda: self._answer_until(time.monotonic_ns()))

    def _table(self, config: EndpointConfig) -> list[Route[Handler]]:
        openai = OpenAiDialect(config.tokens)
        return [
            self._queued("/invocations", PlainDialect()),
            self._queued(f"{_SAGEMAKER}invocations", SageMakerDialect(config.tokens)),
            self._queued(f"{_SAGEMAKER}invocations-response-stream", SageMakerStreamDialect(config.tokens)),
            self._queued("/model/{id}/converse", ConverseDialect(config.tokens)),
            self._queued("/model/{id}/converse-stream", ConverseStreamDialect(config.tokens)),
            self._queued("/2015-03-31/functions/{name}/invocations", LambdaDialect()),
            self._queued("/v1/chat/completions", openai),
            self._queued("/v1/completions", CompletionsDialect(config.tokens)),
            self._queued("/v1/embeddings", EmbeddingsDialect(config.tokens)),
            self._queued("/v2/models/{name}/infer", KServeDialect()),
            self._queued("/v2/models/{name}/versions/{version}/infer", KServeDialect()),
            self._queued("/predictions/{name}", TorchServeDialect()),
            self._immediate("GET", "/v1/models", lambda _: openai.models()),
            self._immediate("GET", "/v2/health/ready", lambda _: KServeDialect.ready()),
            self._immediate("GET", "/ping", lambda _: json_answer(200, {"status": "healthy"})),
            self._immediate("GET", "/metrics", lambda _: self._render_metrics()),
            self._immediate("GET", "/arrivals", lambda _: self._render_log()),
            self._immediate("DELETE", "/arrivals", lambda _: self._clear_log()),
            self._immediate("POST", "/stall", self._stall),
            self._immediate("POST", "/", self._aws.answer),
        ]

    def _queued(self, path: str, dialect: Dialect) -> Route[Handler]:
        return Route("POST", path, partial(self._enqueue, dialect))

    def _immediate(self, method: str, path: str, answer: Callable[[Request], Answer]) -> Route[Handler]:
        return Route(method, path, partial(self._answer_now, answer))

    def connect(self) -> HttpConnection:
        """The protocol of a new connection."""
        return HttpConnection(next(self._numbers), self._handle, self._connections)

    def close(self) -> None:
        """End all connections."""
        self._alarm.close()
        self._aws.close()
        for connection in list(self._connections):
            connection.drop()

    def _handle(self, connection: HttpConnection, request: Request) -> None:
        try:
            route = self._routes.find(request.method, request.path)
        except HttpError as error:
            self._send(connection, request, "unknown", _refusal(error))
        else:
            route.target(connection, request, route.path)

    def _answer_now(
        self, answer: Callable[[Request], Answer], connection: HttpConnection, request: Request, route: str
    ) -> None:
        try:
            self._send(connection, request, route, answer(request))
        except HttpError as error:
            self._send(connection, request, route, _refusal(error))

    def _enqueue(self, dialect: Dialect, connection: HttpConnection, request: Request, route: str) -> None:
        named = route.startswith(_SAGEMAKER)
        traffic = self._aws.telemetry.traffic(request.path.split("/")[2]) if named else self._own_traffic
        if self._models is not None and (model := request.headers.get(_TARGET_MODEL)):
            visit = self._models.visit(model, request.complete_ns)
            traffic.visited(visit, request.complete_ns)
            if not visit.hit:
                admit = partial(self._admit_late, dialect, connection, request, route, traffic)
                self._loop.call_at(visit.ready_ns / NS, admit)
                return
        self._admit(dialect, connection, request, route, traffic)

    def _admit_late(
        self, dialect: Dialect, connection: HttpConnection, request: Request, route: str, traffic: Traffic
    ) -> None:
        """Its model has been loaded: the request joins the queue now."""
        request.complete_ns = time.monotonic_ns()
        self._admit(dialect, connection, request, route, traffic)

    def _admit(
        self, dialect: Dialect, connection: HttpConnection, request: Request, route: str, traffic: Traffic
    ) -> None:
        sequence = self._log.next_sequence
        try:
            reply = dialect.reply(request, sequence)
        except HttpError as error:
            self._send(connection, request, route, dialect.failure(error.status, error.reason, sequence))
            traffic.rejected(error.status, time.monotonic_ns())
            return
        self._log.open(route, request, connection.number)
        fate = self._next_fate()
        job = self._queue.offer(request.complete_ns)
        if job is None:
            self._send(connection, request, route, dialect.failure(503, "The queue is full.", sequence))
            self._log.close(sequence, 503, now := time.monotonic_ns())
            traffic.rejected(503, now)
            return
        self._log.schedule(sequence, job.start_ns, job.finish_ns)
        if fate is Fate.ERROR or (fate is Fate.BREAK and isinstance(reply, Answer)):
            reply = dialect.failure(self._error_status, "The model failed, as configured.", sequence)
        exchange = Exchange(
            connection, route, sequence, job=job, reply=reply, fate=fate, traffic=traffic, arrival_ns=request.arrival_ns
        )
        self._put(exchange) if exchange.due_ns() > request.complete_ns else self._advance(exchange)
        self._set_alarm()

    def _send(self, connection: HttpConnection, request: Request, route: str, answer: Answer) -> None:
        self._metrics.requests[route, answer.status] += 1
        connection.send(answer, head_only=request.method == "HEAD")

    def _put(self, exchange: Exchange) -> None:
        heappush(self._due, (exchange.due_ns(), exchange.sequence, exchange))

    def _advance(self, exchange: Exchange) -> None:
        exchange.send_next()
        if exchange.complete:
            self._settle(exchange)
            exchange.release()
        else:
            self._put(exchange)

    def _settle(self, exchange: Exchange) -> None:
        job, status = exchange.job, exchange.status
        answered_ns = exchange.answered_ns
        self._log.close(exchange.sequence, status, answered_ns)
        if answered_ns is not None:
            of_model = self._error_status if exchange.fate is Fate.ERROR else status  # SageMaker may answer another
            exchange.traffic.answered(of_model, answered_ns, exchange.arrival_ns, job.finish_ns - job.arrival_ns)
        else:
            exchange.traffic.unanswered(time.monotonic_ns(), job.finish_ns - job.arrival_ns)
        self._metrics.requests[exchange.route, status] += 1
        self._metrics.service.observe(job.finish_ns - job.start_ns)
        self._metrics.queue_wait.observe(job.start_ns - job.arrival_ns)

    def _answer_until(self, now_ns: int) -> None:
        due = self._due
        while due and due[0][0] <= now_ns:
            self._advance(heappop(due)[2])
        self._set_alarm()

    def _set_alarm(self) -> None:
        self._alarm.set(self._due[0][0] if self._due else None)

    def _stall(self, request: Request) -> Answer:
        seconds = _seconds(request)
        now = time.monotonic_ns()
        self._answer_until(now)  # what was due before the stall is not moved by it
        self._queue.stall(now, seconds)
        self._due[:] = [(exchange.due_ns(), sequence, exchange) for _, sequence, exchange in self._due]
        heapify(self._due)
        for _, sequence, exchange in self._due:
            self._log.schedule(sequence, exchange.job.start_ns, exchange.job.finish_ns)
        self._set_alarm()
        return json_answer(200, {"stalled_s": seconds, "from_ns": now})

    def _render_metrics(self) -> Answer:
        now, queue = time.monotonic_ns(), self._queue
        busy, queued, busy_s = queue.busy(now), queue.queue_length(now), queue.busy_ns(now) / NS
        text = self._metrics.render(queue.servers, busy, queued, busy_s)
        return Answer(200, text.encode(), "text/plain; version=0.0.4; charset=utf-8")

    def _render_log(self) -> Answer:
        columns = self._log.columns()
        return json_answer(200, {"schema_version": SCHEMA_VERSION, "clock": "monotonic_ns", "columns": columns})

    def _clear_log(self) -> Answer:
        self._log.clear()
        return json_answer(200, {"next_sequence": self._log.next_sequence})


def _refusal(error: HttpError) -> Answer:
    return json_answer(error.status, {"error": error.reason}, error.headers)


def _seconds(request: Request) -> float:
    given = request.parameter("seconds")
    try:
        seconds = float(given or "")
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise HttpError(400, f"seconds is {given!r}: it must be a number of at least 0, as in /stall?seconds=2")
    return seconds


def listen(port: int = 0, host: str = "127.0.0.1") -> socket.socket:
    """A listening socket; port 0 is any free one. Raises BenchmarkError where it cannot be had."""
    # asyncio sends without delay only on sockets whose protocol is named
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        sock.close()
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise BenchmarkError(
            f"The endpoint cannot listen on port {port} of {host}: {reason}.",
            "Give another port, or 0 for any free one.",
        ) from error
    return sock


def serve(config: EndpointConfig, sock: socket.socket, lifeline: int | None = None) -> None:
    """Serve on a listening socket until SIGTERM or SIGINT, or until the descriptor ``lifeline`` ends.

    Must run in the main thread. Raises the process's limit of open descriptors as far as it may.
    """
    raise_descriptor_limit()
    asyncio.run(_serve(config, sock, lifeline))


async def _serve(config: EndpointConfig, sock: socket.socket, lifeline: int | None) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    if lifeline is not None:
        loop.add_reader(lifeline, _watch_lifeline, lifeline, stopped)
    endpoint = Endpoint(config, loop)
    server = await loop.create_server(endpoint.connect, sock=sock, backlog=_BACKLOG)
    gc.freeze()  # what lives for ever need not be walked again and again while answers are due
    await stopped.wait()
    server.close()
    endpoint.close()
    if lifeline is not None:
        loop.remove_reader(lifeline)


def _watch_lifeline(lifeline: int, stopped: asyncio.Event) -> None:
    if not os.read(lifeline, 4096):
        stopped.set()


def start(config: EndpointConfig, port: int = 0, host: str = "127.0.0.1") -> RunningEndpoint:
    """The endpoint in a process of its own, answering by the time this returns.

    It ends with ``stop``, with the ``with`` block, or with the calling process, however that ends.
    Raises BenchmarkError where the port cannot be had.
    """
    with listen(port, host) as sock:
        process = subprocess.Popen(
            [sys.executable, "-m", "inference_benchmarker.demo_endpoint"],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            cwd=Path(__file__).parents[1],  # where the package is, whether it is installed or not
            pass_fds=(sock.fileno(),),
            start_new_session=True,
        )
        endpoint = RunningEndpoint(process, host, sock.getsockname()[1])
        handover = json.dumps({"socket": sock.fileno(), "config": asdict(config)})
    try:
        endpoint.await_readiness(handover)
    except BaseException:
        endpoint.stop()
        raise
    return endpoint


class RunningEndpoint:
    """An endpoint in a child process; owns the process, and its standard input as the lifeline."""

    def __init__(self, process: subprocess.Popen[bytes], host: str, port: int) -> None:
        self._process = process
        self._host = host
        self.port = port
        self.url = f"http://{host}:{port}"

    def await_readiness(self, handover: str) -> None:
        """Tell the child what to be and wait until it is. Raises RuntimeError where it ends instead."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(handover.encode() + b"\n")
            self._ask("GET", "/ping")
        except OSError as error:
            raise RuntimeError(f"the endpoint's process did not start: {error}") from error

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def aws_environment(self) -> dict[str, str]:
        """The environment in which boto3 takes this endpoint for AWS."""
        return boto3_settings(self.url)

    def arrivals(self) -> dict[str, list[Any]]:
        """The log's columns by name; see ``ArrivalLog.columns``."""
        columns: dict[str, list[Any]] = json.loads(self._ask("GET", "/arrivals"))["columns"]
        return columns

    def clear(self) -> None:
        """Forget the log."""
        self._ask("DELETE", "/arrivals")

    def stall(self, seconds: float) -> None:
        """Let all servers stand still for that long from now on."""
        self._ask("POST", f"/stall?seconds={seconds}")

    def metrics(self) -> str:
        """The metrics in Prometheus' text format."""
        return self._ask("GET", "/metrics").decode()

    def _ask(self, method: str, target: str) -> bytes:
        connection = http.client.HTTPConnection(self._host, self.port, timeout=_PATIENCE_S)
        try:
            connection.request(method, target)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if response.status != http.HTTPStatus.OK:
            raise ValueError(f"{method} {target} was answered {response.status}: {content.decode()}")
        return content

    def stop(self) -> None:
        """End the child and reap it; a second time does nothing.

        The end of its lifeline is enough: a signal beside it would meet an event loop that is being closed.
        """
        if self._process.stdin and not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _serve_parent() -> None:
    """The child's side of ``start``."""
    line = sys.stdin.readline()
    if not line:  # the parent gave up before it said what to be
        return
    handover = json.loads(line)
    sock = socket.socket(fileno=handover["socket"])
    serve(EndpointConfig(**handover["config"]), sock, lifeline=sys.stdin.fileno())


if __name__ == "__main__":
    _serve_parent()
