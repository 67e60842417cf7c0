"""The number of requests over a limit that a right plan makes, and one with an instance too few; and what tells them.

Pure. Requests over a limit come in bursts: their number is negative binomial, with the dispersion and the slope of the
search. Instances share the load at random, so that bursts of one are independent of those of another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from server_capacity.experiments.measurements.windows import SHORTER, at_most

if TYPE_CHECKING:
    from collections.abc import Callable

Judgement = Literal["holds", "fails", "cannot_tell"]

LEAST_S, LONGEST_S = 30.0, 900.0
LONGER = 1.25
"""By so much each time is longer that is tried."""
REJECTED, HELD = 0.85, 0.9
"""The chances that the time is chosen for: to reject a plan that is one instance short, and to hold a right one."""
WRONGLY = 0.01
"""The chance that what just keeps a limit is said to fail, and that what is one instance short is said to hold."""
LEAST_WARMUP_S, MOST_WARMUP_S = 5.0, 60.0
WARMUP_RELAXATIONS, LEAST_RELAXATIONS = 10.0, 20.0
"""How often a queue forgets what it was, before the proof and at least within it."""
TAIL = 0.025
"""On either side of a 95% interval."""
LEAST_TIMES, HALVINGS = 1e-4, 30


@dataclass(frozen=True, slots=True)
class Bursts:
    """The requests over a limit at the rate that just keeps it: a share of ``allowed``.

    ``dispersion``: the variance of their number, times that of independent requests; ``slope``: d ln(share over) /
    d ln(rate).
    """

    allowed: float
    dispersion: float
    slope: float

    def chance_of_at_most(self, count: int, requests: float, load: float) -> float:
        """The chance that no more are over, of so many requests at ``load``: 1 where the limit is just kept."""
        return self._chance(count, requests, min(load**self.slope, 1.0 / self.allowed))

    def _chance(self, count: int, requests: float, times: float) -> float:
        """The same where in the long run so many times as many are over as are allowed."""
        beyond = max((self.dispersion - 1.0) * times**SHORTER, 1e-6)
        return at_most(count, requests * self.allowed * times, beyond)

    def interval(self, requests: int, over: int) -> tuple[float, float]:
        """The 95% interval of the share that is over in the long run, where so many of so many were."""
        low = self._times(lambda times: 1.0 - self._chance(over - 1, requests, times) > TAIL) if over else 0.0
        high = self._times(lambda times: self._chance(over, requests, times) <= TAIL)
        return self.allowed * low, self.allowed * high

    def _times(self, is_above: Callable[[float], bool]) -> float:
        """The least multiple of what is allowed from which on it is true; at most that of all requests."""
        low, high = math.log(LEAST_TIMES), -math.log(self.allowed)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if is_above(math.exp(middle)) else (middle, high)
        return math.exp(high)

    def fails_from(self, requests: float) -> int:
        """The number over that is hardly ever reached where the limit is just kept."""
        low, high = int(requests * self.allowed), int(requests) + 1
        while low < high:
            middle = (low + high) // 2
            if 1.0 - self.chance_of_at_most(middle - 1, requests, 1.0) <= WRONGLY:
                high = middle
            else:
                low = middle + 1
        return high

    def holds_up_to(self, requests: float, short: float) -> int:
        """The number over that keeps the limit, and is hardly ever so low at the load ``short``; -1 for none."""
        low, high = -1, int(requests * self.allowed + 1e-9)
        while low < high:
            middle = (low + high + 1) // 2
            if self.chance_of_at_most(middle, requests, short) <= WRONGLY:
                low = middle
            else:
                high = middle - 1
        return low

    def judge(self, of: int, over: int, short: float) -> Judgement:
        """Tells whether a limit was kept; ``short``: the load of instances of which one is missing."""
        if over >= self.fails_from(of):
            return "fails"
        return "holds" if over <= self.holds_up_to(of, short) else "cannot_tell"

    def judge_kept(self, of: int, over: int) -> Judgement:
        """Tells whether a limit was kept that does not show an instance too few: another one is violated before."""
        if over >= self.fails_from(of):
            return "fails"
        return "holds" if 1 <= of * self.allowed >= over else "cannot_tell"


@dataclass(frozen=True, slots=True)
class Aim:
    """The proof that is to be: a target (requests/s) on so many ``instances``.

    ``load``: what each gets, over what it holds as it was measured. ``rate``: what one holds, requests/s.
    """

    target_rps: float
    instances: int
    load: float
    rate: float

    @property
    def short(self) -> float:
        """The load of each where one more would just keep the limit."""
        return (self.instances + 1) / self.instances

    def chances(self, bursts: Bursts, seconds: float) -> tuple[float, float]:
        """In that time, the chance to reject a plan that is one instance short, and to hold this one if it is right."""
        requests = self.target_rps * seconds
        rejected = 1.0 - bursts.chance_of_at_most(bursts.fails_from(requests) - 1, requests, self.short)
        kept = bursts.holds_up_to(requests, self.short)
        return rejected, bursts.chance_of_at_most(kept, requests, min(self.load, 1.0))

    def length_s(self, bursts: Bursts) -> float:
        """The seconds in which both chances are good, from ``LEAST_S`` to ``LONGEST_S``."""
        seconds = max(LEAST_S, LEAST_RELAXATIONS * self.relaxation_s(bursts))
        while seconds < LONGEST_S:
            rejected, held = self.chances(bursts, seconds)
            if rejected >= REJECTED and held >= HELD:
                return seconds
            seconds *= LONGER
        return LONGEST_S

    def warmup_s(self, bursts: Bursts) -> float:
        """The seconds until queues that were empty are as in the long run."""
        return min(max(WARMUP_RELAXATIONS * self.relaxation_s(bursts), LEAST_WARMUP_S), MOST_WARMUP_S)

    def relaxation_s(self, bursts: Bursts) -> float:
        """The seconds for which an instance's queue remembers: about as long as a burst, dispersion / (2 x rate)."""
        return bursts.dispersion / (2.0 * self.rate)
