"""The money that making endpoints and measuring them takes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.words.wording import length_text, money_text, pluralize
from server_capacity.results.types.bounds import Spend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.results.types.price import Price

UNTYPED = "an endpoint without instance_type"
BESIDE_S = 900.0
"""Seconds for which an instance of AWS's is paid for beside the search: it is made, warmed up and taken away."""


class PaidEndpoint(NamedTuple):
    """An endpoint that is to be made: its instance type, how many of it, and for how many seconds it is measured."""

    instance_type: str | None
    instances: int
    seconds: float
    price: Price | None


def spend(endpoints: Sequence[PaidEndpoint]) -> Spend:
    """The cost of them together."""
    costs = [made.price.per_hour * made.instances * paid_s(made) / 3600 for made in endpoints if made.price is not None]
    currencies = {made.price.currency for made in endpoints if made.price is not None}
    unpriced = sorted({made.instance_type or UNTYPED for made in endpoints if not made.price})
    whole = not unpriced and len(currencies) <= 1
    return Spend(
        len(endpoints),
        sum(made.instances * paid_s(made) for made in endpoints) / 3600,
        sum(paid_s(made) for made in endpoints),
        cost=sum(costs) if whole else None,
        known=sum(costs) if len(currencies) <= 1 else None,
        currency=next(iter(currencies)) if len(currencies) == 1 else None,
        unpriced=unpriced,
    )


def paid_s(made: PaidEndpoint) -> float:
    """The seconds for which it is paid."""
    return made.seconds + (BESIDE_S if (made.instance_type or "").startswith("ml.") else 0.0)


def spend_text(total: Spend, parallel: int = 1) -> str:
    """``2 endpoints, about 30 min each: 1.1 instance hours, about $0.25``, or why there is no sum."""
    seconds = total.seconds / max(total.endpoints, 1)
    each = length_text(seconds) if seconds < 60 else f"{seconds / 60:,.0f} min"
    at_a_time = f", {parallel} at a time" if parallel > 1 else ""
    number = f"{total.instance_hours:.2g}"
    hours = f"{number} instance {'hour' if number == '1' else 'hours'}"
    if total.cost is not None:
        money = f"about {money_text(total.cost, total.currency or 'USD')}"
    else:
        money = f"no price of {', '.join(total.unpriced) or 'one currency'}"
    endpoints = pluralize(total.endpoints, "endpoint", "endpoints")
    return f"{endpoints}, about {each} each{at_a_time}: {hours}, {money}"
