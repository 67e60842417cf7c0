"""Facts that are shown before an endpoint is made: what it will cost, and the quotas that it needs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from inference_benchmarker.errors import BenchmarkError
from server_capacity.metrics.aws_answers import region_of
from server_capacity.planning.costs.quota import quota
from server_capacity.planning.request import MOST_INSTANCES
from server_capacity.results.text.spend import UNTYPED, PaidEndpoint, spend
from server_capacity.results.types.bounds import StatedQuota

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from server_capacity.planning.costs.prices import Prices
    from server_capacity.results.types.bounds import Quota, Spend

COUNTS = ("instances", "instance_count")


def count_problems(arguments: Mapping[str, Any]) -> list[str]:
    """A sentence for each number of instances, among arguments of endpoint_factory, that no endpoint has."""
    numbers = {name: arguments[name] for name in COUNTS if isinstance(arguments.get(name), int | float)}
    return [
        f"endpoint_factory's {name} must be a whole number from 1 to {MOST_INSTANCES:,}, not {str(number)[:40]}."
        for name, number in numbers.items()
        if not isinstance(number, int) or not 1 <= number <= MOST_INSTANCES
    ]


class Before(NamedTuple):
    """The facts themselves; no spend where nothing is paid."""

    quotas: list[StatedQuota]
    spend: Spend | None


class Needed(NamedTuple):
    """The instances that an endpoint will run on, as far as its factory's arguments say."""

    instance_type: str | None
    instances: int


def needed_by(arguments: Mapping[str, Any]) -> Needed:
    """Arguments of endpoint_factory, with defaults."""
    kind = arguments.get("instance_type")
    count = next((arguments[name] for name in COUNTS if isinstance(arguments.get(name), int)), 1)
    return Needed(str(kind) if kind else None, count)


def planned_spend(endpoints: Sequence[Needed], seconds: float, prices: Prices) -> Spend:
    """The cost of measuring each for so many seconds."""
    region = region_of(None) if any(each.instance_type for each in endpoints) else None
    made = [
        PaidEndpoint(kind, count, seconds, prices.of(kind, region) if kind is not None else None)
        for kind, count in endpoints
    ]
    return spend(made)


def check_spend(expected: Spend, most: float | None) -> None:
    """BenchmarkError where it may cost more than ``most``, or nobody knows."""
    if most is None:
        return
    if expected.cost is None:
        try_this = (
            "Leave --max-cost out" if expected.unpriced == [UNTYPED] else "Give --price TYPE=USD, or leave it out"
        )
        raise BenchmarkError(
            f"--max-cost {most:g}: there is no price of {', '.join(expected.unpriced) or 'one currency'}.",
            f"{try_this}.",
        )
    if expected.cost > most:
        raise BenchmarkError(
            f"--max-cost {most:g}: the search may cost {expected.cost:.2f} {expected.currency or 'USD'}.",
            f"Shorten --time, {'vary fewer values, ' if expected.endpoints > 1 else ''}or raise it.",
        )


def quotas_for(endpoints: Iterable[Needed], parallel: int) -> list[StatedQuota]:
    """The quota of each instance type, for as many of its endpoints as there may be at a time."""
    counts: dict[str, list[int]] = {}
    for kind, count in endpoints:
        if kind is not None:
            counts.setdefault(kind, []).append(count)
    needs = {kind: sum(sorted(found, reverse=True)[:parallel]) for kind, found in counts.items()}
    found = [quota(kind, None, number) for kind, number in needs.items()]
    return [with_text(each) for each in found if each is not None]


def with_text(found: Quota) -> StatedQuota:
    """A quota with a sentence where it is too small."""
    text = f"{found.name} is limited to {found.limit}, and {found.needed} are needed: {found.increase}"
    return StatedQuota(**asdict(found), text=None if found.enough else text)
