"""Requests that begin or cease to fail with time: then no rate is why, and no rate is the answer. Pure."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from server_capacity.search.answer import Answer
from server_capacity.search.low_rate_check import breaking
from server_capacity.search.points import Point

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from server_capacity.search.limits import Limit
    from server_capacity.search.stretch import Stretch

AT_FIRST = "requests failed at first"
"""So the reason begins why a stretch before that ended counts for nothing."""
LEAST_FAILED = 6.0
"""So many would have failed at least, had it been as before or as later."""
MOST = 0.5
"""The share of failed requests that no backlog explains, which an endpoint refuses only once it is full."""


class _Step(NamedTuple):
    """A stretch, its requests and how many failed."""

    stretch: Stretch
    of: int
    failed: int

    @property
    def share(self) -> float:
        """Of its requests that failed."""
        return self.failed / self.of if self.of else 0.0


def unless_failing_since(
    limits: Sequence[Limit], stretches: Sequence[Stretch], found: Answer, unit: str = "/s"
) -> Answer:
    """The answer, unless from some time on every step fails, at rates that met the limit on success before."""
    for place, limit in enumerate(limits):
        steps = _steps(stretches, place) if limit.metric == "success" else []
        pair = _changed(steps, limit.allowed)
        if pair is not None:
            before, first = pair
            reason = _reason(before, [each for each in steps if each.stretch.number >= first.stretch.number], unit)
            estimates = (replace(each, rate=None, interval=None, kept_everywhere=False) for each in found.estimates)
            return Answer("cannot_tell", limit=limit.expression, reason=reason, estimates=tuple(estimates))
    return found


def _changed(steps: Sequence[_Step], allowed: float) -> tuple[_Step, _Step] | None:
    """A step that met the limit, and the first of those to the end that fail at its rate or lower ones, or None."""
    failing = _first_failing(steps[::-1], allowed)[::-1]
    earlier = steps[: len(steps) - len(failing)]
    for first in failing:
        met = [each for each in (*earlier, *failing) if each.stretch.number < first.stretch.number]
        met = [each for each in met if each.failed <= allowed * each.of and _tells(each, first)]
        if met:
            return max(met, key=lambda each: each.stretch.rate), first
    return None


def _first_failing(steps: Sequence[_Step], allowed: float) -> list[_Step]:
    return list(takewhile(lambda each: _is_broken([each], allowed), steps))


def _first_over(steps: Sequence[_Step], allowed: float) -> list[_Step]:
    return list(takewhile(lambda each: each.share > allowed, steps))


def _tells(before: _Step, failing: _Step) -> bool:
    """Tells whether a step would have failed, too; a short one need not, where a queue has to fill first."""
    long = before.stretch.seconds >= failing.stretch.seconds
    high = before.stretch.rate >= failing.stretch.rate
    return high and before.of * failing.share >= LEAST_FAILED and (long or failing.share >= MOST)


def _reason(before: _Step, failing: Sequence[_Step], unit: str) -> str:
    of, failed = _totals(failing)
    rate = before.stretch.rate
    where = f"{rate:.4g}{unit.removesuffix('s') if rate == 1 and '/' not in unit else unit}"
    return (
        f"since {failing[0].stretch.start_s:.0f} s into the search {failed:,} of {of:,} requests "
        f"({100 * failed / of:.3g}%) failed, and before at {where} {before.failed:,} of {before.of:,}: the endpoint "
        "changed"
    )


def without_failing_start(limits: Sequence[Limit], stretches: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """The stretches; those at the beginning that failed are void, where the same rate and higher ones did not later."""
    for place, limit in enumerate(limits):
        steps = _steps(stretches, place) if limit.metric == "success" else []
        first = _first_over(steps, limit.allowed)
        if not _is_broken(first, limit.allowed):
            continue
        later = [each for each in steps[len(first) :] if each.stretch.rate >= first[-1].stretch.rate]
        (of, failed), (of_first, failed_first) = _totals(later), _totals(first)
        if failed <= limit.allowed * of and of * failed_first >= LEAST_FAILED * of_first:
            reason = f"{AT_FIRST}: {failed_first:,} of {of_first:,}; later {failed:,} of {of:,} did"
            return _voided(stretches, reason, first)
    return tuple(stretches)


def is_failing_from_the_start(limits: Sequence[Limit], stretches: Sequence[Stretch]) -> bool:
    """Tells whether too many requests failed in the first stretch that counts."""
    of_success = [(place, limit.allowed) for place, limit in enumerate(limits) if limit.metric == "success"]
    return any(_is_broken(_steps(stretches, place)[:1], allowed) for place, allowed in of_success)


def _voided(stretches: Sequence[Stretch], reason: str, steps: Sequence[_Step]) -> tuple[Stretch, ...]:
    numbers = {each.stretch.number for each in steps}
    return tuple(replace(each, void=reason) if each.number in numbers else each for each in stretches)


def _totals(steps: Sequence[_Step]) -> tuple[int, int]:
    """Of how many requests, how many failed."""
    return sum(each.of for each in steps), sum(each.failed for each in steps)


def _steps(stretches: Iterable[Stretch], place: int) -> list[_Step]:
    """The stretches that count and have requests, in their order."""
    counts = ((each, [part.counts[place] for part in each.slices]) for each in stretches if each.rate and not each.void)
    steps = (_Step(each, sum(of for of, _ in some), sum(over for _, over in some)) for each, some in counts)
    return [each for each in steps if each.of]


def _is_broken(steps: Sequence[_Step], allowed: float) -> bool:
    return breaking([Point(each.stretch.rate, each.of, each.failed, ()) for each in steps], allowed)
