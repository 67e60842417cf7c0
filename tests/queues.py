"""Waves against simulated endpoints that serve in any order: who arrives when, and when each is answered. Pure."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from decimal import Decimal
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from inference_benchmarker.facts.client_use import Connections, WorkerUse
from inference_benchmarker.facts.wave_facts import WaveFacts, Window
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.records.columns import SCHEMA, Records
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.words.units import NS
from tests.waves import records_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Order = Callable[[Sequence[float], Sequence[float], int], list[float]]


class _Servers:
    """Servers that take one request after the other, whichever ``pick`` says; none is broken off."""

    def __init__(self, services: Sequence[float], servers: int, pick: Callable[[deque[int]], int]) -> None:
        self._services = services
        self._servers = servers
        self._pick = pick
        self._waiting: deque[int] = deque()
        self._busy: list[float] = []
        self._done = [0.0] * len(services)

    def serve(self, dues: Sequence[float]) -> list[float]:
        """When each is done."""
        for number, due in enumerate(dues):
            self._go_on(due)
            self._waiting.append(number)
            if len(self._busy) < self._servers:
                self._take(due)
        self._go_on(math.inf)
        return self._done

    def _go_on(self, until: float) -> None:
        while self._busy and self._busy[0] <= until:
            self._take(heappop(self._busy))

    def _take(self, now: float) -> None:
        if self._waiting:
            chosen = self._pick(self._waiting)
            self._done[chosen] = now + self._services[chosen]
            heappush(self._busy, self._done[chosen])


def oldest_first(dues: Sequence[float], services: Sequence[float], servers: int) -> list[float]:
    """When each is done: first come first served."""
    return _Servers(services, servers, deque.popleft).serve(dues)


def newest_first(dues: Sequence[float], services: Sequence[float], servers: int) -> list[float]:
    """When each is done: last come first served."""
    return _Servers(services, servers, deque.pop).serve(dues)


def all_at_once(dues: Sequence[float], services: Sequence[float], servers: int) -> list[float]:
    """When each is done: all that are there share the servers, none gets more than one (processor sharing)."""
    done = [0.0] * len(dues)
    there: list[tuple[float, int]] = []
    now = work = 0.0  # ``work``: what a request that was there from the start would have been given
    for number, due in [*enumerate(dues), (-1, math.inf)]:
        while there:
            each = max(1.0, len(there) / servers)
            end = now + (there[0][0] - work) * each
            if end > due:
                break
            work, now = there[0][0], end
            done[heappop(there)[1]] = end
        if there:
            work += (due - now) / max(1.0, len(there) / servers)
        now = due
        if number >= 0:
            heappush(there, (work + services[number], number))
    return done


def in_batches(dues: Sequence[float], services: Sequence[float], servers: int, size: int = 8) -> list[float]:
    """When each is done: a server takes up to ``size`` that wait, for the sum of their times, all done at its end."""
    done = [0.0] * len(dues)
    free = [0.0] * servers
    first = 0
    while first < len(dues):
        start = max(heappop(free), dues[first])
        last = first
        while last < len(dues) and last - first < size and dues[last] <= start:
            last += 1
        end = start + sum(services[first:last])
        done[first:last] = [end] * (last - first)
        heappush(free, end)
        first = last
    return done


ORDERS: dict[str, Order] = {
    "first come first served": oldest_first,
    "last come first served": newest_first,
    "processor sharing": all_at_once,
    "batches": in_batches,
}


def services_of(kind: str, random: np.random.Generator, number: int, mean_s: float) -> list[float]:
    """Service times with a mean: fixed, exponential, bimodal (one in ten takes twenty times as long) or lognormal."""
    if kind == "fixed":
        return [mean_s] * number
    if kind == "exponential":
        return list(random.exponential(mean_s, number))
    if kind == "bimodal":
        return list(np.where(random.random(number) < 0.1, 20.0, 1.0) * mean_s / 2.9)
    sigma = np.sqrt(np.log1p(4.0))  # a coefficient of variation of 2
    return list(mean_s * random.lognormal(-(sigma**2) / 2, sigma, number))


KINDS = ("fixed", "exponential", "bimodal", "lognormal")


def offered(
    order: str,
    load: float,
    *,
    kind: str = "exponential",
    rate: int = 100,
    seconds: int = 10,
    servers: int = 4,
    poisson: bool = True,
    seed: int = 0,
    **more: Any,
) -> WaveFacts:
    """A wave at ``rate`` against servers that could answer ``rate / load``."""
    random = np.random.default_rng(seed)
    if poisson:
        gaps = random.exponential(1 / rate, int(rate * seconds * 1.5 + 50))
        dues = [due for due in np.cumsum(gaps) if due < seconds]
    else:
        dues = [number / rate for number in range(rate * seconds)]
    services = services_of(kind, random, len(dues), load * servers / rate)
    return observed_at(rate, seconds, dues, ORDERS[order](dues, services, servers), **more)


def observed_at(
    rate: int, seconds: float, dues: Sequence[float], done: Sequence[float], *, drain_s: float = 60.0, **more: Any
) -> WaveFacts:
    """The wave whose requests were sent and answered at these instants, in seconds; a drain ends what is left."""
    plan = WavePlan(OpenLoop(Decimal(rate)), Bounds(Decimal(str(seconds))))
    sent = np.round(np.asarray(dues) * NS).astype(np.int64)
    over = np.round(np.asarray(done) * NS).astype(np.int64)
    last = round((seconds + drain_s) * NS)
    reported = np.where(over > last, "abandoned", "ok")
    over = np.minimum(over, last)
    size = len(sent)
    values: dict[str, Any] = {
        "index": np.arange(size),
        "worker": np.zeros(size, np.uint16),
        "due": sent,
        "sent": sent,
        "done": over,
        "build_ns": np.zeros(size, np.int64),
        "label": pa.array([""] * size).dictionary_encode(),
        "outcome": pa.array(reported).dictionary_encode(),
    }
    counts = {name: int((reported == name).sum()) for name in ("ok", "abandoned")}
    facts = WaveFacts(
        plan=plan,
        window=Window(1_700_000_000 * NS, 5, round(seconds * NS), int(over[reported == "ok"].max(initial=0))),
        records=records_of(values),
        warmup=Records(SCHEMA.empty_table()),
        ledgers=(Ledger(scheduled=size, sent=size, **counts),),
    )
    return replace(facts, **more)


def held_up(begin: float, length: float, usual: float = 0.02) -> WaveFacts:
    """A wave of 10 s whose endpoint stands still once."""
    dues = [number / 100 for number in range(1000)]
    done = [
        max(due + usual, begin + length + number / 10_000) if begin <= due + usual < begin + length else due + usual
        for number, due in enumerate(dues)
    ]
    return observed_at(100, 10, dues, done)


def waiting(clear_until_s: float | None) -> WorkerUse:
    """A worker in which every other request waited for its pool, from when on if that is known."""
    return WorkerUse(connections=Connections(looked_at=100, waiting=50, clear_until_s=clear_until_s))
