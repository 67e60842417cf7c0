"""The count of a search beside its queueing model: whether they agree, and which number to plan with. Pure.

What is read here is the object of ``capacity.json``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from server_capacity.results.text.headline import between, rate_text, unit_of
from server_capacity.results.types.result_status import confirmed_of

if TYPE_CHECKING:
    from server_capacity.results.types.bounds import Interval
    from server_capacity.results.types.capacity import CapacityResult


def _apart(found: CapacityResult) -> tuple[Interval, Interval] | None:
    """The intervals of the count and of a model that fits, where they have no part in common."""
    count, twin = found.interval, found.twin
    model = twin.interval if twin is not None and twin.fits else None
    if count is None or model is None:
        return None
    return (count, model) if count.low > model.high or model.low > count.high else None


def disagree(found: CapacityResult) -> bool:
    """Tells whether the intervals of the count and of a model that fits have no part in common."""
    return _apart(found) is not None


def undecided(found: CapacityResult) -> bool:
    """Tells whether the last wave did not hold, where one that nothing spoilt decided anything."""
    waves = found.confirmation or []
    return any(not wave.spoilt for wave in waves) and confirmed_of(found) != "holds"


def to_plan_with(found: CapacityResult) -> str:
    """The number to plan with where they disagree, and why; empty where they agree."""
    if (apart := _apart(found)) is None:
        return ""
    if undecided(found):
        return "The measurement and the model disagree, and no wave confirmed the measurement: plan with neither."
    low = rate_text(apart[0].low, apart[0], unit_of(found))
    return f"The measurement and the model disagree. Plan with {low}, the lower end of the measurement."


def planned_with(found: CapacityResult) -> str:
    """The same of a plan, which rests on the count: both intervals, the number, and why it is that one."""
    if (intervals := _apart(found)) is None:
        return ""
    (count, model), unit = intervals, unit_of(found)
    measured, predicted = (f"{between(each, unit)}{unit}" for each in (count, model))
    apart = f"The measurement ({measured}) and the queueing model ({predicted}) disagree."
    low = rate_text(count.low, count, unit)
    if undecided(found):
        return f"{apart} No wave confirmed the measurement either: search again before you deploy."
    return (
        f"{apart} The plan uses {low}, the lower end of the measurement: it counts requests that were sent, while the "
        "model extrapolates."
    )
