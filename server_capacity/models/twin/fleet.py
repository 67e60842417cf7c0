"""Instances of one twin behind a router that prefers the least outstanding requests, simulated. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from server_capacity.models.twin.shares import Variants
    from server_capacity.models.twin.trace import Floats

_FLEETS = 32
_WARM, _COUNTED = 300, 4000  # arrivals: for each instance, and in all


class Fleet:
    """``instances`` queues of ``servers`` servers, as many such fleets as ``fleets``."""

    def __init__(self, servers: int, instances: int, fleets: int) -> None:
        # When each server is free, the soonest first, and when each outstanding request ends, in some order.
        self._free = np.zeros((servers, instances, fleets))
        self._ends = np.zeros((4 * servers + 16, instances, fleets))
        self._fleet = np.arange(fleets)

    def arrive(self, now: Floats, service: Floats, chance: Floats) -> Floats:
        """A request comes to each fleet: its wait and service. ``chance`` (instance, fleet) below 1 decides ties."""
        outstanding = (self._ends > now).sum(axis=0, dtype=np.int16) + chance
        where = outstanding.argmin(axis=0)
        free = self._free[:, where, self._fleet]
        end: Floats = np.maximum(free[0], now) + service
        free[0] = end
        free.sort(axis=0)
        self._free[:, where, self._fleet] = free
        # The soonest has ended, unless more are outstanding than there is place for.
        self._ends[self._ends[:, where, self._fleet].argmin(axis=0), where, self._fleet] = end
        return end - now


def shares_over(variants: Variants, instances: int, rates: Floats, bound_s: float, seed: int) -> Floats:
    """The share of requests over ``bound_s`` at each rate to all instances together; of the first variant."""
    draws = np.random.default_rng(seed)
    services, bound = variants.services_s[0], bound_s - variants.overhead_s[0]
    same = np.repeat(np.arange(_FLEETS)[None], len(rates), axis=0).ravel()  # numbers for all rates: no chance between
    seconds, now = np.repeat(1 / rates, _FLEETS), np.zeros(len(same))
    fleet = Fleet(variants.servers, instances, len(same))
    over = np.zeros(len(same), np.int64)
    for step in range(_WARM * instances + _COUNTED):
        now = now + draws.standard_exponential(_FLEETS)[same] * seconds
        picked = services[draws.integers(0, len(services), _FLEETS)][same]
        total = fleet.arrive(now, picked, 0.5 * draws.random((instances, _FLEETS))[:, same])
        if step >= _WARM * instances:
            over += total > bound
    shares: Floats = over.reshape(len(rates), _FLEETS).mean(axis=1) / _COUNTED
    return shares
