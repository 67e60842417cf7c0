"""A row of a ranking: what a search of a variant found, and what it takes to serve a target with it. Pure.

What is read here is the object of ``capacity.json``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from server_capacity.results.types.price import HOURS_A_MONTH, per_million
from server_capacity.results.types.standing import FAILED, broken_by, standing, warnings_of

if TYPE_CHECKING:
    from server_capacity.results.types.price import Price

Found = Mapping[str, Any]
Row = dict[str, Any]

SAME_RATE = 0.01
"""A wave that differs by no more than this share from a rate was at it."""
_MEASURED = (
    *("rate", "interval", "limit", "latency", "server_utilisation", "instances", "price", "seconds_to_create"),
    *("endpoint", "instances_for_target", "cost_hour", "cost_month", "cost_per_million", "cost_per_million_tokens"),
    *("ended", "confirmed", "exit_code"),
)


@dataclass(frozen=True, slots=True)
class Aim:
    """The use that is planned: the rate to serve, or None; and the share of its lower end that an instance gets."""

    target_rps: float | None = None
    utilisation: float = 0.7


def row_of(variant: dict[str, str], folder: str, found: Found, price: Price | None, aim: Aim) -> Row:
    """The row of a search. Rates in requests/s of all instances that were measured; costs in the price's currency."""
    endpoint = found.get("endpoint") or {}
    interval, at_least = found.get("interval"), found.get("at_least") or {}
    measured = endpoint.get("instances") or 1
    row: Row = {
        "variant": variant,
        "capacity": folder,
        "outcome": found["outcome"],
        "headline": found["headline"],
        "rate": found["rate"] if interval else at_least.get("rate"),
        "interval": interval,
        "limit": found.get("limit"),
        "latency": _latency(found, interval["low"] if interval else at_least.get("rate")),
        "server_utilisation": _utilisation(found),
        "instances": measured,
        "price": None if price is None else price.to_json(),
        "seconds_to_create": endpoint.get("seconds_to_create"),
        "endpoint": endpoint or None,
        **standing(found),
    }
    row["warnings"] = list(broken_by(found) if row["rate"] is None else warnings_of(found))
    return {**row, **_needed(row, found, aim)}


def failed_row(
    variant: dict[str, str],
    reason: str,
    outcome: str = FAILED,
    folder: str | None = None,
    code: int | None = None,
) -> Row:
    """The row of a variant that was not measured: why not, and the exit code of that."""
    nothing = {**dict.fromkeys(_MEASURED), "exit_code": code}
    return {"variant": variant, "capacity": folder, "outcome": outcome, "headline": reason, **nothing, "warnings": []}


def is_ranked(row: Row) -> bool:
    """Tells whether it can be compared: a search that ended early knows neither its rate nor what it ties with."""
    return low_of(row) is not None and row.get("ended") != "early"


def low_of(row: Row) -> float | None:
    """The rate of one instance that is sure: the interval's lower end, or what was kept at least."""
    rate = row["interval"]["low"] if row["interval"] else row["rate"]
    return rate / row["instances"] if rate else None


def high_of(row: Row) -> float:
    """The most that an instance may hold; without bounds where nothing but what it holds at least is known."""
    return float(row["interval"]["high"] / row["instances"]) if row["interval"] else math.inf


def instances_for(target_rps: float, per_instance: float, utilisation: float) -> int:
    """The instances of which each gets at most that share of what it holds; a hair above a whole number is none."""
    return max(1, math.ceil(target_rps / (per_instance * utilisation) * (1 - 1e-9)))


def _needed(row: Row, found: Found, aim: Aim) -> Row:
    """The instances for the target, and the cost: of them, or without a target of the one that was measured."""
    low, price = low_of(row), row["price"]
    instances = None if low is None or aim.target_rps is None else instances_for(aim.target_rps, low, aim.utilisation)
    hour = None if low is None or price is None else price["per_hour"] * (instances or 1)
    carried = aim.target_rps or (low or 0.0) * aim.utilisation
    tokens = found.get("tokens") or {}
    each = (tokens.get("tokens_per_s") or 0.0) / (tokens.get("requests_per_s") or math.inf)
    return {
        "instances_for_target": instances,
        "cost_hour": hour,
        "cost_month": None if hour is None else hour * HOURS_A_MONTH,
        "cost_per_million": None if hour is None else per_million(hour, carried),
        "cost_per_million_tokens": None if hour is None else per_million(hour, carried * each),
    }


def _latency(found: Found, rate: float | None) -> dict[str, Any] | None:
    """The median and p99 at a rate: p99 of the wave that confirmed it, all else between neighbouring rates.

    ``p99_measured``: a wave at that rate told it.
    """
    points = [point for point in found.get("curve") or [] if point.get("p50") is not None]
    measured = None if rate is None else _confirmed_p99(found, rate)
    if rate is None or not (points or measured is not None):
        return None
    between = {name: _between([(point["rate"], point[name]) for point in points], rate) for name in ("p50", "p99")}
    return {**between, **({} if measured is None else {"p99": measured}), "p99_measured": measured is not None}


def _confirmed_p99(found: Found, rate: float) -> float | None:
    """The value of the curve's time in the last wave that nothing spoilt; None unless that was at the rate."""
    waves = [wave["rate"] for wave in found.get("confirmation") or [] if not wave.get("spoilt")]
    if not waves or not math.isclose(waves[-1], rate, rel_tol=SAME_RATE):
        return None
    limits = found.get("limits") or []
    times = [limit for limit in limits if limit.get("bound") is not None and limit.get("allowed") is not None]
    told = (limit for limit in times if limit["metric"] == times[0]["metric"] and limit.get("at_low") is not None)
    return next((limit["at_low"] for limit in told if math.isclose(limit["allowed"], 0.01)), None)


def _between(points: list[tuple[float, float]], at: float) -> float | None:
    if not points:
        return None
    for (left, low), (right, high) in pairwise(points):
        if left <= at <= right:
            return low + (high - low) * (at - left) / (right - left)
    return points[0][1] if at < points[0][0] else points[-1][1]


def _utilisation(found: Found) -> dict[str, Any] | None:
    """The use of the server's resources at the interval's lower end, by metric."""
    rows = (found.get("resources") or {}).get("all") or []
    told = {row["metric"]: {"at_low": row["at_low"], "unit": row.get("unit")} for row in rows if row.get("at_low")}
    return told or None
