"""Tells whether an endpoint's first requests took longer than the rest, and for how long. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Floats

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
    wave of 200, and one exceeds three times the p99 in one of a million.
    """
    sent, latency = _by_sending(facts)
    if len(sent) < LEAST_REQUESTS:
        return None
    first, rest = latency[:FIRST], latency[FIRST:]
    typical = float(np.median(rest))
    many, one = float(np.median(first)), float(latency[0])
    if many > max(SLOWER * typical, typical + LEAST_S):
        return ColdStart(FIRST, many, typical, _settled(sent, latency, typical))
    if one > max(SLOWER * float(np.percentile(latency[1:], 99)), typical + LEAST_S):
        return ColdStart(1, one, typical, float(sent[1] - sent[0]))
    return None


def _by_sending(facts: WaveFacts) -> tuple[Floats, Floats]:
    """When each answered request was sent (seconds) and what it took, in the order of sending."""
    times = []
    for records in (facts.warmup, facts.records):
        ok = records.outcome("ok")
        times.append(np.stack([records.int("sent")[ok], records.int("done")[ok]]) / NS)
    sent, done = np.concatenate(times, axis=1)
    order = np.argsort(sent, kind="stable")
    return sent[order], (done - sent)[order]


def _settled(sent: Floats, latency: Floats, typical: float) -> float:
    """Seconds until the middle of the first ten requests in a row whose median is near the typical latency."""
    windows = np.lib.stride_tricks.sliding_window_view(latency, FIRST)
    near = np.median(windows, axis=1) <= SETTLED * typical
    settled = int(np.argmax(near)) + FIRST // 2 - 1 if near.any() else -1
    return float(sent[settled] - sent[0])
