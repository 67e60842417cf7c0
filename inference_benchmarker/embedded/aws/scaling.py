"""The embedded endpoint's instances on the event loop: asked for by hand or by policies, there when they are due."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from inference_benchmarker.embedded.aws.scaling_metrics import ScalingMetrics
from inference_benchmarker.embedded.scaling.autoscaler import Autoscaler
from inference_benchmarker.embedded.scaling.instances import Instances
from inference_benchmarker.units import NS

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from inference_benchmarker.embedded.aws.metric_store import MetricStore
    from inference_benchmarker.embedded.aws.telemetry import Telemetry
    from inference_benchmarker.embedded.config import EndpointConfig


class EndpointScaling:
    """Owns the instances and the autoscaler, and the timers of both until it is closed.

    ``serve_with`` is told an instant and the number of instances that there are from then on.
    """

    def __init__(
        self,
        config: EndpointConfig,
        telemetry: Telemetry,
        store: MetricStore,
        serve_with: Callable[[int, int], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        factor, clock = config.time_factor, telemetry.clock
        self.instances = Instances(config.instances, round(config.instance_start_s * NS / factor))
        self.autoscaler = Autoscaler(self.instances, factor, clock.wall, self.ask)
        self.metrics = ScalingMetrics(config, telemetry, store, self.autoscaler.period_ns)
        self.changed_at = telemetry.started_at
        self._telemetry = telemetry
        self._serve_with = serve_with
        self._loop = loop
        self._arrival: asyncio.TimerHandle | None = None
        self._minute_ns = clock.next_multiple(time.monotonic_ns(), self.autoscaler.period_ns)
        self._minute = loop.call_at(self._minute_ns / NS, self._end_minute)

    def ask(self, count: int, now_ns: int) -> None:
        """Ask for that many instances; not while others are on their way."""
        self.changed_at = self._telemetry.clock.wall(now_ns)
        due_ns = self.instances.ask(count, now_ns)
        if due_ns <= now_ns:
            self._arrive(now_ns)
        else:
            self._arrival = self._loop.call_at(due_ns / NS, self._arrive, due_ns)

    def close(self) -> None:
        """Nothing happens any more."""
        self._minute.cancel()
        if self._arrival:
            self._arrival.cancel()

    def _arrive(self, due_ns: int) -> None:
        now_ns = max(due_ns, time.monotonic_ns())
        if self.instances.arrive(now_ns):
            count = self.instances.current
            self.changed_at = self._telemetry.clock.wall(now_ns)
            self._telemetry.resize(count, now_ns)
            self._serve_with(now_ns, count)
            self.autoscaler.arrived(now_ns)

    def _end_minute(self) -> None:
        """One minute has ended; more where the process did not get round to it."""
        now_ns, period_ns = max(self._minute_ns, time.monotonic_ns()), self.autoscaler.period_ns
        minutes = 1 + (now_ns - self._minute_ns) // period_ns
        self._minute_ns += minutes * period_ns
        self._minute = self._loop.call_at(self._minute_ns / NS, self._end_minute)
        self.autoscaler.minutes_passed(minutes, now_ns)
