"""Finds whether an endpoint keeps up with streams or sessions whose limits do not show it: by how many are open. Pure.

A limit on the time between tokens says nothing of requests that wait for their first one.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from server_capacity.search.answer import Interval
from server_capacity.search.crossing import Crossing
from server_capacity.search.limit_bracket import KEEPS_UP, KEEPS_UP_SLOPE, WAITED
from server_capacity.search.recovery import is_broken, is_missed, length_below
from server_capacity.search.stretch import AT_MOST, DRAIN
from server_capacity.search.users import UserBracket

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.limits import Limit
    from server_capacity.search.stretch import Stretch

LEAST_SD, UNEQUAL = 0.04, 1.5
"""Of the rate at which a backlog is served: it depends on how it came, and answers are of unequal lengths."""


SLOWER, FAR_SLOWER, QUEUE_SEEN = 4.0, 12.0, 10.0
AT_ITS_LIMIT = 3.0
"""Times the length that requests have on average where their tokens just meet the limit."""


def slower_of(limits: Sequence[Limit], token_s: float) -> float:
    """Times their length alone, streams may last with every limit met and no queue; ``token_s``: a token's time alone.

    Where a limit is on a time that a queue is in, that limit shows it.
    """
    if any(limit.metric in WAITED for limit in limits):
        return QUEUE_SEEN
    bounds = [limit.bound_s for limit in limits if limit.bound_s is not None]
    if not bounds or not token_s:
        return SLOWER
    return min(max(SLOWER, AT_ITS_LIMIT * min(bounds) / token_s), FAR_SLOWER)


FIRST_ANSWERS_S, FEW_OPEN = 3.0, 10.0
STEADY_LENGTHS = 4.0
"""After so many lengths as many end as begin, if the endpoint keeps up."""


class _Load(NamedTuple):
    """A stretch, and the pause after it, in which its backlog was served; None without one."""

    stretch: Stretch
    drain: Stretch | None
    is_last: bool

    @property
    def runs(self) -> bool:
        """Tells whether the search still does: later, answers count when their requests were due."""
        if self.drain is None:
            return False
        return self.drain.answered > 0 or (self.is_last and self.drain.seconds < FIRST_ANSWERS_S)

    def is_silent(self, limits: Sequence[Limit]) -> bool:
        """Tells whether no limit says that it was too much; while the search runs, one may say so later."""
        return not (is_broken if self.runs else is_missed)(limits, self.stretch)

    def served(self, usual_s: float) -> tuple[float, float]:
        """The rate at which its backlog came and was served, and the error as a share of it.

        Without a pause, as many are still open at its end as at any time: those do not wait.
        """
        parts = [self.stretch] if self.drain is None else [self.stretch, self.drain]
        steady = 0.0 if self.drain is not None else min(self.stretch.in_flight, self.stretch.rate * usual_s)
        completed = max(1.0, sum(each.completed for each in parts) + steady)
        return completed / sum(each.seconds for each in parts), max(LEAST_SD, UNEQUAL / math.sqrt(completed))


def rate_kept_up(limits: Sequence[Limit], stretches: Sequence[Stretch], session_s: float, slower: float) -> UserBracket:
    """The rate that is completed where ever more are open, and no limit says so.

    Where a limit does, that rate is no capacity: with too much open, an endpoint may serve less.
    """
    loads = [each for each in _loads(stretches) if each.stretch.rate > 0 and not each.stretch.void]
    fell = [_fell_behind(limits, stretches, session_s, slower, each) for each in loads]
    calm = [each.stretch for each, behind in zip(loads, fell, strict=True) if not behind]
    silent = [each for each, behind in zip(loads, fell, strict=True) if behind and each.is_silent(limits)]
    behind = [each for each in silent if not any(_refutes(other, each.stretch) for other in calm)]
    served = (each.served(length_below(each.stretch.rate, limits, stretches, session_s)) for each in behind)
    rate, sd = max(served, default=(0.0, 0.0))
    least = rate * (1 - 2 * sd)  # what fell behind at less did so by chance
    ceiling = min((each.stretch.rate for each in behind if each.stretch.rate >= least), default=None)
    kept = max((each.rate for each in calm if each.is_usable and (ceiling is None or each.rate < ceiling)), default=0.0)
    if ceiling is None:
        return UserBracket(KEEPS_UP, kept, None, None)
    interval = Interval(least, rate * (1 + 2 * sd))
    return UserBracket(KEEPS_UP, kept or rate, ceiling, Crossing(rate, interval, KEEPS_UP_SLOPE, 1.0))


def with_drained(stretches: Sequence[Stretch]) -> list[Stretch]:
    """The stretches, each with the answers of the pause after it: while a search runs, they count when they come."""
    pairs = zip(stretches, (*stretches[1:], None), strict=True)
    return [
        replace(each, slices=(*each.slices, *after.slices)) if after is not None and after.purpose == DRAIN else each
        for each, after in pairs
    ]


def _loads(stretches: Sequence[Stretch]) -> list[_Load]:
    pairs = zip(stretches, (*stretches[1:], None), strict=True)
    return [
        _Load(each, after if after is not None and after.purpose == DRAIN else None, after is stretches[-1])
        for each, after in pairs
    ]


def _fell_behind(
    limits: Sequence[Limit], stretches: Sequence[Stretch], session_s: float, slower: float, load: _Load
) -> bool:
    """Tells whether what was sent waited: it took much longer than at lower rates.

    Where some take much longer than most, ever more are open for a while at any rate.
    """
    stretch = load.stretch
    if load.drain is None and not stretch.behind and stretch.purpose != AT_MOST:
        return False
    usual_s = length_below(stretch.rate, limits, stretches, session_s, of_all=True)
    if load.drain is not None:
        return load.runs or stretch.mean_s >= slower / 2 * usual_s
    is_full = stretch.in_flight > SLOWER * stretch.rate * usual_s + FEW_OPEN
    return stretch.seconds >= STEADY_LENGTHS * usual_s and (stretch.behind or is_full)


def _refutes(calm: Stretch, behind: Stretch) -> bool:
    """Tells whether a stretch at the same rate or a higher one, and as long, left far fewer open."""
    as_much = calm.rate >= behind.rate and calm.seconds >= behind.seconds
    return as_much and calm.is_usable and 2 * calm.in_flight < behind.in_flight
