"""The arrival scheduler: hands each arrival to a request greenlet at the instant it is due.

It waits on an alarm that rings at the instant. An arrival is never sent early; a late one is sent late and its lag
shows.
"""

from __future__ import annotations

import logging
from itertools import starmap
from time import monotonic_ns
from typing import TYPE_CHECKING

import gevent
from gevent.event import Event

from inference_benchmarker.engine.worker.alarm import Alarm
from inference_benchmarker.engine.worker.in_flight import Slot
from inference_benchmarker.plan.pacing import Arrival, ClosedStripe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from decimal import Decimal

    from inference_benchmarker.engine.worker.sessions import Sessions

QUANTUM = 32  # arrivals handed over before responses are polled again, so that catching up never starves them
PREGROWN = 16
NEVER_NS = (1 << 63) - 1
HANG_NS = 600_000_000_000  # ten minutes: how long a closed loop without a time bound waits for any request

logger = logging.getLogger(__name__)


class Scheduler:
    """The part that both loops share: slots that serve arrivals, and the moment when no arrival is left."""

    def __init__(self, sessions: Sessions) -> None:
        self._alarm: Alarm
        self.sessions = sessions
        self.requests = sessions.requests
        self.exhausted = Event()
        self.closing = False
        self._last_arrival = 0

    def start(self, t0: int) -> None:
        """Begin; ``t0`` is the wave's start on the monotonic clock."""
        raise NotImplementedError

    def stop(self, at_ns: int) -> None:
        """Send nothing that is due at or after this instant (ns after wave start)."""
        raise NotImplementedError

    def cut(self) -> None:
        """Begin no further turn of a session that is open."""

    def change(self, at_ns: int, rate: Decimal) -> None:
        """From then on (ns after wave start) another rate, requests/s, or so many users. Of a steered load."""
        raise NotImplementedError

    def drain_from(self) -> int | None:
        """The last arrival (ns after wave start), from which the drain counts; None while more may come."""
        raise NotImplementedError

    def close(self) -> None:
        """End the slots that wait for an arrival."""
        self.closing = True

    def leave(self) -> None:
        """In a forked process: hand out nothing any more, and leave the timer, which is the worker's, too."""
        self._alarm.leave()
        self.closing = True

    def _spawn(self, slot: Slot) -> None:
        slot.greenlet = gevent.Greenlet(self.sessions.serve, slot)
        self.requests.slots.append(slot)
        slot.greenlet.start()


class PooledScheduler(Scheduler):
    """Arrivals from an alarm clock, served by a pool of slots that grows up to a cap; beyond it they are dropped."""

    def __init__(self, sessions: Sessions, cap: int) -> None:
        super().__init__(sessions)
        self._cap = cap
        self._t0 = 0
        self._idle: list[list[Slot]] = [[] for _ in range(sessions.kinds)]
        self._hub = gevent.get_hub()
        self._alarm = Alarm(self._on_alarm)
        self.dispatch_errors = 0

    def start(self, t0: int) -> None:
        """Begin; the first alarm is the first arrival's."""
        self._t0 = self.requests.t0 = t0
        self._arm()

    def close(self) -> None:
        """End the idle slots."""
        super().close()
        for idle in self._idle:
            while idle:
                self._hub.loop.run_callback(idle.pop().greenlet.switch, None)

    def _on_alarm(self) -> None:
        try:
            self._dispatch()
        except BaseException:  # an exception must never silence the pacer
            self.dispatch_errors += 1
            if self.dispatch_errors <= 3:
                logger.exception("the scheduler recovered from an error")
        self._arm()

    def _dispatch(self) -> None:
        """Hand over every due arrival, at most a quantum of them."""
        raise NotImplementedError

    def _arm(self) -> None:
        """Set the alarm to what comes next, or tell that nothing does."""
        raise NotImplementedError

    def _hand_over(self, arrival: Arrival, *, begins: bool = True) -> bool:
        """Let a slot serve an arrival; False where none is free, so that it was dropped.

        One that does not begin, but goes on with a session, counts as no arrival.
        """
        kind = self.sessions.kind(arrival.index) if self.sessions.kinds > 1 else 0
        idle = self._idle[kind]
        if begins:
            self._last_arrival = arrival.due
        if idle:
            idle.pop().greenlet.switch(arrival)
        elif len(self.requests.slots) < self._cap:
            self._new_slot(kind, arrival)
        else:
            self.requests.ledger.dropped += begins and arrival.index >= 0
            return False
        return True

    def _new_slot(self, kind: int, arrival: Arrival | None) -> None:
        slot = Slot(kind)
        slot.handed = arrival
        slot.take = lambda: self._take(slot)
        self._spawn(slot)

    def _take(self, slot: Slot) -> Arrival | None:
        """Called in a slot's greenlet: the next arrival, waited for; None when the wave is over."""
        if slot.handed is not None:
            arrival, slot.handed = slot.handed, None
            return arrival
        if self.closing:
            return None
        self._idle[slot.kind].append(slot)
        switch = self._hub.switch
        while True:
            try:
                arrival = switch()
            except BaseException:  # a timer the user's code left behind must not end the slot
                logger.warning("a leftover of an earlier request reached an idle slot", exc_info=True)
                continue
            if arrival.__class__ is Arrival or (arrival is None and self.closing):
                return arrival


class OpenLoopScheduler(PooledScheduler):
    """Arrivals independent of completions. ``changed``: how a stripe of a steered load goes on, see ``OpenStripe``."""

    def __init__(
        self,
        sessions: Sessions,
        arrivals: Iterator[Arrival],
        cap: int,
        stop_ns: int,
        changed: Callable[[int, Decimal, int], Iterator[tuple[int, int]]] | None = None,
    ) -> None:
        super().__init__(sessions, cap)
        self._changed = changed
        self._steered = changed is not None
        self._arrivals = arrivals
        self._arrival: Arrival | None = next(arrivals, None)
        self._stop_ns = stop_ns
        for number in range(min(cap, PREGROWN)):
            self._new_slot(number % sessions.kinds, None)

    def change(self, at_ns: int, rate: Decimal) -> None:
        """Go on with other arrivals: those from the index on that is the next to be handed over."""
        assert self._changed is not None
        assert self._arrival is not None, "a steered stripe always has one that waits"
        self._arrivals = starmap(Arrival, self._changed(at_ns, rate, self._arrival.index))
        self._arrival = next(self._arrivals)
        self._arm()

    def stop(self, at_ns: int) -> None:
        """Send nothing that is due at or after this instant; no change follows."""
        self._steered = False
        self._stop_ns = min(self._stop_ns, at_ns)
        self._arm()

    def drain_from(self) -> int | None:
        """The last arrival's due time, once there are no more."""
        return self._last_arrival if self.exhausted.is_set() else None

    def leave(self) -> None:
        """No arrival is due before the end of time."""
        super().leave()
        self._arrival = None if self._arrival is None else Arrival(self._arrival.index, NEVER_NS)

    def _dispatch(self) -> None:
        now = monotonic_ns() - self._t0
        for _ in range(QUANTUM):
            arrival = self._arrival
            if arrival is None or arrival.due >= self._stop_ns:
                return
            if arrival.due > now:
                now = monotonic_ns() - self._t0  # handing over took time
                if arrival.due > now:
                    return
            self._arrival = next(self._arrivals, None)
            self._hand_over(arrival)

    def _arm(self) -> None:
        if self.closing:
            return
        at = self._next_ns()
        if at is not None:
            self._alarm.arm(self._t0 + at)
        else:
            self._alarm.stop()
            self.exhausted.set()

    def _next_ns(self) -> int | None:
        """When the next arrival is due, or one may come up before which nothing is; None where there is none."""
        arrival = self._arrival
        if arrival is not None and arrival.due < self._stop_ns:
            return arrival.due
        if self._steered and monotonic_ns() - self._t0 < self._stop_ns:  # a change may bring some before it
            return self._stop_ns
        return None


class ClosedLoopScheduler(Scheduler):
    """A fixed number of slots, each taking the next arrival when its request is over."""

    def __init__(self, sessions: Sessions, stripe: ClosedStripe, warmup_ns: int, kinds: list[int]) -> None:
        super().__init__(sessions)
        self._stripe = stripe
        self._warmup_ns = warmup_ns
        self._busy = stripe.arrivals
        self._waiting = [self._make_slot(kinds[number]) for number in range(stripe.arrivals)]
        self._alarm = Alarm(self._begin)

    def start(self, t0: int) -> None:
        """Begin: every slot takes its first arrival at wave start, or at the start of its warm-up."""
        self.requests.t0 = t0
        self._alarm.arm(t0 - self._warmup_ns)

    def stop(self, at_ns: int) -> None:
        """Hand out no arrival from this instant on."""
        self._stripe.stop(at_ns)

    def drain_from(self) -> int | None:
        """The last arrival or the wave's end; a loop without either ends when nothing has come back for very long."""
        if self._stripe.spent:
            return self._last_arrival
        return self._last_arrival + HANG_NS if self._stripe.end_ns is None else self._stripe.end_ns

    def _make_slot(self, kind: int) -> Slot:
        slot = Slot(kind)
        first = [True]
        slot.take = lambda: self._take(first)
        return slot

    def _begin(self) -> None:
        for _ in range(QUANTUM):
            if not self._waiting:
                self._alarm.stop()
                return
            self._spawn(self._waiting.pop())
        self._alarm.arm(1)

    def _take(self, first: list[bool]) -> Arrival | None:
        """Called in a slot's greenlet when its request is over: the arrival that comes back, or None at the end."""
        if first:
            first.clear()
            now = -self._warmup_ns
        else:
            gevent.sleep(0)  # an invoke that never waits must not starve the other slots and the reports
            now = monotonic_ns() - self.requests.t0
        arrival = None if self.closing else self._stripe.take(now)
        if arrival is None:
            self._busy -= 1
            if self._busy == 0:
                self.exhausted.set()
        else:
            self._last_arrival = arrival.due
        return arrival
