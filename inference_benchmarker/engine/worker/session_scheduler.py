"""The schedulers of sessions: their first turns arrive as any load does, each later one when its user has thought.

A session that thinks holds no slot. A turn is never sent early; a late one is sent late and its lag shows.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from time import monotonic_ns
from typing import TYPE_CHECKING

from inference_benchmarker.engine.worker.scheduler import (
    HANG_NS,
    NEVER_NS,
    QUANTUM,
    OpenLoopScheduler,
    PooledScheduler,
)
from inference_benchmarker.plan.pacing import Arrival

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from decimal import Decimal

    from inference_benchmarker.engine.worker.conversations import Conversations
    from inference_benchmarker.plan.pacing import ClosedStripe

_FAR_OFF_NS = 1 << 62


class LaterTurns:
    """The turns of sessions that think, by when they are due. ``rearm`` is called when another is the first of them."""

    def __init__(self, conversations: Conversations, rearm: Callable[[], None]) -> None:
        self._conversations = conversations
        self._rearm = rearm
        self._dues: list[tuple[int, int]] = []
        conversations.later = self._add

    def __len__(self) -> int:
        return len(self._dues)

    @property
    def next_ns(self) -> int:
        """When the first of them is due; far off without any."""
        return self._dues[0][0] if self._dues else _FAR_OFF_NS

    def serve(self, hand_over: Callable[..., bool]) -> None:
        """Let a slot send the first of them; its session is over where none is free."""
        due, number = heappop(self._dues)
        if not hand_over(Arrival(number, due), begins=False):
            self._conversations.drop(number)

    def cut(self) -> None:
        """None of them is begun."""
        dues, self._dues = self._dues, []
        for _, number in dues:
            self._conversations.cut(number)

    def _add(self, due: int, number: int) -> None:
        turn = (due, number)
        heappush(self._dues, turn)
        if self._dues[0] is turn:  # else the alarm rings for one before it; to set it costs a system call
            self._rearm()


class SessionScheduler(OpenLoopScheduler):
    """Sessions that arrive whatever becomes of those before; for the arguments see ``OpenLoopScheduler``."""

    def __init__(
        self,
        conversations: Conversations,
        arrivals: Iterator[Arrival],
        cap: int,
        stop_ns: int,
        changed: Callable[[int, Decimal, int], Iterator[tuple[int, int]]] | None = None,
    ) -> None:
        super().__init__(conversations, arrivals, cap, stop_ns, changed)
        self._turns = LaterTurns(conversations, self._arm)

    def cut(self) -> None:
        """Begin no further turn of a session that is open."""
        self._turns.cut()

    def close(self) -> None:
        """End the idle slots, and the sessions that think."""
        super().close()
        self._turns.cut()

    def _dispatch(self) -> None:
        now = monotonic_ns() - self._t0
        for _ in range(QUANTUM):
            arrival, turn_ns = self._arrival, self._turns.next_ns
            arrival_ns = NEVER_NS if arrival is None or arrival.due >= self._stop_ns else arrival.due
            due = min(arrival_ns, turn_ns)
            if due > now:
                now = monotonic_ns() - self._t0  # handing over took time
                if due > now:
                    return
            if turn_ns == due:
                self._turns.serve(self._hand_over)
            elif arrival is not None:
                self._arrival = next(self._arrivals, None)
                self._hand_over(arrival)

    def _arm(self) -> None:
        if self.closing:
            return
        at = self._next_ns()
        if at is None:
            self.exhausted.set()
        self._alarm.arm(self._t0 + min(_FAR_OFF_NS if at is None else at, self._turns.next_ns))


class SessionPlaces(PooledScheduler):
    """So many sessions are open at a time: where one ends, the next begins.

    They begin evenly spread over the warm-up, so that not all are at their first turn when it is over; without one, all
    at once. ``first`` and ``step``: the worker's places are the ``first``-th, ``first + step``-th, ... of ``places``.
    ``cap``: their number may change while the wave runs, up to so many turns at a time; None: it stays.
    """

    def __init__(
        self,
        conversations: Conversations,
        stripe: ClosedStripe,
        warmup_ns: int,
        *,
        first: int,
        step: int,
        places: int,
        cap: int | None = None,
    ) -> None:
        super().__init__(conversations, stripe.arrivals if cap is None else cap)
        self._stripe = stripe
        self._first, self._step, self._steered = first, step, cap is not None
        self._changes: deque[tuple[int, int]] = deque()
        self._begun: dict[int, int] = {}
        self._lengths_ns = self._ended = 0
        self._turns = LaterTurns(conversations, self._arm)
        self._free = [number * warmup_ns // places - warmup_ns for number in range(first, places, step)]
        self._used = self._wanted = len(self._free)
        self._last_turn = 0
        conversations.on_end = self._on_end

    def change(self, at_ns: int, rate: Decimal) -> None:
        """From then on so many sessions are open over all workers."""
        self._changes.append((at_ns, int(rate)))
        self._arm()

    def stop(self, at_ns: int) -> None:
        """Begin no session from this instant on."""
        self._steered = False
        self._stripe.stop(at_ns)
        if not self._used:
            self.exhausted.set()
        self._arm()

    def cut(self) -> None:
        """Begin no further turn of a session that is open, and no session any more."""
        now = monotonic_ns() - self._t0
        self._free = [min(free, now) for free in self._free]
        heapify(self._free)
        self._turns.cut()

    def drain_from(self) -> int | None:
        """The last arrival or the wave's end; without either, when nothing has come back for very long."""
        if self._stripe.spent:
            return self._last_arrival
        if self._stripe.end_ns is not None:
            return self._stripe.end_ns
        return (
            None if self._steered or self._turns or self._free else max(self._last_arrival, self._last_turn) + HANG_NS
        )

    def close(self) -> None:
        """End the idle slots, and the sessions that think."""
        super().close()
        self._turns.cut()

    def _on_end(self, number: int) -> None:
        now = monotonic_ns() - self._t0
        self._lengths_ns += now - self._begun.pop(number, now)
        self._ended += 1
        if self._used > self._wanted:
            self._used -= 1
        else:
            heappush(self._free, now)
        self._arm()

    def _apply(self, at_ns: int, sessions: int) -> None:
        """More begin evenly spread over the mean length of those so far; those too many end, and none follows."""
        self._wanted = len(range(self._first, sessions, self._step))
        more = self._wanted - self._used
        spread_ns = self._lengths_ns // max(self._ended, 1)
        for place in range(more):
            heappush(self._free, at_ns + place * spread_ns // more)
        fewer = min(-more, len(self._free)) if more < 0 else 0
        self._free = sorted(self._free)[: len(self._free) - fewer]
        self._used += more if more > 0 else -fewer

    def _dispatch(self) -> None:
        for _ in range(QUANTUM):
            now = monotonic_ns() - self._t0
            while self._changes and self._changes[0][0] <= now:
                self._apply(*self._changes.popleft())
            if self._turns.next_ns <= now:
                self._last_turn = self._turns.next_ns
                self._turns.serve(self._hand_over)
            elif self._free and self._free[0] <= now:
                self._begin(heappop(self._free))
            else:
                return

    def _begin(self, at_ns: int) -> None:
        """Let the next session begin in a place that is free since then, if one is left."""
        arrival = self._stripe.take(at_ns)
        if arrival is not None:
            self._begun[arrival.index] = at_ns
            self._hand_over(arrival)
            return
        self._used -= 1
        if not self._used:
            self.exhausted.set()

    def _arm(self) -> None:
        if not self.closing:
            free = self._free[0] if self._free else _FAR_OFF_NS
            change = self._changes[0][0] if self._changes else _FAR_OFF_NS
            self._alarm.arm(self._t0 + min(free, change, self._turns.next_ns))
