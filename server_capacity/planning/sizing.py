"""From what some instances hold to how many a rate needs. Pure.

The numbers of AWS: a policy's alarm wants three datapoints of a minute above its target before it scales out, and the
safety factor that AWS tells to begin with is 0.5 ("Load testing your auto scaling configuration", SageMaker AI
Developer Guide).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from server_capacity.planning.measured import Measured

ALARM_S = 180.0
AWS_FACTOR = 0.5
FAR = 10
"""From so many times the measured instances on nobody knows that the next one adds as much as the last."""

_MOST_TIMES = 2
"""A count between two measured ones is interpolated, and one up to so many times the larger extrapolated."""

_ARITHMETIC = 1e-9


class CannotTellError(Exception):
    """A rate needs more instances than follow from what was measured; its text is the reason."""


class Law(Protocol):
    """A rule for the rate that so many instances keep the limits at, in requests/s."""

    @property
    def most(self) -> int | None:
        """The most instances that it covers; None: any number."""

    def held(self, instances: int) -> float:
        """The rate that they hold together."""

    def needed(self, rate: float, share: float) -> int:
        """The fewest of which no more than ``share`` of what they hold is asked; CannotTellError beyond ``most``."""


@dataclass(frozen=True, slots=True)
class Linear:
    """Each instance holds as much as the others, as random routing has it: the law for instances of one type."""

    per_instance: float

    @property
    def most(self) -> int | None:
        """Any number."""
        return None

    def held(self, instances: int) -> float:
        """So many times what one holds."""
        return instances * self.per_instance

    def needed(self, rate: float, share: float) -> int:
        """The rate over the share of one, rounded up."""
        return max(1, math.ceil(rate / (share * self.per_instance) * (1 - _ARITHMETIC)))


@dataclass(frozen=True, slots=True)
class Between:
    """Straight lines from each count that was measured to the next: ``(instances, rate)``, two or more, ascending.

    No fewer than the smallest count, nor more than twice the largest one, is answered for. Beyond the largest one an
    instance adds no more than on average before, nor more than on the last line.
    """

    points: tuple[tuple[int, float], ...]
    reason: str

    @property
    def most(self) -> int:
        """Twice the largest count."""
        return _MOST_TIMES * self.points[-1][0]

    def held(self, instances: int) -> float:
        """The lines' value; of fewer than the smallest count in proportion to it, which nothing was measured of."""
        (fewest, least), (last, most) = self.points[0], self.points[-1]
        if instances <= fewest:
            return least * instances / fewest
        ahead = (each for each in pairwise(self.points) if instances <= each[1][0])
        (few, low), (many, high) = next(ahead, self.points[-2:])
        slope = (high - low) / (many - few)
        if instances > last:
            return most + max(0.0, min(slope, most / last)) * (instances - last)
        return low + slope * (instances - few)

    def needed(self, rate: float, share: float) -> int:
        """The first count at which the lines are high enough."""
        for instances in range(self.points[0][0], self.most + 1):
            if share * self.held(instances) >= rate * (1 - _ARITHMETIC):
                return instances
        raise CannotTellError(
            f"{rate:,.4g}/s at {share:.0%} need more than {self.most} instances, but at most {self.points[-1][0]} "
            f"were measured. The plan does not extrapolate further: {self.reason}. Measure more instances"
        )


def law_of(searches: list[Measured]) -> Law | str:
    """The law of an endpoint from all its searches, or the reason why there is none."""
    reason = searches[0].not_linear
    if not reason:
        return Linear(min(each.low / each.instances for each in searches))
    lowest = {each.instances: each.low for each in sorted(searches, key=lambda each: -each.low)}
    if len(lowest) == 1:
        count = searches[0].instances
        return (
            f"it was measured at {count} instance{'' if count == 1 else 's'} only, and {reason}: N instances do not "
            "serve N times as much. Search with another number of instances too, and give both folders"
        )
    return Between(tuple(sorted(lowest.items())), reason)


def held_by_each(law: Law, minimum: int, maximum: int) -> float:
    """The rate of one instance that is held by each of as many as there may be, in requests/s."""
    if law.most is None:
        return law.held(maximum) / maximum
    return min(law.held(count) / count for count in range(minimum, maximum + 1))


def safety_factor(growth_per_min: float, create_s: float) -> float:
    """The share of their limit at which instances may run, so that new ones are there before it is reached.

    Growth is of the present rate: ``1 / (1 + g (180 s + T))``, three minutes for the alarm and T until InService.
    """
    return 1 / (1 + growth_per_min / 60 * (ALARM_S + create_s))


def floored(value: float) -> float:
    """A target of a policy: rounded down to a whole number, or to three digits where it is small."""
    digits = max(0, 2 - math.floor(math.log10(value)))
    scaled = value * 10.0**digits
    return math.floor(scaled * (1 + _ARITHMETIC)) / 10.0**digits
