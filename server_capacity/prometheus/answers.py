"""A Prometheus server's JSON, and the PromQL it is asked.

https://prometheus.io/docs/prometheus/latest/querying/api/
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from server_capacity.prometheus.block import WINDOW, percent_of
from server_capacity.prometheus.exposition import Labels, render_selector
from server_capacity.prometheus.web import WebError

if TYPE_CHECKING:
    from collections.abc import Callable

OVER_TIME = {"Average": "avg", "Maximum": "max", "Minimum": "min", "Last": "last"}
NOT_JSON = "this is not Prometheus' JSON: is it the address of a Prometheus server?"

Points = tuple[tuple[float, float], ...]
Vector = tuple[tuple[Labels, float], ...]
"""(labels, value) of each series."""


def fill(query: str, seconds: float) -> str:
    """The query with the window's length for {window}."""
    return query.replace(WINDOW, f"{max(1, round(seconds * 1000))}ms")


def promql(selector: tuple[str, Labels], statistic: str) -> str:
    """The statistic of the selected series over the window."""
    if (percent := percent_of(statistic)) is not None:
        buckets = render_selector(f"{selector[0]}_bucket", selector[1])
        return f"histogram_quantile({percent / 100:.10g}, rate({buckets}[{WINDOW}]))"
    series = f"{render_selector(*selector)}[{WINDOW}]"
    if statistic in OVER_TIME:
        return f"{OVER_TIME[statistic]}_over_time({series})"
    return f"{'rate' if statistic == 'Rate' else 'increase'}({series})"


def not_finite(value: float) -> str | None:
    """The reason for a value that is no number."""
    return None if math.isfinite(value) else f"the value is {'NaN' if math.isnan(value) else f'{value:+}'.title()}"


def decoded(decode: Callable[[Any], Any], data: Any) -> Any:
    """The data as ``decode`` makes it; WebError where it has another shape."""
    try:
        return decode(data)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise WebError(NOT_JSON) from None


def vector(data: dict[str, Any]) -> Vector:
    """The series of an instant query. Raises WebError for a result that is no number."""
    kind, result = data["resultType"], data["result"]
    if kind == "scalar":
        return (((), float(result[1])),)
    if kind == "matrix":
        raise WebError(f"the query gives ranges, not values: put rate(...[{WINDOW}]) or the like around it")
    if kind == "string":
        raise WebError("the query gives a text, not a number")
    if any("histogram" in each for each in result):
        raise WebError("the query gives native histograms: put histogram_quantile(...) around it")
    return tuple((_labels(each["metric"]), float(each["value"][1])) for each in result)


def matrix(data: dict[str, Any]) -> dict[Labels, Points]:
    """The finite points of a range query, by labels."""
    found = {}
    for each in data["result"] if data["resultType"] == "matrix" else ():
        points = ((float(at), float(value)) for at, value in each.get("values", ()))
        finite = tuple((at, value) for at, value in points if math.isfinite(value))
        if finite:
            found[_labels(each["metric"])] = finite
    return found


def _labels(metric: dict[str, Any]) -> Labels:
    return tuple(sorted((str(name), str(value)) for name, value in metric.items()))
