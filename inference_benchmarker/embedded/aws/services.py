"""The embedded endpoint as AWS's clients see it: fleets on one side, AWS's services on the other."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.embedded.aws import application_autoscaling, cloudwatch, logs, price_list, quotas, sts
from inference_benchmarker.embedded.aws.alarms import Alarms
from inference_benchmarker.embedded.aws.application_autoscaling import ApplicationAutoScaling
from inference_benchmarker.embedded.aws.aws_json import AwsJson, Service
from inference_benchmarker.embedded.aws.cloudwatch import CloudWatch
from inference_benchmarker.embedded.aws.control_plane.components import Components
from inference_benchmarker.embedded.aws.control_plane.definitions import EndpointConfigs, Models
from inference_benchmarker.embedded.aws.control_plane.endpoints import Endpoints
from inference_benchmarker.embedded.aws.control_plane.hosted import World
from inference_benchmarker.embedded.aws.control_plane.tags import Tags
from inference_benchmarker.embedded.aws.fleet import Fleet
from inference_benchmarker.embedded.aws.fleets import Fleets
from inference_benchmarker.embedded.aws.logs import CloudWatchLogs
from inference_benchmarker.embedded.aws.metric_store import MetricStore
from inference_benchmarker.embedded.aws.price_list import PriceList
from inference_benchmarker.embedded.aws.quotas import ServiceQuotas

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from inference_benchmarker.embedded.aws.container_log import ContainerLog
    from inference_benchmarker.embedded.aws.telemetry import Place
    from inference_benchmarker.embedded.config import EndpointConfig
    from inference_benchmarker.embedded.http.messages import Answer, Request

_SAGEMAKER = "SageMaker"  # the prefix of its targets


class Aws:
    """Owns the fleets and what AWS would know of them; ticks once a second until it is closed.

    ``advance`` gets a fleet and an instant at which some of its answers may be due.
    """

    def __init__(
        self, config: EndpointConfig, loop: asyncio.AbstractEventLoop, advance: Callable[[Fleet, int], None]
    ) -> None:
        self._store = MetricStore()
        self._loop = loop
        self._advance = advance
        self.fleets = Fleets(Fleet(config, self._store, loop, advance))
        # What endpoints wrote that were made here, whether they are still there or not.
        self._made_logs: dict[str, ContainerLog] = {}
        self._json = AwsJson(self._services(config), access_denied=config.access_denied)
        self._timer: asyncio.TimerHandle | None = None
        self._tick()

    def _services(self, config: EndpointConfig) -> dict[str, Service]:
        metrics = CloudWatch(config, self._store, self._published_now).service
        alarms = Alarms(self.fleets)

        def later(seconds: float, call: Callable[[], None]) -> None:
            self._loop.call_later(seconds / config.time_factor, call)

        world = World(config, self.fleets, self._make, later, self._now)
        observed = {
            cloudwatch.TARGET_PREFIX: replace(metrics, operations={**metrics.operations, **alarms.operations}),
            logs.TARGET_PREFIX: CloudWatchLogs(config, self._logs, self._published_now).service,
        }
        if config.engine is not None:  # there is one engine, which nobody can scale or make again
            return observed
        return {
            **observed,
            application_autoscaling.TARGET_PREFIX: ApplicationAutoScaling(self.fleets).service,
            price_list.TARGET_PREFIX: PriceList(config.type_price, self._now()).service,
            quotas.TARGET_PREFIX: ServiceQuotas(config).service,
            _SAGEMAKER: _control_plane(world),
        }

    def _make(self, config: EndpointConfig, place: Place, is_serverless: bool) -> Fleet:
        fleet = Fleet(config, self._store, self._loop, self._advance, place, is_serverless=is_serverless)
        self._made_logs |= fleet.telemetry.logs()
        return fleet

    def _logs(self) -> dict[str, ContainerLog]:
        return {**self._made_logs, **self.fleets.own.telemetry.logs()}

    def answer(self, request: Request) -> Answer:
        """The answer of one of the services."""
        return sts.answer() if sts.is_meant(request) else self._json.answer(request)

    def close(self) -> None:
        """Tick no more."""
        for fleet in self.fleets.every():
            fleet.close()
        if self._timer:
            self._timer.cancel()

    def _tick(self) -> None:
        second = self._published_now()
        now = time.monotonic_ns()
        for fleet in self.fleets.every():
            fleet.sample(now)
        self._timer = self._loop.call_later(1 - second % 1, self._tick)

    def _now(self) -> float:
        return self.fleets.own.telemetry.clock.wall(time.monotonic_ns())

    def _published_now(self) -> float:
        """The present, once all that has ended is published."""
        now = time.monotonic_ns()
        for fleet in self.fleets.every():
            fleet.publish(now)
        return self.fleets.own.telemetry.clock.wall(now)


def _control_plane(world: World) -> Service:
    """All operations on models, configurations, endpoints, components and tags."""
    tags = Tags()
    models = Models(tags, world.now)
    configs = EndpointConfigs(models.registry, tags, world.now)
    endpoints = Endpoints(world, models.registry, configs, tags)
    components = Components(world, models.registry, endpoints.registry, tags)
    parts = (models, configs, endpoints, components, tags)
    return Service("sagemaker", {name: operation for part in parts for name, operation in part.operations.items()})
