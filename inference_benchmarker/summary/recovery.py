"""The time an endpoint took to recover after the load fell, told from the arrivals' response times alone. Pure.

Before: the lowest median response time of the stages that came earlier and had a lower rate. A stage was over capacity
where the median of its last ``HELD`` seconds was beyond ``FACTOR`` times that (and ``LEAST_S`` more, for times so short
that they vary by themselves). From its end on, seconds are looked at in order: the endpoint has recovered at the first
one with arrivals from which on the median of each of ``HELD`` seconds is within that limit. An arrival whose user got
no answer counts as one that took for ever. At a low rate, seconds are longer ones of about ``FEW`` arrivals each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.units import NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.facts.stages import StageFacts
    from inference_benchmarker.records.columns import Floats, Int64, Records

HELD, FACTOR, LEAST_S, FEW = 5, 2.0, 0.005, 5
_MOST_SECONDS = 10_000


@dataclass(frozen=True, slots=True)
class Recovery:
    """Recovery after a stage over capacity: seconds from its end, None where it was not seen in ``watched_s``.

    ``before_s`` and ``after_s``: the median response time before, and of the last seconds that were watched; None where
    most users got no answer.
    """

    recovery_s: float | None
    watched_s: float
    before_s: float
    after_s: float | None

    @property
    def limit_s(self) -> float:
        """The median response time up to which it counts as recovered."""
        return _limit(self.before_s)

    def to_json(self) -> dict[str, Any]:
        """Its numbers, in seconds."""
        return {name: getattr(self, name) for name in self.__slots__}


def recoveries(records: Records, stages: Sequence[StageFacts]) -> list[Recovery | None]:
    """The recovery after each stage; None after one that was not over capacity, or that no lower load came after."""
    users = _Users.of(records)
    return [_after(users, stages, place) for place in range(len(stages))]


@dataclass(frozen=True, slots=True)
class _Users:
    """When each arrival was due, in order, and what its user waited, in seconds: infinite without an answer."""

    due: Int64
    waited: Floats

    @classmethod
    def of(cls, records: Records) -> _Users:
        lasts, due = records.lasts, records.arrived
        waited = np.where(records.outcome("ok"), (records.int("done") - due) / NS, math.inf)
        return cls(due[lasts], waited[lasts])

    def median(self, start_ns: int, end_ns: int) -> float | None:
        """That of the arrivals due in between; None without any."""
        first, stop = np.searchsorted(self.due, (start_ns, end_ns))
        waited = np.sort(self.waited[first:stop])
        return float(waited[(len(waited) - 1) // 2]) if len(waited) else None

    def count(self, start_ns: int, end_ns: int) -> int:
        first, stop = np.searchsorted(self.due, (start_ns, end_ns))
        return int(stop - first)


def _after(users: _Users, stages: Sequence[StageFacts], place: int) -> Recovery | None:
    stage, later = stages[place], stages[place + 1 :]
    before = _before(users, stages, place)
    if before is None or not later or not _falls(stage, later[0]):
        return None
    worst = users.median(max(stage.start_ns, stage.end_ns - HELD * NS), stage.end_ns)
    if worst is None or worst <= _limit(before):
        return None
    return _watch(users, stage.end_ns, _until(later), before)


def _watch(users: _Users, start_ns: int, end_ns: int, before: float) -> Recovery | None:
    """The recovery in a span of lower load; None where that is too short to tell one."""
    length = end_ns - start_ns
    rate = users.count(start_ns, end_ns) * NS / length
    width = max(1, math.ceil(FEW / rate), math.ceil(length / NS / _MOST_SECONDS)) * NS if rate else length
    edges = range(start_ns, end_ns - width + 1, width)
    if len(edges) < HELD:
        return None
    medians = [users.median(edge, edge + width) for edge in edges]
    calm = [median is None or median <= _limit(before) for median in medians]
    begun = (
        place
        for place in range(len(edges) - HELD + 1)
        if medians[place] is not None and all(calm[place : place + HELD])
    )
    found = next(begun, None)
    last = users.median(edges[-HELD], end_ns)
    return Recovery(
        recovery_s=None if found is None else found * width / NS,
        watched_s=length / NS,
        before_s=before,
        after_s=None if last is None or math.isinf(last) else last,
    )


def _before(users: _Users, stages: Sequence[StageFacts], place: int) -> float | None:
    lower = [stage for stage in stages[:place] if _peak(stage) < _peak(stages[place])]
    medians = [users.median(stage.start_ns, stage.end_ns) for stage in lower]
    return min((median for median in medians if median is not None and math.isfinite(median)), default=None)


def _falls(stage: StageFacts, later: StageFacts) -> bool:
    """Tells whether the load falls when a stage ends: at once, or along a ramp that begins then."""
    after = later.stage
    return after.from_rps < stage.stage.to_rps or after.to_rps < after.from_rps <= stage.stage.to_rps


def _until(later: Sequence[StageFacts]) -> int:
    """When the load rises again above what it fell to: the end of the stages before that."""
    fallen = next((_peak(stage) for stage in later if _peak(stage)), 0.0)
    end = later[0].end_ns
    for stage in later:
        if _peak(stage) > fallen:
            break
        end = stage.end_ns
    return end


def _peak(stage: StageFacts) -> float:
    return float(max(stage.stage.from_rps, stage.stage.to_rps))


def _limit(before_s: float) -> float:
    return max(FACTOR * before_s, before_s + LEAST_S)
