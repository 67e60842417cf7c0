"""Values of the user's own in words: a row for each metric. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.summary.time_table import COLUMNS, marked, number_texts
from inference_benchmarker.words.wording import aligned, number_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from inference_benchmarker.summary.statistics.distribution import Distribution


def user_metric_lines(metrics: Mapping[str, Distribution], width: int | None = None) -> Iterator[str]:
    """A table of the metrics that requests reported."""
    if metrics:
        yield from aligned(user_metric_rows(metrics), width)


def user_metric_rows(metrics: Mapping[str, Distribution]) -> list[list[str]]:
    """A header and a row for each metric, with the number of requests that reported it; nothing where none did."""
    head = [marked("Metric", metrics.values()), *COLUMNS, "requests"]
    rows = ([name, *number_texts(d, number_text), f"{d.count:,}"] for name, d in metrics.items())
    return [head, *rows] if metrics else []
