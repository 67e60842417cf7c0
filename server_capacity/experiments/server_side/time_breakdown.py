"""Splits the time of a request at the interval's lower end: the work of an idle endpoint, and waiting. Pure."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from inference_benchmarker.verdict.server import diagnose
from inference_benchmarker.words.wording import duration_text
from server_capacity.results.types.server_side import WhereTimeWent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.wave.wave import Wave
    from server_capacity.results.types.search_waves import Point

LEAST_REQUESTS = 30
QUIET = 0.5
"""Below this share of the answer's rate hardly anything waits."""

WIDTH = 76
_NAMES = {"response_time": "response time", "latency": "latency"}
"""The times that are not known by their initials, such as TTFT."""


def time_breakdown(
    curve: Sequence[Point], low: float | None, waves: Sequence[Wave], metric: str, load: str
) -> WhereTimeWent | None:
    """The ``where_time_went`` of capacity.json, from the curve and the last wave at the lower end.

    Seconds of ``metric``, the time that the curve shows; ``load``: the lower end in words; ``lines``: all of it in
    words. None where nothing was confirmed.
    """
    if not waves or low is None:
        return None
    times = waves[-1].summary.distribution("default" if metric == "response_time" else metric)
    if times is None:
        return None
    unloaded = _unloaded_s(curve, low)
    waiting = None if unloaded is None else max(times.mean - unloaded, 0.0)
    lines = [
        *_waiting(f"At {load} the mean {_NAMES.get(metric, metric.upper())}", times.mean, unloaded, waiting),
        *_by_server(waves[-1]),
    ]
    wrapped = [part for line in lines for part in wrap(line, WIDTH, subsequent_indent="  ")]
    return WhereTimeWent(metric, times.mean, unloaded, waiting, wrapped)


def _unloaded_s(curve: Sequence[Point], low: float) -> float | None:
    """The least mean of the rates at which nothing waits: at the very first, an endpoint may be cold."""
    quiet = [row for row in curve if row.rate <= QUIET * low and (row.sent or 0) >= LEAST_REQUESTS]
    return min((row.mean for row in quiet if row.mean is not None), default=None)


def _waiting(what: str, mean: float, unloaded: float | None, waiting: float | None) -> Iterator[str]:
    if unloaded is not None and waiting is not None:
        yield (
            f"{what} is {duration_text(mean)}: {duration_text(min(unloaded, mean))} (as at low rates) plus "
            f"{duration_text(waiting)} of queueing."
        )


def _by_server(wave: Wave) -> Iterator[str]:
    """The server's own account of it, where it has one."""
    yield from (remark.text for remark in diagnose(wave, wave.summary) if remark.code == "time")
