"""The highest rate at which a queue keeps a limit, by simulation with its own error. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from server_capacity.models.twin.shares import Effort, Variants, shares_over

if TYPE_CHECKING:
    from server_capacity.models.twin.trace import Floats

_SEED = 16  # any: the same twin gives the same answer
_LOADS = 1 - np.geomspace(0.97, 0.004, 18)  # of what keeps all servers busy
_NEAR = 0.02  # of a rate, or a share of what it leaves to saturation: rates beside it
_BESIDE = np.array([-1.0, 0.0, 1.0])
_STATE = 1 << 14  # cells of a simulation's state: about what a processor's cache holds
SAMPLE = 2_500_000  # arrivals at each rate
_GROUPS = 8


@dataclass(frozen=True, slots=True)
class Crossing:
    """``rate`` (requests/s) at which the share over the limit is what is allowed, and its standard error, a share.

    None: the limit is not kept at any rate. ``varied``: the rate of each variant, as a share of the first's.
    """

    rate: float | None
    error: float = 0.0
    varied: tuple[float, ...] = ()


def crossing(
    variants: Variants, bound_s: float, allowed: float, *, even: bool = False, sample: int = SAMPLE
) -> Crossing:
    """The rate at which a share ``allowed`` of requests takes longer than ``bound_s``; ``sample``: arrivals at each."""
    fitted, most = variants.first(), float(variants.most[0])
    coarse = Effort(max(16, _STATE // (fitted.servers * len(_LOADS))), 256, 1024)
    shares = shares_over(fitted, _LOADS, bound_s, coarse, even=even, seed=_SEED).mean(axis=(1, 2))
    if shares[0] > allowed:
        return Crossing(None)
    if shares[-1] <= allowed:
        return Crossing(most, 0.0, tuple(variants.most / most))
    load = where(_LOADS, shares, allowed)
    for seed, part in ((_SEED + 1, 6), (_SEED + 2, 1)):
        near = _beside(load, 2 if part > 1 else 1)
        effort = _effort(fitted.servers, len(near), load, sample // part)
        found = shares_over(fitted, near, bound_s, effort, even=even, seed=seed)
        load = _crossed(near, found.mean(axis=(1, 2)), allowed)
    varied = _varied(variants, _beside(load), bound_s, allowed, even=even, sample=sample // 8)
    return Crossing(most * load, _error(near, found, allowed), varied)


def where(rates: Floats, shares: Floats, allowed: float) -> float:
    """The rate at which shares that rise, and of which the last is above it, first rise above what is allowed."""
    first = max(1, int(np.argmax(shares > allowed)))
    return _crossed(rates[first - 1 : first + 1], shares[first - 1 : first + 1], allowed)


def _beside(load: float, times: float = 1.0) -> Floats:
    """The load, and one below and one above it."""
    load = min(load, 0.998)
    return load * (1 + times * min(_NEAR, (1 - load) / 4) * _BESIDE)


def _error(loads: Floats, shares: Floats, allowed: float) -> float:
    """The standard error of the load, as a share of it: the jackknife over groups of queues."""
    groups = np.array_split(np.arange(shares.shape[2]), _GROUPS)
    means = [np.delete(shares, group, axis=2).mean(axis=(1, 2)) for group in groups]
    logs = np.log([_crossed(loads, mean, allowed) for mean in means])
    return float(np.sqrt((_GROUPS - 1) * logs.var()))


def _varied(
    variants: Variants, loads: Floats, bound_s: float, allowed: float, *, even: bool, sample: int
) -> tuple[float, ...]:
    """The rate of each variant over that of the first, with the same random numbers."""
    if len(variants.services_s) == 1:
        return (1.0,)
    effort = _effort(variants.servers, len(loads) * len(variants.services_s), loads[1], sample)
    found = shares_over(variants, loads, bound_s, effort, even=even, seed=_SEED + 3).mean(axis=2)
    rates = np.array([_crossed(loads, shares, allowed) for shares in found.T]) * variants.most
    return tuple(rates / rates[0])


def _effort(servers: int, columns: int, load: float, sample: int) -> Effort:
    """Long enough for a queue under such a load; of many servers less is simulated, as less of it is chance."""
    queues = max(8, _STATE // (servers * columns))
    relaxation = load / (1 - load**0.5) ** 2
    warm = int(min(6_000, 2 * relaxation)) + 64
    return Effort(queues, warm, max(warm, int(sample * min(1.0, 4 / servers)) // queues))


def _crossed(rates: Floats, shares: Floats, allowed: float) -> float:
    """The rate at which a straight line through the logarithms crosses."""
    x, y = np.log(rates), np.log(np.maximum(shares, 1e-9))
    slope, level = np.polyfit(x - x.mean(), y, 1)
    return float(np.exp(x.mean() + (np.log(allowed) - level) / max(slope, 0.1)))
