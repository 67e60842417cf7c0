"""A proof in words: its first line is the answer. Pure. What is read here is the object of ``proof.json``."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from inference_benchmarker.words.text import plain
from inference_benchmarker.words.wording import (
    INDENT,
    aligned,
    duration_text,
    length_text,
    metric_text,
    percent_text,
    pluralize,
)
from server_capacity.experiments.proof.length import TOO_SHORT
from server_capacity.experiments.proof.result import headline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.results.types.proof import ProofResult

WIDTH = 100
_WORDS = {"holds": "met", "fails": "violated", "cannot_tell": "inconclusive"}


def to_text(data: ProofResult, folder: str = "") -> str:
    """The whole report: the answer first and last."""
    answer = [headline(data)]
    sections = [
        answer,
        list(aligned(list(_limits(data)))),
        list(_notes(data)),
        list(_server(data)),
        [*answer, *([f"Folder: {folder}"] if folder else [])],
    ]
    return "\n\n".join("\n".join(map(plain, lines)) for lines in sections if lines) + "\n"


def _limits(data: ProofResult) -> Iterator[list[str]]:
    yield ["Limit", "value", "violate it", "95% interval", "allowed", ""]
    for row in data.limits:
        between = row.interval
        yield [
            row.expression,
            row.text or "-",
            _share(row.share_over),
            "-" if between is None else f"{_share(between.low)} to {_share(between.high)}",
            _share(row.allowed),
            _WORDS[row.verdict],
        ]


def _share(value: float | None) -> str:
    return "-" if value is None else "0%" if value == 0 else percent_text(float(f"{value:.2g}"))


def _notes(data: ProofResult) -> Iterator[str]:
    yield from _folded(_sent(data))
    if data.latency is not None:
        times = (("p50", data.latency.p50), ("p99", data.latency.p99))
        lines = (f"{name} {duration_text(value)}" for name, value in times if value is not None)
        yield f"{INDENT}Times: {', '.join(lines)}"
    yield f"{INDENT}Plan: {data.plan}"
    yield f"{INDENT}Wave: {data.directory}"


def _sent(data: ProofResult) -> str:
    """The load that was sent, and the chances of a verification that was sent to its end."""
    length = data.length
    sent = f"{data.sent:,} requests in {length_text(data.sent_s)}"
    warmed = f"after {length_text(length.warmup_s)} of warm-up"
    was_interrupted = data.outcome == "interrupted"
    if data.ended_early or (was_interrupted and data.sent_s):
        why = f" It ended early: {data.ended_early}." if data.ended_early else ""
        return f"{sent} of {length_text(length.seconds)}, {warmed}.{why}"
    if was_interrupted or (data.reason and TOO_SHORT not in data.reason):  # the wave does not count
        return f"{pluralize(data.sent, 'request was', 'requests were')} sent after the warm-up."
    return (
        f"{sent}, {warmed}: this rejects a plan that is one instance short in {length.rejects_one_short:.0%} of "
        f"cases, and accepts a sufficient one in {length.holds_if_right:.0%}. The intervals take bursts of slow "
        "requests into account."
    )


def _server(data: ProofResult) -> Iterator[str]:
    for name, statistics in data.server_metrics.items():
        yield f"{INDENT}{name}: " + ", ".join(f"{each}={metric_text(value)}" for each, value in statistics.items())


def _folded(sentence: str) -> list[str]:
    return wrap(sentence, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)
