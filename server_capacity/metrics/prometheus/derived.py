"""The values that follow from the counters of a preset, as the share of a cache's queries that it answered. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from server_capacity.metrics.prometheus.presets import RATIOS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.facts.server_metric import ServerMetric
    from server_capacity.metrics.prometheus.items import Ratio

Series = tuple[tuple[str, str], ...]


def derived(rows: Sequence[ServerMetric]) -> Iterator[ServerMetric]:
    """A row for each ratio of a preset and each series that has both of its counters, the lower one above zero."""
    for preset in dict.fromkeys(row.namespace for row in rows):
        for ratio in RATIOS.get(preset or "", ()):
            over, under = (_by_series(rows, preset, name) for name in (ratio.over, ratio.under))
            yield from (_row(ratio, over[key], under[key]) for key in under if key in over and _total(under[key]) > 0)


def _by_series(rows: Sequence[ServerMetric], preset: str | None, name: str) -> dict[Series, ServerMetric]:
    found = (
        row for row in rows if (row.namespace, row.name) == (preset, name) and row.statistics.get("Total") is not None
    )
    return {tuple(sorted(_labels(row).items())): row for row in found}


def _labels(row: ServerMetric) -> dict[str, str]:
    return {name: value for name, value in row.dimensions.items() if name != "__name__"}


def _total(row: ServerMetric) -> float:
    return row.statistics.get("Total") or 0.0


def _row(ratio: Ratio, over: ServerMetric, under: ServerMetric) -> ServerMetric:
    return replace(
        under,
        name=ratio.name,
        unit=ratio.unit,
        statistics={"Average": ratio.plus + _total(over) / _total(under)},
        dimensions=_labels(under),
        complete=over.complete and under.complete,
        bounds={"Average": "about"} if "Total" in over.bounds or "Total" in under.bounds else {},
        series_of=None,
        series=(),
    )
