"""The embedded endpoint's instances on the event loop: asked for by hand or by policies, there when they are due."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from inference_benchmarker.embedded.aws.scaling_metrics import ScalingMetrics
from inference_benchmarker.embedded.scaling.autoscaler import Autoscaler
from inference_benchmarker.embedded.scaling.instances import Instances
from inference_benchmarker.embedded.scaling.target_tracking import HIGH_RESOLUTION_S, PERIOD_S
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from inference_benchmarker.embedded.aws.metric_store import MetricStore
    from inference_benchmarker.embedded.aws.telemetry import Telemetry
    from inference_benchmarker.embedded.config import EndpointConfig


class EndpointScaling:
    """Owns the instances and the autoscaler, and the timers of both until it is closed.

    ``serve_with`` gets an instant and the number of instances that there are from then on. ``present_ns``: the
    integral of the requests in the endpoint up to an instant.
    """

    def __init__(
        self,
        config: EndpointConfig,
        telemetry: Telemetry,
        store: MetricStore,
        serve_with: Callable[[int, int], None],
        loop: asyncio.AbstractEventLoop,
        *,
        present_ns: Callable[[int], int],
    ) -> None:
        factor, clock = config.time_factor, telemetry.clock
        self.instances = Instances(config.instances, round(config.instance_start_s * NS / factor))
        self.autoscaler = Autoscaler(self.instances, factor, clock.wall, self.ask)
        self.metrics = ScalingMetrics(config, telemetry, store, self.autoscaler.period_ns, present_ns)
        self.changed_at = telemetry.started_at
        self._telemetry = telemetry
        self._serve_with = serve_with
        self._loop = loop
        self._arrival: asyncio.TimerHandle | None = None
        # When each period ends, and the timer of that, by the period's length in seconds.
        self._ends_ns: dict[int, int] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}
        for period_s in (PERIOD_S, HIGH_RESOLUTION_S):
            self._await_end(period_s, clock.next_multiple(time.monotonic_ns(), self._length_ns(period_s)))

    def ask(self, count: int, now_ns: int) -> None:
        """Ask for that many instances; not while others are on their way."""
        self.changed_at = self._telemetry.clock.wall(now_ns)
        due_ns = self.instances.ask(count, now_ns)
        if due_ns <= now_ns:
            self._arrive(now_ns)
        else:
            self._arrival = self._loop.call_at(due_ns / NS, self._arrive, due_ns)

    def wall(self, now_ns: int) -> float:
        """Seconds since the epoch."""
        return self._telemetry.clock.wall(now_ns)

    def close(self) -> None:
        """Nothing happens any more."""
        for timer in self._timers.values():
            timer.cancel()
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

    def _length_ns(self, period_s: int) -> int:
        return self.autoscaler.period_ns * period_s // PERIOD_S

    def _await_end(self, period_s: int, end_ns: int) -> None:
        self._ends_ns[period_s] = end_ns
        self._timers[period_s] = self._loop.call_at(end_ns / NS, self._end_period, period_s)

    def _end_period(self, period_s: int) -> None:
        """One period has ended; more where the process did not get round to it."""
        end_ns, length_ns = self._ends_ns[period_s], self._length_ns(period_s)
        now_ns = max(end_ns, time.monotonic_ns())
        periods = 1 + (now_ns - end_ns) // length_ns
        self._await_end(period_s, end_ns + periods * length_ns)
        self.autoscaler.passed(periods, now_ns, period_s)
