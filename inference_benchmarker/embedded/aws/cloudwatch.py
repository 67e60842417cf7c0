"""CloudWatch's GetMetricData, PutMetricData and ListMetrics over the store.

Where it differs from AWS: PutMetricData takes namespaces that begin with AWS/, so that tests can date any metric
back; it is visible once its own age is the publication delay; ListMetrics knows a metric as soon as it is visible.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.aws.aws_json import AwsError, Caller, Service
from inference_benchmarker.embedded.aws.metric_data import MetricData, dimensions
from inference_benchmarker.embedded.aws.metric_store import Cell, Metric, MetricStore, Summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.embedded.config import EndpointConfig

TARGET_PREFIX = "GraniteServiceVersion20100801"
_LISTED = 500
_ACTIVE_S = 3 * 3600
_OLDEST_S, _NEWEST_S = 14 * 86_400, 2 * 3600
_MOST_VALUES, _MOST_DATA = 150, 1000


class CloudWatch:
    """The operations. ``now``: seconds since the epoch, after everything due has been published."""

    def __init__(self, config: EndpointConfig, store: MetricStore, now: Callable[[], float]) -> None:
        self._config = config
        self._store = store
        self._now = now
        self._calls = 0
        operations = {
            "GetMetricData": self._get_metric_data,
            "PutMetricData": self._put_metric_data,
            "ListMetrics": self._list_metrics,
        }
        self.service = Service("cloudwatch", operations, query_compatible=True)

    def _get_metric_data(self, request: dict[str, Any], _: Caller) -> dict[str, Any]:
        self._calls += 1
        if self._config.throttle_every and self._calls % self._config.throttle_every == 0:
            raise AwsError("Throttling", "Rate exceeded")
        return MetricData(self._store, self._config.metric_faults, request, self._now()).page()

    def _put_metric_data(self, request: dict[str, Any], _: Caller) -> dict[str, Any]:
        data = request.get("MetricData") or []
        if len(data) > _MOST_DATA:
            raise _refused(f"The collection MetricData must not have a size greater than {_MOST_DATA}.")
        now = self._now()
        cells = [(self._metric(request["Namespace"], datum), self._cell(datum, now)) for datum in data]
        for metric, cell in cells:
            self._store.add(metric, cell)
        return {}

    @staticmethod
    def _metric(namespace: str, datum: dict[str, Any]) -> Metric:
        return Metric(namespace, datum["MetricName"], dimensions(datum.get("Dimensions")))

    def _cell(self, datum: dict[str, Any], now: float) -> Cell:
        at = float(datum.get("Timestamp", now))
        if not now - _OLDEST_S <= at <= now + _NEWEST_S:
            raise _refused("The parameter Timestamp must be within the last two weeks or the next two hours.")
        resolution = datum.get("StorageResolution", 60)
        if resolution not in (1, 60):
            raise _refused("The parameter StorageResolution must be 1 or 60.")
        stored_at, visible_at = at // resolution * resolution, at + self._config.publication_delay_s
        unit = datum.get("Unit", "None")
        if summary := datum.get("StatisticValues"):
            numbers = [float(summary[name]) for name in ("SampleCount", "Sum", "Minimum", "Maximum")]
            return Cell(stored_at, visible_at, unit, Summary(*numbers))
        return Cell(stored_at, visible_at, unit, *_values(datum))

    def _list_metrics(self, request: dict[str, Any], _: Caller) -> dict[str, Any]:
        first = int(request.get("NextToken") or 0)
        now = self._now()  # once: it publishes what has ended, and so may know further metrics
        wanted = (metric for metric in self._store.metrics() if self._is_listed(metric, request, now))
        found = list(islice(wanted, first, first + _LISTED + 1))
        output: dict[str, Any] = {"Metrics": [_described(metric) for metric in found[:_LISTED]]}
        if len(found) > _LISTED:
            output["NextToken"] = str(first + _LISTED)
        return output

    def _is_listed(self, metric: Metric, request: dict[str, Any], now: float) -> bool:
        if request.get("Namespace", metric.namespace) != metric.namespace:
            return False
        if request.get("MetricName", metric.name) != metric.name:
            return False
        has = dict(metric.dimensions)
        for asked in request.get("Dimensions") or ():
            if asked["Name"] not in has or asked.get("Value", has[asked["Name"]]) != has[asked["Name"]]:
                return False
        since = now - _ACTIVE_S if request.get("RecentlyActive") else float("-inf")
        return any(True for _ in self._store.cells(metric, since, float("inf"), now))


def _values(datum: dict[str, Any]) -> tuple[list[float], list[float] | None]:
    """The raw values of a datum and how often each occurred."""
    if "Value" in datum:
        return [float(datum["Value"])], None
    values = [float(value) for value in datum.get("Values") or ()]
    counts = [float(number) for number in datum["Counts"]] if datum.get("Counts") else None
    if not values:
        raise AwsError("MissingParameter", "A datum needs Value, Values or StatisticValues.")
    if len(values) > _MOST_VALUES:
        raise _refused(f"The collection Values must not have a size greater than {_MOST_VALUES}.")
    if counts is not None and len(counts) != len(values):
        raise AwsError("InvalidParameterValue", "The parameters Values and Counts must have the same length.")
    return values, counts


def _refused(message: str) -> AwsError:
    return AwsError("InvalidParameterValue", message)


def _described(metric: Metric) -> dict[str, Any]:
    pairs = [{"Name": name, "Value": value} for name, value in sorted(metric.dimensions)]
    return {"Namespace": metric.namespace, "MetricName": metric.name, "Dimensions": pairs}
