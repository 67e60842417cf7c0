"""The true capacity of an embedded endpoint under Poisson arrivals: closed forms, or its own model in virtual time."""

from __future__ import annotations

import math
from itertools import count, cycle
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inference_benchmarker.embedded.body_cache import BodyCache
from inference_benchmarker.embedded.queueing.routed import queues
from inference_benchmarker.embedded.service_times import service_times
from inference_benchmarker.words.units import NS
from tests.performance.capacity.truths import response_longer

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from inference_benchmarker.embedded.config import EndpointConfig
    from inference_benchmarker.embedded.queueing.job import Job

_SETTLING = 0.1  # of the arrivals, which count for nothing: the queue fills
_STATES = 300  # of M/D/c: enough for a share of 1% up to 97% of load


class Load(NamedTuple):
    """Requests at a rate (1/s) for some seconds."""

    rate: float
    seconds: float


class Simulation:
    """An endpoint in virtual time: its queueing model and its cache, without a network or a clock.

    ``payloads``: the number of different bodies, which come in turn; None: none comes twice.
    """

    def __init__(self, config: EndpointConfig, payloads: int | None = None, seed: int = 1) -> None:
        self.model = queues(config.rules, service_times(config), config.routing, config.instances, config.seed)
        self.cache = BodyCache(config.cache_size, config.cache_speedup)
        self._bodies = count() if payloads is None else cycle(range(payloads))
        self._random = np.random.default_rng(seed)
        self._now_ns = 0

    def send(self, load: Load) -> list[Job]:
        """Send Poisson arrivals and wait until all are served; returns those that were accepted."""
        gaps = self._random.exponential(1 / load.rate, round(load.rate * load.seconds))
        arrivals = self._now_ns + np.round(np.cumsum(gaps) * NS).astype(np.int64)
        jobs = [job for at in arrivals.tolist() if (job := self._offer(at))]
        self._now_ns = int(arrivals[-1])
        while (at := self.model.next_ns()) is not None:
            self._now_ns = at
            self.model.take_ready(at)
        return jobs

    def _offer(self, at_ns: int) -> Job | None:
        digest = self.cache.digest(b"%d" % next(self._bodies))
        job = self.model.offer(at_ns, part=self.cache.part(digest))
        if job:
            self.cache.keep(digest)
        self.model.take_ready(at_ns)
        return job


def response_times(jobs: list[Job]) -> NDArray[np.float64]:
    """The response times in s of jobs that are finished."""
    return np.array([(job.finish_ns or 0) - job.arrival_ns for job in jobs]) / NS


def simulated_capacity(
    config: EndpointConfig,
    limit_s: float,
    *,
    allowed: float = 0.01,
    before: Load | None = None,
    payloads: int | None = None,
    arrivals: int = 20_000,
) -> float:
    """The lowest rate (1/s) at which the share of response times above the limit is more than ``allowed``.

    Each rate is tried on an endpoint that has seen ``before`` alone, with the same random numbers. The answer is as
    near as so many arrivals tell: 20,000 are good to 3% for 4 servers of 20 ms and 100 ms.
    """

    def share(rate: float, arrivals: int = arrivals) -> float:
        simulation = Simulation(config, payloads)
        if before:
            simulation.send(before)
        times = response_times(simulation.send(Load(rate, arrivals / rate)))
        return float((times[round(_SETTLING * len(times)) :] > limit_s).mean())

    high = 0.3 * config.servers / config.service_s
    while share(high, arrivals // 8) <= allowed:
        high *= 1.15
    return _crossing(share, high / 1.3, high * 1.03, allowed, steps=6)


def closed_capacity(servers: int, service_s: float, limit_s: float, *, fixed: bool, allowed: float = 0.01) -> float:
    """The same for M/D/c (``fixed``) and M/M/c, exactly; rate in 1/s."""

    def share(rate: float) -> float:
        if fixed:
            return fixed_longer(servers, service_s, rate, limit_s)
        return response_longer(servers, rate * service_s / servers, limit_s / service_s)

    most = servers / service_s
    return _crossing(share, 0.1 * most, most, allowed, steps=14)


def fixed_longer(servers: int, service_s: float, rate: float, limit_s: float) -> float:
    """P(response time > limit) in M/D/c (G. J. Franx, 2001)."""
    mean = rate * service_s
    states = np.arange(_STATES)
    # Whoever is in service leaves within a service time: what is there then waited before, or came since.
    came = np.exp(states * math.log(mean) - mean - np.array([math.lgamma(n + 1) for n in states]))
    waits = np.maximum(states - servers, 0)
    steps = states[None, :] - waits[:, None]
    moves = np.where(steps >= 0, came[np.maximum(steps, 0)], 0.0)
    equations = np.vstack([(moves.T - np.eye(_STATES))[:-1], np.ones(_STATES)])
    there = np.linalg.solve(equations, np.append(np.zeros(_STATES - 1), 1.0))
    at_most = np.cumsum(there)[servers:]  # P(so many wait, or fewer)
    wait_s = limit_s - service_s
    periods = math.floor(wait_s / service_s + 1e-9) + 1
    left = rate * (periods * service_s - wait_s)
    weights = [math.exp(j * math.log(left) - left - math.lgamma(j + 1)) for j in range(periods * servers)]
    return float(1 - np.dot(weights, at_most[periods * servers - 1 :: -1]))


def _crossing(share: Callable[[float], float], low: float, high: float, allowed: float, steps: int) -> float:
    """The rate at which a growing share reaches what is allowed, by bisection."""
    for _ in range(steps):
        rate = (low + high) / 2
        low, high = (low, rate) if share(rate) > allowed else (rate, high)
    return (low + high) / 2
