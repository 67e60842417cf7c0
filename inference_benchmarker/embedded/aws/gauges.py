"""The hardware that the embedded endpoint pretends to run on, and what it shows of it once an interval.

Its use follows from the servers' busy share: CPU exactly, the rest by the constants below. Each instance says its
own, so that a publication has as many samples as there are instances; each is their mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.embedded.aws.telemetry import HARDWARE, REQUESTS, Telemetry

if TYPE_CHECKING:
    from collections.abc import Sized

    from inference_benchmarker.embedded.config import EndpointConfig
    from inference_benchmarker.embedded.llm.engine import Engine
    from inference_benchmarker.embedded.queueing.model import QueueModel
    from inference_benchmarker.embedded.queueing.routed import RoutedQueues

# (cores, GPUs, type), by size.
_G5 = (
    (4, 1, "ml.g5.xlarge"),
    (8, 1, "ml.g5.2xlarge"),
    (16, 1, "ml.g5.4xlarge"),
    (32, 1, "ml.g5.8xlarge"),
    (48, 4, "ml.g5.12xlarge"),
    (64, 1, "ml.g5.16xlarge"),
    (96, 4, "ml.g5.24xlarge"),
    (192, 8, "ml.g5.48xlarge"),
)
_GPUS = {kind: gpus for _, gpus, kind in _G5}
# Percent of the whole when idle, and what a fully busy endpoint adds.
_MEMORY, _GPU, _GPU_MEMORY, _DISK = (20.0, 40.0), (0.0, 80.0), (50.0, 10.0), (12.0, 0.0)


def instance_type(config: EndpointConfig) -> str:
    """The configured type, or the smallest with a core for each server an instance may have."""
    servers = -(-config.servers_at_most // config.instances)
    return config.instance_type or next((kind for cores, _, kind in _G5 if cores >= servers), _G5[-1][-1])


def utilization(config: EndpointConfig, share: float) -> dict[str, float]:
    """The gauges of an instance when the servers it may have are busy for that share of the time, in percent.

    CPU is the sum over cores, one core a server: up to 100 x servers / instances. GPUs are summed up, too; an instance
    type that is not of g5 has none.
    """
    gpus = _GPUS.get(instance_type(config), 0)
    metrics = {
        "CPUUtilization": 100 * share * config.servers_at_most / config.instances,
        "MemoryUtilization": _MEMORY[0] + _MEMORY[1] * share,
        "DiskUtilization": _DISK[0] + _DISK[1] * share,
    }
    if gpus:
        metrics["GPUUtilization"] = gpus * (_GPU[0] + _GPU[1] * share)
        metrics["GPUMemoryUtilization"] = gpus * (_GPU_MEMORY[0] + _GPU_MEMORY[1] * share)
    return metrics


class Gauges:
    """Watches the queue: ``sample`` once a second, ``publish`` then and before anybody reads."""

    def __init__(
        self,
        config: EndpointConfig,
        queue: QueueModel | RoutedQueues | Engine,
        models: Sized | None,
        telemetry: Telemetry,
        now_ns: int,
    ) -> None:
        self._config = config
        self._queue = queue
        self._models = models
        self._telemetry = telemetry
        self._worked = self._work(now_ns)
        self._interval = telemetry.clock.interval(now_ns)
        self._concurrency: list[int] = []

    def sample(self, now_ns: int) -> None:
        """Count the requests that are in the endpoint now."""
        self._concurrency.append(self._queue.present(now_ns))

    def publish(self, now_ns: int) -> None:
        """Hand over the intervals that have ended."""
        interval = self._telemetry.clock.interval(now_ns)
        if interval > self._interval:
            self._publish(range(self._interval, interval), now_ns)
            self._interval = interval

    def _publish(self, intervals: range, now_ns: int) -> None:
        """The mean since the last publication; where intervals were slept through, the same for each."""
        before, self._worked = self._worked, self._work(now_ns)
        if self._concurrency:  # samples miss what is shorter than a second
            self._concurrency.append(self._queue.take_peak(now_ns))
        share = (self._worked[0] - before[0]) / (self._worked[1] - before[1])
        metrics = {name: ("Percent", value) for name, value in utilization(self._config, share).items()}
        if self._models is not None:
            metrics["LoadedModelCount"] = ("None", len(self._models))
        for interval in intervals:
            self._publish_interval(interval, metrics)
        self._concurrency = []

    def _work(self, now_ns: int) -> tuple[int, int]:
        """The work that the servers did and could have done, in ns of one server."""
        return self._queue.busy_ns(now_ns), self._queue.server_ns(now_ns)

    def _publish_interval(self, interval: int, metrics: dict[str, tuple[str, float]]) -> None:
        telemetry, clock = self._telemetry, self._telemetry.clock
        for name in telemetry.names:
            for metric, (unit, value) in metrics.items():
                cell = clock.cell(interval, unit, [value], [telemetry.instances])
                telemetry.add(HARDWARE, metric, name, cell)
            if self._concurrency:
                each = [present / telemetry.instances for present in self._concurrency]
                cell = clock.cell(interval, "Count", each, [telemetry.instances] * len(each))
                telemetry.add(REQUESTS, "ConcurrentRequestsPerModel", name, cell)
