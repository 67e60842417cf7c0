"""The time an endpoint took to recover after the load fell, computed from the arrivals' response times alone. Pure.

Before: the lowest median response time of the stages that came earlier and had a lower rate. A stage was over capacity
where the median of its last ``HELD`` seconds was beyond ``FACTOR`` times that (and ``LEAST_S`` more, for times so short
that they vary by themselves). From its end on, seconds are looked at in order: the endpoint has recovered at the first
one with arrivals from which on the median of each of ``HELD`` seconds is within that limit. An arrival whose user got
no answer counts as one that took for ever. At a low rate, seconds are longer ones of about ``FEW`` arrivals each.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.records.columns import ROW_KEY
from inference_benchmarker.summary.statistics.buckets import less, of_buckets
from inference_benchmarker.summary.statistics.streaming_histogram import StreamingHistogram
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.facts.stages import StageFacts
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Floats, Int64
    from inference_benchmarker.records.counts import Counts
    from inference_benchmarker.records.parts import InParts

HELD, FACTOR, LEAST_S, FEW = 5, 2.0, 0.005, 5
_MOST_SECONDS = 10_000


@dataclass(frozen=True, slots=True)
class Recovery:
    """Recovery after a stage over capacity: seconds from its end, None where it was not seen in ``watched_s``.

    ``before_s`` and ``after_s``: the median response time before, in the stage ``before_stage``, and of the last
    seconds that were watched; None where most users got no answer.
    """

    recovery_s: float | None
    watched_s: float
    before_s: float
    before_stage: str
    after_s: float | None


def recoveries(facts: WaveFacts, stages: Sequence[StageFacts]) -> list[Recovery | None]:
    """The recovery after each stage; None after one that was not over capacity, or that no lower load came after."""
    users = _Users(facts.records) if facts.counts is None else _CountedUsers(facts.counts.window, facts.records)
    return [_after(users, stages, place) for place in range(len(stages))]


class _Users:
    """Each arrival's user, by when it was due: what he waited, in seconds, and for ever without an answer."""

    def __init__(self, records: InParts) -> None:
        self._records = records
        self._medians: dict[tuple[int, int], float | None] = {}

    def median(self, start_ns: int, end_ns: int) -> float | None:
        """That of the arrivals due in between; None without any."""
        span = (start_ns, end_ns)
        if span not in self._medians:
            (self._medians[span],) = self.medians(span)
        return self._medians[span]

    def medians(self, edges: Sequence[int]) -> list[float | None]:
        """That of the arrivals due between each two instants; what is over is not held."""
        found: list[float | None] = [None] * (len(edges) - 1)
        held: dict[int, _Waits] = {}
        for due, waited in self._between(edges[0], edges[-1]):
            for place, (first, stop) in enumerate(pairwise(np.searchsorted(due, edges).tolist())):
                if stop > first:
                    held.setdefault(place, _Waits()).add(waited[first:stop])
            for place in [place for place in held if edges[place + 1] <= due[-1]]:
                found[place] = held.pop(place).median
        for place, waits in held.items():
            found[place] = waits.median
        return found

    def count(self, start_ns: int, end_ns: int) -> int:
        return sum(len(due) for due, _ in self._between(start_ns, end_ns))

    def _between(self, start_ns: int, end_ns: int) -> Iterator[tuple[Int64, Floats]]:
        """When they were due and what they waited, of those due in between."""
        begins, rows = self._parts
        first, stop = max(bisect_left(begins, start_ns) - 1, 0), bisect_left(begins, end_ns)
        for part in self._records.between(rows[first], rows[stop]).parts(*ROW_KEY, "due", "done", "outcome"):
            lasts, due = part.lasts & ~part.later_turns, part.arrived
            waited = np.where(part.outcome("ok"), (part.int("done") - due) / NS, math.inf)[lasts]
            due = due[lasts]
            here = slice(*np.searchsorted(due, (start_ns, end_ns)))
            if len(due[here]):
                yield due[here], waited[here]

    @cached_property
    def _parts(self) -> tuple[list[int], list[int]]:
        """When the first arrival of each part was due, and the rows before each of them and in all."""
        parts = [(int(part.int("due")[0]), len(part)) for part in self._records.parts("due")]
        return [begin for begin, _ in parts], [0, *accumulate(length for _, length in parts)]


class _CountedUsers(_Users):
    """The same of requests that were counted, by the second in which each was over."""

    def __init__(self, counts: Counts, slowest: InParts) -> None:
        super().__init__(slowest)
        self._counts = counts

    def medians(self, edges: Sequence[int]) -> list[float | None]:
        """That of the requests over between each two instants, to a second."""
        return [self._median(self._counts.between(start // NS, end // NS)) for start, end in pairwise(edges)]

    def count(self, start_ns: int, end_ns: int) -> int:
        over = self._counts.between(start_ns // NS, end_ns // NS)
        return sum(over.total(outcome) for outcome in ("ok", "failed", "abandoned"))

    @staticmethod
    def _median(over: Counts) -> float | None:
        answered = of_buckets(less(over["response_time"].by_key, over["response_age"].by_key))
        answers = 0 if answered is None else answered.count
        count = answers + over.total("failed") + over.total("abandoned")
        rank = (count + 1) // 2
        if not count:
            return None
        return math.inf if answered is None or rank > answers else answered.at(rank)


class _Waits:
    """The waits of users, some of them for ever."""

    def __init__(self) -> None:
        self._answered = StreamingHistogram()
        self._count = 0

    def add(self, waited: Floats) -> None:
        self._answered.add(waited[np.isfinite(waited)])
        self._count += len(waited)

    @property
    def median(self) -> float:
        """The middle one, or the lower of the two in the middle."""
        rank = (self._count + 1) // 2
        answered = self._answered.distribution()
        return math.inf if answered is None or rank > answered.count else answered.at(rank)


def _after(users: _Users, stages: Sequence[StageFacts], place: int) -> Recovery | None:
    stage, later = stages[place], stages[place + 1 :]
    before = _before(users, stages, place) if later and _falls(stage, later[0]) else None
    if before is None:
        return None
    worst = users.median(max(stage.start_ns, stage.end_ns - HELD * NS), stage.end_ns)
    if worst is None or worst <= _limit(before[0]):
        return None
    return _watch(users, stage.end_ns, _until(stages, place, _calm_rate(users, stages[:place], before[0])), before)


def _watch(users: _Users, start_ns: int, end_ns: int, earlier: tuple[float, str]) -> Recovery | None:
    """The recovery in a span of lower load; None where that is too short to tell one."""
    length, (before, name) = end_ns - start_ns, earlier
    if not length:
        return None
    rate = users.count(start_ns, end_ns) * NS / length
    width = max(1, math.ceil(FEW / rate), math.ceil(length / NS / _MOST_SECONDS)) * NS if rate else length
    edges = range(start_ns, end_ns - width + 1, width)
    if len(edges) < HELD:
        return None
    medians = users.medians([*edges, edges[-1] + width])
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
        before_stage=name,
        after_s=None if last is None or math.isinf(last) else last,
    )


def _before(users: _Users, stages: Sequence[StageFacts], place: int) -> tuple[float, str] | None:
    """The lowest median response time of the earlier stages with a lower rate, and the stage's name."""
    lower = [stage for stage in stages[:place] if _peak(stage) < _peak(stages[place])]
    medians = [(users.median(stage.start_ns, stage.end_ns), stage.name) for stage in lower]
    known = [(median, name) for median, name in medians if median is not None and math.isfinite(median)]
    return min(known, key=itemgetter(0), default=None)


def _falls(stage: StageFacts, later: StageFacts) -> bool:
    """Tells whether the load falls when a stage ends: at once, or along a ramp that begins then."""
    after = later.stage
    return after.from_rps < stage.stage.to_rps or after.to_rps < after.from_rps <= stage.stage.to_rps


def _calm_rate(users: _Users, earlier: Sequence[StageFacts], before_s: float) -> float:
    """The highest constant rate of the earlier stages at whose end the median response time was within the limit."""
    constant = (stage for stage in earlier if stage.stage.from_rps == stage.stage.to_rps)
    ends = ((_peak(each), users.median(max(each.start_ns, each.end_ns - HELD * NS), each.end_ns)) for each in constant)
    return max((rate for rate, median in ends if median is not None and median <= _limit(before_s)), default=0.0)


def _until(stages: Sequence[StageFacts], place: int, calm_rate: float) -> int:
    """When the load rises again: above what it fell to (a pause does not count), or back to the stage's own rate.

    Also when a rate begins that is higher than any at which the endpoint was calm, and nothing is in flight any more:
    it may be too high by itself.
    """
    own, later = _peak(stages[place]), stages[place + 1 :]
    fallen = min(own, next((_peak(each) for each in later if _peak(each)), 0.0))
    for last, each in pairwise(stages[place:]):
        rises = _peak(each) > fallen or (each is not later[0] and _peak(each) == own)
        if rises or (_peak(each) > calm_rate and not last.in_flight_end):
            return each.start_ns
    return later[-1].end_ns


def _peak(stage: StageFacts) -> float:
    return float(max(stage.stage.from_rps, stage.stage.to_rps))


def _limit(before_s: float) -> float:
    return max(FACTOR * before_s, before_s + LEAST_S)
