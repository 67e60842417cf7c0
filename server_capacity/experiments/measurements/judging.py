"""A wave's requests compared with a search's limits: which are over. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from inference_benchmarker.records import arrow
from inference_benchmarker.records.columns import ROW_KEY
from inference_benchmarker.summary.goodput import limit_columns, meets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from inference_benchmarker.plan.slo import RequestLimit
    from inference_benchmarker.records.columns import Floats, Int64, Mask, Records
    from inference_benchmarker.summary.samples import Sample, Streams
    from server_capacity.search.limits import Limit

_COLUMNS = (*ROW_KEY, "due", "sent", "done", "build_ns", "outcome")
_OF_STREAMS = ("first_token", "last_token", "chunks", "tokens_out", "gaps")


def columns_of(streams: Streams, goodput: Sequence[RequestLimit]) -> list[str]:
    """The columns that limits are compared with."""
    return list(dict.fromkeys((*_COLUMNS, *(_OF_STREAMS if streams.any else ()), *limit_columns(goodput))))


def judged(
    part: Records, limit: Limit, goodput: Sequence[RequestLimit], times: Mapping[str, Sample]
) -> Iterator[tuple[Int64, Mask]]:
    """The rows of what a limit on requests speaks of, and which of them are over it."""
    for rows, over in _judged(part, limit, goodput, times):
        if limit.turns is None:
            yield rows, over
        else:
            turns = part.int("turn")[rows]
            ours = (turns >= limit.turns.first) & (turns <= limit.turns.last)
            yield rows[ours], over[ours]


def _judged(
    part: Records, limit: Limit, goodput: Sequence[RequestLimit], times: Mapping[str, Sample]
) -> Iterator[tuple[Int64, Mask]]:
    if limit.metric == "goodput":
        rows = np.flatnonzero(part.lasts)
        yield rows, ~meets(part, goodput)[rows]
    elif limit.bound_s is None:
        yield np.arange(len(part)), ~part.outcome("ok")
    elif limit.metric in times:
        yield from _timed(part, limit, times[limit.metric])


def timed_rows(part: Records, sample: Sample) -> tuple[Int64, Floats]:
    """The row of each time, and the time in seconds; a request has as many as it has gaps."""
    rows = np.flatnonzero(sample.measured_in)
    if len(rows) != len(sample.measured):
        lengths = arrow.numbers(pc.list_value_length(part.table.column("gaps")))
        rows = np.repeat(rows, lengths[rows])
    return rows, sample.measured


def _timed(part: Records, limit: Limit, sample: Sample) -> Iterator[tuple[Int64, Mask]]:
    """The row of each time that counts, and whether it is over; an age counts once it is over."""
    assert limit.bound_s is not None
    rows, seconds = timed_rows(part, sample)
    yield rows, seconds >= limit.bound_s if limit.strict else seconds > limit.bound_s
    old = np.flatnonzero(sample.aged_in)[sample.ages >= limit.bound_s]
    yield old, np.ones(len(old), bool)
