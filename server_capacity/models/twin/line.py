"""One waiting line before c servers: from arrivals and ends follows how long each service took, exactly. Pure.

With first come, first served, request i (from 0) begins when it comes or when i - c + 1 requests have ended, whichever
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

    from server_capacity.models.twin.trace import Flags, Floats, Trace

    Numbers = NDArray[np.int64]

_LEAST = 100  # requests that waited, and as many that did not: fewer tell no distribution
_RANKS = np.linspace(0.01, 0.99, 99)
_PIECES = 40
_ROUNDS, _SETTLED = 3, 0.002  # until an overhead changes by less than this share of an answer
_CHANCE = 4.0  # standard errors
_LOW = slice(1, 60)  # low ranks tell a shift best: upper ones spread


@dataclass(frozen=True)
class Line:
    """The waves as ``servers`` servers explain them. ``time_s``: of each request its service where it waited.

    Where it did not, its service and the overhead: the constant part of an answer outside the servers.
    ``wait_s``: how long it waited. ``own``: how much of the services' spread is theirs, as a share; the rest is noise
    in the instants at which answers were noticed.
    """

    servers: int
    time_s: Floats
    wait_s: Floats
    own: float = 1.0

    def part(self, chosen: Numbers) -> Line:
        """Its chosen requests."""
        return Line(self.servers, self.time_s[chosen], self.wait_s[chosen], self.own)

    @cached_property
    def waited(self) -> Flags:
        """True of those that waited."""
        return self.wait_s > 0

    @property
    def is_usable(self) -> bool:
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
        seen = np.where(self.waited, self.time_s, self.time_s - self.overhead_s)
        mean = seen.mean()
        services: Floats = np.maximum(mean + self.own * (seen - mean), 0)
        return services

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
        return _at_ranks(self.time_s[self.waited]), _at_ranks(self.time_s[~self.waited])


def _at_ranks(values: Floats) -> Floats:
    """Their quantiles, in a tenth of the time that numpy's own take for a few thousand values."""
    return np.interp(_RANKS * (len(values) - 1), np.arange(len(values)), np.sort(values))


class Lines:
    """Waves seen as the line of any number of servers; of long ones, up to ``most`` requests in ``_PIECES`` pieces."""

    def __init__(self, waves: Sequence[Trace], most: int) -> None:
        of = sum(len(wave.sent_s) for wave in waves)
        self._waves = [_Seen.of(wave, min(1.0, most / max(1, of))) for wave in waves]

    def of(self, servers: int) -> Line:
        """The line that so many servers have: the overhead tells who waited, and they tell the overhead."""
        line, overhead_s = self._line(servers, 0.0), 0.0
        for _ in range(_ROUNDS):
            if not line.is_usable or abs(line.overhead_s - overhead_s) < _SETTLED * line.time_s.mean():
                break
            overhead_s = line.overhead_s
            line = self._line(servers, overhead_s)
        return line

    def own(self, line: Line) -> float:
        """The share of its services' spread that is theirs.

        An answer that is noticed late makes its own service long, and that of the next on its server short.

        So the covariance of services that follow each other is minus the variance of the noise, which a service has
        twice: at its beginning and at its end.
        """
        pairs = [seen.following(line.servers, line.overhead_s) for seen in self._waves]
        one, next_one = (np.concatenate(each) for each in zip(*pairs, strict=True))
        correlation = float(np.corrcoef(one, next_one)[0, 1]) if min(one.std(), next_one.std()) > 0 else 0.0
        return max(0.0, 1 + 2 * correlation) ** 0.5 if correlation < -_CHANCE / len(one) ** 0.5 else 1.0

    def _line(self, servers: int, overhead_s: float) -> Line:
        times, waits = zip(*(each.times(servers, overhead_s) for each in self._waves), strict=True)
        return Line(servers, np.concatenate(times), np.concatenate(waits))


class _Seen(NamedTuple):
    """One wave: when its requests came and ended, their numbers in the order of their ends, and the chosen ones."""

    sent_s: Floats
    ends_s: Floats
    order: Numbers
    chosen: Numbers

    @classmethod
    def of(cls, wave: Trace, share: float) -> _Seen:
        number = np.arange(len(wave.sent_s))
        place = number * _PIECES / max(1, len(number))
        chosen = number[(place % 1 < share) & wave.answered]
        return cls(wave.sent_s, wave.ends_s, np.argsort(wave.ends_s, kind="stable"), chosen)

    def times(self, servers: int, overhead_s: float, chosen: Numbers | None = None) -> tuple[Floats, Floats]:
        """``time_s`` and ``wait_s`` of a line, of its chosen requests or of others."""
        numbers = self.chosen if chosen is None else chosen
        free = np.where(numbers < servers, -np.inf, self.ends_s[self.order[np.maximum(numbers - servers, 0)]])
        sent = self.sent_s[numbers]
        wait = np.maximum(free - overhead_s - sent, 0)
        return self.ends_s[numbers] - np.where(wait > 0, free, sent), wait

    def following(self, servers: int, overhead_s: float) -> tuple[Floats, Floats]:
        """The services of chosen requests that waited, and of those whose ends they waited for."""
        time, wait = self.times(servers, overhead_s)
        waited = wait > 0
        others = self.order[self.chosen[waited] - servers]
        before, its_wait = self.times(servers, overhead_s, others)
        return time[waited], np.where(its_wait > 0, before, before - overhead_s)
