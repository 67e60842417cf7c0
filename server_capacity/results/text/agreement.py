"""The count of a search beside its queueing model: whether they agree, and which number to plan with. Pure.

What is read here is the object of ``capacity.json``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from server_capacity.results.text.headline import between, rate_text, unit_of
from server_capacity.results.types.standing import confirmed_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    Found = Mapping[str, Any]


def disagree(found: Found) -> bool:
    """Tells whether the intervals of the count and of a model that fits have no part in common."""
    count, twin = found.get("interval"), found.get("twin") or {}
    model = twin.get("interval") if twin.get("fits") else None
    if not count or not model:
        return False
    return bool(count["low"] > model["high"] or model["low"] > count["high"])


def undecided(found: Found) -> bool:
    """Tells whether the last wave did not hold, where one that nothing spoilt told anything."""
    waves = found.get("confirmation") or []
    return any(not wave.get("spoilt") for wave in waves) and confirmed_of(found) != "holds"


def to_plan_with(found: Found) -> str:
    """The number to plan with where they disagree, and why; empty where they agree."""
    if not disagree(found):
        return ""
    if undecided(found):
        return "The count and the model disagree, and no wave confirmed the count: plan with neither."
    low = rate_text(found["interval"]["low"], found["interval"], unit_of(found))
    return f"The count and the model disagree. Plan with {low}, the lower end of the count: it was measured."


def planned_with(found: Found) -> str:
    """The same of a plan, which rests on the count: both intervals, the number, and why it is that one."""
    if not disagree(found):
        return ""
    count, model, unit = found["interval"], found["twin"]["interval"], unit_of(found)
    apart = f"The count ({between(count, unit)}{unit}) and the queueing model ({between(model, unit)}{unit}) disagree."
    low = rate_text(count["low"], count, unit)
    if undecided(found):
        return f"{apart} No wave confirmed the count either: search again before you deploy it."
    return (
        f"{apart} The plan rests on {low}, the lower end of the count: the count is of requests that were sent, and "
        "the model computes what was not."
    )
