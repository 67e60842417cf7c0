"""The curve of latency against rate, from the stretches that count. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.summary.statistics.streaming_histogram import StreamingHistogram
from server_capacity.results.types.search_waves import Point
from server_capacity.search.recovery import AFTER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from server_capacity.experiments.measurements.evidence import CountedStretch
    from server_capacity.search.limits import Limit
    from server_capacity.search.stretch import Slice

SAME = 1.01
"""Rates that differ by less are one point of the curve."""


def curve(rows: Sequence[CountedStretch], limits: Sequence[Limit]) -> list[Point]:
    """A point for each rate, the lowest first; what counts for nothing is left out, and what overload left."""
    counted = (row for row in rows if row.stretch.rate > 0 and not row.stretch.void)
    loads = sorted((row for row in counted if row.stretch.purpose not in AFTER), key=_rate)
    return [_point(group, limits) for group in _groups(loads)]


def _rate(row: CountedStretch) -> float:
    return row.stretch.rate


def _groups(rows: Sequence[CountedStretch]) -> Iterator[list[CountedStretch]]:
    group: list[CountedStretch] = []
    for row in rows:
        if group and _rate(row) > SAME * _rate(group[0]):
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def _point(group: Sequence[CountedStretch], limits: Sequence[Limit]) -> Point:
    seconds = sum(row.stretch.seconds for row in group)
    slices = [each for row in group for each in row.stretch.slices]
    sent, answered = (sum(getattr(each, name) for each in slices) for name in ("sent", "answered"))
    failed = sum(row.counted.failed for row in group)
    return Point(
        sum(_rate(row) * row.stretch.seconds for row in group) / seconds,
        seconds,
        sent,
        **_times(group),
        success=(answered - failed) / sent if sent else None,
        share_over=[_share(slices, place) for place in range(len(limits))],
        completed_rate=sum(row.counted.completed for row in group) / seconds,
    )


def _share(slices: Sequence[Slice], place: int) -> float | None:
    of, over = (sum(each.counts[place][side] for each in slices) for side in (0, 1))
    return over / of if of else None


def _times(group: Sequence[CountedStretch]) -> dict[str, float | None]:
    """Mean and percentiles of all their requests; of many the middles of fine buckets."""
    tally = StreamingHistogram()
    for times in (row.counted.times for row in group):
        if times is not None:
            tally.add(times.values if times.ranks is None else np.repeat(times.values, np.diff(times.ranks, prepend=0)))
    found = tally.distribution()
    if found is None:
        return dict.fromkeys(("mean", "p50", "p90", "p95", "p99"))
    return {"mean": found.mean, **{f"p{percent}": found.percentile(percent) for percent in (50, 90, 95, 99)}}
