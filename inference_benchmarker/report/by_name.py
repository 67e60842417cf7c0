"""The requests of each label and the errors by their keys, in words. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.summary.time_table import marked, mean_text, value_text
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.wording import INDENT, aligned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.summary.by_name import ErrorRow, LabelRow

_MAX_ROWS = 20


def label_lines(labels: Sequence[LabelRow], width: int | None = None) -> Iterator[str]:
    """A table of the labels that most requests have."""
    if not labels:
        return
    shown = labels[:_MAX_ROWS]
    header = [marked("Label", (row.latency for row in shown)), "sent", "ok", "failed", "mean", "p50", "p99", "max"]
    rows = []
    for row in shown:
        d = row.latency
        times = (
            ["-"] * 4
            if d is None
            else [mean_text(d), *(value_text(d, v) for v in (d.percentile(50), d.percentile(99), d.maximum))]
        )
        rows.append([one_line(row.label), f"{row.sent:,}", f"{row.ok:,}", f"{row.failed:,}", *times])
    yield from aligned([header, *rows], width)
    if len(labels) > _MAX_ROWS:
        yield f"{INDENT}… and {len(labels) - _MAX_ROWS} more labels, in summary.json"


def error_lines(errors: Sequence[ErrorRow], width: int | None = None) -> Iterator[str]:
    """A table of the most frequent errors, and a text of the first of them."""
    if not errors:
        return
    rows = [["Errors", "count", "first at"]]
    rows += [[one_line(row.key), f"{row.count:,}", f"{row.first_s:.1f}s"] for row in errors[:_MAX_ROWS]]
    yield from aligned(rows, width)
    for row in errors[:3]:
        if row.texts:
            yield f"{INDENT}{one_line(row.key)}: {one_line(row.texts[0], 160)}"
    if len(errors) > _MAX_ROWS:
        yield f"{INDENT}… and {len(errors) - _MAX_ROWS} more errors, in summary.json"
