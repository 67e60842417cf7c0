"""The ends of intervals that hold in 95% of the searches of a set, as close to the rate as can be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from server_capacity.search.curve import ENDS, Ends, ends_for
from tests.performance.capacity.family.drawing import CHANGING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.performance.capacity.family.searches import Searched

_MISSES, _TOO_HIGH = 0.05, 0.03


def calibration(searched: Iterable[Searched]) -> tuple[Ends, ...]:
    """The ends for each class of searches, from searches made with those of today; of what changes, none counts."""
    found = [each for each in searched if each.result.low is not None and each.kind not in CHANGING]
    classes = {each: [one for one in found if ends_for(one.answers) is each] for each in ENDS}
    return tuple(_moved(ends, mine) for ends, mine in classes.items())


def _moved(ends: Ends, searched: Sequence[Searched]) -> Ends:
    """As many miss as are allowed of one more than there are (conformal prediction), on either side as is narrowest.

    No end is nearer to the rate than the posterior's: an endpoint is one of its kind, and not one of all.
    """
    sides = [_distances(each) for each in searched]
    count = len(sides)
    misses = count - math.ceil((count + 1) * (1.0 - _MISSES))
    if misses < 0:
        raise ValueError(f"{count} searches of at least {ends.answers:g} answers are too few to calibrate by")
    above = sorted((ends.upper * away / upper for away, _, upper in sides), reverse=True)
    below = sorted((-ends.lower * away / lower for away, lower, _ in sides), reverse=True)
    mean_lower, mean_upper = (sum(each[place] for each in sides) / count for place in (1, 2))
    pairs = [
        Ends(ends.answers, max(1.0, below[low]), max(1.0, above[misses - low]))
        for low in range(misses + 1)
        if low <= _TOO_HIGH * count
    ]
    found = min(pairs, key=lambda pair: pair.lower * mean_lower / ends.lower + pair.upper * mean_upper / ends.upper)
    return Ends(ends.answers, round(found.lower, 2), round(found.upper, 2))


def _distances(searched: Searched) -> tuple[float, float, float]:
    """In ln(rate) from the rate: to the truth, below to the lower end, and above to the upper one."""
    result = searched.result
    assert result.rate is not None
    assert result.low is not None
    assert result.high is not None
    rate = math.log(result.rate)
    return math.log(result.truth) - rate, rate - math.log(result.low), math.log(result.high) - rate
