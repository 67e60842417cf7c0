"""The scheduler of a closed loop of users: who thinks waits in a heap, and only who waits for an answer has a slot."""

from __future__ import annotations

from time import monotonic_ns
from typing import TYPE_CHECKING

from inference_benchmarker.engine.worker.scheduler import HANG_NS, QUANTUM, PooledScheduler

if TYPE_CHECKING:
    from decimal import Decimal

    from inference_benchmarker.engine.worker.in_flight import Slot
    from inference_benchmarker.engine.worker.sessions import Sessions
    from inference_benchmarker.plan.pacing import Arrival
    from inference_benchmarker.plan.population import PopulationStripe

_FAR_OFF_NS = 1 << 62


class PopulationScheduler(PooledScheduler):
    """Users who send, wait for the answer and think; ``steered``: their number may change while the wave runs.

    A user whose arrival is dropped, for want of a slot, thinks as if it had been answered.
    """

    def __init__(self, sessions: Sessions, stripe: PopulationStripe, cap: int, *, steered: bool = False) -> None:
        super().__init__(sessions, cap)
        self._stripe = stripe
        self._steered = steered

    def change(self, at_ns: int, rate: Decimal) -> None:
        """From then on there are so many users over all workers."""
        self._stripe.change(at_ns, int(rate))
        self._arm()

    def stop(self, at_ns: int) -> None:
        """Nobody sends at or after this instant."""
        self._stripe.stop(at_ns)
        self._arm()

    def drain_from(self) -> int | None:
        """The last arrival or the wave's end; without either, when nothing has come back for very long."""
        if self._stripe.spent:
            return self._last_arrival
        if self._stripe.end_ns is not None:
            return self._stripe.end_ns
        return None if self._steered or self._stripe.thinking else self._last_arrival + HANG_NS

    def _dispatch(self) -> None:
        for _ in range(QUANTUM):
            now = monotonic_ns() - self._t0
            arrival = self._stripe.take(now)
            if arrival is None:
                return
            if not self._hand_over(arrival):
                self._stripe.answered(arrival.index, now)

    def _take(self, slot: Slot) -> Arrival | None:
        """A slot without an arrival in hand has served one, and its user begins to think."""
        if slot.handed is None:
            self._stripe.answered(slot.index, monotonic_ns() - self._t0)
            self._arm()
        arrival = super()._take(slot)
        if arrival is not None:
            slot.index = arrival.index
        return arrival

    def _arm(self) -> None:
        if self.closing:
            return
        if self._stripe.is_over(monotonic_ns() - self._t0):
            self._alarm.stop()
            self.exhausted.set()
        else:
            at = self._stripe.next_ns()
            self._alarm.arm(_FAR_OFF_NS if at is None else self._t0 + at)
