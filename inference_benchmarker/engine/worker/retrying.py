"""Requests of clients that try again: an arrival is a request, and while it fails further ones, each with its record.

An arrival keeps its slot's greenlet while its client waits, and its payload: what is tried again is the same request.
"""

from __future__ import annotations

import logging
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event

from inference_benchmarker.engine.worker.requests import InvokeRequests, PayloadError, RequestTimeout
from inference_benchmarker.plan.pacing import Arrival
from inference_benchmarker.records.error_cause import causes
from inference_benchmarker.records.transient import is_transient
from inference_benchmarker.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.engine.endpoint import Endpoint
    from inference_benchmarker.engine.worker.slot import Slot
    from inference_benchmarker.plan.retries import Retries
    from inference_benchmarker.records.record import BatchWriter

NEVER_NS = (1 << 63) - 1

logger = logging.getLogger(__name__)


class ClientTimeout(gevent.Timeout):
    """An attempt took longer than ``--client-timeout``."""


class RetryingRequests(InvokeRequests):
    """Requests of a factories file, each with a time limit of its own and tried again where the next may succeed.

    ``request_timeout_s`` bounds all attempts of an arrival together.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        seed: int,
        fire: Callable[..., None],
        writer: BatchWriter,
        request_timeout_s: float | None = None,
        *,
        retries: Retries,
        row_of: Callable[[int], dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(endpoint, seed, fire, writer, row_of=row_of)
        self._most_ns = NEVER_NS if request_timeout_s is None else int(request_timeout_s * NS)
        self._patience_ns = NEVER_NS if retries.timeout_s is None else int(retries.timeout_s * NS)
        self._retries = retries
        self._stopped = Event()

    def stop(self) -> None:
        """Try nothing again from now on; what is in flight goes on."""
        self._stopped.set()

    def execute(self, slot: Slot, arrival: Arrival, attempt: Callable[[Slot], None]) -> None:
        """Send an arrival's request until it succeeds or its client gives up; an attempt is due when it may begin."""
        slot.attempt, slot.arrived = 0, arrival.due
        slot.until = min(NEVER_NS, monotonic_ns() - self.t0 + self._most_ns)
        turn = arrival
        while True:
            slot.again = False
            super().execute(slot, turn, attempt)
            if not slot.again:
                break
            due = slot.done + self._retries.backoff.wait_ns(self._seed, arrival.index, slot.attempt + 1)
            if due >= slot.until or not self._is_awaited(due):
                break
            slot.attempt += 1
            turn = Arrival(arrival.index, due)
            if arrival.index >= 0:
                self.ledger.repeated += 1
        slot.kept = None

    def _record(self, slot: Slot, arrival: Arrival) -> None:
        slot.again = slot.attempt < self._retries.retries and _may_repeat(slot)
        super()._record(slot, arrival)

    def _is_awaited(self, due: int) -> bool:
        """Wait until an attempt is due; False where the wave ended before."""
        self.waiting += 1
        gevent.sleep(0)  # an invoke that fails at once must not starve the other slots and the reports
        while self.open and not self._stopped.is_set() and (left := due - (monotonic_ns() - self.t0)) > 0:
            try:
                self._stopped.wait(left / NS)
            except BaseException:  # a timer the user's code left behind must not end the slot
                logger.warning("a leftover of an earlier attempt reached a client that waits", exc_info=True)
        self.waiting -= 1
        return self.open and not self._stopped.is_set()

    def _attempt(self, slot: Slot) -> None:
        timer = self._timer(slot)
        try:
            super()._attempt(slot)
        finally:
            if timer is not None:
                if not timer.pending:  # it went off, whatever the client made of it
                    slot.failure = timer
                timer.close()
                timer = None  # as in ``execute``

    def _timer(self, slot: Slot) -> gevent.Timeout | None:
        """The limit that comes first: the attempt's or the arrival's."""
        left = slot.until - (monotonic_ns() - self.t0)
        if min(left, self._patience_ns) == NEVER_NS:
            return None
        kind, limit = (ClientTimeout, self._patience_ns) if self._patience_ns < left else (RequestTimeout, left)
        return kind.start_new(limit / NS)

    def _payload(self, slot: Slot) -> Any:
        if not slot.attempt:
            slot.kept = super()._payload(slot), slot.label
        assert slot.kept is not None
        payload, slot.label = slot.kept
        return payload

    def _write(self, slot: Slot, arrival: Arrival, outcome: int, error: int = 0) -> None:
        super()._write(slot, arrival, outcome, error)
        if slot.attempt:
            self._writer.add_attempt(slot.attempt, slot.arrived)


def _may_repeat(slot: Slot) -> bool:
    """Tells whether the attempt failed for a reason that may be gone, before its user had seen a part of the answer."""
    failure = slot.failure
    if failure is None or slot.times or isinstance(failure, (RequestTimeout, PayloadError)):
        return False
    return isinstance(failure, ClientTimeout) or is_transient(causes(failure))
