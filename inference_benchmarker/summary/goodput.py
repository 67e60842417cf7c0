"""Goodput: the requests that met every limit on a request, as a rate and as a share of what was sent. Pure.

Where clients try again it is the users': an arrival is good if its last attempt met every limit, its response time
counted from the arrival; ``sent`` is the number of arrivals.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.summary.completed_rate import CompletedGathered
from inference_benchmarker.summary.request_times import TIME_COLUMNS, request_times
from inference_benchmarker.summary.statistics.streaming_histogram import StreamingHistogram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.plan.slo import RequestLimit
    from inference_benchmarker.records.columns import Mask, Records
    from inference_benchmarker.summary.completed_rate import CompletedSpan


@dataclass(frozen=True, slots=True)
class LimitShare:
    """One limit, and the share of the sent requests that met it; None where no answered request has its metric."""

    limit: RequestLimit
    share: float | None


@dataclass(frozen=True, slots=True)
class Goodput:
    """Requests that met every limit: ``rate`` a second, ``share`` of the sent; None where a limit was not measured."""

    rate: float | None
    share: float | None
    limits: tuple[LimitShare, ...]


def meets(records: Records, limits: Sequence[RequestLimit]) -> Mask:
    """Which requests were ok and met every limit.

    A stream of a single piece has no gap that could break a limit on ``itl`` or ``tpot``; what is no stream has
    not met a limit on its tokens.
    """
    times, good = request_times(records), records.outcome("ok")
    for limit in limits:
        values, has = times[limit.metric]
        good = good & np.where(has, limit.met(values), records.has("first_token"))
    return good


def limit_columns(limits: Sequence[RequestLimit]) -> tuple[str, ...]:
    """The columns that ``meets`` needs."""
    return ("outcome", "first_token", *(name for limit in limits for name in TIME_COLUMNS[limit.metric]))


class GoodGathered:
    """Gathers the good requests under some limits, and those that meet each of them."""

    def __init__(self, limits: Sequence[RequestLimit]) -> None:
        self._limits = limits
        self.columns = ("sent", "done", *limit_columns(limits))
        self._good = 0
        self._latencies = StreamingHistogram()
        self._each = [_MetBy() for _ in limits]
        self._any_ok = False

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        ok, good = part.outcome("ok"), meets(part, self._limits)
        self._any_ok |= bool(ok.any())
        self._good += int(np.count_nonzero(good))
        times = request_times(part)
        self._latencies.add(times["latency"].values[good])
        for limit, met in zip(self._limits, self._each, strict=True):
            met.number += int(np.count_nonzero(meets(part, [limit])))
            met.measured |= bool((ok & (times[limit.metric].has | part.has("first_token"))).any())

    def completed(self, span: CompletedSpan) -> CompletedGathered:
        """Gathers those of the good requests that were done in their span."""
        return CompletedGathered(span, limit_columns(self._limits), partial(meets, limits=self._limits))

    @property
    def middle_latency_s(self) -> tuple[float, float] | None:
        """The two in the middle of the good requests; None without any."""
        return self._latencies.middle

    def goodput(self, sent: int, completed: CompletedGathered) -> Goodput:
        """The goodput of so many that were sent; ``completed`` are the good ones of their completed rate."""
        shares = tuple(
            LimitShare(limit, None if self._any_ok and not met.measured else met.number / sent)
            for limit, met in zip(self._limits, self._each, strict=True)
        )
        if any(each.share is None for each in shares):
            return Goodput(None, None, shares)
        return Goodput(completed.rate, self._good / sent, shares)


@dataclass(slots=True)
class _MetBy:
    """The number of requests that met a limit, and whether any that was answered has its metric."""

    number: int = 0
    measured: bool = False
