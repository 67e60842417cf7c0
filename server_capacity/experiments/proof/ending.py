"""Ends the wave of a proof once it can no longer hold: more requests are over a limit than its whole time may have."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.engine.pilot import End
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import length_text
from server_capacity.experiments.measurements.live_counts import counts_of
from server_capacity.experiments.proof.length import bursts_of

if TYPE_CHECKING:
    from inference_benchmarker.engine.pilot import Order
    from inference_benchmarker.records.feed import Feed
    from inference_benchmarker.wave.spool.spool_state import SpoolState
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.experiments.proof.length import Length
    from server_capacity.experiments.proof.planned import Planned
    from server_capacity.search.limits import Limit

SURELY = 1.05
"""A time over its limit by this factor is over it, whatever bucket of the live feed it is in."""
_CHANCES = 5.0  # standard deviations: Poisson arrivals are hardly ever more
_GROWS_OLDER = ("latency", "response_time")


class ProofPilot:
    """Asks once a second; ``why``: a clause on what ended the wave early, None while nothing did.

    Requests over a limit never become fewer, so that what the whole time may not have is certain before it is over.
    """

    def __init__(self, question: Question, planned: Planned, length: Length) -> None:
        self.why: str | None = None
        self._length, self._goodput, self._next_ns = length, question.plan.goodput, 0
        expected = planned.aim.target_rps * length.seconds
        requests = expected + _CHANCES * math.sqrt(expected)
        self._limits = [(limit, _most(limit, planned, requests)) for limit in question.limits]

    def orders(self, spool_state: SpoolState, now_ns: int) -> list[Order]:
        """The end, once; else nothing."""
        if self.why is not None or now_ns < self._next_ns:
            return []
        self._next_ns = now_ns + NS
        for limit, most in self._limits:
            if (over := self._over(limit, spool_state.feed, now_ns)) >= most:
                self.why = (
                    f"{over:,} requests over {limit.expression} in {length_text(now_ns / NS)} are more than a "
                    f"sufficient plan would have in {length_text(self._length.seconds)}"
                )
                return [End()]
        return []

    def _over(self, limit: Limit, feed: Feed, now_ns: int) -> int:
        """The requests that are over a limit for sure, those in flight that are older among them."""
        if limit.bound_s is None:
            return counts_of(limit, feed.total(), self._goodput).over
        bound_s = SURELY * limit.bound_s
        over = counts_of(replace(limit, bound_s=bound_s), feed.total(), self._goodput).over
        if limit.metric in _GROWS_OLDER:
            over += sum(count for sent, count in feed.waiting.items() if now_ns / NS - (sent + 1) > bound_s)
        return over


def _most(limit: Limit, planned: Planned, requests: float) -> int:
    """The number over the limit from which on so many requests fail."""
    return bursts_of(limit, planned).fails_from(requests) if limit.allowed else 1
