"""The end of a search for sessions: overload, and the rates at which limits are met again after it. Pure.

Where a cache of an endpoint gives in, prompts are computed again that were in it before. That takes so long that still
more have to be, so the endpoint serves fewer sessions than before, and goes on so when fewer come. Searches approach
their answer from below, with pauses, and do not see that. So each ends with too many sessions and then returns, without
a pause, to its interval's lower end; where limits are not met again there, lower rates follow until they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from server_capacity.search.answer import Answer, Estimate, Interval, Memory
from server_capacity.search.stretch import SHARED_OVERLOAD
from server_capacity.search.users import clearly_over, load_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from server_capacity.search.limits import Limit
    from server_capacity.search.stretch import Slice, Stretch

OVERLOAD, RETURN, CONFIRM = "overload", "return", "confirm"
AFTER = (OVERLOAD, RETURN)
"""Purposes: too many sessions, and the lower rate right after them."""
OVERLOAD_TIMES, LEAST_OVERLOAD = 1.5, 1.2
"""Times the interval's upper end; what is less is no overload."""
LEAST_LENGTHS, MOST_LENGTHS = 2.0, 6.0
OPEN_TIMES, OPEN_MORE = 3.0, 10.0
"""Overload lasts for so many session lengths, and ends between them once so many more sessions are open than usual."""
SEEN_LENGTHS = 2.0
"""The last part of a return, which tells whether limits are met again."""
LEAST_LENGTH_S = 1.0
"""What is counted is counted by the second, so shorter sessions have the time of such ones."""
STUCK_LENGTHS, RETURN_LENGTHS, DRAINED_LENGTHS = 4.0, 10.0, 14.0
FALLEN, DRAINED_TIMES, DRAINED_MORE = 0.9, 1.5, 2.0
"""A return lasts for so long at most: where the open sessions become no fewer, where they do, and once few are open."""
LOWER = 0.6
"""Times a rate: at what is less, the endpoint keeps up where that one is hardly too high."""
DOWN, LEAST_SERVED = 0.85, 0.75
"""Of a rate, or of what was served meanwhile where that is less: so far below it is the next one, but not further."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """``found``: the interval from below; ``length_s``: of a session at its lower end.

    ``most``: the highest rate that may be offered.
    """

    limits: Sequence[Limit]
    found: Interval
    length_s: float
    most: float
    in_users: bool = False

    def next(self, stretches: Sequence[Stretch]) -> tuple[str, float] | None:
        """The next purpose and rate, None: as is. The purpose is "end" once all is known, or nothing can be."""
        running = stretches[-1]
        if running.purpose not in AFTER:
            rate = min(OVERLOAD_TIMES * self.found.high, self.most)
            possible = self.found.low > 0 and rate >= LEAST_OVERLOAD * self.found.high
            return (OVERLOAD, float(math.ceil(rate)) if self.in_users else rate) if possible else ("end", rate)
        if is_spoilt(stretches):
            return "end", running.rate
        if running.purpose == OVERLOAD:
            return (RETURN, self.found.low) if self._is_overloaded(running) else None
        if recovered(self.limits, running, self.length_s, in_users=self.in_users):
            return "end", running.rate
        stuck = is_stuck(self.limits, running, self.length_s, in_users=self.in_users)
        return (RETURN, self._lower(running)) if stuck else None

    def _is_overloaded(self, running: Stretch) -> bool:
        lengths = _lengths(running, self.length_s)
        many = running.in_flight > OPEN_TIMES * self._usual(self.found.high) + OPEN_MORE
        return lengths >= MOST_LENGTHS or (many and lengths >= LEAST_LENGTHS)

    def _usual(self, rate: float) -> float:
        return rate * (1.0 if self.in_users else self.length_s)

    def _lower(self, running: Stretch) -> float:
        """A rate at which the open sessions become fewer."""
        rate, served = running.rate, running.answered / running.seconds
        if self.in_users:
            return max(1.0, math.floor(DOWN * rate))
        return DOWN * max(LEAST_SERVED * rate, min(rate, served))


class FromAbove(NamedTuple):
    """The rate at which limits were met after overload, None: at none; and the lowest at which they were not.

    ``refuted``: the lowest rate of a confirming wave that failed later. None did where it is None.
    """

    kept: float | None
    broken: float | None
    refuted: float | None = None


def recovered(limits: Sequence[Limit], stretch: Stretch, length_s: float, *, in_users: bool) -> bool:
    """Tells whether a return has met the limits for a while, at whose beginning too it was drained.

    What counts in the end is when turns were due, not when their answers came.
    """
    seen_s, lengths = _seen_s(length_s), _lengths(stretch, length_s)
    drained = in_users or (_is_drained(stretch, length_s) and _is_drained(stretch, length_s, seen_s))
    drained = drained or lengths >= DRAINED_LENGTHS
    return stretch.seconds >= seen_s and drained and met_again(limits, stretch, length_s)


def _lengths(stretch: Stretch, length_s: float) -> float:
    """The session lengths that a stretch lasted."""
    return stretch.seconds / max(length_s, LEAST_LENGTH_S)


def _seen_s(length_s: float) -> float:
    return SEEN_LENGTHS * max(length_s, LEAST_LENGTH_S)


def is_stuck(limits: Sequence[Limit], stretch: Stretch, length_s: float, *, in_users: bool) -> bool:
    """Tells whether a return has missed the limits for as long as it may, which depends on the sessions it has open."""
    lengths = _lengths(stretch, length_s)
    if in_users:  # as many are open as are asked for
        most = RETURN_LENGTHS
    elif _is_drained(stretch, length_s):
        most = DRAINED_LENGTHS
    else:
        most = RETURN_LENGTHS if stretch.in_flight < FALLEN * stretch.inherited else STUCK_LENGTHS
    return lengths >= most and not met_again(limits, stretch, length_s)


def _is_drained(stretch: Stretch, length_s: float, ago_s: float = 0.0) -> bool:
    since = [part for part in stretch.slices if part.start_s >= stretch.end_s - ago_s]
    more = sum(part.sent - part.answered for part in since)
    return stretch.in_flight - more <= DRAINED_TIMES * stretch.rate * length_s + DRAINED_MORE


def from_above(
    limits: Sequence[Limit], stretches: Sequence[Stretch], length_s: float, *, in_users: bool = False
) -> FromAbove | None:
    """The rates of the returns; None where there was none, or where it shows nothing.

    The last one may have been cut off, by Ctrl-C or the end of the time: where the search would not have given it up,
    it shows nothing either way. Nor does anything from a void stretch or a pause on.
    """
    after = [each for each in stretches if each.purpose in AFTER]
    whole = list(takewhile(lambda each: not is_spoilt([each]), after))
    returns = [each for each in whole if each.purpose == RETURN]
    given_up = [one.rate for one, other in pairwise(after) if one in returns and 0 < other.rate < one.rate]
    broken = given_up[-1] if given_up else None
    if returns and returns[-1].rate != broken:
        last = returns[-1]
        if recovered(limits, last, length_s, in_users=in_users):
            return FromAbove(last.rate, broken, _refuting(limits, stretches))
        if is_stuck(limits, last, length_s, in_users=in_users):
            broken = last.rate
    return None if broken is None else FromAbove(None, broken)


def _refuting(limits: Sequence[Limit], stretches: Sequence[Stretch]) -> float | None:
    """The lowest rate of a confirming wave that missed a limit; they follow all returns."""
    waves = [each for each in stretches if each.purpose == CONFIRM and not each.void]
    return min((each.rate for each in waves if _misses(limits, each)), default=None)


def _misses(limits: Sequence[Limit], wave: Stretch) -> bool:
    return any(over > limit.allowed * of for limit, of, over in _totals(limits, wave.slices))


def is_spoilt(stretches: Sequence[Stretch]) -> bool:
    """Tells whether a void stretch or a pause came after overload began: they hide what it left."""
    return any(each.void or not each.rate for each in stretches if each.purpose in AFTER)


def with_overload(answer: Answer, found: FromAbove | None, unit: str) -> Answer:
    """The answer from below, or that after overload where it is lower; both stand in its memory.

    Its lower end is never above that from below. A confirming wave that fails later refutes the rate after overload;
    then the answer is that of all waves, below the rate of that one.
    """
    if found is None or answer.outcome != "found" or answer.limit is None:
        return answer
    below = Estimate(answer.limit, answer.rate, answer.interval)
    if found.refuted is not None:
        above = Estimate(answer.limit, interval=Interval(0.0, found.refuted))
        return replace(_cut_at(answer, found.refuted, unit), memory=Memory(below, above, differ=False))
    if found.broken is None:
        return replace(answer, memory=Memory(below, Estimate(answer.limit, found.kept), differ=False))
    if found.kept is None:
        memory = Memory(below, Estimate(answer.limit, interval=Interval(0.0, found.broken)))
        reason = f"after overload, the limits were not met again at {load_text(found.broken, unit)} and above"
        return replace(_at(answer, None, None), outcome="cannot_tell", reason=reason, memory=memory)
    rate, seen = _middle(found.kept, found.broken, unit), Interval(found.kept, found.broken)
    low = min(found.kept, found.kept if answer.interval is None else answer.interval.low)
    memory = Memory(below, Estimate(answer.limit, rate, seen))
    return replace(_at(answer, rate, Interval(low, found.broken)), memory=memory)


def _cut_at(answer: Answer, most: float, unit: str) -> Answer:
    """The answer below a rate at which a wave failed after overload."""
    if answer.interval is None or answer.rate is None or answer.interval.low >= most:
        reason = f"after overload, a wave at {load_text(most, unit)} failed, and nothing lower met the limits"
        return replace(_at(answer, None, None), outcome="cannot_tell", reason=reason)
    low = answer.interval.low
    rate = answer.rate if answer.rate < most else _middle(low, most, unit)
    return _at(answer, rate, Interval(low, min(answer.interval.high, most)))


def _middle(low: float, high: float, unit: str) -> float:
    """The rate in the middle between two; of open sessions a whole number."""
    rate = math.sqrt(low * high)
    return float(math.floor(rate)) if unit == "open sessions" else rate


def _at(answer: Answer, rate: float | None, interval: Interval | None) -> Answer:
    """The answer with another rate, also for the limit that holds."""
    estimates = tuple(
        Estimate(each.limit, rate, interval) if each.limit == answer.limit else each for each in answer.estimates
    )
    return replace(answer, rate=rate, interval=interval, estimates=estimates)


def met_again(limits: Sequence[Limit], stretch: Stretch, length_s: float) -> bool:
    """Tells whether its end has answers and breaks no limit clearly."""
    slices = [part for part in stretch.slices if part.start_s >= stretch.end_s - _seen_s(length_s)]
    return any(count.of for part in slices for count in part.counts) and not _breaks(limits, slices)


def is_missed(limits: Sequence[Limit], stretch: Stretch) -> bool:
    """Tells whether more of its second half are over a limit than may be, though chance may explain it."""
    return any(over > limit.allowed * of for limit, of, over in _totals(limits, _second_half(stretch)))


def is_broken(limits: Sequence[Limit], stretch: Stretch) -> bool:
    """Tells whether its second half breaks a limit clearly: in the first answers come that had waited before it."""
    return _breaks(limits, _second_half(stretch))


def _second_half(stretch: Stretch) -> list[Slice]:
    return [part for part in stretch.slices if 2 * part.start_s >= stretch.start_s + stretch.end_s]


def _breaks(limits: Sequence[Limit], slices: Iterable[Slice]) -> bool:
    return any(clearly_over(of, over, limit.allowed) for limit, of, over in _totals(limits, slices))


def _totals(limits: Sequence[Limit], slices: Iterable[Slice]) -> Iterator[tuple[Limit, int, int]]:
    """Of how many in these slices, how many were over each limit."""
    counts = [part.counts for part in slices]
    for place, limit in enumerate(limits):
        of, over = (sum(count[place][side] for count in counts) for side in (0, 1))
        yield limit, of, over


def from_below(stretches: Sequence[Stretch]) -> list[Stretch]:
    """All but overload and what came right after it."""
    return [stretch for stretch in stretches if stretch.purpose not in (*AFTER, SHARED_OVERLOAD)]


def held_s(limits: Sequence[Limit], stretch: Stretch) -> float:
    """The mean length of its sessions; 0 where it broke a limit."""
    return stretch.mean_s if stretch.rate > 0 and not is_broken(limits, stretch) else 0.0


def length_below(
    rate: float, limits: Sequence[Limit], stretches: Sequence[Stretch], session_s: float, *, of_all: bool = False
) -> float:
    """The usual mean length of sessions at lower rates that broke nothing, from below; or that ``of_all`` of them.

    At a rate that is too high, lengths grow with the backlog, and would explain it. While a search runs, long sessions
    are still open: what they have lasted by then counts, too.
    """
    open_, lengths = 0, list[tuple[float, int]]()
    for each in from_below(stretches):
        open_s = 0.0
        for part in each.slices:
            open_s += max(0, open_) * (part.end_s - part.start_s)
            open_ += part.sent - part.answered
        if 0 < each.rate < LOWER * rate and each.is_usable and not is_broken(limits, each):
            lengths.append((max(each.spent_s, open_s), each.answered))
    if not lengths:
        return session_s
    spent, answered = zip(*lengths, strict=True)
    usual = sum(spent) / sum(answered) if of_all else median(spent_s / of for spent_s, of in lengths)
    return max(session_s, usual)


def length_at(rate: float, limits: Sequence[Limit], stretches: Sequence[Stretch], session_s: float) -> float:
    """The mean length of sessions at about that rate, from below."""
    held = [(each.rate, length_s) for each in from_below(stretches) if (length_s := held_s(limits, each))]
    nearest = min(held, key=lambda each: abs(math.log(each[0] / max(rate, 1e-9))), default=(rate, session_s))
    return max(session_s, nearest[1])
