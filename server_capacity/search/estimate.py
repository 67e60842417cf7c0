"""From the stretches of a search to the estimate of each limit, and to the answer. Pure."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from server_capacity.search.answer import Answer, Estimate, Interval, Island, Memory
from server_capacity.search.curve import COARSE
from server_capacity.search.known import Known, known_of, lowest_of
from server_capacity.search.pace import overloaded, pace_of
from server_capacity.search.points import points_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.limits import Limit
    from server_capacity.search.settings import Settings
    from server_capacity.search.stretch import Stretch

LEAST_OF_A_SIDE = 4
LEAST_EXPECTED, CLEARLY, WELL_ABOVE = 8.0, 0.7, 1.1


def estimate_of(known: Known) -> Estimate:
    """The estimate that is reported; of a step the rate is the one that was kept."""
    if known.broken is None or not known.kept:
        return Estimate(known.name, kept_everywhere=known.broken is None)
    if known.fit is None:
        rate = known.kept if known.step else known.rate
        return Estimate(known.name, rate, Interval(known.kept, known.broken))
    fitted = known.fit
    return Estimate(known.name, fitted.rate, fitted.interval, fitted.slope, fitted.dispersion)


def answer(limits: Sequence[Limit], settings: Settings, stretches: Sequence[Stretch]) -> Answer:
    """The final one, from stretches whose slices were counted by due time."""
    known = known_of(limits, settings, stretches)
    estimates = tuple(map(estimate_of, known))
    lowest = lowest_of(known)
    holding = estimate_of(lowest)
    if holding.rate is None or holding.interval is None:
        return _without_rate(lowest, settings, stretches, estimates)
    memory = _memory(limits, settings, stretches, holding)
    interval = holding.interval
    if memory is not None:
        sides = [interval, *(side.interval for side in (memory.below, memory.above) if side.interval is not None)]
        interval = Interval(min(side.low for side in sides), max(side.high for side in sides))
    islands = _islands(limits, stretches, interval.high)
    return Answer("found", holding.rate, interval, holding.limit, estimates=estimates, islands=islands, memory=memory)


def _without_rate(
    lowest: Known, settings: Settings, stretches: Sequence[Stretch], estimates: tuple[Estimate, ...]
) -> Answer:
    clean = [stretch.rate for stretch in stretches if stretch.rate > 0 and not stretch.void]
    if lowest.broken is not None:
        reason = f"the lowest that was tried, {min(clean):g}/s, breaks it already"
        return Answer("not_kept", limit=lowest.name, reason=reason, estimates=estimates)
    most = max(clean, default=0.0)
    if not clean:
        return Answer("cannot_tell", reason="no stretch counts", estimates=estimates)
    if settings.max_rps is not None and most >= settings.max_rps * 0.999:
        reason = f"every limit is kept at the most that was allowed, {settings.max_rps:g}/s"
        return Answer("at_least", at_least=most, reason=reason, estimates=estimates)
    void = [stretch.void for stretch in stretches if stretch.void and stretch.rate > most]
    if void:
        return Answer("at_least", at_least=most, reason=void[-1], estimates=estimates)
    return Answer(
        "cannot_tell",
        at_least=most,
        reason="no limit gave out in the time: give it more with --time",
        estimates=estimates,
    )


def _memory(
    limits: Sequence[Limit], settings: Settings, stretches: Sequence[Stretch], holding: Estimate
) -> Memory | None:
    """The two rates of a server that remembers: stretches after lower rates say another one than those after higher."""
    near = [stretch for stretch in stretches if stretch.purpose in ("below", "above") and stretch.before > 0]
    sides = []
    for from_below in (True, False):
        side = [stretch for stretch in near if (stretch.before < stretch.rate) == from_below]
        if len(side) < LEAST_OF_A_SIDE:
            return None
        rest = [stretch for stretch in stretches if stretch not in near]
        known = known_of(limits, settings, sorted((*rest, *side), key=lambda stretch: stretch.number), COARSE)
        sides.append(next(estimate_of(each) for each in known if each.name == holding.limit))
    below, above = sides
    if below.interval is None or above.interval is None:
        return None
    apart = below.interval.low > above.interval.high or above.interval.low > below.interval.high
    return Memory(below, above) if apart else None


def _islands(limits: Sequence[Limit], stretches: Sequence[Stretch], above: float) -> tuple[Island, ...]:
    """Rates above the answer at which every limit was kept, with one between at which it was not."""
    pace = pace_of(stretches)
    kept: dict[float, bool] = {}
    for place, limit in enumerate(limits):
        for point in points_of(stretches, place, pace):
            clearly = point.of * limit.allowed >= LEAST_EXPECTED and point.share <= CLEARLY * limit.allowed
            kept[point.rate] = kept.get(point.rate, True) and clearly
    for stretch in stretches:
        if stretch.rate in kept and overloaded(stretch, pace.answer_s):
            kept[stretch.rate] = False
    rates = sorted(rate for rate in kept if rate > WELL_ABOVE * above)
    runs = [(good, list(run)) for good, run in groupby(rates, key=lambda rate: kept[rate])]
    return tuple(Island(run[0], run[-1]) for place, (good, run) in enumerate(runs) if good and place)
