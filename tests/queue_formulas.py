"""Closed forms of queues with Poisson arrivals: their mean wait, and how response times are spread. Seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.stats import poisson

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TERMS = 500


@dataclass(frozen=True)
class MMc:
    """Exponential services of ``service_s`` on average, first come, first served by ``servers``."""

    rate: float
    service_s: float
    servers: int

    @cached_property
    def delayed(self) -> float:
        """Erlang's C: the share that waits."""
        offered = self.rate * self.service_s
        terms = [offered**each / math.factorial(each) for each in range(self.servers + 1)]
        last = terms[-1] / (1 - offered / self.servers)
        return last / (sum(terms[:-1]) + last)

    @property
    def mean_wait_s(self) -> float:
        return self.delayed / (self.servers / self.service_s - self.rate)

    def p99_s(self) -> float:
        """Of the response time: a service, and of those who wait an exponential time before it."""
        own, queue = 1 / self.service_s, self.servers / self.service_s - self.rate

        def longer(at: float) -> float:
            both = (queue * math.exp(-own * at) - own * math.exp(-queue * at)) / (queue - own)
            return (1 - self.delayed) * math.exp(-own * at) + self.delayed * both - 0.01

        return float(brentq(longer, 0, 1000 * self.service_s))


@dataclass(frozen=True)
class MDc:
    """Services of exactly ``service_s``: Crommelin (1932), and the waits after Franx (2001)."""

    rate: float
    service_s: float
    servers: int

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """The share of time with so many present: what is left after a service, and what came in it."""
        came = poisson.pmf(np.arange(_TERMS), self.rate * self.service_s)
        step = np.zeros((_TERMS, _TERMS))
        for before in range(_TERMS):
            left = max(0, before - self.servers)
            step[before, left:] = came[: _TERMS - left]
        step[:, -1] += 1 - step.sum(axis=1)
        equations = np.vstack([(step.T - np.eye(_TERMS))[:-1], np.ones(_TERMS)])
        found: NDArray[np.float64] = np.linalg.solve(equations, np.eye(_TERMS)[-1])
        return found

    @property
    def mean_wait_s(self) -> float:
        waiting = np.maximum(np.arange(_TERMS) - self.servers, 0)
        return float(waiting @ self.shares) / self.rate

    def p99_s(self) -> float:
        """Of the response time."""
        upto = np.cumsum(self.shares)

        def within(wait: float) -> float:
            services = math.floor(wait / self.service_s) + 1
            terms = np.arange(services * self.servers)
            ahead = poisson.pmf(terms, self.rate * (services * self.service_s - wait))
            return float(ahead @ upto[np.minimum(self.servers + terms[-1] - terms, _TERMS - 1)]) - 0.99

        return self.service_s + float(brentq(within, 0, 30 * self.service_s))


def erlang_b(offered: float, servers: int) -> float:
    """The share that finds all servers busy, where nobody waits."""
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = offered * blocked / (number + offered * blocked)
    return blocked


def shorter_of_two(load: float, most: int = 25) -> float:
    """The mean response in services where each joins the shorter of two M/M/1 queues; more than ``most`` never are."""
    states = [(one, other) for one in range(most) for other in range(most)]
    place = {state: number for number, state in enumerate(states)}
    rates = np.zeros((len(states), len(states)))
    for (one, other), number in place.items():
        joined = [(one + 1, other)] * (one <= other) + [(one, other + 1)] * (other <= one)
        moves = [(state, 2 * load / len(joined)) for state in joined]
        moves += [((one - 1, other), 1.0)] * (one > 0) + [((one, other - 1), 1.0)] * (other > 0)
        for state, rate in moves:
            if state in place:
                rates[place[state], number] += rate
                rates[number, number] -= rate
    rates[-1] = 1.0
    shares = np.linalg.solve(rates, np.eye(len(states))[-1])
    return float(np.array(states).sum(axis=1) @ shares) / (2 * load)
