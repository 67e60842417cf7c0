"""Requests that were counted, as the checks ask for them: instants are known to 20 ms, times by bucket. Pure.

A time is known of the second in which its request was over, not of when that was sent or due.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np

from inference_benchmarker.records.counting import BIN_NS
from inference_benchmarker.records.counts import in_flight
from inference_benchmarker.summary.statistics.buckets import of_buckets
from inference_benchmarker.summary.statistics.distribution import Distribution
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.records.columns import Int64
    from inference_benchmarker.records.counts import Counts

_OVER = ("ok_at", "failed_at")


def most_at_a_time(counts: Counts) -> int:
    """The most requests that were in flight when 20 ms began."""
    bins = np.unique(counts["sent_at"].bins) + 1
    return int(in_flight(counts, bins).max(initial=0))


def passed(counts: Counts, instants_ns: Int64) -> tuple[Int64, Int64, int]:
    """The number sent and that over before each instant, and when the first was sent; wave start at the latest."""
    bins = (instants_ns + counts.start_ns + BIN_NS // 2) // BIN_NS
    arrived, begun = counts["sent_at"].before(bins), counts["sent_at"].bins.min(initial=0) * BIN_NS
    gone = sum((counts[what].before(bins) for what in _OVER), np.zeros(len(bins), np.int64))
    return arrived, gone, min(int(begun) - counts.start_ns, 0)


def last_ok_ns(counts: Counts) -> int:
    """When the last request was answered."""
    return int(counts["ok_at"].bins.max(initial=-1) + 1) * BIN_NS - counts.start_ns


def latencies(counts: Counts) -> Distribution | None:
    """Latencies of the requests that did not fail."""
    return of_buckets(counts["latency"].by_key)


def shares_passed(counts: Counts, start_ns: int, end_ns: int) -> Distribution | None:
    """The share of a time that each latency goes on into it, where both begin together."""
    found = latencies(counts)
    if found is None or found.ranks is None:
        return None
    shares = (np.clip(found.values * NS, start_ns, end_ns) - start_ns) / (end_ns - start_ns)
    weights = np.diff(found.ranks, prepend=0)
    mean = float(shares @ weights) / found.count
    deviation = math.sqrt(float((shares - mean) ** 2 @ weights) / found.count)
    return Distribution(found.count, mean, deviation, None, shares, found.ranks, found.precision)


def waits(counts: Counts) -> list[tuple[int, int, int]]:
    """The waits between two answers while somebody waited: begin, length in ns, and who waited at its end.

    In the order of their lengths.
    """
    answered = np.unique(np.concatenate([counts[what].bins for what in _OVER]))
    before, after = answered[:-1] + 1, answered[1:]
    upcoming = np.append(np.unique(counts["sent_at"].bins), after[-1:])
    sent = upcoming[np.minimum(np.searchsorted(upcoming, before), len(upcoming) - 1)]
    begun = np.where(in_flight(counts, before) > 0, before, np.minimum(sent, after))
    found = zip((begun * BIN_NS).tolist(), ((after - begun) * BIN_NS).tolist(), in_flight(counts, after), strict=True)
    return sorted(((begin, length, int(waiting)) for begin, length, waiting in found), key=lambda wait: wait[1])


def ends_s(counts: Counts, least: int) -> tuple[float, float] | None:
    """The median latencies of the first and of the last requests to be over, of so many of them or a few more."""
    series = counts["latency"]
    sums = np.cumsum(series.count, dtype=np.int64)
    if not len(sums) or int(sums[-1]) < 2 * least:
        return None
    first = int(series.second[np.searchsorted(sums, least)]) + 1
    last = int(series.second[np.searchsorted(sums, int(sums[-1]) - least)])
    found = of_buckets(series.between(-1, first).by_key), of_buckets(series.between(last, counts.seconds).by_key)
    return None if found[0] is None or found[1] is None else (found[0].median, found[1].median)


@dataclass(frozen=True, slots=True)
class CountedQuarters:
    """Latencies of the second, third and last quarter of the time up to an instant, by when requests were over.

    Where a first-come first-served queue grows latency by s seconds for each second of arrivals, it grows it by
    s / (1 + s) for each second of answers.
    """

    latencies: tuple[Distribution, ...]

    @classmethod
    def of(cls, counts: Counts, until_ns: int, least: int) -> Self | None:
        """None where one of them has too few requests."""
        edges = [(counts.start_ns + until_ns * quarter // 4) // NS for quarter in range(1, 5)]
        found = [
            each
            for first, stop in pairwise(edges)
            if (each := latencies(counts.between(first, stop))) is not None and each.count >= least
        ]
        return cls(tuple(found)) if len(found) == 3 else None

    @property
    def medians(self) -> tuple[float, ...]:
        """Of each quarter."""
        return tuple(each.median for each in self.latencies)

    @property
    def is_cut_off(self) -> bool:
        """Tells whether most of the last were abandoned: they are over when the drain is, in no quarter."""
        return False

    def slope(self, growth_s: float, time_s: float) -> float:
        """The growth of latency for each second of arrivals."""
        by_answer = growth_s / time_s
        return by_answer / (1 - by_answer) if by_answer < 1 else math.inf

    def error(self) -> float:
        """The standard error of the growth from the second quarter to the last."""
        return math.hypot(_median_error(self.latencies[0]), _median_error(self.latencies[2]))


def _median_error(found: Distribution) -> float:
    """As that of a median of values: their deviations are counted as they are."""
    assert found.ranks is not None
    deviations = np.abs(found.values - found.median)
    order = np.argsort(deviations, kind="stable")
    ranks = np.cumsum(np.diff(found.ranks, prepend=0)[order])
    deviation = float(deviations[order][np.searchsorted(ranks, (found.count + 1) // 2)])
    return 1.2533 * 1.4826 * deviation / math.sqrt(found.count)
