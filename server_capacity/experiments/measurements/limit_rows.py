"""A limit in capacity.json: whatever it is on, its estimate, and the sides of an answer. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server_capacity.results.types.bounds import Interval
from server_capacity.results.types.search_waves import LimitRow
from server_capacity.results.types.server_side import Side

if TYPE_CHECKING:
    from server_capacity.search import answer


def limit_row(
    expression: str,
    metric: str,
    found: answer.Estimate | None,
    *,
    bound: float | None,
    unit: str,
    allowed: float | None = None,
    reason: str | None = None,
    at_low: float | None,
    at_low_text: str,
) -> LimitRow:
    """The row of a limit; ``found`` None: nothing is estimated of it."""
    return LimitRow(
        expression,
        metric,
        allowed,
        bound,
        unit,
        rate=None if found is None else found.rate,
        interval=None if found is None else interval_of(found.interval),
        slope=None if found is None else found.slope,
        dispersion=None if found is None else found.dispersion,
        kept_everywhere=found is not None and found.kept_everywhere,
        reason=reason,
        at_low=at_low,
        at_low_text=at_low_text,
    )


def interval_of(found: answer.Interval | None) -> Interval | None:
    """Its ends."""
    return None if found is None else Interval(found.low, found.high)


def side_of(found: answer.Estimate | answer.Answer | None) -> Side:
    """The rate of an answer among others, with its interval; of none neither."""
    return Side() if found is None else Side(found.rate, interval_of(found.interval))
