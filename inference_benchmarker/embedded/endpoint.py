"""The embedded endpoint itself: an inference server with a known capacity and a log of what it saw.

Requests pass through a queueing model (see ``queueing``) and are answered at the instants the model computed. Every
queued request is logged; GET /arrivals gives the log, so that what a client reports can be compared with what the
server saw. To AWS's clients it is a SageMaker endpoint with its metrics in CloudWatch (see ``aws``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from inference_benchmarker.embedded.aws.fleets import Destination
from inference_benchmarker.embedded.aws.services import Aws
from inference_benchmarker.embedded.config import FAILED_AS_CONFIGURED, EndpointConfig
from inference_benchmarker.embedded.exchange import Exchange, pieces_of
from inference_benchmarker.embedded.fates import Fate, fates
from inference_benchmarker.embedded.http.connection import HttpConnection
from inference_benchmarker.embedded.http.messages import Answer, HttpError, Request, json_answer
from inference_benchmarker.embedded.http.routing import Route, Routes
from inference_benchmarker.embedded.llm.engine import Engine
from inference_benchmarker.embedded.llm.token_job import TokenJob
from inference_benchmarker.embedded.log import SCHEMA_VERSION, ArrivalLog, Metrics, State
from inference_benchmarker.embedded.protocols.compressed import compressed
from inference_benchmarker.embedded.protocols.dialects import Deferred
from inference_benchmarker.embedded.protocols.routes import SAGEMAKER, Answerer, at_once, queued
from inference_benchmarker.embedded.protocols.sagemaker import by_variant
from inference_benchmarker.words.units import MAX_SECONDS, NS

if TYPE_CHECKING:
    import asyncio

    from inference_benchmarker.embedded.aws.fleet import Fleet
    from inference_benchmarker.embedded.protocols.dialects import Dialect
    from inference_benchmarker.embedded.queueing.job import Job

_TARGET_MODEL = "x-amzn-sagemaker-target-model"
_COMPONENT = "x-amzn-sagemaker-inference-component"

Handler = Callable[[HttpConnection, Request, str], None]


class Endpoint:
    """Routes requests, passes some of them through the queue and answers those when the model says."""

    def __init__(self, config: EndpointConfig, loop: asyncio.AbstractEventLoop) -> None:
        self._next_fate = fates(config)
        self._error_status = config.error_status
        self._is_gzip = config.gzip
        self._metrics = Metrics()
        self._loop = loop
        self._aws = Aws(config, loop, self._answer_until)
        self._own = self._aws.fleets.own
        self._own_destination = Destination(self._own, self._own.traffic)
        self._routes = Routes(self._table(config))
        self._log = ArrivalLog(has_tokens=config.engine is not None)
        self._numbers = count()
        self._connections: set[HttpConnection] = set()
        # Every accepted and unfinished exchange.
        self._exchanges: dict[Job | TokenJob, Exchange] = {}

    def _table(self, config: EndpointConfig) -> list[Route[Handler]]:
        endings = (config.tokens, config.finish_reason)
        dialects = queued(
            *endings,
            echo=config.echo,
            prefix_cache=config.prefix_cache,
            tokens_per_piece=config.tokens_per_piece,
            block_size=None if config.engine is None else config.engine.block_size,
        )
        immediate: list[Route[Answerer]] = [
            *at_once(),
            Route("GET", "/metrics", lambda _: self._render_metrics()),
            Route("GET", "/arrivals", lambda _: self._render_log()),
            Route("DELETE", "/arrivals", lambda _: self._clear_log()),
            Route("POST", "/stall", self._stall),
            Route("POST", "/", self._aws.answer),
        ]
        return [
            *(self._queued(path, dialect) for path, dialect in dialects.items()),
            *(self._immediate(route) for route in immediate),
        ]

    def _queued(self, path: str, dialect: Dialect) -> Route[Handler]:
        return Route("POST", path, partial(self._enqueue, dialect))

    def _immediate(self, route: Route[Answerer]) -> Route[Handler]:
        return Route(route.method, route.path, partial(self._answer_now, route.target))

    def connect(self) -> HttpConnection:
        """The protocol of a new connection."""
        return HttpConnection(next(self._numbers), self._handle, self._connections)

    def close(self) -> None:
        """End all connections."""
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

    def _answer_now(self, answer: Answerer, connection: HttpConnection, request: Request, route: str) -> None:
        try:
            self._send(connection, request, route, answer(request))
        except HttpError as error:
            self._send(connection, request, route, _refusal(error))

    def _enqueue(self, dialect: Dialect, connection: HttpConnection, request: Request, route: str) -> None:
        destination = self._own_destination
        if route.startswith(SAGEMAKER):
            name = request.path.split("/")[2]
            try:
                destination = self._aws.fleets.serving(name, request.headers.get(_COMPONENT))
            except HttpError as error:
                self._refuse(dialect, connection, request, route, error)
                return
        fleet, traffic = destination
        if fleet.models is not None and (model := request.headers.get(_TARGET_MODEL)):
            visit = fleet.models.visit(model, request.complete_ns)
            traffic.visited(visit, request.complete_ns)
            if not visit.hit:
                admit = partial(self._admit_late, dialect, connection, request, route, destination)
                self._loop.call_at(visit.ready_ns / NS, admit)
                return
        self._admit(dialect, connection, request, route, destination)

    def _admit_late(
        self, dialect: Dialect, connection: HttpConnection, request: Request, route: str, destination: Destination
    ) -> None:
        """Its model has been loaded: the request joins the queue now."""
        request.complete_ns = time.monotonic_ns()
        self._admit(dialect, connection, request, route, destination)

    def _refuse(
        self, dialect: Dialect, connection: HttpConnection, request: Request, route: str, error: HttpError
    ) -> None:
        """No queue ever sees it."""
        self._send(connection, request, route, dialect.failure(error.status, error.reason, self._log.next_sequence))

    def _admit(
        self, dialect: Dialect, connection: HttpConnection, request: Request, route: str, destination: Destination
    ) -> None:
        fleet, traffic = destination
        sequence = self._log.next_sequence
        try:
            request.cached = fleet.cache.has(request.body)
            reply = dialect.reply(request, sequence)
            fleet.check(request)
        except HttpError as error:
            self._refuse(dialect, connection, request, route, error)
            traffic.rejected(error.status, time.monotonic_ns())
            return
        if fleet is not self._own and not isinstance(reply, Deferred):
            reply = by_variant(reply, fleet.telemetry.place.variant)
        self._log.open(route, request, connection.number, traffic.name)
        fate = self._next_fate()
        if fate is Fate.ERROR or (fate is Fate.BREAK and isinstance(reply, (Answer, Deferred))):
            reply = dialect.failure(self._error_status, FAILED_AS_CONFIGURED, sequence)
        elif fate is Fate.SWAP:
            reply = dialect.reply(self._other(request, route), sequence)
        if self._is_gzip:
            reply = compressed(reply)
        job = fleet.offer(request, pieces_of(reply))
        if job is None:
            status = fleet.full_status
            self._send(connection, request, route, dialect.failure(status, "The queue is full.", sequence))
            self._log.close(sequence, status, now := time.monotonic_ns())
            traffic.rejected(status, now)
            return
        self._exchanges[job] = Exchange(
            connection,
            request,
            route,
            sequence,
            job=job,
            reply=reply,
            fate=fate,
            traffic=traffic,
            arrival_ns=request.arrival_ns,
        )
        if isinstance(job, TokenJob):
            connection.on_lost = partial(self._abandon, job)
        self._answer_until(fleet, request.complete_ns)

    def _other(self, request: Request, route: str) -> Request:
        """The last request of this route that is not answered yet; the given one where there is none."""
        others = (exchange.request for exchange in reversed(self._exchanges.values()) if exchange.route == route)
        return next(others, request)

    def _send(self, connection: HttpConnection, request: Request, route: str, answer: Answer) -> None:
        self._metrics.requests[route, answer.status] += 1
        connection.send(answer, head_only=request.method == "HEAD")

    def _advance(self, exchange: Exchange) -> None:
        exchange.send_next()
        if exchange.complete:
            del self._exchanges[exchange.job]
            exchange.connection.on_lost = None
            self._settle(exchange)

    def _settle(self, exchange: Exchange) -> None:
        job, status = exchange.job, exchange.status
        answered_ns = exchange.answered_ns
        assert job.start_ns is not None
        assert job.finish_ns is not None
        self._note(exchange)
        self._log.close(exchange.sequence, status, answered_ns)
        if answered_ns is not None:
            of_model = self._error_status if exchange.fate is Fate.ERROR else status  # SageMaker may answer another
            exchange.traffic.answered(of_model, answered_ns, exchange.arrival_ns, job.finish_ns - job.arrival_ns)
        else:
            exchange.traffic.unanswered(time.monotonic_ns(), job.finish_ns - job.arrival_ns)
        self._metrics.requests[exchange.route, status] += 1
        self._metrics.service.observe(job.finish_ns - job.start_ns)
        self._metrics.queue_wait.observe(job.start_ns - job.arrival_ns)

    def _abandon(self, job: TokenJob) -> None:
        """The client of an LLM engine is gone: what is not ready yet is never computed."""
        now, fleet = time.monotonic_ns(), self._own
        self._answer_until(fleet, now)
        exchange = self._exchanges.get(job)
        if exchange is None or exchange.fate is Fate.CLOSE or not isinstance(fleet.queue, Engine):
            return
        del self._exchanges[job]
        fleet.queue.abort(now, job)
        fleet.look_ahead()
        self._note(exchange)
        self._log.close(exchange.sequence, 0, None)
        self._metrics.requests[exchange.route, 0] += 1
        exchange.traffic.unanswered(now, now - job.arrival_ns)

    def _note(self, exchange: Exchange) -> None:
        """Log what the model has done."""
        job = exchange.job
        self._log.serve(exchange.sequence, job.start_ns, job.finish_ns)
        if isinstance(job, TokenJob):
            self._log.count(exchange.sequence, job)

    def _answer_until(self, fleet: Fleet, now_ns: int) -> None:
        for job in fleet.queue.take_ready(now_ns):
            self._advance(self._exchanges[job])
        fleet.look_ahead()

    def _stall(self, request: Request) -> Answer:
        seconds = _seconds(request)
        now = time.monotonic_ns()
        for fleet in self._aws.fleets.every():
            fleet.queue.stall(now, seconds)
            self._answer_until(fleet, now)  # what was due before the stall is not moved by it
        return json_answer(200, {"stalled_s": seconds, "from_ns": now})

    def _render_metrics(self) -> Answer:
        now, queue, cache = time.monotonic_ns(), self._own.queue, self._own.cache
        instances = self._own.scaling.instances
        state = State(
            queue.servers,
            queue.busy(now),
            queue.queue_length(now),
            queue.busy_ns(now) / NS,
            instances.current,
            instances.desired,
            cache.lookups,
            cache.hits,
        )
        text = self._metrics.render(state) + (queue.metrics(now) if isinstance(queue, Engine) else "")
        return Answer(200, text.encode(), "text/plain; version=0.0.4; charset=utf-8")

    def _render_log(self) -> Answer:
        for fleet in self._aws.fleets.every():
            fleet.queue.present(time.monotonic_ns())
        for exchange in self._exchanges.values():
            self._note(exchange)
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
    if not 0 <= seconds <= MAX_SECONDS:
        expected = f"a number from 0 to {MAX_SECONDS:,}, as in /stall?seconds=2"
        raise HttpError(400, f"seconds is {given!r}: it must be {expected}")
    return seconds
