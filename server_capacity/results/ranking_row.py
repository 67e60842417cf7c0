"""A row of a ranking: what a search of a variant found, and what it takes to serve a target with it. Pure.

What is read here is the object of ``capacity.json``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from server_capacity.results.types.price import HOURS_A_MONTH, per_million
from server_capacity.results.types.ranking import Latency, RankedRow, TokenCosts, TokensEach, Used
from server_capacity.results.types.result_status import FAILED, answers_differ, left_open_by, standing

if TYPE_CHECKING:
    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.price import Price

SAME_RATE = 0.01
"""A wave that differs by no more than this share from a rate was at it."""


@dataclass(frozen=True, slots=True)
class Aim:
    """The use that is planned: the rate to serve, or None; and the share of its lower end that an instance gets."""

    target_rps: float | None = None
    utilisation: float = 0.7


def row_of(variant: dict[str, str], folder: str, found: CapacityResult, price: Price | None, aim: Aim) -> RankedRow:
    """The row of a search."""
    endpoint, interval = found.endpoint, found.interval
    at_least = None if found.at_least is None else found.at_least.rate
    rate, status = found.rate if interval else at_least, standing(found)
    row = RankedRow(
        variant=variant,
        capacity=folder,
        outcome=found.outcome,
        headline=found.headline,
        rate=rate,
        interval=interval,
        limit=found.limit,
        latency=_latency(found, interval.low if interval else at_least),
        server_utilisation=_utilisation(found),
        instances=(None if endpoint is None else endpoint.instances) or 1,
        price=price,
        seconds_to_create=None if endpoint is None else endpoint.seconds_to_create,
        endpoint=endpoint,
        ended=status.ended,
        confirmed=status.confirmed,
        exit_code=status.exit_code,
        warnings=list(left_open_by(found)),
    )
    return _with_token_costs(_with_needs(row, found, aim), found)


def failed_row(
    variant: dict[str, str],
    reason: str,
    outcome: str = FAILED,
    folder: str | None = None,
    code: int | None = None,
) -> RankedRow:
    """The row of a variant that was not measured: why not, and the exit code of that."""
    return RankedRow(variant, folder, outcome, reason, exit_code=code)


def is_ranked(row: RankedRow) -> bool:
    """Tells whether it can be compared: a search that ended early knows neither its rate nor what it ties with.

    A variant whose answers are other ones does another job.
    """
    return low_of(row) is not None and row.ended != "early" and not answers_differ(row)


def low_of(row: RankedRow) -> float | None:
    """The rate of one instance that is sure: the interval's lower end, or what was kept at least."""
    rate = row.interval.low if row.interval else row.rate
    return rate / row.measured_on if rate else None


def high_of(row: RankedRow) -> float:
    """The most that an instance may hold; without bounds where nothing but what it holds at least is known."""
    return row.interval.high / row.measured_on if row.interval else math.inf


def instances_for(target_rps: float, per_instance: float, utilisation: float) -> int:
    """The instances of which each gets at most that share of what it holds; a hair above a whole number is none."""
    return max(1, math.ceil(target_rps / (per_instance * utilisation) * (1 - 1e-9)))


def _with_needs(row: RankedRow, found: CapacityResult, aim: Aim) -> RankedRow:
    """The row with the instances for the target, and the cost: of them, or without a target of the measured one."""
    low = low_of(row)
    instances = None if low is None or aim.target_rps is None else instances_for(aim.target_rps, low, aim.utilisation)
    row = replace(row, instances_for_target=instances)
    if low is None or row.price is None:
        return row
    hour = row.price.per_hour * (instances or 1)
    carried = aim.target_rps or low * aim.utilisation
    tokens, turns = found.tokens, _turns(found) or 0.0
    each = 0.0 if tokens is None else turns * (tokens.tokens_per_s or 0.0) / (tokens.requests_per_s or math.inf)
    return replace(
        row,
        cost_hour=hour,
        cost_month=hour * HOURS_A_MONTH,
        cost_per_million=per_million(hour, carried),
        cost_per_million_tokens=per_million(hour, carried * each),
    )


def _with_token_costs(row: RankedRow, found: CapacityResult) -> RankedRow:
    """The row with the tokens of each arrival, and the cost of a million of each kind at the lower end."""
    each = _tokens_each(found)
    low = low_of(row)
    if each is None or low is None or row.price is None:
        return replace(row, tokens_each=each)
    hour, fresh = row.price.per_hour, (each.input or 0.0) - (each.cached or 0.0)
    input_, cached, output = (per_million(hour, low * (tokens or 0.0)) for tokens in (fresh, each.cached, each.output))
    return replace(row, tokens_each=each, token_costs=TokenCosts(input_, cached, output))


def _tokens_each(found: CapacityResult) -> TokensEach | None:
    """The mean tokens of an arrival: of all turns where that is a session."""
    request = None if found.tokens is None else found.tokens.per_request
    turns = _turns(found)
    if request is None or turns is None:
        return None
    means = (request.input, request.cached, request.output)
    return TokensEach(*(None if mean is None else mean * turns for mean in means))


def _turns(found: CapacityResult) -> float | None:
    """The requests of an arrival; None of a session where no wave measured them."""
    return 1.0 if found.sessions is None else found.sessions.turns


def _latency(found: CapacityResult, rate: float | None) -> Latency | None:
    """The median and p99 at a rate: p99 of the wave that confirmed it, all else between neighbouring rates.

    ``p99_measured``: a wave at that rate measured it.
    """
    points = [point for point in found.curve or [] if point.p50 is not None]
    measured = None if rate is None else _confirmed_p99(found, rate)
    if rate is None or not (points or measured is not None):
        return None
    p50 = _between([(point.rate, point.p50) for point in points if point.p50 is not None], rate)
    p99 = _between([(point.rate, point.p99) for point in points if point.p99 is not None], rate)
    return Latency(p50, p99 if measured is None else measured, measured is not None)


def _confirmed_p99(found: CapacityResult, rate: float) -> float | None:
    """The value of the curve's time in the last wave that nothing spoilt; None unless that was at the rate."""
    waves = [wave.rate for wave in found.confirmation or [] if not wave.spoilt]
    if not waves or not math.isclose(waves[-1], rate, rel_tol=SAME_RATE):
        return None
    times = [limit for limit in found.limits if limit.bound is not None and limit.allowed is not None]
    tails = (limit for limit in times if limit.metric == times[0].metric and limit.at_low is not None)
    return next((limit.at_low for limit in tails if math.isclose(limit.allowed or 0.0, 0.01)), None)


def _between(points: list[tuple[float, float]], at: float) -> float | None:
    if not points:
        return None
    for (left, low), (right, high) in pairwise(points):
        if left <= at <= right:
            return low + (high - low) * (at - left) / (right - left)
    return points[0][1] if at < points[0][0] else points[-1][1]


def _utilisation(found: CapacityResult) -> dict[str, Used] | None:
    """The use of the server's resources at the interval's lower end, by metric."""
    rows = found.resources.all if found.resources else []
    return {row.metric: Used(row.at_low, row.unit) for row in rows if row.at_low} or None
