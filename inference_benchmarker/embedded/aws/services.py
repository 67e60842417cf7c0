"""The embedded endpoint as AWS's clients see it: telemetry and instances on one side, AWS's services on the other."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.embedded.aws import application_autoscaling, cloudwatch, control_plane, logs
from inference_benchmarker.embedded.aws.alarms import Alarms
from inference_benchmarker.embedded.aws.application_autoscaling import ApplicationAutoScaling
from inference_benchmarker.embedded.aws.aws_json import AwsJson
from inference_benchmarker.embedded.aws.cloudwatch import CloudWatch
from inference_benchmarker.embedded.aws.control_plane import ControlPlane
from inference_benchmarker.embedded.aws.gauges import Gauges
from inference_benchmarker.embedded.aws.logs import CloudWatchLogs
from inference_benchmarker.embedded.aws.metric_store import MetricStore
from inference_benchmarker.embedded.aws.models import ModelCache
from inference_benchmarker.embedded.aws.scaling import EndpointScaling
from inference_benchmarker.embedded.aws.telemetry import Telemetry
from inference_benchmarker.units import NS

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from inference_benchmarker.embedded.aws.aws_json import Service
    from inference_benchmarker.embedded.config import EndpointConfig
    from inference_benchmarker.embedded.http.messages import Answer, Request
    from inference_benchmarker.embedded.queueing.model import QueueModel


class Aws:
    """Owns what AWS would know of the endpoint; ticks once a second until it is closed.

    ``serve_with`` is told an instant and the number of servers that there are from then on.
    """

    def __init__(
        self,
        config: EndpointConfig,
        queue: QueueModel,
        loop: asyncio.AbstractEventLoop,
        serve_with: Callable[[int, int], None],
    ) -> None:
        store = MetricStore()
        self.telemetry = Telemetry(config, store)
        self.models = (
            None
            if config.models_in_memory is None
            else ModelCache(config.models_in_memory, round(config.model_load_s * NS))
        )
        self._gauges = Gauges(config, queue, self.models, self.telemetry, time.monotonic_ns())
        self._scaling = EndpointScaling(config, self.telemetry, store, serve_with, loop)
        self.instances = self._scaling.instances
        self._json = AwsJson(self._services(config, store), access_denied=config.access_denied)
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._tick()

    def _services(self, config: EndpointConfig, store: MetricStore) -> dict[str, Service]:
        telemetry, scaling = self.telemetry, self._scaling
        metrics = CloudWatch(config, store, self._published_now).service
        alarms = Alarms(scaling.autoscaler)
        autoscaling = ApplicationAutoScaling(scaling.autoscaler, scaling.metrics.source, lambda: telemetry.names)
        return {
            application_autoscaling.TARGET_PREFIX: autoscaling.service,
            cloudwatch.TARGET_PREFIX: replace(metrics, operations={**metrics.operations, **alarms.operations}),
            logs.TARGET_PREFIX: CloudWatchLogs(config, telemetry.logs, self._published_now).service,
            control_plane.TARGET_PREFIX: ControlPlane(config, telemetry, scaling).service,
        }

    def answer(self, request: Request) -> Answer:
        """The answer of CloudWatch, of Application Auto Scaling or of SageMaker's control plane."""
        return self._json.answer(request)

    def close(self) -> None:
        """Tick no more."""
        self._scaling.close()
        if self._timer:
            self._timer.cancel()

    def _tick(self) -> None:
        second = self._published_now()
        self._gauges.sample(time.monotonic_ns())
        self._timer = self._loop.call_later(1 - second % 1, self._tick)

    def _published_now(self) -> float:
        """The present, once all that has ended is published."""
        now = time.monotonic_ns()
        self._gauges.publish(now)
        self.telemetry.flush(now)
        return self.telemetry.clock.wall(now)
