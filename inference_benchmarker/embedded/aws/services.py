"""The embedded endpoint as AWS's clients see it: telemetry on one side, CloudWatch and SageMaker on the other."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from inference_benchmarker.embedded.aws import cloudwatch, control_plane, logs
from inference_benchmarker.embedded.aws.aws_json import AwsJson
from inference_benchmarker.embedded.aws.cloudwatch import CloudWatch
from inference_benchmarker.embedded.aws.control_plane import ControlPlane
from inference_benchmarker.embedded.aws.gauges import Gauges
from inference_benchmarker.embedded.aws.logs import CloudWatchLogs
from inference_benchmarker.embedded.aws.metric_store import MetricStore
from inference_benchmarker.embedded.aws.models import ModelCache
from inference_benchmarker.embedded.aws.telemetry import Telemetry
from inference_benchmarker.units import NS

if TYPE_CHECKING:
    import asyncio

    from inference_benchmarker.embedded.config import EndpointConfig
    from inference_benchmarker.embedded.http.messages import Answer, Request
    from inference_benchmarker.embedded.queueing import QueueModel


class Aws:
    """Owns what AWS would know of the endpoint; ticks once a second until it is closed."""

    def __init__(self, config: EndpointConfig, queue: QueueModel, loop: asyncio.AbstractEventLoop) -> None:
        store = MetricStore()
        self.telemetry = Telemetry(config, store)
        self.models = (
            None
            if config.models_in_memory is None
            else ModelCache(config.models_in_memory, round(config.model_load_s * NS))
        )
        self._gauges = Gauges(config, queue, self.models, self.telemetry, time.monotonic_ns())
        services = {
            cloudwatch.TARGET_PREFIX: CloudWatch(config, store, self._published_now).service,
            logs.TARGET_PREFIX: CloudWatchLogs(config, self.telemetry.logs, self._published_now).service,
            control_plane.TARGET_PREFIX: ControlPlane(config, self.telemetry).service,
        }
        self._json = AwsJson(services, access_denied=config.access_denied)
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._tick()

    def answer(self, request: Request) -> Answer:
        """The answer of CloudWatch or of SageMaker's control plane."""
        return self._json.answer(request)

    def close(self) -> None:
        """Tick no more."""
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
