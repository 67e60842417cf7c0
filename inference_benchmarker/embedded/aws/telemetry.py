"""The embedded endpoint tells CloudWatch about itself: every request it answered, once an interval.

The hot path appends two numbers a request; everything else happens when an interval has ended. A request belongs to
the interval in which its answer was complete. All of an interval's publications bear its start and are visible
``publication_delay_s`` after its end. Latencies are in whole microseconds.
"""

from __future__ import annotations

import time
from array import array
from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.embedded.aws.container_log import ContainerLog
from inference_benchmarker.embedded.aws.metric_store import Cell, Metric, MetricStore
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.embedded.aws.models import Visit
    from inference_benchmarker.embedded.config import EndpointConfig

VARIANT = "AllTraffic"
REQUESTS = "AWS/SageMaker"
HARDWARE = "/aws/sagemaker/Endpoints"
# Names come from whoever asks: beyond that many, a further one is answered but not counted.
_NAMES = 100
# Of a model's load, this share is its download; unloading one takes that share of a load (and nobody's time).
_DOWNLOAD, _UNLOAD = 0.5, 0.1


class Place(NamedTuple):
    """The place of an endpoint's containers: a variant, and an inference component where there is one."""

    variant: str = VARIANT
    component: str | None = None

    def dimensions(self, endpoint_name: str) -> frozenset[tuple[str, str]]:
        """The dimensions of its metrics."""
        if self.component is not None:
            return frozenset({("InferenceComponentName", self.component)})
        return frozenset({("EndpointName", endpoint_name), ("VariantName", self.variant)})


Publication = tuple[str, str, "Sequence[float]", "Sequence[float] | None"]


class Clock:
    """The wall clock's intervals, computed from the monotonic clock."""

    def __init__(self, interval_s: int, delay_s: float) -> None:
        self._ahead_ns = time.time_ns() - time.monotonic_ns()
        self._interval_s = interval_s
        self._delay_s = delay_s

    def wall(self, now_ns: int) -> float:
        """Seconds since the epoch."""
        return (now_ns + self._ahead_ns) / NS

    def wall_ms(self, now_ns: int) -> int:
        """Whole milliseconds since the epoch."""
        return (now_ns + self._ahead_ns) // 1_000_000

    def next_multiple(self, now_ns: int, period_ns: int) -> int:
        """The next instant on the monotonic clock at which the wall clock shows a multiple of the period."""
        return now_ns + period_ns - (now_ns + self._ahead_ns) % period_ns

    def interval(self, now_ns: int) -> int:
        """The number of the interval an instant lies in."""
        return (now_ns + self._ahead_ns) // (self._interval_s * NS)

    def end_ns(self, interval: int) -> int:
        """The end of an interval on the monotonic clock."""
        return (interval + 1) * self._interval_s * NS - self._ahead_ns

    def cell(self, interval: int, unit: str, values: Sequence[float], counts: Sequence[float] | None = None) -> Cell:
        """A publication of an interval."""
        start = interval * self._interval_s
        return Cell(start, start + self._interval_s + self._delay_s, unit, values, counts)


ONLY_VARIANT = Place()


class Batch:
    """The answers of one endpoint in one interval."""

    def __init__(self) -> None:
        self.model_us = array("q")
        self.overhead_us = array("q")
        self.rejected = 0
        self.client_errors = 0
        self.server_errors = 0
        self.errors = 0
        self.hits = 0
        self.misses = 0
        self.loading_wait_us = array("q")
        self.loads = 0
        self.unloads = 0

    @property
    def asked(self) -> int:
        """All requests, answered or not."""
        return len(self.model_us) + self.rejected

    def fail(self, status: int) -> None:
        """Count an answer that is no success; 0: there was no whole answer."""
        self.errors += 1
        if 400 <= status < 500:
            self.client_errors += 1
        else:
            self.server_errors += 1

    def publications(self, instances: int, load_us: float) -> Iterator[Publication]:
        """Metric name, unit, values, and how often each (None: once)."""
        asked = self.asked
        if asked:
            yield "Invocations", "None", [1], [asked]
            yield "InvocationsPerInstance", "None", [1 / instances], [asked]
            yield "Invocation4XXErrors", "None", *_flags(self.client_errors, asked)
            yield "Invocation5XXErrors", "None", *_flags(self.server_errors, asked)
            yield "InvocationModelErrors", "None", *_flags(self.errors, asked)
        yield "ModelLatency", "Microseconds", self.model_us, None
        yield "OverheadLatency", "Microseconds", self.overhead_us, None
        if self.hits or self.misses:
            yield "ModelCacheHit", "None", *_flags(self.hits, self.hits + self.misses)
        yield "ModelLoadingWaitTime", "Microseconds", self.loading_wait_us, None
        if self.loads:
            yield "ModelDownloadingTime", "Microseconds", [load_us * _DOWNLOAD], [self.loads]
            yield "ModelLoadingTime", "Microseconds", [load_us * (1 - _DOWNLOAD)], [self.loads]
        if self.unloads:
            yield "ModelUnloadingTime", "Microseconds", [load_us * _UNLOAD], [self.unloads]


def _flags(ones: int, of: int) -> tuple[list[float], list[float]]:
    """A 1 or a 0 for each request, as values and how often each occurred."""
    both = ((1.0, ones), (0.0, of - ones))
    return [value for value, count in both if count], [count for _, count in both if count]


class Traffic:
    """The requests of one endpoint name."""

    __slots__ = ("_batch", "_ends_ns", "_model_us", "_overhead_us", "_per_instance", "_telemetry", "log", "name")

    def __init__(self, telemetry: Telemetry, name: str) -> None:
        self.name = name
        self._per_instance = 0.0
        self.log = telemetry.new_log()
        self._telemetry = telemetry
        self._begin(time.monotonic_ns())

    def answered(self, status: int, answered_ns: int, arrival_ns: int, model_ns: int) -> None:
        """A request that arrived then was answered now; ``model_ns``: waiting for a server and in service."""
        if answered_ns >= self._ends_ns:
            self.publish(answered_ns)
        self._model_us.append(model_ns // 1000)
        self._overhead_us.append((answered_ns - arrival_ns - model_ns) // 1000)
        if status != 200:
            self._batch.fail(status)
            self.log.failed(status, self._telemetry.clock.wall_ms(answered_ns), in_service=True)

    def unanswered(self, now_ns: int, model_ns: int) -> None:
        """A request was served, but its answer never left."""
        self.publish(now_ns)
        self._model_us.append(model_ns // 1000)
        self._batch.fail(0)

    def rejected(self, status: int, now_ns: int) -> None:
        """A request was refused and never reached the model."""
        self.publish(now_ns)
        self._batch.rejected += 1
        self._batch.fail(status)
        self.log.failed(status, self._telemetry.clock.wall_ms(now_ns), in_service=False)

    def visited(self, visit: Visit, now_ns: int) -> None:
        """A request named a model of a multi-model endpoint; only those that wait for it have a waiting time."""
        self.publish(now_ns)
        batch = self._batch
        batch.hits += visit.hit
        batch.misses += not visit.hit
        batch.loads += visit.loads
        batch.unloads += visit.evicted
        if not visit.hit:
            batch.loading_wait_us.append((visit.ready_ns - now_ns) // 1000)

    def publish(self, now_ns: int) -> None:
        """Hand over an interval that has ended."""
        if now_ns >= self._ends_ns:
            self.hand_over(now_ns)

    def hand_over(self, now_ns: int) -> None:
        """Hand over what there is of the interval: what follows may be on another number of instances."""
        self._per_instance += self._batch.asked / self._telemetry.instances
        self._telemetry.take(self.name, self._batch, self._ends_ns)
        self._begin(now_ns)

    @property
    def per_instance(self) -> float:
        """Invocations per instance up to now, each counted by the number of instances there were."""
        return self._per_instance + self._batch.asked / self._telemetry.instances

    def _begin(self, now_ns: int) -> None:
        clock = self._telemetry.clock
        self._ends_ns = clock.end_ns(clock.interval(now_ns))
        self._batch = Batch()
        self._model_us, self._overhead_us = self._batch.model_us, self._batch.overhead_us


class Telemetry:
    """The traffic of every endpoint name, on its way into the store."""

    def __init__(self, config: EndpointConfig, store: MetricStore, place: Place = ONLY_VARIANT) -> None:
        self.place = place
        self.clock = Clock(config.publish_interval_s, config.publication_delay_s)
        self.started_at = self.clock.wall(time.monotonic_ns())
        self._store = store
        self.instances = config.instances
        self._streams = [f"{place.variant}/i-{number:017x}" for number in range(config.instances)]
        self._load_us = config.model_load_s * 1e6
        self._traffic: dict[str, Traffic] = {}
        self._nameless = Traffic(self, "")
        self.traffic(config.endpoint_name)

    def traffic(self, name: str) -> Traffic:
        """The traffic of a name, known from now on."""
        known = self._traffic.get(name)
        if known is None:
            if len(self._traffic) == _NAMES:
                return self._nameless
            known = self._traffic[name] = Traffic(self, name)
        return known

    @property
    def names(self) -> list[str]:
        """The endpoints that are known: the configured one and those that were invoked."""
        return list(self._traffic)

    def logs(self) -> dict[str, ContainerLog]:
        """The lines that the containers of each endpoint wrote."""
        return {name: traffic.log for name, traffic in self._traffic.items()}

    def new_log(self) -> ContainerLog:
        """The log of an endpoint whose instances have just started."""
        return ContainerLog(self._streams, round(self.started_at * 1000))

    def flush(self, now_ns: int) -> None:
        """Publish whatever interval has ended."""
        for traffic in self._traffic.values():
            traffic.publish(now_ns)

    def forget(self, name: str) -> None:
        """That endpoint is elsewhere from now on."""
        self._traffic.pop(name, None)

    def hand_over(self, now_ns: int) -> None:
        """Publish what there is of the interval."""
        for traffic in (*self._traffic.values(), self._nameless):
            traffic.hand_over(now_ns)

    def resize(self, instances: int, now_ns: int) -> None:
        """From now on there are that many instances."""
        self.hand_over(now_ns)
        self.instances = instances

    def take(self, name: str, batch: Batch, end_ns: int) -> None:
        """Publish a batch whose interval ended then."""
        if not name:
            return
        interval = self.clock.interval(end_ns - 1)
        for metric, unit, values, counts in batch.publications(self.instances, self._load_us):
            if values:
                self.add(REQUESTS, metric, name, self.clock.cell(interval, unit, values, counts))

    def add(self, namespace: str, metric: str, name: str, cell: Cell) -> None:
        """Publish one metric of an endpoint."""
        self._store.add(Metric(namespace, metric, self.place.dimensions(name)), cell)
