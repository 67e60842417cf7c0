"""The share of requests over a limit against the rate, simulated for many services and rates at once. Pure.

All rates and all services see the same random numbers, so what differs between them is not chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from server_capacity.models.twin.queue import Queues

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from server_capacity.models.twin.trace import Floats

_RANKS = 4096  # values that stand for a distribution of services
_AT_ONCE = 128  # arrivals whose random numbers are drawn together


def ranked(services_s: Floats, ranks: int = _RANKS) -> Floats:
    """The services as so many values of equal weight and the same mean, ascending."""
    total = np.concatenate([[0.0], np.cumsum(np.sort(services_s))])
    upto = np.interp(np.linspace(0, len(services_s), ranks + 1), np.arange(len(total)), total)
    values: Floats = np.diff(upto) * (ranks / len(services_s))
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


def shares_over(variants: Variants, loads: Floats, bound_s: float, effort: Effort, *, even: bool, seed: int) -> Floats:
    """The share of requests over ``bound_s`` at each load, by load, variant and queue.

    ``loads``: rates as a share of what keeps all servers of a variant busy.
    """
    draws = np.random.default_rng(seed)
    services = variants.services_s.astype(np.float32)
    bounds = (bound_s - variants.overhead_s).astype(np.float32)[:, None]
    seconds = (1 / (loads[:, None] * variants.most)).astype(np.float32)[..., None]
    queues = Queues(_beginning(variants, loads, effort.queues, draws, even=even))
    over = np.zeros((len(loads), len(services), effort.queues), np.int32)
    for start in range(0, effort.warm + effort.arrivals, _AT_ONCE):
        gaps, picks = _draw(draws, effort.queues, even=even)
        for step, (gap, pick) in enumerate(zip(gaps, picks, strict=True), start):
            queues.let_pass(gap * seconds)
            total = queues.arrive(services[:, pick])
            if step >= effort.warm:
                over += total > bounds
    counted = -(-(effort.warm + effort.arrivals) // _AT_ONCE) * _AT_ONCE - effort.warm
    return over / counted


def _beginning(
    variants: Variants, loads: Floats, queues: int, draws: np.random.Generator, *, even: bool
) -> NDArray[np.float32]:
    """The work that servers have in the long run, about: what is far from it takes long to pass near saturation.

    In heavy traffic waits are exponential; Sakasegawa's approximation tells how many wait.
    """
    mean, spread = variants.services_s.mean(axis=1), variants.services_s.std(axis=1)
    load = loads[:, None, None]
    scale = (mean * ((spread / mean) ** 2 + (not even)) / (2 * variants.servers))[:, None] / (1 - load)
    delayed = draws.random(queues) < load ** (2 * (variants.servers + 1)) ** 0.5
    wait = delayed * scale * draws.standard_exponential(queues)
    busy = draws.random((variants.servers, 1, 1, queues)) < np.where(delayed, 1.0, load)
    services = np.moveaxis(variants.services_s[:, draws.integers(0, _RANKS, (variants.servers, queues))], 1, 0)
    left = draws.random((variants.servers, 1, 1, queues)) * services[:, None]
    found: NDArray[np.float32] = (wait + busy * left).astype(np.float32)
    return found


def _draw(draws: np.random.Generator, queues: int, *, even: bool) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    size = (_AT_ONCE, queues)
    gaps = np.ones(size, np.float32) if even else draws.standard_exponential(size, np.float32)
    return gaps, draws.integers(0, _RANKS, size)
