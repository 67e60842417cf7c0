"""The share of requests over a limit against the rate, simulated for many services and rates at once. Pure.

All rates and all services see the same random numbers, so what differs between them is not chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from server_capacity.twin.queue import Queues

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from server_capacity.twin.trace import Floats

_RANKS = 4096  # values that stand for a distribution of services
_AT_ONCE = 128  # arrivals whose random numbers are drawn together


def ranked(services_s: Floats) -> Floats:
    """The services as so many values of equal weight and the same mean, ascending."""
    total = np.concatenate([[0.0], np.cumsum(np.sort(services_s))])
    upto = np.interp(np.linspace(0, len(services_s), _RANKS + 1), np.arange(len(total)), total)
    values: Floats = np.diff(upto) * (_RANKS / len(services_s))
    return values


@dataclass(frozen=True, slots=True)
class Variants:
    """Queues that differ in their services: ``services_s`` (variant, rank), ``overhead_s`` (variant,)."""

    servers: int
    services_s: Floats
    overhead_s: Floats

    @property
    def most(self) -> Floats:
        """The rate that keeps all servers busy, requests/s, of each."""
        rates: Floats = self.servers / self.services_s.mean(axis=1)
        return rates

    def first(self) -> Variants:
        """The first of them alone."""
        return Variants(self.servers, self.services_s[:1], self.overhead_s[:1])


@dataclass(frozen=True, slots=True)
class Effort:
    """The work of a simulation: ``queues`` side by side of each rate and variant, each ``arrivals`` after ``warm``."""

    queues: int
    warm: int
    arrivals: int


def shares_over(variants: Variants, rates: Floats, bound_s: float, effort: Effort, *, even: bool, seed: int) -> Floats:
    """The share of requests over ``bound_s`` at each rate (requests/s), by rate, variant and queue."""
    draws = np.random.default_rng(seed)
    services = variants.services_s.astype(np.float32)
    bounds = (bound_s - variants.overhead_s).astype(np.float32)[:, None]
    seconds = (1 / rates).astype(np.float32)[:, None, None]
    queues = Queues(variants.servers, (len(rates), len(services), effort.queues))
    over = np.zeros((len(rates), len(services), effort.queues), np.int32)
    for start in range(0, effort.warm + effort.arrivals, _AT_ONCE):
        gaps, picks = _draw(draws, effort.queues, even=even)
        for step, (gap, pick) in enumerate(zip(gaps, picks, strict=True), start):
            queues.let_pass(gap * seconds)
            total = queues.arrive(services[:, pick])
            if step >= effort.warm:
                over += total > bounds
    counted = -(-(effort.warm + effort.arrivals) // _AT_ONCE) * _AT_ONCE - effort.warm
    return over / counted


def _draw(draws: np.random.Generator, queues: int, *, even: bool) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    size = (_AT_ONCE, queues)
    gaps = np.ones(size, np.float32) if even else draws.standard_exponential(size, np.float32)
    return gaps, draws.integers(0, _RANKS, size)
