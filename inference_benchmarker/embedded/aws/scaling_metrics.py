"""The metrics that scaling policies and alarms look at, a datapoint a minute or, of high resolution, every ten seconds.

A minute may be shorter than the clock's: what is counted in it is scaled to a whole one, so that a target means the
same. Invocations per instance and requests at once are the endpoint's own figures. Any other metric of CloudWatch is
read once it is visible, so it is as late as its publication, and no finer: of shorter minutes each has the newest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.aws.metric_data import dimensions
from inference_benchmarker.embedded.aws.metric_store import Metric, gather
from inference_benchmarker.embedded.aws.statistics import parse_statistic
from inference_benchmarker.embedded.aws.telemetry import REQUESTS
from inference_benchmarker.embedded.scaling.records import MetricSource
from inference_benchmarker.embedded.scaling.target_tracking import HIGH_RESOLUTION_S, PERIOD_S
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.embedded.aws.metric_store import MetricStore
    from inference_benchmarker.embedded.aws.telemetry import Telemetry, Traffic
    from inference_benchmarker.embedded.config import EndpointConfig

# Seconds since the epoch as a float are no better than that; without it, an instant may fall short of its own interval.
_PRECISION_S = 0.001
_COUNTED = ("Sum", "SampleCount")
CONCURRENCY = "SageMakerVariantConcurrentRequestsPerModelHighResolution"
_INVOCATIONS = (REQUESTS, "InvocationsPerInstance", "Sum")


class ScalingMetrics:
    """Makes the metric of a policy's configuration, or of an alarm.

    ``present_ns``: the integral of the requests in the endpoint up to an instant.
    """

    def __init__(
        self,
        config: EndpointConfig,
        telemetry: Telemetry,
        store: MetricStore,
        period_ns: int,
        present_ns: Callable[[int], int],
    ) -> None:
        self._present_ns = present_ns
        self._factor = config.time_factor
        self._telemetry = telemetry
        self._store = store
        self._period_s = period_ns / NS
        self._interval_s = config.publish_interval_s
        self._delay_s = config.publication_delay_s

    def source(self, endpoint_name: str, configuration: dict[str, Any]) -> MetricSource:
        """The metric that a configuration, found right, names."""
        given = configuration.get("CustomizedMetricSpecification")
        if given is not None:
            return self.named(endpoint_name, given)
        predefined = configuration.get("PredefinedMetricSpecification", {}).get("PredefinedMetricType")
        if predefined != CONCURRENCY:
            return self._invocations(endpoint_name)
        variant = tuple(sorted(self._telemetry.place.dimensions(endpoint_name)))
        read = _Concurrency(self._telemetry, self._present_ns).read
        return MetricSource(REQUESTS, "ConcurrentRequestsPerModel", variant, "Average", None, read, HIGH_RESOLUTION_S)

    def _invocations(self, endpoint_name: str) -> MetricSource:
        read = _Invocations(self._telemetry.traffic(endpoint_name), self._factor).read
        variant = tuple(sorted(self._telemetry.place.dimensions(endpoint_name)))
        return MetricSource(*_INVOCATIONS[:2], variant, _INVOCATIONS[2], None, read, PERIOD_S)

    def named(self, endpoint_name: str, given: dict[str, Any]) -> MetricSource:
        """The metric that a request to CloudWatch names, for an alarm of that endpoint's scaling."""
        metric = Metric(given["Namespace"], given["MetricName"], dimensions(given.get("Dimensions")))
        own = self._telemetry.place.dimensions(endpoint_name)
        if (*metric, given["Statistic"]) == (*_INVOCATIONS[:2], own, _INVOCATIONS[2]) and not given.get("Unit"):
            return self._invocations(endpoint_name)
        named = tuple(sorted(metric.dimensions))

        def read_store(now_ns: int, minutes: int) -> float | None:
            return self._read(metric, given["Statistic"], given.get("Unit"), now_ns, minutes)

        return MetricSource(*metric[:2], named, given["Statistic"], given.get("Unit"), read_store, PERIOD_S)

    def _read(self, metric: Metric, statistic: str, unit: str | None, now_ns: int, minutes: int) -> float | None:
        """The statistic over the newest minutes of which all is visible, up to the end of a publication's interval."""
        now = self._telemetry.clock.wall(now_ns) + _PRECISION_S
        end = (now - self._delay_s) // self._interval_s * self._interval_s
        window_s = max(minutes * self._period_s, self._interval_s)
        cells = self._store.cells(metric, end - window_s, end, now)
        found = [cell for cell in cells if unit in (None, cell.unit)]
        value = parse_statistic(statistic)(gather(found)) if found else None
        return value * PERIOD_S / window_s if value is not None and statistic in _COUNTED else value


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


class _Concurrency:
    """The mean number of requests at once on an instance, by how many instances there are at a period's end."""

    def __init__(self, telemetry: Telemetry, present_ns: Callable[[int], int]) -> None:
        self._telemetry = telemetry
        self._present_ns = present_ns
        self._before: tuple[int, int] | None = None

    def read(self, now_ns: int, _: int) -> float | None:
        """The mean since this was last asked; the first period of a policy was not whole and is missing."""
        before, self._before = self._before, (now_ns, self._present_ns(now_ns))
        if before is None or now_ns <= before[0]:
            return None
        return (self._before[1] - before[1]) / (now_ns - before[0]) / self._telemetry.instances
