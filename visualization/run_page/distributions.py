"""The distribution of a run's times: how many requests took no longer, and how many took about so long. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from visualization.figures.figures import Axis
from visualization.figures.reading import tail
from visualization.run_page.figure_types import Figure, Level, Trace, kind_of, scale_of, time_limits, time_unit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.statistics.distribution import Distribution
    from inference_benchmarker.summary.summary import Summary

_BINS, _BINS_OF_COUNTS = 60, 20  # a bin must be wider than the buckets in which times were counted
_GROUPS = (("Latency and response time", ("latency", "response_time")), ("TTFT", ("ttft",)), ("ITL", ("itl",)))
NAMES = {"latency": "latency", "response_time": "response time", "ttft": "TTFT", "itl": "ITL"}


def distribution_figures(facts: WaveFacts, summary: Summary) -> Iterator[Figure]:
    """The percentiles of each time, then how often the first of them took so long."""
    for title, names in _GROUPS:
        found = {name: each for name in names if (each := summary.distribution(name)) is not None}
        if found and max(each.count for each in found.values()) > 1:
            levels = tuple(level for slo, level in time_limits(facts, summary, *found) if not slo.stage)
            yield _percentiles(title if len(found) > 1 else title.partition(" and")[0], found, levels)
    if summary.latency is not None and summary.latency.minimum < summary.latency.maximum:
        yield _histogram(summary.latency)


def _percentiles(title: str, found: dict[str, Distribution], levels: tuple[Level, ...]) -> Figure:
    tails = {name: tail(distribution) for name, distribution in found.items()}
    values = [y for points in tails.values() for _, y in points if y is not None]
    unit, factor = time_unit(values)
    traces = tuple(
        Trace(NAMES[name], tuple((x, None if y is None else y * factor) for x, y in points), number, kind_of(name))
        for number, (name, points) in enumerate(tails.items())
    )
    return Figure(
        f"{title}: percentiles",
        Axis("Percentile", "", "nines"),
        Axis(title, unit, scale_of(values)),
        traces,
        tuple(replace(level, value=level.value * factor) for level in levels),
    )


def _histogram(d: Distribution) -> Figure:
    """The requests in bins of one width; on a logarithmic axis where their times span much."""
    bins = _BINS_OF_COUNTS if d.precision else _BINS
    scale = scale_of([d.minimum, d.maximum])
    edges = (np.geomspace if scale == "log" else np.linspace)(d.minimum, d.maximum, bins + 1)
    places = np.searchsorted(d.values, edges[1:-1], side="left")
    below = places if d.ranks is None else np.append(0, d.ranks)[places]
    counts = np.diff([0, *below.tolist(), d.count]).tolist()
    unit, factor = time_unit([d.maximum])
    points = tuple(zip((edges * factor).tolist(), [*counts, None], strict=True))
    return Figure(
        "Latency: number of requests",
        Axis("Latency", unit, scale),
        Axis("Requests", ""),
        (Trace("requests", points, 0, "columns"),),
    )
