"""The load that a replica serves behind a router that keeps conversations together, and behind one that does not. Pure.

With random routing over R replicas a later turn finds its conversation with probability 1/R at the replica of the turn
before it. Few values of R are simulated, and what lies between them is interpolated in 1/R.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


GRID = (1, 2, 4, 8, 16, 64)
NOWHERE = 1 << 20
"""So many replicas that no turn finds its conversation: simulated in place of more than those of the grid."""
PRECISION = 0.02
MOST_TIMES = 4.0
"""A replica that serves so many times what it served in the search is not the one that was searched."""
_STEP = 1.25


class Routed(NamedTuple):
    """The load of a replica in the simulation: users at a time, conversations a second, and its hit rate."""

    users: int
    sessions_per_s: float
    hit_rate: float


class Held(NamedTuple):
    """The part of its load with prefix-aware routing that a replica still serves, from 0 to 1, and its hit rate."""

    share: float
    hit_rate: float


@dataclass(slots=True)
class Routings:
    """Both routings; ``simulate`` tells what so many users get on one of so many replicas, None where it fails them.

    ``in_users``: shares are those of users at a time, else of conversations a second.
    """

    simulate: Callable[[int, int], Routed | None]
    aware: Routed
    in_users: bool
    _known: dict[int, Held] = field(default_factory=dict)

    def random(self, replicas: int) -> Held:
        """Random routing over so many; over more of them no replica serves more."""
        if replicas == 1:
            return Held(1.0, self.aware.hit_rate)
        below = max(each for each in GRID if each <= replicas)
        above = min((each for each in GRID if each >= replicas), default=NOWHERE)
        few, many = self._at(below), self._at(above)
        if below == above:
            return few
        part = (1 / below - 1 / replicas) / (1 / below - 1 / above)
        return Held(*(one + part * (other - one) for one, other in zip(few, many, strict=True)))

    def _at(self, replicas: int) -> Held:
        if replicas == 1:
            return Held(1.0, self.aware.hit_rate)
        if replicas not in self._known:
            fewer = max([each for each in self._known if each < replicas], default=None)
            before = Held(1.0, self.aware.hit_rate) if fewer is None else self._known[fewer]
            found = most_users(lambda users: self.simulate(users, replicas), self.aware.users)
            share = self._size(found) / self._size(self.aware) if found else 0.0
            hit_rate = found.hit_rate if found else 0.0
            self._known[replicas] = Held(min(before.share, share), min(before.hit_rate, hit_rate))
        return self._known[replicas]

    def _size(self, found: Routed) -> float:
        return float(found.users) if self.in_users else found.sessions_per_s


def most_users(simulate: Callable[[int], Routed | None], guess: int) -> Routed | None:
    """The most users that meet the limits, to within 2%; None where not even one does, or any number."""
    met, missed, users = None, 0, max(1, guess)
    while not (met and missed):
        found = simulate(users)
        if found is None:
            missed = users
            if users == 1:
                return None
            users = min(users - 1, round(users / _STEP))
        else:
            met = found
            if missed:
                break
            if users > MOST_TIMES * guess:
                return None
            users = max(users + 1, round(users * _STEP))
    while missed - met.users > max(1.0, PRECISION * met.users):
        users = (met.users + missed) // 2
        found = simulate(users)
        if found is None:
            missed = users
        else:
            met = found
    return met
