"""The log of the embedded endpoint: one row a queued request, and the counters Prometheus reads.

Rows lie in packed arrays (about 50 bytes each, and the request's id), so that a million of them fit anywhere.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.embedded.prometheus_text import Histogram, family

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inference_benchmarker.embedded.http.messages import Request
    from inference_benchmarker.embedded.llm.token_job import TokenJob

SCHEMA_VERSION = 1
_PENDING = -1
_TOKENS = ("prompt_tokens", "cached_tokens", "first_token_ns", "preemptions", "output_tokens", "computed_tokens")


class ArrivalLog:
    """The arrivals in the order in which they joined the queue. Instants are ns of the monotonic clock.

    ``clear`` forgets rows but sequence numbers go on, so a request that was on its way at a clear cannot be
    mistaken for a later one. ``has_tokens``: the requests are an LLM engine's.
    """

    def __init__(self, *, has_tokens: bool = False) -> None:
        self._has_tokens = has_tokens
        # Each route and endpoint that met, by its number.
        self._places: dict[tuple[str, str], int] = {}
        self.next_sequence = 0
        self.clear()

    def clear(self) -> None:
        """Forget all rows."""
        self._first = self.next_sequence
        self._place = array("H")
        self._connection = array("I")
        self._arrival = array("q")
        self._queued = array("q")
        self._start = array("q")
        self._finish = array("q")
        self._answered = array("q")
        self._status = array("h")
        self._ids = bytearray()
        self._id_ends = array("Q")
        self._tokens = {name: array("q") for name in _TOKENS if self._has_tokens}

    def open(self, route: str, request: Request, connection: int, endpoint_name: str) -> None:
        """A new row, of the arrival with the number ``next_sequence``; its id is X-Request-Id."""
        self._place.append(self._places.setdefault((route, endpoint_name), len(self._places)))
        self._connection.append(connection)
        self._arrival.append(request.arrival_ns)
        self._queued.append(request.complete_ns)
        self._start.append(_PENDING)
        self._finish.append(_PENDING)
        self._answered.append(_PENDING)
        self._status.append(_PENDING)
        for column in self._tokens.values():
            column.append(_PENDING)
        self._ids += request.headers.get("x-request-id", "").encode("latin-1")
        self._id_ends.append(len(self._ids))
        self.next_sequence += 1

    def serve(self, sequence: int, start_ns: int | None, finish_ns: int | None) -> None:
        """The model's instants of a row, as far as they are reached."""
        row = sequence - self._first
        if row >= 0:
            self._start[row] = _PENDING if start_ns is None else start_ns
            self._finish[row] = _PENDING if finish_ns is None else finish_ns

    def count(self, sequence: int, job: TokenJob) -> None:
        """The tokens of a row, as far as they are known."""
        row = sequence - self._first
        known = (job.prompt, job.cached, job.first_token_ns, job.preemptions)
        counted = (None, None) if job.finish_ns is None else (job.produced, job.computed)
        for column, value in zip(self._tokens.values(), (*known, *counted), strict=True):
            if row >= 0:
                column[row] = _PENDING if value is None else value

    def close(self, sequence: int, status: int, answered_ns: int | None) -> None:
        """Note the end of a row: the status sent (0: closed or hung) and when its last byte was written."""
        row = sequence - self._first
        if row >= 0:
            self._status[row] = status
            self._answered[row] = _PENDING if answered_ns is None else answered_ns

    def columns(self) -> dict[str, list[int | None] | list[str | None] | list[int] | list[str]]:
        """The rows, a list a column. None: not known yet, or never (a rejected request has no start).

        ``arrival_ns``: its head was complete; ``queued_ns``: its body too, and it joined the queue (clients
        often send the two apart); ``start_ns``, ``finish_ns``: the model's; ``answered_ns``: all was written.
        Of an LLM engine also ``first_token_ns``, ``preemptions``, and the tokens of the prompt, of it those that the
        cache had, of the answer, and those that were computed, which counts again what a preemption undid.
        """
        places = list(self._places)
        return {
            "sequence": list(range(self._first, self.next_sequence)),
            "route": [places[index][0] for index in self._place],
            "endpoint": [places[index][1] for index in self._place],
            "id": list(self._request_ids()),
            "connection": self._connection.tolist(),
            "arrival_ns": self._arrival.tolist(),
            "queued_ns": self._queued.tolist(),
            "start_ns": _known(self._start),
            "finish_ns": _known(self._finish),
            "answered_ns": _known(self._answered),
            "status": _known(self._status),
            **{name: _known(column) for name, column in self._tokens.items()},
        }

    def _request_ids(self) -> Iterator[str | None]:
        begin = 0
        for end in self._id_ends:
            yield self._ids[begin:end].decode("latin-1") or None
            begin = end


def _known(values: array[int]) -> list[int | None]:
    return [None if value == _PENDING else value for value in values]


@dataclass(frozen=True, slots=True)
class State:
    """The endpoint as it stands; ``busy_s``: the time in service of all servers up to now."""

    servers: int
    busy: int
    queued: int
    busy_s: float
    instances: int
    desired_instances: int
    cache_lookups: int
    cache_hits: int


class Metrics:
    """The counters of the endpoint. Route and status are those of the answer; status 0: closed or hung."""

    prefix = "demo_endpoint_"

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.service = Histogram()
        self.queue_wait = Histogram()

    def render(self, state: State) -> str:
        """Everything in Prometheus' text format 0.0.4."""
        requests = (
            f'{self.prefix}requests_total{{route="{route}",status="{status}"}} {count}'
            for (route, status), count in sorted(self.requests.items())
        )
        return "".join(
            [
                self._family("requests_total", "counter", "Requests by route and status sent.", requests),
                self._value("in_flight", "gauge", "Requests in the queue or in service.", state.busy + state.queued),
                self._value("queue_length", "gauge", "Requests waiting for a server.", state.queued),
                self._value("servers", "gauge", "Servers of the model.", state.servers),
                self._value("busy_servers", "gauge", "Servers with a request in service.", state.busy),
                self._value("busy_seconds_total", "counter", "Time in service, all servers.", state.busy_s),
                self._value("instances", "gauge", "Instances that serve.", state.instances),
                self._value("desired_instances", "gauge", "Instances asked for.", state.desired_instances),
                self._value(
                    "cache_lookups_total", "counter", "Requests that the cache was asked for.", state.cache_lookups
                ),
                self._value("cache_hits_total", "counter", "Requests whose body it had.", state.cache_hits),
                self._histogram("service_seconds", "Start to finish.", self.service),
                self._histogram("queue_wait_seconds", "Arrival to start.", self.queue_wait),
            ]
        )

    def _family(self, name: str, kind: str, meaning: str, samples: Iterable[str]) -> str:
        return family(f"{self.prefix}{name}", kind, meaning, samples)

    def _value(self, name: str, kind: str, meaning: str, value: float) -> str:
        return self._family(name, kind, meaning, [f"{self.prefix}{name} {value}"])

    def _histogram(self, name: str, meaning: str, histogram: Histogram) -> str:
        return self._family(name, "histogram", meaning, histogram.lines(f"{self.prefix}{name}"))
