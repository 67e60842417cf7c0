"""Instances with a queue each, and the router before them. Pure, as the model of one queue is."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.embedded.queueing.model import QueueModel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inference_benchmarker.embedded.queueing.job import Job
    from inference_benchmarker.embedded.queueing.rules import Rules

SHARED = "shared"
ROUTINGS = (SHARED, "random", "least_outstanding")


def queues(
    rules: Rules, next_service: Callable[[], int], routing: str, instances: int, seed: int
) -> QueueModel | RoutedQueues:
    """The servers of ``rules`` behind one queue (``shared``), or behind one for each of so many instances."""
    if routing == SHARED:
        return QueueModel(rules, next_service)
    return RoutedQueues(rules, next_service, instances, random.Random(f"routing:{seed}"), routing=routing)


class RoutedQueues:
    """A queue for each instance; all have an equal part of the servers of ``rules``, and its queue limit each.

    A request joins the queue of any instance (``random``) or of one of those with the fewest requests that are not
    finished (``least_outstanding``), and stays there. The operations are those of a single queue.
    """

    def __init__(
        self, rules: Rules, next_service: Callable[[], int], instances: int, draws: random.Random, *, routing: str
    ) -> None:
        self.rules = replace(
            rules,
            servers=rules.servers // instances,
            most_servers=rules.most_servers // instances,
            burst_ns=rules.burst_ns // instances,
        )
        self._next_service = next_service
        self._draws = draws
        self._is_random = routing == "random"
        self._open = [self._new() for _ in range(instances)]
        # Those of instances that end with what they serve.
        self._ending: list[QueueModel] = []
        # Of instances that have ended: work done, work that could have been done, and requests present.
        self._past_busy_ns = self._past_server_ns = self._past_present_ns = 0
        self._peak = 0

    @property
    def servers(self) -> int:
        """The servers of the instances to which requests are sent."""
        return sum(queue.servers for queue in self._open)

    def offer(self, now_ns: int, pieces: int = 1, part: float = 1.0) -> Job | None:
        """An arrival: its job, or None where the queue of its instance is full."""
        present = [queue.present(now_ns) for queue in self._open]
        ending = sum(queue.present(now_ns) for queue in self._ending)
        job = self._open[self._choice(present)].offer(now_ns, pieces, part)
        if job is not None:
            self._peak = max(self._peak, sum(present) + ending + 1)
        return job

    def take_ready(self, now_ns: int) -> Sequence[Job]:
        """The jobs of which a piece became ready since this was last asked, once for each piece."""
        ready = [job for queue in self._all for job in queue.take_ready(now_ns)]
        self._sweep(now_ns)
        return ready

    def next_ns(self) -> int | None:
        """The next instant at which a piece may become ready while nobody arrives; None: there is none."""
        return min((at for queue in self._all if (at := queue.next_ns()) is not None), default=None)

    def stall(self, now_ns: int, seconds: float) -> None:
        """Every server stands still from now for that long."""
        for queue in self._all:
            queue.stall(now_ns, seconds)

    def resize(self, now_ns: int, servers: int) -> None:
        """From now on requests are sent to as many instances as have that many servers; the newest end first."""
        count = servers // self.rules.servers
        while len(self._open) < count:
            self._open.append(self._new())
            # A queue counts from instant 0 on, when this one was not there.
            self._past_server_ns -= self._open[-1].server_ns(now_ns)
        self._ending += self._open[count:]
        del self._open[count:]

    def busy(self, now_ns: int) -> int:
        """Servers with a request in service."""
        return sum(queue.busy(now_ns) for queue in self._all)

    def queue_length(self, now_ns: int) -> int:
        """Accepted requests whose service has not begun."""
        return sum(queue.queue_length(now_ns) for queue in self._all)

    def present(self, now_ns: int) -> int:
        """Accepted requests that are not finished."""
        return sum(queue.present(now_ns) for queue in self._all)

    def take_peak(self, now_ns: int) -> int:
        """The most requests that were present at any time since this was last asked."""
        peak, self._peak = self._peak, self.present(now_ns)
        return max(peak, self._peak)

    def present_ns(self, now_ns: int) -> int:
        """The integral of ``present`` up to now."""
        return self._past_present_ns + sum(queue.present_ns(now_ns) for queue in self._all)

    def busy_ns(self, now_ns: int) -> int:
        """The integral of ``busy`` up to now."""
        return self._past_busy_ns + sum(queue.busy_ns(now_ns) for queue in self._all)

    def server_ns(self, now_ns: int) -> int:
        """The integral of how many servers there may be."""
        return self._past_server_ns + sum(queue.server_ns(now_ns) for queue in self._all)

    @property
    def _all(self) -> list[QueueModel]:
        return [*self._open, *self._ending]

    def _new(self) -> QueueModel:
        return QueueModel(self.rules, self._next_service)

    def _choice(self, present: list[int]) -> int:
        if self._is_random:
            return self._draws.randrange(len(present))
        least = min(present)
        return self._draws.choice([number for number, count in enumerate(present) if count == least])

    def _sweep(self, now_ns: int) -> None:
        """Forget the instances that have ended and whose answers were taken, but for what they did."""
        ended = [queue for queue in self._ending if not queue.present(now_ns)]
        for queue in ended:
            self._past_busy_ns += queue.busy_ns(now_ns)
            self._past_server_ns += queue.server_ns(now_ns)
            self._past_present_ns += queue.present_ns(now_ns)
            self._ending.remove(queue)
