"""The twin itself: servers, services and overhead as measured, and the capacity that follows from them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from server_capacity.models.twin.crossing import Crossing, crossing
from server_capacity.models.twin.shares import Variants, ranked
from server_capacity.results.types.bounds import Interval

if TYPE_CHECKING:
    from collections.abc import Iterable

    from server_capacity.models.twin.line import Line
    from server_capacity.models.twin.trace import Floats
    from server_capacity.search.limits import Limit

Arrivals = Literal["poisson", "constant"]
TIMES = ("response_time", "latency")
_VARIANTS = 24
_BLOCKS = 40  # of the exploration, in time; so much longer than a queue remembers that they are independent
_T = 2.07  # Student's, 95%, of so many variants
_UNMODELLED = 0.0025  # of the rate, a standard error for what no model has: timers, the network, an operating system


class Bound(NamedTuple):
    """A limit that the twin describes: at most a share of ``allowed`` takes longer than ``time_s`` (seconds)."""

    limit: str
    time_s: float
    allowed: float


def bounds(limits: Iterable[Limit]) -> list[Bound]:
    """Those on what the model has: the time until an answer ends."""
    return [
        Bound(limit.expression, limit.bound_s, limit.allowed)
        for limit in limits
        if limit.metric in TIMES and limit.bound_s is not None
    ]


@dataclass(frozen=True, slots=True)
class TwinEstimate:
    """By the model, the highest rate (requests/s) that keeps ``limit``, with its 95% interval. None: it never does."""

    limit: str
    rate: float | None
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Twin:
    """First come, first served by ``servers``, and ``overhead_s`` outside of them.

    ``services_s``: the time in a server of each request that was measured. ``variants``: the fit first, then fits to
    the same exploration put together again from blocks of it at random, which tell how sure the fit is.
    """

    servers: int
    overhead_s: float
    services_s: Floats
    variants: Variants

    @classmethod
    def of(cls, line: Line) -> Twin:
        """The twin that a line of services makes."""
        draws = np.random.default_rng(len(line.time_s))
        blocks = np.array_split(np.arange(len(line.time_s)), _BLOCKS)
        again = [np.concatenate([blocks[i] for i in draws.integers(0, _BLOCKS, _BLOCKS)]) for _ in range(_VARIANTS - 1)]
        lines = [line, *(part for numbers in again if (part := line.part(numbers)).is_usable)]
        services = np.array([ranked(each.services_s) for each in lines])
        overheads = np.array([each.overhead_s for each in lines])
        return cls(line.servers, float(overheads[0]), line.services_s, Variants(line.servers, services, overheads))

    @property
    def most(self) -> float:
        """The rate at which all servers are busy, requests/s."""
        return self.servers / float(self.services_s.mean())

    def estimate(self, bound: Bound, arrivals: Arrivals = "poisson") -> TwinEstimate:
        """The capacity that one limit leaves."""
        found = crossing(self.variants, bound.time_s, bound.allowed, even=arrivals == "constant")
        return _estimate(bound.limit, found)

    def capacity(self, limits: Iterable[Limit], arrivals: Arrivals = "poisson") -> TwinEstimate | None:
        """The lowest of the limits' estimates; None where it describes none of them."""
        estimates = [self.estimate(bound, arrivals) for bound in bounds(limits)]
        return min(estimates, key=lambda each: each.rate or 0.0, default=None)


def _estimate(expression: str, found: Crossing) -> TwinEstimate:
    if found.rate is None:
        return TwinEstimate(expression, None)
    half = _T * float(np.sqrt(np.var(found.varied) + found.error**2 + _UNMODELLED**2))
    return TwinEstimate(expression, found.rate, Interval(found.rate * (1 - half), found.rate * (1 + half)))
