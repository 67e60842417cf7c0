"""A preset's gauges, counters and histograms as a Prometheus server has them, by PromQL."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from server_capacity.metrics.prometheus.block import WINDOW
from server_capacity.metrics.prometheus.deltas import bins_of, quantile
from server_capacity.metrics.prometheus.exposition import Labels, render_selector
from server_capacity.metrics.prometheus.presets import DEFAULTS
from server_capacity.metrics.prometheus.promql.answers import (
    BEGAN_AGAIN,
    OVER_TIME,
    gains,
    over_time,
    stamps,
    too_far,
    unnamed,
)
from server_capacity.metrics.prometheus.scraping.distributions import bound_of, estimates, of_buckets, without_bound
from server_capacity.metrics.prometheus.web import WebError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.facts.server_metric import Bound, Interval
    from server_capacity.metrics.prometheus.deltas import Bin, Buckets, Estimate
    from server_capacity.metrics.prometheus.promql.api import Api

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
    series = render_selector(*selector)
    found: Quantities = {}
    for query, note in gains(series):
        totals, loaded = api.values(query, interval)[0], interval.under_load
        troubles = _troubles(api, series, interval) if note and totals else {}
        gained = dict(totals) if loaded == interval else dict(api.values(query, loaded)[0])
        for labels, total in totals:
            trouble = troubles.get(unnamed(labels)) or (BEGAN_AGAIN if total < 0 else None)
            values = {"Total": total}
            if labels in gained and (not note or loaded == interval):
                values["Rate"] = gained[labels] / (loaded.end - loaded.start)
            found[unnamed(labels)] = _gained({} if trouble else values, trouble or note)
        if found:
            break
    return found, f"rate({series}[{WINDOW}])"


def _gained(values: dict[str, float], note: str) -> Quantity:
    return Quantity(values, notes=[note] if note else [])


def _troubles(api: Api, series: str, interval: Interval) -> dict[Labels, str | None]:
    """The reason why the last samples before the window's start and end do not give the gain of a series, if so."""
    first, last = ({unnamed(labels): at for labels, at in api.values(q, interval)[0]} for q in stamps(series))
    return {labels: too_far(first[labels], last[labels], interval) for labels in first.keys() & last.keys()}


def histograms(api: Api, selector: Selector, interval: Interval) -> tuple[Quantities, str]:
    """The mean, quantiles and extremes of what was observed within the window: of classic buckets, else native ones."""
    name, labels = selector
    bucket = render_selector(f"{name}_bucket", labels)
    for query, note in gains(bucket):
        if buckets := api.values(query, interval)[0]:
            total, summed = (render_selector(name + suffix, labels) for suffix in ("_count", "_sum"))
            (sums, *_) = (each for each, why in gains(summed) if why == note)
            found = _classic(buckets, dict(api.values(sums, interval)[0]), note)
            if note:
                fell = {unnamed(without_bound(each)): BEGAN_AGAIN for each, gained in buckets if gained < 0}
                far = {
                    unnamed(without_bound(each)): why for each, why in _troubles(api, bucket, interval).items() if why
                }
                found |= {each: _gained({}, why) for each, why in (fell | far).items()}
            return found, f"rate({summed}[{WINDOW}]) / rate({total}[{WINDOW}])"
    series = render_selector(name, labels)
    rate = f"rate({series}[{WINDOW}])"
    for query, note in gains(series):
        if natives := api.histograms(query, interval):
            found = {unnamed(each): _distribution(bins, count, sum_, note) for each, (bins, count, sum_) in natives}
            if note:
                fell = {unnamed(each): BEGAN_AGAIN for each, (_, count, _) in natives if count < 0}
                far = {each: why for each, why in _troubles(api, series, interval).items() if why}
                found |= {each: _gained({}, why) for each, why in (fell | far).items()}
            return found, f"histogram_sum({rate}) / histogram_count({rate})"
    return {}, ""


def _classic(buckets: Sequence[tuple[Labels, float]], sums: dict[Labels, float], note: str) -> Quantities:
    by_series = {unnamed(labels): value for labels, value in sums.items()}
    return {
        labels: _distribution(bins_of(cumulative), cumulative[-1][1], by_series.get(labels), note)
        for labels, cumulative in _grouped(buckets).items()
    }


def quantiles(share: float, buckets: Sequence[tuple[Labels, float]]) -> dict[Labels, Estimate]:
    """The quantile of each histogram whose buckets these are."""
    found = {labels: quantile(share, bins_of(cumulative)) for labels, cumulative in _grouped(buckets).items()}
    return {labels: estimate for labels, estimate in found.items() if estimate is not None}


def _grouped(buckets: Sequence[tuple[Labels, float]]) -> dict[Labels, Buckets]:
    groups: dict[Labels, dict[float, float]] = {}
    for labels, gained in buckets:
        bound = bound_of(dict(labels))
        if bound is not None:
            groups.setdefault(unnamed(without_bound(labels)), {})[bound] = gained
    return {labels: tuple(sorted(group.items())) for labels, group in groups.items()}


def _distribution(bins: Sequence[Bin], count: float, summed: float | None, note: str) -> Quantity:
    found = estimates(of_buckets(DEFAULTS["histogram"]), bins)
    values = {statistic: estimate.value for statistic, estimate in found.items()}
    if summed is not None and count > 0:
        values["Average"] = summed / count
    observed = max(count, 0.0) if math.isfinite(count) else 0.0
    notes = [note] if note else []
    if not bins or observed == 0:
        notes.append("nothing was observed within the window" if observed == 0 else "the bucket le=+Inf is missing")
    bounds = {statistic: estimate.bound for statistic, estimate in found.items() if estimate.bound}
    within = {statistic: estimate.bucket for statistic, estimate in found.items() if estimate.bucket}
    return Quantity(values, bounds, round(observed), notes, within)
