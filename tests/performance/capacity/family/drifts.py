"""By load or by time: the same endpoint with a slow-down and without one, on the same random numbers.

No truth is needed to see whether a search says that its endpoint got slower, so any number of pairs can be made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from server_capacity.search.retried_rate import without_warm_up
from server_capacity.search.settings import Settings
from server_capacity.search.slow_down import slower
from tests.performance.capacity.driver import play
from tests.performance.capacity.family.drawing import Change, drawn
from tests.performance.capacity.family.truth import is_kept_idle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.performance.capacity.family.drawing import Member

_LEAST_RATE, _LEAST_SERVICES = 5.0, 60.0


@dataclass(frozen=True, slots=True)
class Pair:
    """``slowdown``: times as long as services take in the end; whether it was said, with the change and without it."""

    slowdown: float
    found: bool
    falsely: bool


def pairs(numbers: range, time_s: float) -> Iterator[Pair]:
    """A search of each endpoint as it gets slower, and one of it as it does not."""
    for number in numbers:
        member = _member(number, time_s)
        reported, falsely = (_reported(each, time_s, number) for each in (member, replace(member, change=Change())))
        yield Pair(member.slowdown, reported, falsely)


def _member(number: int, time_s: float) -> Member:
    """The first draw that can be searched in the time."""
    for attempt in range(200):
        member = drawn("slow-down", f"drift {number}", attempt)
        services = time_s / member.rules.mean_s
        if member.rules.most >= _LEAST_RATE and services >= _LEAST_SERVICES and is_kept_idle(member.lasting):
            return member
    raise AssertionError("no endpoint was drawn in 200 attempts")


def _reported(member: Member, time_s: float, seed: int) -> bool:
    played = play(member.searched(time_s), Settings(time_s=time_s), seed)
    return slower(member.limits, without_warm_up(member.limits, played.stretches)) is not None


def line(made: Sequence[Pair], time_s: float, large: float = 1.3) -> str:
    """A row of the table: slow-downs found, small ones found, and those that are not there."""
    big, small = ([pair for pair in made if (pair.slowdown >= large) == is_big] for is_big in (True, False))
    cells = (f"{sum(pair.found for pair in some)} of {len(some)}" for some in (big, small))
    return f"| {time_s:g} s | {' | '.join(cells)} | {sum(pair.falsely for pair in made)} of {len(made)} |"
