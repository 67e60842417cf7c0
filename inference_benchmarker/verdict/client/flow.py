"""The flow into the endpoint and out of it, over a stretch of a wave: requests in flight at instants. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Int64, Mask

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
        passed = _Passed.of(facts)
        edges = np.linspace(until_ns / 4 if from_ns is None else from_ns, until_ns, PARTS + 1).astype(np.int64)
        arrived = np.searchsorted(np.sort(passed.sent), edges)
        gone = np.searchsorted(np.sort(passed.done[passed.left]), edges)
        begun = min(int(passed.sent.min(initial=0)), 0)
        first, last = (begun, until_ns // 4), (3 * until_ns // 4, until_ns)
        since_begun = (int(edges[0]) - begun, until_ns - begun)
        return cls(
            sent=np.diff(arrived),
            in_flight=arrived - gone,
            slow=min(passed.slow(cohort, *since_begun) for cohort in (first, last)),
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


@dataclass(frozen=True, slots=True)
class _Passed:
    """When each request, the warm-up's too, was sent and over; what was abandoned has not ``left`` the endpoint."""

    sent: Int64
    done: Int64
    left: Mask

    @classmethod
    def of(cls, facts: WaveFacts) -> Self:
        both = (facts.warmup, facts.records)
        sent, done = (np.concatenate([records.int(name) for records in both]) for name in ("sent", "done"))
        return cls(sent, done, ~np.concatenate([records.outcome("abandoned") for records in both]))

    def slow(self, cohort: tuple[int, int], start_ns: int, end_ns: int) -> float:
        """The share by which those in flight would grow from one time after the first was sent to another.

        If every latency were one of the cohort's (those sent between two instants); with three standard errors. What
        was abandoned has its age: one that nobody answers in a long drain just hangs. Latencies that depend on when a
        request was sent differ between the first cohort and the last, and the smaller share is what latency explains.
        """
        mine = (self.sent >= cohort[0]) & (self.sent < cohort[1])
        number = int(np.count_nonzero(mine))
        if number < 2 or end_ns <= start_ns:
            return 0.0
        share = (np.clip((self.done - self.sent)[mine], start_ns, end_ns) - start_ns) / (end_ns - start_ns)
        return float(share.mean() + LEAST_ERRORS * share.std(ddof=1) / math.sqrt(number))
