"""Tells whether an endpoint's first requests took longer than the rest, and for how long. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.records.ordered import ReorderBuffer, later_least
from inference_benchmarker.summary.statistics.streaming_histogram import StreamingHistogram
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.statistics.distribution import Distribution

    Pairs = npt.NDArray[np.complex128]

FIRST = 10
LEAST_REQUESTS = 3 * FIRST
SLOWER = 3.0
LEAST_S = 0.01
SETTLED = 1.5


@dataclass(frozen=True, slots=True)
class ColdStart:
    """``first_s`` beside ``rest_s``, seconds; ``until_s``: how long after the first request of all latency settled.

    ``count``: how many requests ``first_s`` is the median of, or 1 where only the very first was slow.
    """

    count: int
    first_s: float
    rest_s: float
    until_s: float


def cold_start(facts: WaveFacts) -> ColdStart | None:
    """The first ten requests (warm-up included) took three times the median of the rest, or the first three times p99.

    Both would be rare by chance: of ten latencies with an exponential distribution five exceed three medians in one
    wave of 200, and one exceeds three times the p99 in one of a million. Of requests that were counted the first are
    not known.
    """
    if facts.counts is not None:
        return None
    number, begun = _first(facts)
    if number < LEAST_REQUESTS:
        return None
    first, others = begun.imag, _others(facts, number, begun[-1])
    typical, many, one = _distribution(others).median, float(np.median(first)), float(first[0])
    if many > max(SLOWER * typical, typical + LEAST_S):
        return ColdStart(FIRST, many, typical, _settled(facts, typical) - float(begun[0].real))
    others.add(first[1:])
    if one > max(SLOWER * _p99(_distribution(others)), typical + LEAST_S):
        return ColdStart(1, one, typical, float(begun[1].real - begun[0].real))
    return None


def _by_part(facts: WaveFacts) -> Iterator[Pairs]:
    """When each answered request was sent, and what it took, in seconds."""
    for records in (facts.warmup, facts.records):
        for part in records.parts("sent", "done", "outcome"):
            ok = part.outcome("ok")
            sent = part.int("sent")[ok] / NS
            yield sent + 1j * (part.int("done")[ok] / NS - sent)


def _first(facts: WaveFacts) -> tuple[int, Pairs]:
    """The number of answered requests, and those that were sent first."""
    number, first = 0, np.zeros(0, np.complex128)
    for pairs in _by_part(facts):
        number += len(pairs)
        soon = pairs if len(first) < FIRST else pairs[pairs.real <= first[-1].real]
        first = np.sort(np.concatenate([first, soon]))[:FIRST]
    return number, first


def _others(facts: WaveFacts, number: int, last: complex) -> StreamingHistogram:
    """The latencies of the others; ``last``: the last of the first ones."""
    others = StreamingHistogram()
    for pairs in _by_part(facts):
        others.add(pairs.imag[(pairs.real > last.real) | ((pairs.real == last.real) & (pairs.imag > last.imag))])
    others.add(np.full(number - FIRST - others.count, last.imag))  # its equals
    return others


def _distribution(tally: StreamingHistogram) -> Distribution:
    found = tally.distribution()
    assert found is not None  # there are enough requests
    return found


def _p99(found: Distribution) -> float:
    """The 99th percentile, on the line between two values where it lies there."""
    share, place = math.modf(0.99 * (found.count - 1))
    below, above = found.at(int(place) + 1), found.at(int(place) + 2)
    return below + share * (above - below)


def _settled(facts: WaveFacts, typical: float) -> float:
    """The middle of the first ten requests in a row whose median is near the typical latency; the last without any."""
    marks = later_least([float(pairs.real.min(initial=math.inf)) for pairs in _by_part(facts)])
    buffer, passed = ReorderBuffer(), np.zeros(0, np.complex128)
    for pairs, mark in zip(_by_part(facts), marks, strict=True):
        passed = np.concatenate(
            [passed[1 - FIRST :], buffer.push(pairs, None if mark is None else complex(mark, -math.inf))]
        )
        if len(passed) < FIRST:
            continue
        near = np.median(np.lib.stride_tricks.sliding_window_view(passed.imag, FIRST), axis=1) <= SETTLED * typical
        if near.any():
            return float(passed[np.argmax(near) + FIRST // 2 - 1].real)
    return float(passed[-1].real)
