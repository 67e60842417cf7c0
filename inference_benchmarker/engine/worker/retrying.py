"""Clients that try again: a turn is a request, and while it fails further ones, each with its record.

It keeps its slot while its client waits, and its payload (``KeptPayloads``): what is tried again is the same.
"""

from __future__ import annotations

from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING

import gevent

from inference_benchmarker.engine.worker.invocation import PayloadError
from inference_benchmarker.engine.worker.requests import RequestTimeout, make_attempt
from inference_benchmarker.plan.pacing import Arrival
from inference_benchmarker.records.error_cause import causes
from inference_benchmarker.records.transient import is_transient
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.engine.worker.in_flight import Slot
    from inference_benchmarker.engine.worker.requests import Attempt, Requests
    from inference_benchmarker.plan.retries import Retries

NEVER_NS = (1 << 63) - 1


class ClientTimeout(gevent.Timeout):
    """An attempt took longer than ``--client-timeout``."""


class Retrying:
    """A turn with a time limit for each of its attempts, and for all of them, tried again where the next may succeed.

    ``most_s`` bounds the whole of it.
    """

    def __init__(self, requests: Requests, seed: int, retries: Retries, most_s: float | None = None) -> None:
        self._requests = requests
        self._seed = seed
        self._most_ns = NEVER_NS if most_s is None else int(most_s * NS)
        self._patience_ns = NEVER_NS if retries.timeout_s is None else int(retries.timeout_s * NS)
        self._retries = retries

    def execute(self, slot: Slot, arrival: Arrival, attempt: Attempt) -> None:
        """Send a request until it succeeds or its client gives up; an attempt is due when it may begin."""
        requests = self._requests
        slot.attempt, slot.arrived = 0, arrival.due
        slot.until = min(NEVER_NS, monotonic_ns() - requests.t0 + self._most_ns)
        bounded, this = partial(self._bounded, attempt), arrival
        while True:
            slot.again = False
            requests.execute(slot, this, bounded, self._decide)
            if not slot.again or not requests.open or not requests.is_awaited(slot.next_due):
                break
            slot.attempt += 1
            this = Arrival(arrival.index, slot.next_due)
            if arrival.index >= 0:
                requests.ledger.repeated += 1
        slot.kept = None

    def _decide(self, slot: Slot, arrival: Arrival) -> None:
        """An attempt is over: another follows where its time is not up when that is due."""
        if slot.again:
            wait_ns = self._retries.backoff.wait_ns(self._seed, arrival.index, slot.attempt + 1)
            slot.next_due = slot.done + wait_ns
            slot.again = slot.next_due < slot.until

    def _bounded(self, attempt: Attempt, slot: Slot) -> None:
        """Make one attempt within its time, and find out whether another may follow."""
        make_attempt(attempt, slot, self._timer(slot))
        slot.again = slot.attempt < self._retries.retries and _may_repeat(slot)

    def _timer(self, slot: Slot) -> gevent.Timeout | None:
        """The limit that comes first: the attempt's or the turn's."""
        left = slot.until - (monotonic_ns() - self._requests.t0)
        if min(left, self._patience_ns) == NEVER_NS:
            return None
        kind, limit = (ClientTimeout, self._patience_ns) if self._patience_ns < left else (RequestTimeout, left)
        return kind.start_new(limit / NS)


def _may_repeat(slot: Slot) -> bool:
    """Tells whether the attempt failed for a reason that may be gone, before its user had seen a part of the answer."""
    failure = slot.failure
    if failure is None or slot.times or isinstance(failure, (RequestTimeout, PayloadError)):
        return False
    return isinstance(failure, ClientTimeout) or is_transient(causes(failure))
