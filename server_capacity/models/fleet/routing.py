"""Instances behind a router: which one a request goes to, and when it is served there. Pure.

An instance is a heap of instants at which each of its servers is free. First come, first served: with the next arrival
it is known when its answer ends, so an instance that is taken away needs no more than that nothing is sent to it.
"""

from __future__ import annotations

import math
from collections import deque
from heapq import heappop, heappush, heapreplace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from server_capacity.models.fleet.service import Floats, Service

Routing = Literal["random", "least_outstanding"]


class Routed(NamedTuple):
    """Requests in any order: when each came, its seconds in a server, and when its answer ended (NaN: refused)."""

    arrivals: Floats
    services: Floats
    ends: Floats


class Router(Protocol):
    """Instances, and requests that come in order."""

    @property
    def instances(self) -> int:
        """The number that take requests."""

    def add(self, count: int) -> None:
        """So many more take requests."""

    def remove(self, count: int) -> list[float]:
        """The youngest take no more requests; when each of them has served its own."""

    def serve(self, arrivals: Floats, services: Floats) -> Routed:
        """Requests come, after all that came before."""


def router(routing: Routing, service: Service, instances: int, draws: np.random.Generator) -> Router:
    """A router with so many idle instances."""
    found = (_RandomRouter if routing == "random" else _LeastOutstandingRouter)(service, draws)
    found.add(instances)
    return found


class _RandomRouter:
    """Each request goes to any instance, whatever happens there."""

    def __init__(self, service: Service, draws: np.random.Generator) -> None:
        self._service, self._draws = service, draws
        self._free: list[list[float]] = []
        self._starts: list[deque[float]] = []  # of the last requests, as many as may wait

    @property
    def instances(self) -> int:
        return len(self._free)

    def add(self, count: int) -> None:
        self._free += [[0.0] * self._service.servers for _ in range(count)]
        waiting = self._service.waiting or 0
        self._starts += [deque([-math.inf] * waiting, waiting) for _ in range(count)]

    def remove(self, count: int) -> list[float]:
        kept = len(self._free) - count
        gone, self._free, self._starts = self._free[kept:], self._free[:kept], self._starts[:kept]
        return [max(each) for each in gone]

    def serve(self, arrivals: Floats, services: Floats) -> Routed:
        where = self._draws.integers(0, len(self._free), len(arrivals), np.uint16)
        order = np.argsort(where, kind="stable")
        arrivals, services = arrivals[order], services[order]
        bounds = np.concatenate([[0], np.cumsum(np.bincount(where, minlength=len(self._free)))]).tolist()
        ends: list[float] = []
        for number, (begin, end) in enumerate(pairwise(bounds)):
            came, taking = arrivals[begin:end].tolist(), services[begin:end].tolist()
            if self._service.waiting is None:
                ends += _served(self._free[number], came, taking)
            else:
                ends += _served_or_refused(self._free[number], self._starts[number], came, taking)
        return Routed(arrivals, services, np.array(ends))


def _served(free: list[float], arrivals: list[float], services: list[float]) -> list[float]:
    ends: list[float] = []
    add = ends.append
    for arrival, service in zip(arrivals, services, strict=True):
        end = (free[0] if free[0] > arrival else arrival) + service
        heapreplace(free, end)
        add(end)
    return ends


def _served_or_refused(
    free: list[float], starts: deque[float], arrivals: list[float], services: list[float]
) -> list[float]:
    """As many wait as there are starts to come: it is full where the first of the last ones is still to come."""
    ends: list[float] = []
    for arrival, service in zip(arrivals, services, strict=True):
        start = max(free[0], arrival)
        if start > arrival and (not starts or starts[0] > arrival):
            ends.append(math.nan)
            continue
        starts.append(start)
        heapreplace(free, start + service)
        ends.append(start + service)
    return ends


class _LeastOutstandingRouter:
    """Each request goes to an instance that has the fewest without an answer; where many have, to any of them."""

    def __init__(self, service: Service, draws: np.random.Generator) -> None:
        self._service, self._draws = service, draws
        self._most = math.inf if service.waiting is None else service.servers + service.waiting
        self._free: list[list[float]] = []
        self._live: list[int] = []
        self._outstanding: list[int] = []  # of each instance; below 0: it takes none
        self._with: list[list[int]] = [[]]  # the instances that have so many outstanding, in any order
        self._place: list[int] = []  # of each instance among those
        self._least = 0
        self._ends: list[tuple[float, int]] = []

    @property
    def instances(self) -> int:
        return len(self._live)

    def add(self, count: int) -> None:
        idle = self._with[0]
        for _ in range(count):
            number = len(self._free)
            self._free.append([0.0] * self._service.servers)
            self._live.append(number)
            self._outstanding.append(0)
            self._place.append(len(idle))
            idle.append(number)
        self._least = 0

    def remove(self, count: int) -> list[float]:
        gone = [self._live.pop() for _ in range(count)]
        for number in gone:
            same = self._with[self._outstanding[number]]
            last, place = same[-1], self._place[number]
            same[place], self._place[last] = last, place
            same.pop()
            self._outstanding[number] = -1
        while not self._with[self._least]:
            self._least += 1
        return [max(self._free[number]) for number in gone]

    def serve(self, arrivals: Floats, services: Floats) -> Routed:
        chances = self._draws.random(len(arrivals)).tolist()
        ends = self._served(arrivals.tolist(), services.tolist(), chances)
        return Routed(arrivals, services, np.array(ends))

    def _served(self, arrivals: list[float], services: list[float], chances: list[float]) -> list[float]:
        """When each answer ends. The day of a fleet is ten million turns of this loop: it keeps its state in locals."""
        frees, outstanding, having, move = self._free, self._outstanding, self._with, self._move
        pending, least, most = self._ends, self._least, self._most
        found: list[float] = []
        for arrival, service, chance in zip(arrivals, services, chances, strict=True):
            while pending and pending[0][0] <= arrival:
                number = heappop(pending)[1]
                count = outstanding[number] - 1
                if count >= 0:
                    move(number, count)
                    least = least if least < count else count
            if least >= most:
                found.append(math.nan)
                continue
            same = having[least]
            number = same[int(chance * len(same))]
            move(number, least + 1)
            least = least if same else least + 1
            free = frees[number]
            end = (free[0] if free[0] > arrival else arrival) + service
            heapreplace(free, end)
            heappush(pending, (end, number))
            found.append(end)
        self._least = least
        return found

    def _move(self, number: int, count: int) -> None:
        """Put an instance among those with so many outstanding; the last of those it leaves takes its place."""
        outstanding, having, places = self._outstanding, self._with, self._place
        same, place = having[outstanding[number]], places[number]
        same[place] = last = same[-1]
        places[last] = place
        same.pop()
        outstanding[number] = count
        if count == len(having):
            having.append([])
        same = having[count]
        places[number] = len(same)
        same.append(number)
