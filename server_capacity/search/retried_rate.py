"""The rate that ended growth is tried again later, once: the endpoint may have been slower at first. Pure.

A server that has to warm up and one that remembers look alike there, both keep what they broke before. But answers at
a low rate are faster then only where it has warmed up, and what came before that counts for nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from server_capacity.search.drift import seen_of
from server_capacity.search.failing import without_failing_start
from server_capacity.search.pace import overloaded, pace_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.drift import StretchTime
    from server_capacity.search.limits import Limit
    from server_capacity.search.stretch import Stretch

AGAIN, COMPARE = "again", "compare"
"""Purposes: the rate that ended growth once more; a low one, for the time of its answers."""
LEAST_OVER = 4  # requests over that are no accident
CLEARLY = 2.0  # standard errors
NEAR, USUAL_DISPERSION = 0.5, 4.0  # of a rate, from which it counts as near; as requests over come in bursts
FASTER, LEAST_ANSWERS = 0.6, 30
"""The mean time of so many answers over that of so many at the same rate before, which chance hardly makes."""
WARMING = ("grow", "bisect", AGAIN)
SLOWER, ERRORS, FEW_ANSWERS, LEFT = 1.4, 3.0, 4, 0.2
"""So many times as long took answers at first, by so many standard errors; of what was answered, what was left over."""


def to_try_again(limits: Sequence[Limit], stretches: Sequence[Stretch]) -> float | None:
    """The lowest rate at which growth had requests over a limit; None where it had none."""
    answer_s = pace_of(stretches).answer_s
    grown = [each for each in stretches if each.purpose == "grow" and each.rate > 0 and not each.void]
    over = [each for each in grown if overloaded(each, answer_s) or _most_over(limits, each) >= LEAST_OVER]
    return min((each.rate for each in over), default=None)


def to_compare(limits: Sequence[Limit], stretches: Sequence[Stretch]) -> float | None:
    """The rate whose answers tell whether the endpoint became faster, where the last stretch kept what broke before."""
    last = stretches[-1]
    if last.purpose != AGAIN or last.void or not _kept(limits, [last], pace_of(stretches).answer_s):
        return None
    low = [
        each.rate
        for each in stretches
        if each.purpose == "grow" and 0 < each.rate < last.rate and not each.void and each.answered >= LEAST_ANSWERS
    ]
    return max(low, default=None)


def without_warm_up(limits: Sequence[Limit], stretches: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """The stretches; those before the endpoint had warmed up, or ceased to fail, are void, and say why."""
    compared = as_compared(without_failing_start(limits, stretches))
    pair = _warming_up(limits, compared)
    if pair is None:
        return compared
    early, late, warm = pair
    reason = _reason(early, late)
    return tuple(
        replace(each, void=reason) if each.rate and not each.void and each.number < warm.number else each
        for each in compared
    )


def _warming_up(limits: Sequence[Limit], stretches: Sequence[Stretch]) -> tuple[Stretch, Stretch, Stretch] | None:
    """The last stretch whose answers took clearly longer than later ones at its rate, one of those, and the first warm.

    Or at a higher and at a lower rate: by load, answers take no longer at a rate between two others than at one of
    these. Near the answer a burst does that, too, and what is left of a higher rate. An endpoint that was as fast
    before was not slower at first.
    """
    seen = seen_of(limits, stretches, FEW_ANSWERS)
    for place, early in reversed(list(enumerate(seen))):
        left = early.stretch.inherited > LEFT * early.stretch.answered
        if early.stretch.purpose not in WARMING or left:
            continue
        faster = [each for each in seen if _clearly_faster(early, (each.log_mean, each.variance))]
        fast = [each for each in faster if each.log_rate >= early.log_rate]
        lower = [each for each in seen[place + 1 :] if each.log_rate <= early.log_rate]
        if fast and fast[0] not in seen[:place] and any(_clearly_faster(early, mean) for mean in _means(lower)):
            later = (each for each in faster if each.stretch.number > early.stretch.number)
            return early.stretch, fast[-1].stretch, next(later).stretch
    return None


def _means(seen: Sequence[StretchTime]) -> list[tuple[float, float]]:
    """The logarithm of the mean time of each and of all together, as few answers come at low rates; and variances."""
    weight = sum(1.0 / each.variance for each in seen)
    together = [(sum(each.log_mean / each.variance for each in seen) / weight, 1.0 / weight)] if seen else []
    return together + [(each.log_mean, each.variance) for each in seen]


def _clearly_faster(early: StretchTime, late: tuple[float, float]) -> bool:
    log_mean, variance = late
    return early.log_mean - log_mean > max(math.log(SLOWER), ERRORS * math.sqrt(early.variance + variance))


def as_compared(stretches: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """Of the stretches those void that a rate was tried for which tells whether the endpoint became faster."""
    found = list(stretches)
    for place, stretch in enumerate(stretches):
        if stretch.purpose != COMPARE or stretch.void or stretch.answered < LEAST_ANSWERS:
            continue
        tried = max((at for at in range(place) if stretches[at].purpose == AGAIN), default=0)
        slow = [each for each in found[:tried] if _is_slower(each, stretch)]
        if slow:
            reason = _reason(slow[-1], stretch)
            found[:tried] = [
                each if each.void or not each.rate else replace(each, void=reason) for each in found[:tried]
            ]
    return tuple(found)


def without_accidents(limits: Sequence[Limit], stretches: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """The stretches; those of growth are void whose rate broke a limit once, and was kept when it was tried again.

    So are those at lower rates with requests over. A rate a little too high is kept by luck at times: so not much lower
    ones must have kept every limit clearly since then, too.
    """
    answer_s = pace_of(stretches).answer_s
    again = [each for each in stretches if each.purpose == AGAIN and not each.void and _kept(limits, [each], answer_s)]
    found = list(stretches)
    for kept in again:
        reason = f"{kept.rate:g}/s met every limit when it was tried again later"
        places = [place for place, each in enumerate(found) if _is_accident(limits, each, kept)]
        if places and _kept(limits, _near(found[places[-1] + 1 :], kept.rate), answer_s, variance=USUAL_DISPERSION):
            for place in places:
                found[place] = replace(found[place], void=reason)
    return tuple(found)


def _is_accident(limits: Sequence[Limit], early: Stretch, kept: Stretch) -> bool:
    if early.purpose != "grow" or early.void or not 0 < early.rate <= kept.rate or early.number >= kept.number:
        return False
    return early.rate == kept.rate or _most_over(limits, early) > 0


def _near(stretches: Sequence[Stretch], rate: float) -> list[Stretch]:
    """The stretches at a rate and not far below it that count."""
    return [each for each in stretches if NEAR * rate <= each.rate <= rate and not each.void]


def _is_slower(early: Stretch, late: Stretch) -> bool:
    return (
        early.purpose == "grow"
        and not early.void
        and early.rate == late.rate
        and early.answered >= LEAST_ANSWERS
        and 0 < late.mean_s < FASTER * early.mean_s
    )


def _reason(early: Stretch, late: Stretch) -> str:
    times = [f"{1e3 * each.mean_s:.3g} ms" for each in (early, late)]
    later = "later" if early.rate == late.rate else f"later at {late.rate:.3g}/s"
    return f"the endpoint was slower at first: at {early.rate:.3g}/s answers took {times[0]}, and {later} {times[1]}"


def _kept(limits: Sequence[Limit], stretches: Sequence[Stretch], answer_s: float, variance: float = 1.0) -> bool:
    """Tells whether all stretches together kept every limit by more than chance, or nothing was over.

    ``variance``: that of a number of requests over, in times of a Poisson number's.
    """
    if any(overloaded(stretch, answer_s) for stretch in stretches):
        return False
    for place, limit in enumerate(limits):
        counts = [part.counts[place] for stretch in stretches for part in stretch.slices]
        over, expected = sum(count.over for count in counts), limit.allowed * sum(count.of for count in counts)
        if over > max(0.0, expected - CLEARLY * math.sqrt(variance * expected)):
            return False
    return True


def _most_over(limits: Sequence[Limit], stretch: Stretch) -> int:
    """The requests over the limit of which most are over."""
    return max(sum(part.counts[place].over for part in stretch.slices) for place in range(len(limits)))
