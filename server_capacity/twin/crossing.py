"""The highest rate at which a queue keeps a limit, by simulation with its own error. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from server_capacity.twin.shares import Effort, Variants, shares_over

if TYPE_CHECKING:
    from server_capacity.twin.trace import Floats

_SEED = 16  # any: the same twin gives the same answer
_LOADS = 1 - np.geomspace(0.97, 0.004, 18)  # of what keeps all servers busy
_MOST = 0.998
_COARSE = Effort(queues=256, warm=512, arrivals=1024)
_OFFSETS = np.array([-0.02, 0.0, 0.02])
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
    rates = most * _LOADS
    shares = shares_over(fitted, rates, bound_s, _COARSE, even=even, seed=_SEED).mean(axis=(1, 2))
    if shares[0] > allowed:
        return Crossing(None)
    if shares[-1] <= allowed:
        return Crossing(most, 0.0, tuple(variants.most / most))
    rate = where(rates, shares, allowed)
    near = most * np.minimum(rate / most * (1 + 2 * _OFFSETS), _MOST)
    for seed, part in ((_SEED + 1, 6), (_SEED + 2, 1)):
        effort = _effort(fitted.servers, len(near), rate / most, sample // part)
        found = shares_over(fitted, near, bound_s, effort, even=even, seed=seed)
        rate = float(np.exp(_line(near, found.mean(axis=(1, 2)), allowed)))
        near, found_at = most * np.minimum(rate / most * (1 + _OFFSETS), _MOST), near
    groups = [_line(found_at, part.mean(axis=(1, 2)), allowed) for part in np.array_split(found, _GROUPS, axis=2)]
    varied = _varied(variants, near, bound_s, allowed, even=even, sample=sample // 8)
    return Crossing(rate, float(np.std(groups, ddof=1) / _GROUPS**0.5), varied)


def where(rates: Floats, shares: Floats, allowed: float) -> float:
    """The rate at which shares that rise, and of which the last is above it, first rise above what is allowed."""
    first = max(1, int(np.argmax(shares > allowed)))
    return float(np.exp(_line(rates[first - 1 : first + 1], shares[first - 1 : first + 1], allowed)))


def _varied(
    variants: Variants, rates: Floats, bound_s: float, allowed: float, *, even: bool, sample: int
) -> tuple[float, ...]:
    """The rate of each variant over that of the first, with the same random numbers."""
    if len(variants.services_s) == 1:
        return (1.0,)
    effort = _effort(variants.servers, len(rates) * len(variants.services_s), rates[1] / variants.most[0], sample)
    found = shares_over(variants, rates, bound_s, effort, even=even, seed=_SEED + 3).mean(axis=2)
    logs = np.array([_line(rates, shares, allowed) for shares in found.T])
    return tuple(np.exp(logs - logs[0]))


def _effort(servers: int, columns: int, load: float, sample: int) -> Effort:
    """Long enough for a queue under such a load: 5 relaxation times pass before anything is counted."""
    queues = max(16, _STATE // (servers * columns))
    warm = int(min(20_000, 5 * load / (1 - load**0.5) ** 2)) + 64
    return Effort(queues, warm, max(warm, sample // queues))


def _line(rates: Floats, shares: Floats, allowed: float) -> float:
    """The logarithm of the rate at which a straight line through the logarithms crosses."""
    x, y = np.log(rates), np.log(np.maximum(shares, 1e-9))
    slope, level = np.polyfit(x - x.mean(), y, 1)
    return float(x.mean() + (np.log(allowed) - level) / max(slope, 0.1))
