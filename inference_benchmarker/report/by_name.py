"""The requests of each label and the errors by their keys, in words. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.summary.time_table import marked, mean_text, value_text
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.wording import INDENT, aligned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.summary.by_name import ErrorRow, LabelRow
    from inference_benchmarker.summary.statistics.distribution import Distribution

_MAX_ROWS = 20


def label_lines(labels: Sequence[LabelRow], width: int | None = None) -> Iterator[str]:
    """A table of the labels that most requests have."""
    if not labels:
        return
    shown = labels[:_MAX_ROWS]
    yield from aligned(_streams(shown) if any(row.ttft for row in shown) else _answers(shown), width)
    if len(labels) > _MAX_ROWS:
        yield f"{INDENT}… and {len(labels) - _MAX_ROWS} more labels, in summary.json"


def _answers(labels: Sequence[LabelRow]) -> list[list[str]]:
    """A header, and a row for each label."""
    header = [marked("Label", (row.latency for row in labels)), "sent", "ok", "failed", "mean", "p50", "p99", "max"]
    counts = ([one_line(row.label), f"{row.sent:,}", f"{row.ok:,}", f"{row.failed:,}"] for row in labels)
    means = (["-"] if row.latency is None else [mean_text(row.latency)] for row in labels)
    times = (_times(row.latency, 50, 99, 100) for row in labels)
    return [header, *(one + two + three for one, two, three in zip(counts, means, times, strict=True))]


def _streams(labels: Sequence[LabelRow]) -> list[list[str]]:
    """The same of labels some of which have streams: with their TTFT, and for want of room without mean and ok."""
    header = [marked("Label", (row.latency for row in labels)), "sent", "failed"]
    times = ([*_times(row.ttft, 50, 99), *_times(row.latency, 50, 99)] for row in labels)
    counts = ([one_line(row.label), f"{row.sent:,}", f"{row.failed:,}"] for row in labels)
    rows = [one + two for one, two in zip(counts, times, strict=True)]
    return [[*header, "TTFT p50", "p99", "latency p50", "p99"], *rows]


def _times(distribution: Distribution | None, *percents: int) -> list[str]:
    """Percentiles in words; the 100th is the longest time."""
    if distribution is None:
        return ["-"] * len(percents)
    values = (distribution.maximum if percent == 100 else distribution.percentile(percent) for percent in percents)
    return [value_text(distribution, value) for value in values]


def error_lines(errors: Sequence[ErrorRow], width: int | None = None) -> Iterator[str]:
    """A table of the most frequent errors, and a text of the first of them."""
    if not errors:
        return
    rows = [["Errors", "count", "first at"]]
    rows += [[one_line(row.key), f"{row.count:,}", f"{row.first_s:.1f} s"] for row in errors[:_MAX_ROWS]]
    yield from aligned(rows, width)
    for row in errors[:3]:
        if row.texts:
            yield f"{INDENT}{one_line(row.key)}: {one_line(row.texts[0], 160)}"
    if len(errors) > _MAX_ROWS:
        yield f"{INDENT}… and {len(errors) - _MAX_ROWS} more errors, in summary.json"
