"""The metrics that scaling policies track, a datapoint a minute: invocations per instance, or one of CloudWatch's.

A minute may be shorter than the clock's: what is counted in it is told as of a whole one, so that a target means the
same. A metric of CloudWatch is read once it is visible, so it is as late as its publication; it needs one a minute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.aws.metric_data import dimensions
from inference_benchmarker.embedded.aws.metric_store import Metric, gather
from inference_benchmarker.embedded.aws.statistics import parse_statistic
from inference_benchmarker.embedded.aws.telemetry import REQUESTS
from inference_benchmarker.embedded.scaling.records import MetricSource
from inference_benchmarker.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.embedded.aws.metric_store import MetricStore
    from inference_benchmarker.embedded.aws.telemetry import Telemetry, Traffic
    from inference_benchmarker.embedded.config import EndpointConfig

# Seconds since the epoch as a float are no better than that; without it, an instant may fall short of its own interval.
_PRECISION_S = 0.001
_COUNTED = ("Sum", "SampleCount")


class ScalingMetrics:
    """Makes the metric of a policy's configuration."""

    def __init__(self, config: EndpointConfig, telemetry: Telemetry, store: MetricStore, period_ns: int) -> None:
        self._factor = config.time_factor
        self._telemetry = telemetry
        self._store = store
        self._period_s = period_ns / NS
        self._interval_s = config.publish_interval_s
        self._delay_s = config.publication_delay_s

    def source(self, endpoint_name: str, configuration: dict[str, Any]) -> MetricSource:
        """The metric that a configuration, found right, names."""
        given = configuration.get("CustomizedMetricSpecification")
        if given is None:
            read = _Invocations(self._telemetry.traffic(endpoint_name), self._factor).read
            variant = tuple(sorted(self._telemetry.place.dimensions(endpoint_name)))
            return MetricSource(REQUESTS, "InvocationsPerInstance", variant, "Sum", None, read)
        metric = Metric(given["Namespace"], given["MetricName"], dimensions(given.get("Dimensions")))
        named = tuple(sorted(metric.dimensions))

        def read_store(now_ns: int, minutes: int) -> float | None:
            return self._read(metric, given["Statistic"], given.get("Unit"), now_ns, minutes)

        return MetricSource(*metric[:2], named, given["Statistic"], given.get("Unit"), read_store)

    def _read(self, metric: Metric, statistic: str, unit: str | None, now_ns: int, minutes: int) -> float | None:
        """The statistic over the newest minutes of which all is visible, up to the end of a publication's interval."""
        now = self._telemetry.clock.wall(now_ns) + _PRECISION_S
        end = (now - self._delay_s) // self._interval_s * self._interval_s
        cells = self._store.cells(metric, end - minutes * self._period_s, end, now)
        found = [cell for cell in cells if unit in (None, cell.unit)]
        value = parse_statistic(statistic)(gather(found)) if found else None
        return value * self._factor / minutes if value is not None and statistic in _COUNTED else value


class _Invocations:
    """The invocations per instance of each minute; the first minute of a policy was not whole and is missing."""

    def __init__(self, traffic: Traffic, factor: float) -> None:
        self._traffic = traffic
        self._factor = factor
        self._before: float | None = None

    def read(self, _: int, minutes: int) -> float | None:
        """The mean of the minutes that have just ended."""
        before, self._before = self._before, self._traffic.per_instance
        return None if before is None else (self._before - before) * self._factor / minutes
