"""The flow into the endpoint and out of it, over a stretch of a wave: requests in flight at instants. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from inference_benchmarker.summary.statistics.streaming_histogram import StreamingHistogram
from inference_benchmarker.verdict.client.counted import passed, shares_passed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Int64, Records
    from inference_benchmarker.summary.statistics.distribution import Distribution

PARTS = 18  # of the stretch's last three quarters, so that they make thirds
LEAST_SENT = 60
LEAST_ERRORS = 3
ERRORS_OF_A_BEGINNING = 4
LEAST_OF_A_THIRD = 0.1


@dataclass(frozen=True, slots=True)
class Flow:
    """The last three quarters of a stretch, in equal parts: the first quarter is left for queues to fill; or its end.

    ``in_flight`` at the parts' ends, the first one's start included; ``sent`` in each part. ``slow``: the share that
    latencies explain which are long and stay as they are, as one that takes half the wave fills up that long.
    """

    sent: Int64
    in_flight: Int64
    slow: float

    @classmethod
    def of(cls, facts: WaveFacts, until_ns: int, from_ns: int | None = None) -> Self:
        """The flow up to an instant, from another one or a quarter of the time on."""
        edges = np.linspace(until_ns / 4 if from_ns is None else from_ns, until_ns, PARTS + 1).astype(np.int64)
        arrived, gone, begun = _passed(facts, edges)
        cohorts = (begun, until_ns // 4), (3 * until_ns // 4, until_ns)
        return cls(
            sent=np.diff(arrived),
            in_flight=arrived - gone,
            slow=min(_slow(facts, cohorts, int(edges[0]) - begun, until_ns - begun)),
        )

    @property
    def growth(self) -> int:
        """By how many the requests in flight grew."""
        return int(self.in_flight[-1] - self.in_flight[0])

    @property
    def share(self) -> float:
        """The growth as a share of what was sent."""
        return self.growth / max(int(self.sent.sum()), 1)

    @property
    def errors(self) -> float:
        """The growth in standard errors, 0 where too few were sent to tell.

        The parts' growths are as good as independent, so the error of their sum is that of one times the root of their
        number; and at least one request, since a part begins and ends between two.
        """
        if self.sent.sum() < LEAST_SENT:
            return 0.0
        error = float(np.std(np.diff(self.in_flight), ddof=1)) * math.sqrt(PARTS)
        return self.growth / math.hypot(error, 1.0)

    @property
    def is_straight(self) -> bool:
        """Tells whether it is more than chance and no jump: some of it lies in each third."""
        return self.errors >= LEAST_ERRORS and bool((self._thirds >= LEAST_OF_A_THIRD * self.growth).all())

    @property
    def begins(self) -> bool:
        """Tells whether it is no chance and begins within the first third: some of it lies in each of the others."""
        return self.errors >= ERRORS_OF_A_BEGINNING and bool((self._thirds[1:] >= LEAST_OF_A_THIRD * self.growth).all())

    @property
    def _thirds(self) -> Int64:
        thirds: Int64 = np.diff(self.in_flight).reshape(3, -1).sum(axis=1)
        return thirds


def _parts(facts: WaveFacts) -> Iterator[Records]:
    """The requests, the warm-up's too."""
    for records in (facts.warmup, facts.records):
        yield from records.parts("sent", "done", "outcome")


def _passed(facts: WaveFacts, instants: Int64) -> tuple[Int64, Int64, int]:
    """The number sent and that over before each instant, and when the first was sent; wave start at the latest.

    One that was abandoned has not left the endpoint.
    """
    if facts.counts is not None:
        return passed(facts.counts, instants)
    arrived, gone, begun = np.zeros(len(instants), np.int64), np.zeros(len(instants), np.int64), 0
    for part in _parts(facts):
        sent, done = part.int("sent"), part.int("done")[~part.outcome("abandoned")]
        arrived += np.searchsorted(np.sort(sent), instants)
        gone += np.searchsorted(np.sort(done), instants)
        begun = min(begun, int(sent.min()))
    return arrived, gone, begun


def _slow(facts: WaveFacts, cohorts: Sequence[tuple[int, int]], start_ns: int, end_ns: int) -> list[float]:
    """The share by which those in flight would grow from one time after the first was sent to another, by each cohort.

    If every latency were one of the cohort's (those sent between two instants); with three standard errors. What
    was abandoned has its age: one that nobody answers in a long drain just hangs. Latencies that depend on when a
    request was sent differ between the first cohort and the last, and the smaller share is what latency explains.
    Where requests were counted it is not known when those of a latency were sent: there all are the cohort.
    """
    if end_ns <= start_ns:
        return [0.0] * len(cohorts)
    if facts.counts is not None:
        return [_upper(shares_passed(facts.counts, start_ns, end_ns))]
    tallies = [StreamingHistogram() for _ in cohorts]
    for part in _parts(facts):
        sent = part.int("sent")
        gone = (np.clip(part.int("done") - sent, start_ns, end_ns) - start_ns) / (end_ns - start_ns)
        for (first, stop), tally in zip(cohorts, tallies, strict=True):
            tally.add(gone[(sent >= first) & (sent < stop)])
    return [_upper(tally.distribution()) for tally in tallies]


def _upper(shares: Distribution | None) -> float:
    """The mean with three standard errors; 0 of less than two."""
    if shares is None or shares.count < 2:
        return 0.0
    return shares.mean + LEAST_ERRORS * shares.stdev / math.sqrt(shares.count - 1)
