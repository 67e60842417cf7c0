"""Values of the user's own in words: a row for each metric. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.summary.distribution import PERCENTILES
from inference_benchmarker.summary.time_table import COLUMNS, marked
from inference_benchmarker.wording import aligned, number_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from inference_benchmarker.summary.distribution import Distribution


def user_metric_lines(metrics: Mapping[str, Distribution]) -> Iterator[str]:
    """A table of the metrics that requests told, each with the number of them that did."""
    if metrics:
        rows = [[marked("Metric", metrics.values()), *COLUMNS, "requests"]]
        rows += [[name, *_values(d), f"{d.count:,}"] for name, d in metrics.items()]
        yield from aligned(rows)


def _values(d: Distribution) -> Iterator[str]:
    return map(number_text, (d.mean, *map(d.percentile, PERCENTILES), d.maximum))
