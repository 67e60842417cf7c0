"""A Prometheus server's JSON, and the PromQL it is asked.

https://prometheus.io/docs/prometheus/latest/querying/api/
"""

from __future__ import annotations

import math
import re
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from server_capacity.metrics.prometheus.block import WINDOW
from server_capacity.metrics.prometheus.deltas import Bin
from server_capacity.metrics.prometheus.exposition import Labels, parse_value, render_selector
from server_capacity.metrics.prometheus.web import WebError

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.facts.server_metric import Interval

OVER_TIME = {"Average": "avg", "Maximum": "max", "Minimum": "min", "Last": "last"}
NOT_JSON = "this is not Prometheus' JSON: is it the URL of a Prometheus server?"

_QUANTILE = re.compile(r"\s*histogram_quantile\s*\(\s*(\d+\.?\d*|\.\d+)\s*,(.+)\)\s*", re.DOTALL)
_ANY_QUANTILE = re.compile(r"\bhistogram_quantile\s*\(")
IN_A_BUCKET = (
    "its histogram_quantile is interpolated within a bucket, or is only a bound of one: let the query be"
    " one histogram_quantile and nothing else"
)

FARTHEST = 0.25
"""What the time between two samples may have more or less than the window, as a share of the window."""

_EXTREME = re.compile(r"\b(?:max|min|quantile)_over_time\b")
_ROUNDING = 0.01

Points = tuple[tuple[float, float], ...]
Vector = tuple[tuple[Labels, float], ...]
"""(labels, value) of each series."""

Native = tuple[list[Bin], float, float]
"""A native histogram's bins, and the count and sum of its observations."""


def fill(query: str, seconds: float) -> str:
    """The query with the window's length for {window}."""
    return query.replace(WINDOW, f"{max(1, round(seconds * 1000))}ms")


def over_time(function: str, selector: tuple[str, Labels]) -> str:
    """That function of the selected series' samples within the window."""
    return f"{function}_over_time({render_selector(*selector)}[{WINDOW}])"


def no_sample(interval: Interval) -> str:
    """The reason why a value of before the window is not the window's."""
    length = interval.end - interval.start
    return f"the server has no sample within the window of {length:.3g} s: scrape more often, or send for longer"


def reaches_back(query: str, seconds: float, interval: Interval) -> str | None:
    """The reason why a query that reads from so many seconds before its end is not only of the window.

    An extreme over time is that of whatever came before, however short that was.
    """
    length = interval.end - interval.start
    if seconds <= (1 + (_ROUNDING if _EXTREME.search(query) else FARTHEST)) * length:
        return None
    if math.isinf(seconds):
        return (
            f"a range, offset or @ in it may begin before the window of {length:.3g} s: write [{WINDOW}] in its place"
        )
    return (
        f"its range of {round(seconds, 1):g} s begins before the window of {length:.3g} s: let ranges and offsets, one"
        f" in the other, be [{WINDOW}] in all, or send for longer"
    )


def quantile_of(query: str) -> tuple[float, str] | None:
    """The share and the buckets of a query that is one ``histogram_quantile`` and nothing else."""
    found = _QUANTILE.fullmatch(query)
    if found is None:
        return None
    depths = list(accumulate({"(": 1, ")": -1}.get(character, 0) for character in found[2]))
    return (float(found[1]), found[2]) if min(depths, default=0) >= 0 == depths[-1] else None


def hides_quantile(query: str) -> bool:
    """Tells whether a ``histogram_quantile`` is only a part of the query, so that its bucket is not known."""
    return _ANY_QUANTILE.search(query) is not None and quantile_of(query) is None


def unnamed(labels: Labels) -> Labels:
    """The labels without those that the server itself added, which are the same whatever the function."""
    return tuple(pair for pair in labels if not pair[0].startswith("__"))


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
        return (((), parse_value(result[1])),)
    if kind == "matrix":
        raise WebError(f"the query gives ranges, not values: put rate(...[{WINDOW}]) or the like around it")
    if kind == "string":
        raise WebError("the query gives a text, not a number")
    if any("histogram" in each for each in result):
        raise WebError("the query gives native histograms: put histogram_quantile(...) around it")
    return tuple((_labels(each["metric"]), parse_value(each["value"][1])) for each in result)


def histograms(data: dict[str, Any]) -> tuple[tuple[Labels, Native], ...]:
    """The native histograms of an instant query; series of numbers are left out."""
    return tuple(
        (_labels(each["metric"]), _native(each["histogram"][1])) for each in data["result"] if "histogram" in each
    )


def _native(histogram: dict[str, Any]) -> Native:
    bins = [
        Bin(parse_value(low), parse_value(high), parse_value(count))
        for _, low, high, count in histogram.get("buckets", ())
    ]
    return sorted(bins, key=lambda each: each.low), parse_value(histogram["count"]), parse_value(histogram["sum"])


def matrix(data: dict[str, Any]) -> dict[Labels, Points]:
    """The finite points of a range query, by labels; of native histograms, their counts."""
    found = {}
    for each in data["result"] if data["resultType"] == "matrix" else ():
        points = [(float(at), parse_value(value)) for at, value in each.get("values", ())]
        points += [(float(at), parse_value(value["count"])) for at, value in each.get("histograms", ())]
        finite = tuple((at, value) for at, value in sorted(points) if math.isfinite(value))
        if finite:
            found[_labels(each["metric"])] = finite
    return found


def message(body: Any) -> str:
    """AWS's words on a refusal, which is none of Prometheus' own."""
    words = body.get("message") or body.get("Message") if isinstance(body, dict) else None
    return words if isinstance(words, str) else ""


def _labels(metric: dict[str, Any]) -> Labels:
    return tuple(sorted((str(name), str(value)) for name, value in metric.items()))
