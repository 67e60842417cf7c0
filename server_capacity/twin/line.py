"""One waiting line before c servers: from arrivals and ends follows how long each service took, exactly. Pure.

With first come, first served, request i (from 0) begins when it is due or when i - c + 1 requests have ended, whichever
is later. So each c explains the same wave by other services; only the true one makes those of requests that waited and
of those that did not alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from server_capacity.twin.trace import Flags, Floats, Trace

    Numbers = NDArray[np.int64]

_LEAST = 100  # requests that waited, and as many that did not: fewer tell no distribution
_RANKS = np.linspace(0.01, 0.99, 99)
_PIECES = 40
_LOW = slice(1, 60)  # low ranks tell a shift best: upper ones spread


@dataclass(frozen=True)
class Line:
    """The waves as ``servers`` servers explain them. ``time_s``: of each request its service where it waited.

    Where it did not, its service and the overhead: the constant part of an answer outside the servers.
    ``wait_s``: how long it waited.
    """

    servers: int
    time_s: Floats
    wait_s: Floats

    def part(self, chosen: Numbers) -> Line:
        """Its chosen requests."""
        return Line(self.servers, self.time_s[chosen], self.wait_s[chosen])

    @cached_property
    def waited(self) -> Flags:
        """True of those that waited."""
        return self.wait_s > 0

    @property
    def tells(self) -> bool:
        """True where enough requests waited, and enough did not."""
        number = int(np.count_nonzero(self.waited))
        return min(number, len(self.waited) - number) >= _LEAST

    @cached_property
    def overhead_s(self) -> float:
        """The time that those took longer that did not wait, by their lower ranks; never below zero."""
        waited, alone = self._ranks
        spread = np.gradient(waited, _RANKS) ** 2 * _RANKS * (1 - _RANKS)
        weight = 1 / (spread + (0.01 * waited.mean()) ** 2 + 1e-18)[_LOW]
        return max(0.0, float(np.average((alone - waited)[_LOW], weights=weight)))

    @cached_property
    def services_s(self) -> Floats:
        """The service of each request, seconds; none is below zero."""
        return np.maximum(np.where(self.waited, self.time_s, self.time_s - self.overhead_s), 0)

    @cached_property
    def disagreement(self) -> float:
        """The distance of the services of those that waited from the others, as a share of their mean."""
        waited, alone = self._ranks
        mean = float(waited.mean())
        return float(np.abs(alone - self.overhead_s - waited).mean()) / mean if mean > 0 else inf

    @cached_property
    def impossible(self) -> float:
        """The share of those that waited whose service would end before it began."""
        late = self.time_s[self.waited]
        return float((late < -0.05 * late.mean()).mean())

    @cached_property
    def _ranks(self) -> tuple[Floats, Floats]:
        return np.quantile(self.time_s[self.waited], _RANKS), np.quantile(self.time_s[~self.waited], _RANKS)


class Lines:
    """Waves seen as the line of any number of servers; of long ones, up to ``most`` requests in ``_PIECES`` pieces."""

    def __init__(self, waves: Sequence[Trace], most: int) -> None:
        of = sum(len(wave.due_s) for wave in waves)
        self._waves = [_Seen.of(wave, min(1.0, most / max(1, of))) for wave in waves]

    def of(self, servers: int) -> Line:
        """The line that so many servers have."""
        times, waits = zip(*(seen.times(servers) for seen in self._waves), strict=True)
        return Line(servers, np.concatenate(times), np.concatenate(waits))


class _Seen(NamedTuple):
    """Of one wave: the chosen requests by number, when they came and ended, and all ends in order."""

    chosen: Numbers
    due_s: Floats
    ends_s: Floats
    in_order_s: Floats

    @classmethod
    def of(cls, wave: Trace, share: float) -> _Seen:
        number = np.arange(len(wave.due_s))
        place = number * _PIECES / max(1, len(number))
        chosen = number[(place % 1 < share) & wave.answered]
        ends = wave.ends_s
        return cls(chosen, wave.due_s[chosen], ends[chosen], np.sort(ends))

    def times(self, servers: int) -> tuple[Floats, Floats]:
        before = self.chosen - servers
        free = np.where(before >= 0, self.in_order_s[np.maximum(before, 0)], -np.inf)
        wait = np.maximum(free - self.due_s, 0)
        return self.ends_s - self.due_s - wait, wait
