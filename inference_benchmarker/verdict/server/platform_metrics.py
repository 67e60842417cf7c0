"""A wave and its server's metrics by what they mean, whatever the platform calls them. Pure; times in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from inference_benchmarker.verdict.server.hardware_use import CPU, GPU, GPU_MEMORY, NEAR, Use, used_hardware
from inference_benchmarker.verdict.server.known_metrics import BALANCER, BEDROCK, LAMBDA, SAGEMAKER
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inference_benchmarker.facts.server_metric import ServerMetric
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.summary import Summary

_SECONDS = {"Seconds": 1.0, "Milliseconds": 1e-3, "Microseconds": 1e-6}

Place = tuple[str, str]
"""CloudWatch's (namespace, metric)."""

# Where each platform tells what a request took at the server, how many it had, and how many ended by its own fault.
_TIMES: tuple[Place, ...] = (
    (SAGEMAKER, "ModelLatency"),
    (BALANCER, "TargetResponseTime"),
    (LAMBDA, "Duration"),
    (BEDROCK, "InvocationLatency"),
)
MOST_ERRORS = 0.01
MOST_APART = 0.1
"""The share of the window's latency by which the warm-up's may differ, and leave a mean of both what it is."""
_ASYNCHRONOUS = ("TimeInBacklog", "TotalProcessingTime", "ApproximateBacklogSize")
_COUNTS: tuple[Place, ...] = (
    (SAGEMAKER, "Invocations"),
    (BALANCER, "RequestCount"),
    (LAMBDA, "Invocations"),
    (BEDROCK, "Invocations"),
)


RemarkCode = Literal[
    "time",
    "model_latency",
    "overhead_latency",
    "network",
    "cpu",
    "gpu",
    "memory",
    "gpu_memory",
    "disk",
    "kv_cache",
    "server_errors",
    "refused",
    "server_log",
    "queueing",
    "model_cache",
    "cold_start",
    "foreign_traffic",
    "instances",
    "delayed_ack",
]
"""The closed list of remarks; docs/reference/server-metrics.md has a row for each."""


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing that the numbers say: ``measured`` states it with them, ``advice`` says what to do, where there is.

    ``lines``: of the server's log, to be shown below as they are.
    """

    code: RemarkCode
    measured: str
    advice: str = ""
    lines: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Both as sentences."""
        return f"{self.measured}. {self.advice}".rstrip()


@dataclass(frozen=True)
class PlatformMetrics:
    """One wave from both sides. ``limited_by``: the verdict's side."""

    facts: WaveFacts
    summary: Summary
    metrics: Sequence[ServerMetric]
    limited_by: str | None = None

    @cached_property
    def latency_s(self) -> float | None:
        """The mean latency of the ok requests: one that was abandoned has an age, and no time at the server."""
        if (counts := self.facts.counts) is not None:
            ok = counts.window.total("ok")
            return (counts.window.total("latency_sum") - counts.window.total("age_sum")) / ok / NS if ok else None
        count = total_ns = 0
        for part in self.facts.records.parts("sent", "done", "outcome"):
            took = (part.int("done") - part.int("sent"))[part.outcome("ok")]
            count, total_ns = count + len(took), total_ns + int(took.sum())
        return total_ns / count / NS if count else None

    @cached_property
    def _warmup_differs(self) -> bool:
        """Tells whether the warm-up's requests took another time, so that a mean with theirs is not the window's."""
        if not self.facts.warmup_sent:
            return False
        counts = self.facts.counts
        ok = 0 if counts is None else counts.warmup.total("ok")
        if counts is None or not ok or not self.latency_s:
            return True
        mean_s = (counts.warmup.total("latency_sum") - counts.warmup.total("age_sum")) / ok / NS
        return abs(mean_s - self.latency_s) > MOST_APART * self.latency_s

    @cached_property
    def server_s(self) -> tuple[str, float] | None:
        """The platform's name for the mean time of a request at the server, and what it was.

        None where that time is no part of the client's latency: an asynchronous endpoint works when the client has its
        answer, and for a balancer a stream is over when it begins. Nor is it where a record is not one request.
        """
        asynchronous = (row for name in _ASYNCHRONOUS for row in self.rows(SAGEMAKER, name))
        if not self.is_request_per_record or any(_present(row.statistics.values()) for row in asynchronous):
            return None
        for place in _TIMES:
            if place[0] == BALANCER and self.summary.ttft is not None:
                continue
            if (mean := self.mean_s(*place)) is not None:
                return place[1], mean
        return None

    @property
    def server_longest_s(self) -> float | None:
        """The longest that a request took at the server, its platform's own part included; None where not asked for."""
        longest = [self._longest_s(*place) for place in _TIMES]
        known = _present(longest)
        return max(known) + (self._longest_s(SAGEMAKER, "OverheadLatency") or 0.0) if known else None

    @property
    def client_cpu_s(self) -> float | None:
        """The CPU seconds that a request took of this client, payloads aside; None where that is not known."""
        facts, summary = self.facts, self.summary
        shares = [use.cpu_share for use in facts.workers]
        known = _summed(shares)
        if known is None or not facts.ledger.sent:
            return None
        built = 0.0 if summary.build is None else summary.build.mean * summary.build.count
        seconds = summary.duration_s if summary.planned_s is None else summary.planned_s
        return max(known * seconds - built, 0.0) / facts.ledger.sent

    @property
    def longest_hold_s(self) -> float:
        """The longest that something kept a worker's event loop from coming round: its own code, not the endpoint."""
        return max((use.loop_delay.max_s for use in self.facts.workers if use.loop_delay), default=0.0)

    @property
    def overhead_s(self) -> float | None:
        """SageMaker's own mean time for a request."""
        return self.mean_s(SAGEMAKER, "OverheadLatency")

    @property
    def loading_s(self) -> float:
        """The seconds that requests of a multi-model endpoint waited for their models, as a mean over all requests."""
        hits, wait = self.average(SAGEMAKER, "ModelCacheHit"), self.mean_s(SAGEMAKER, "ModelLoadingWaitTime")
        return 0.0 if hits is None or wait is None else (1 - hits) * wait

    @property
    def network_s(self) -> float | None:
        """The client's latency less the server's times: the way there and back, and the client itself."""
        if self.latency_s is None or self.server_s is None:
            return None
        return self.latency_s - self.server_s[1] - (self.overhead_s or 0.0)

    @cached_property
    def invocations(self) -> float | None:
        """Requests that the server counted; None where it does not say."""
        return next((count for place in _COUNTS if (count := self.total(*place)) is not None), None)

    @cached_property
    def is_request_per_record(self) -> bool:
        """Tells whether a record is one request to the server; a task of a Locust file may send several, or none."""
        sent = self.facts.ledger.sent + self.facts.warmup_sent
        return self.facts.plan.locust_file is None or self.invocations == sent

    @cached_property
    def used_hardware(self) -> list[Use]:
        """The use of each part of the hardware."""
        return used_hardware(self.metrics)

    @property
    def too_slow(self) -> bool:
        """Tells whether a limit of the user's on latency or TTFT was missed."""
        metrics = ("default", "latency", "response_time", "ttft")
        limits = [slo for slo in self.facts.plan.slos if slo.metric in metrics]
        return any(not limit.met(self.summary.measured(limit.metric, limit.stat)) for limit in limits)

    @property
    def healthy(self) -> bool:
        """Tells whether the endpoint did what it was asked: hardly any errors, no limit missed."""
        return (self.summary.success_rate or 0.0) >= 1 - MOST_ERRORS and not self.too_slow

    @property
    def has_gpu(self) -> bool:
        """Tells whether it runs on GPUs, as far as that is known."""
        return any(
            use.resource in (GPU, GPU_MEMORY) or (use.hardware and use.hardware.gpus) for use in self.used_hardware
        )

    @property
    def shares(self) -> list[float]:
        """The known shares of CPUs and GPUs; one that idle time dilutes is known only where it is high all the same."""
        return [
            use.share
            for use in self.used_hardware
            if use.resource in (CPU, GPU) and use.share is not None and (use.share >= NEAR or not self.is_diluted(use))
        ]

    def is_diluted(self, use: Use) -> bool:
        """Tells whether the values cover more than the wave, so that idle time around it is in them."""
        return use.near or (use.length_s is not None and use.length_s > self.facts.window.duration_ns / NS)

    def rows(self, namespace: str, name: str) -> list[ServerMetric]:
        """The rows of a metric of CloudWatch, one for each endpoint: those of other dimensions count the same again."""
        found = [row for row in self.metrics if (row.namespace, row.name) == (namespace, name)]
        return [row for row in found if row.dimensions.keys() == found[0].dimensions.keys()]

    def total(self, namespace: str, name: str) -> float | None:
        """The Sum over all endpoints; None where one of them has none."""
        return _summed(row.statistics.get("Sum") for row in self.rows(namespace, name))

    def largest(self, namespace: str, name: str) -> float | None:
        """The largest Maximum."""
        return max(_present(row.statistics.get("Maximum") for row in self.rows(namespace, name)), default=None)

    def average(self, namespace: str, name: str) -> float | None:
        """The mean of a metric; over several endpoints by the requests of each, None where those are not known."""
        rows = self.rows(namespace, name)
        averages = [row.statistics.get("Average") for row in rows]
        weights = [1.0 if len(rows) == 1 else self._requests_of(row) for row in rows]
        total = _summed(weights)
        if total is None or not total:
            return None
        return _summed(None if a is None else a * (w or 0.0) / total for a, w in zip(averages, weights, strict=True))

    def mean_s(self, namespace: str, name: str) -> float | None:
        """The mean of a metric that is a time; None where it is one of other requests, too."""
        rows = list(self.rows(namespace, name))
        if any(row.bounds.get("Average") == "about" or not row.complete for row in rows):
            return None
        if self._warmup_differs and any("Average" in row.buckets for row in rows):
            return None
        mean = self.average(namespace, name)
        unit = next((row.unit for row in self.rows(namespace, name)), None)
        return None if mean is None else mean * _SECONDS.get(unit or "", 1.0)

    def _longest_s(self, namespace: str, name: str) -> float | None:
        longest = self.largest(namespace, name)
        unit = next((row.unit for row in self.rows(namespace, name)), None)
        return None if longest is None else longest * _SECONDS.get(unit or "", 1.0)

    def _requests_of(self, row: ServerMetric) -> float | None:
        counts = [each for place in _COUNTS for each in self.rows(*place) if each.dimensions == row.dimensions]
        return counts[0].statistics.get("Sum") if counts else None


def _present(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _summed(values: Iterable[float | None]) -> float | None:
    """The sum; None where there is nothing, or one is missing."""
    listed = list(values)
    present = _present(listed)
    return sum(present) if present and len(present) == len(listed) else None
