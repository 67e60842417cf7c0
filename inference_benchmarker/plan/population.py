"""One worker's users of a closed loop who think, or whose number changes: when each sends next. Pure."""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import ClosedLoop
from inference_benchmarker.plan.pacing import Arrival
from inference_benchmarker.plan.schedule import NO_END

if TYPE_CHECKING:
    from inference_benchmarker.plan.pacing import TokenBucket


class PopulationStripe:
    """The users ``worker``, ``worker + workers``, ... of a closed loop (ns after wave start).

    Users begin as if they had been thinking for long, so they go on as they begin. A user is due to send when what
    they thought is over, and from their answer on thinks for a time that depends on the seed and the index of the
    answered arrival alone. Arrivals get their indices as they are taken, those of the warm-up negative ones.
    """

    def __init__(self, bucket: TokenBucket, worker: int) -> None:
        assert isinstance(bucket.load, ClosedLoop)
        self._think = bucket.load.think
        self._seed = bucket.seed
        self._worker, self._workers = worker, bucket.workers
        self._next, self._next_warmup = worker, worker - bucket.workers
        self._end_ns = bucket.end_ns
        self._num_requests = bucket.num_requests
        self._thinking: list[int] = []
        self._busy = 0
        self._wanted = 0
        self._changes = deque([(-bucket.warmup_ns, bucket.load.concurrency)])

    def next_ns(self) -> int | None:
        """When something is to be done next: a user is due, or their number changes; None where an answer decides."""
        times = self._thinking[:1] + [at for at, _ in list(self._changes)[:1]]
        if self._end_ns != NO_END:
            times.append(self._end_ns)
        return min(times, default=None)

    def take(self, now_ns: int) -> Arrival | None:
        """The arrival of a user who is due by now, if there is one."""
        while self._changes and self._changes[0][0] <= now_ns:
            self._apply(*self._changes.popleft())
        if not self._thinking or self._thinking[0] > now_ns or self.is_over(self._thinking[0]):
            return None
        self._busy += 1
        due = heappop(self._thinking)
        if due < 0:
            index, self._next_warmup = self._next_warmup, self._next_warmup - self._workers
        else:
            index, self._next = self._next, self._next + self._workers
        return Arrival(index, due)

    def answered(self, index: int, now_ns: int) -> None:
        """The answer of an arrival is there: its user thinks, or leaves where fewer are wanted."""
        self._busy -= 1
        if len(self._thinking) + self._busy < self._wanted:
            thought = 0 if self._think is None else self._think.ns(self._seed, index)
            heappush(self._thinking, now_ns + thought)

    def change(self, at_ns: int, users: int) -> None:
        """From then on, later than every change before, there are so many users over all workers."""
        self._changes.append((at_ns, users))

    def stop(self, at_ns: int) -> None:
        """Nobody is due at or after this instant."""
        self._end_ns = min(self._end_ns, at_ns)

    def is_over(self, now_ns: int) -> bool:
        """Tells whether nobody sends any more from then on."""
        return now_ns >= self._end_ns or self.spent

    @property
    def spent(self) -> bool:
        """Tells whether every request of the plan's number has been taken."""
        return self._num_requests is not None and self._next >= self._num_requests

    @property
    def end_ns(self) -> int | None:
        """From when on nobody is due, where there is a time bound."""
        return None if self._end_ns == NO_END else self._end_ns

    @property
    def thinking(self) -> int:
        """The number of users who will send without being waited for."""
        return len(self._thinking)

    def _apply(self, at_ns: int, users: int) -> None:
        """Let new users begin, or those leave who think, as many as are too many."""
        self._wanted = len(range(self._worker, users, self._workers))
        more = self._wanted - len(self._thinking) - self._busy
        if more > 0:
            self._thinking += [at_ns + self._rest_ns(place, more * self._workers) for place in range(more)]
            heapify(self._thinking)
        elif more < 0:
            self._thinking = _thinned(sorted(self._thinking), max(0, len(self._thinking) + more))

    def _rest_ns(self, place: int, users: int) -> int:
        """The time that one of this worker's new users thinks at first, where there are so many over all workers."""
        if self._think is None:
            return 0
        number = place * self._workers + self._worker
        return self._think.rest_ns(number / users, self._seed, -1 - number)


def _thinned(dues: list[int], left: int) -> list[int]:
    """So many of these sorted instants, as evenly as there were."""
    return [dues[place * len(dues) // left] for place in range(left)]
