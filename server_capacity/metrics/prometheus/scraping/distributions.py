"""The statistics of one scraped histogram or summary over the window, from the gains of its buckets. Pure.

Its gain is over the rounds that cover the window, without what the warm-up gained.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from server_capacity.metrics.prometheus.block import percent_of
from server_capacity.metrics.prometheus.deltas import (
    Bin,
    Estimate,
    bins_of,
    bucket_increase,
    increase,
    maximum,
    minimum,
    quantile,
)
from server_capacity.metrics.prometheus.exposition import Labels, parse_value
from server_capacity.metrics.prometheus.scraping.processes import fell, jumped
from server_capacity.metrics.prometheus.scraping.series import (
    SeriesValues,
    about,
    cumulative,
    early,
    edges,
    ended,
    gap_of,
    interpolated,
    is_mixed,
    pick,
    rates,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from server_capacity.metrics.prometheus.deltas import Buckets
    from server_capacity.metrics.prometheus.scraping.history import Track
    from server_capacity.metrics.prometheus.scraping.series import Points, Window

EXTREMES = {"Minimum": minimum, "Maximum": maximum}

Row = tuple[float, ...]
"""The values of all buckets in one round."""


def distributions(
    name: str, labels: Labels, kind: str, asked: tuple[str, ...], window: Window
) -> Iterator[tuple[Labels, SeriesValues]]:
    """Histograms, or summaries, of that name: one for each set of labels beside ``le``."""
    suffix = "_bucket" if kind == "histogram" else "_count"
    groups: dict[Labels, dict[float, Track]] = {}
    for key in sorted(window.history.keys(name + suffix, labels)):
        bound = bound_of(dict(key[1])) if kind == "histogram" else math.inf
        if bound is not None:
            rest = without_bound(key[1]) if kind == "histogram" else key[1]
            groups.setdefault(rest, {})[bound] = window.history.tracks[key]
    for rest, tracks in groups.items():
        sums = window.history.tracks.get((f"{name}_sum", rest))
        if found := _distribution(tracks, sums, kind, asked, window):
            yield rest, found


def of_buckets(asked: Sequence[str]) -> list[str]:
    """The statistics that buckets may tell: percentiles and extremes."""
    return [each for each in asked if each in EXTREMES or percent_of(each) is not None]


def estimates(asked: Sequence[str], bins: Sequence[Bin]) -> dict[str, Estimate]:
    """Those of the statistics that the bins give."""
    found = {each: EXTREMES[each](bins) if each in EXTREMES else _quantile(each, bins) for each in asked}
    return {statistic: estimate for statistic, estimate in found.items() if estimate is not None}


def bound_of(labels: dict[str, str]) -> float | None:
    """A bucket's upper bound; None where its labels have none."""
    try:
        return parse_value(labels["le"])
    except (KeyError, ValueError):
        return None


def without_bound(labels: Labels) -> Labels:
    """The labels of the histogram that a bucket is one of."""
    return tuple(pair for pair in labels if pair[0] != "le")


def _distribution(
    tracks: dict[float, Track], sums: Track | None, kind: str, asked: tuple[str, ...], window: Window
) -> SeriesValues | None:
    bounds = sorted(tracks)
    by_round = [dict(cumulative(tracks[bound], window)) for bound in bounds]
    shared = [index for index in window.span if all(index in each for each in by_round)]
    if not shared:
        return None
    times, rows = [window.time(i) for i in shared], [tuple(each[i] for each in by_round) for i in shared]
    if len(shared) < 2:
        return SeriesValues(dict.fromkeys(asked), times[0], times[0], reasons=("a single sample gives no increase",))
    if unknown := fell(window.falls(shared, rows)):
        return SeriesValues(dict.fromkeys(asked), times[0], times[-1], reasons=(unknown,))
    gone = early(times, window.cut)
    buckets = tuple(zip(bounds, _gains(rows, gone), strict=True))
    summed = dict(cumulative(sums, window)) if sums else {}
    numbers = [summed[index] for index in shared if index in summed]
    tellable = of_buckets(asked) if kind == "histogram" else []
    found = estimates(tellable, bins_of(buckets))
    loaded = sum(index <= window.loaded[-1] for index in shared)
    known = dict.fromkeys(tellable) | _values(buckets[-1][1], numbers, gone, times)
    known["Rate"] = _rate([row[-1] for row in rows[:loaded]], gone, times[:loaded])
    values, misfits = pick(known | {name: each.value for name, each in found.items()}, asked, kind)
    course = _course(asked[0], times, rows, bounds, numbers)
    marks = {statistic: estimate.bound for statistic, estimate in found.items() if estimate.bound}
    reasons = (*interpolated(times, gone, window), *_unobserved(kind, buckets), *_unsummed(values, buckets), *misfits)
    if jump := window.mixed or jumped([row[-1] for row in rows], known=window.known):
        reasons = (*reasons, jump)
    if jump or is_mixed(times, window):
        marks = about(values)
    within = {statistic: estimate.bucket for statistic, estimate in found.items() if estimate.bucket}
    gap = ended(shared, window) or gap_of(len(shared), len(window.span))
    observed = round(max(buckets[-1][1], 0.0))
    return SeriesValues(values, times[0], times[-1], course, reasons, observed, marks, within, gap)


def _gains(rows: Sequence[Row], gone: float) -> Iterator[float]:
    """Of each bucket, without the share of its first step that is the warm-up's."""
    before = bucket_increase(rows[:2])
    return (gained - gone * first for gained, first in zip(bucket_increase(rows), before, strict=True))


def _values(total: float, sums: Sequence[float], gone: float, times: Sequence[float]) -> dict[str, float | None]:
    """The statistics of count and sum."""
    summed = increase(sums) - gone * increase(sums[:2]) if len(sums) == len(times) else None
    return {
        "Total": total,
        "Average": None if summed is None or total <= 0 else summed / total,
    }


def _rate(counts: Sequence[float], gone: float, times: Sequence[float]) -> float | None:
    """The observations a second, of the time of load."""
    if len(times) < 2:
        return None
    covered = times[-1] - times[0] - gone * (times[1] - times[0])
    return (increase(counts) - gone * increase(counts[:2])) / covered if covered > 0 else None


def _unobserved(kind: str, buckets: Buckets) -> Iterator[str]:
    bound, total = buckets[-1]
    if total <= 0:
        yield "nothing was observed within the window"
    elif kind == "histogram" and bound != math.inf:
        yield "the bucket le=+Inf is missing"


def _unsummed(values: dict[str, float | None], buckets: Buckets) -> Iterator[str]:
    if buckets[-1][1] > 0 and "Average" in values and values["Average"] is None:
        yield "the sum of what was observed is missing, or is not a number"


def _course(
    statistic: str, times: Sequence[float], rows: Sequence[Row], bounds: Sequence[float], sums: Sequence[float]
) -> Points:
    """The first statistic from piece to piece; where buckets give only a bound there is no point."""
    if statistic == "Rate":
        return rates(times, [row[-1] for row in rows])
    pieces = [(times[a], slice(a, b + 1)) for a, b in pairwise(edges(len(times)))]
    if statistic == "Average" and len(sums) == len(times):
        gains = [(at, bucket_increase(rows[part])[-1], increase(sums[part])) for at, part in pieces]
        return tuple((at, summed / count) for at, count, summed in gains if count > 0)
    if percent_of(statistic) is None:
        return ()
    found = ((at, _quantile(statistic, _bins(bounds, rows[part]))) for at, part in pieces)
    return tuple((at, each.value) for at, each in found if each is not None and each.bound is None)


def _bins(bounds: Sequence[float], rows: Sequence[Row]) -> list[Bin]:
    return bins_of(tuple(zip(bounds, bucket_increase(rows), strict=True)))


def _quantile(statistic: str, bins: Sequence[Bin]) -> Estimate | None:
    return quantile((percent_of(statistic) or 0.0) / 100, bins)
