"""A limit in capacity.json: whatever it is on, and what is estimated of it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from server_capacity.search.answer import Estimate, Interval


def limit_row(
    expression: str,
    metric: str,
    found: Estimate | None,
    *,
    bound: float | None,
    unit: str,
    allowed: float | None = None,
) -> dict[str, Any]:
    """The row of a limit; None: nothing is estimated of it."""
    return {
        "expression": expression,
        "metric": metric,
        "allowed": allowed,
        "bound": bound,
        "unit": unit,
        "rate": None if found is None else found.rate,
        "interval": None if found is None else interval_json(found.interval),
        "slope": None if found is None else found.slope,
        "dispersion": None if found is None else found.dispersion,
        "kept_everywhere": found is not None and found.kept_everywhere,
    }


def interval_json(interval: Interval | None) -> dict[str, float] | None:
    """Its ends."""
    return None if interval is None else {"low": interval.low, "high": interval.high}
