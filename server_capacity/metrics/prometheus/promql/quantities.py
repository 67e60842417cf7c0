"""A preset's gauges, counters and histograms as a Prometheus server has them, by PromQL."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from server_capacity.metrics.prometheus.block import WINDOW
from server_capacity.metrics.prometheus.deltas import bins_of, quantile
from server_capacity.metrics.prometheus.exposition import Labels, render_selector
from server_capacity.metrics.prometheus.presets import DEFAULTS
from server_capacity.metrics.prometheus.promql.answers import OVER_TIME, over_time, unnamed
from server_capacity.metrics.prometheus.promql.gains import Gain, gain
from server_capacity.metrics.prometheus.scraping.distributions import bound_of, estimates, of_buckets, without_bound
from server_capacity.metrics.prometheus.web import WebError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inference_benchmarker.facts.server_metric import Bound, Interval
    from server_capacity.metrics.prometheus.deltas import Bin, Estimate
    from server_capacity.metrics.prometheus.promql.answers import Points
    from server_capacity.metrics.prometheus.promql.api import Api

T = TypeVar("T")
Selector = tuple[str, Labels]


@dataclass(slots=True)
class Quantity:
    """One series: its values, which are bounds or within a bucket, how many samples they are of, and remarks."""

    values: dict[str, float] = field(default_factory=dict)
    bounds: dict[str, Bound] = field(default_factory=dict)
    samples: int | None = None
    notes: list[str] = field(default_factory=list)
    buckets: dict[str, tuple[float, float]] = field(default_factory=dict)


Quantities = dict[Labels, Quantity]


def gauges(api: Api, selector: Selector, interval: Interval) -> tuple[Quantities, str]:
    """The statistics over the window's samples; one that the server refuses takes no other with it."""
    found: Quantities = {}
    refused: list[str] = []
    error: WebError | None = None
    for statistic in (*DEFAULTS["gauge"], "samples"):
        function = OVER_TIME.get(statistic, "count")
        try:
            series, _ = api.values(over_time(function, selector), interval.under_load)
        except WebError as failed:
            error = error or failed
            refused.append(f"{statistic}: {failed}")
            continue
        for labels, value in series:
            quantity = found.setdefault(unnamed(labels), Quantity())
            if statistic == "samples":
                quantity.samples = round(value)
            else:
                quantity.values[statistic] = value
        if not found:
            break
    if error is not None and not any(quantity.values for quantity in found.values()):
        raise error
    for quantity in found.values():
        quantity.notes += refused
    return found, render_selector(*selector)


def counters(api: Api, selector: Selector, interval: Interval) -> tuple[Quantities, str]:
    """The gain over the window, and the same per second."""
    series, loaded = render_selector(*selector), interval.under_load
    totals = gains(api, series, interval)
    rates = totals if loaded == interval or not totals else gains(api, series, loaded, goes_on=True)
    length = loaded.end - loaded.start
    found = {}
    for labels, total in totals.items():
        rate = rates.get(labels, Gain(None))
        per_second = replace(rate, value=None if rate.value is None else rate.value / length)
        found[labels] = _of_gains({"Total": total, "Rate": per_second})
    return found, f"rate({series}[{WINDOW}])"


def gains(api: Api, series: str, interval: Interval, *, goes_on: bool = False) -> dict[Labels, Gain]:
    """The gain of each series; ``goes_on``: our requests may count after the interval's end."""
    increases, resets = (
        {unnamed(labels): value for labels, value in api.values(f"{function}({series}[{WINDOW}])", interval)[0]}
        for function in ("increase", "resets")
    )
    samples = _samples(api, series, interval)
    within = {
        each for each, points in samples.items() if points[0][0] <= interval.end and points[-1][0] > interval.start
    }
    return {
        labels: gain(
            samples.get(labels, ()),
            interval,
            increases.get(labels),
            restarted=resets.get(labels, 0) > 0,
            goes_on=goes_on,
        )
        for labels in {**increases, **samples}
        if labels in increases or labels in within or not (within or increases)
    }


def _samples(api: Api, series: str, interval: Interval) -> dict[Labels, Points]:
    """The samples around the window's ends; none where the server shows none, as one that finds them too many."""
    try:
        return api.samples(series, interval)
    except WebError:
        return {}


def _of_gains(gained: dict[str, Gain]) -> Quantity:
    values = {statistic: each.value for statistic, each in gained.items() if each.value is not None}
    bounds: dict[str, Bound] = {statistic: "about" for statistic in values if gained[statistic].near}
    return Quantity(values, bounds, notes=[*dict.fromkeys(each.note for each in gained.values() if each.note)])


def histograms(api: Api, selector: Selector, interval: Interval) -> tuple[Quantities, str]:
    """The mean, quantiles and extremes of what was observed within the window: of classic buckets, else native ones."""
    name, labels = selector
    if buckets := gains(api, render_selector(f"{name}_bucket", labels), interval):
        total, summed = (render_selector(name + suffix, labels) for suffix in ("_count", "_sum"))
        found = _classic(buckets, gains(api, summed, interval))
        return found, f"rate({summed}[{WINDOW}]) / rate({total}[{WINDOW}])"
    series = render_selector(name, labels)
    rate = f"rate({series}[{WINDOW}])"
    for query in (f"increase({series}[{WINDOW}])", f"{series} - {series} offset {WINDOW}"):
        if natives := api.histograms(query, interval):
            samples = _samples(api, series, interval)
            found = {}
            for each, (bins, count, summed_) in natives:
                inside = tuple(point for point in samples.get(unnamed(each), ()) if point[0] < interval.end)
                whole = [gain(inside, interval, count, restarted=count < 0)]
                found[unnamed(each)] = _distribution(bins, count, summed_, whole)
            return found, f"histogram_sum({rate}) / histogram_count({rate})"
    return {}, ""


def _classic(buckets: dict[Labels, Gain], sums: dict[Labels, Gain]) -> Quantities:
    found = {}
    for labels, gained in _grouped(buckets.items()).items():
        summed = sums.get(labels, Gain(None))
        values = tuple((bound, each.value or 0.0) for bound, each in gained)
        parts = [each for _, each in gained] + [summed] * (summed.value is not None)
        found[labels] = _distribution(bins_of(values), values[-1][1], summed.value, parts)
    return found


def quantiles(share: float, buckets: Sequence[tuple[Labels, float]]) -> dict[Labels, Estimate]:
    """The quantile of each histogram whose buckets these are."""
    found = {labels: quantile(share, bins_of(cumulative)) for labels, cumulative in _grouped(buckets).items()}
    return {labels: estimate for labels, estimate in found.items() if estimate is not None}


def _grouped(buckets: Iterable[tuple[Labels, T]]) -> dict[Labels, tuple[tuple[float, T], ...]]:
    """The buckets of each histogram in the order of their bounds."""
    groups: dict[Labels, dict[float, T]] = {}
    for labels, gained in buckets:
        bound = bound_of(dict(labels))
        if bound is not None:
            groups.setdefault(unnamed(without_bound(labels)), {})[bound] = gained
    return {labels: tuple(sorted(group.items(), key=lambda pair: pair[0])) for labels, group in groups.items()}


def _distribution(bins: Sequence[Bin], count: float, summed: float | None, parts: Sequence[Gain]) -> Quantity:
    """The statistics of bins, of which ``parts`` say whether they are the window's."""
    notes = [*dict.fromkeys(part.note for part in parts if part.note)]
    if any(part.value is None for part in parts):
        return Quantity(notes=notes)
    found = estimates(of_buckets(DEFAULTS["histogram"]), bins)
    values = {statistic: estimate.value for statistic, estimate in found.items()}
    if summed is not None and count > 0:
        values["Average"] = summed / count
    observed = max(count, 0.0) if math.isfinite(count) else 0.0
    if not bins or observed == 0:
        notes.append("nothing was observed within the window" if observed == 0 else "the bucket le=+Inf is missing")
    bounds = {statistic: estimate.bound for statistic, estimate in found.items() if estimate.bound}
    if any(part.near for part in parts):
        bounds = dict.fromkeys(values, "about")
    within = {statistic: estimate.bucket for statistic, estimate in found.items() if estimate.bucket}
    return Quantity(values, bounds, round(observed), notes, within)
