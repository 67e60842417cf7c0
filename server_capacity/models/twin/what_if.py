"""The twin of an endpoint that is not there: other arrivals, faster services, more instances. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from server_capacity.models.twin.crossing import crossing, where
from server_capacity.models.twin.fleet import shares_over
from server_capacity.results.types.twin import Extrapolations, WhatIf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.models.twin.shares import Variants
    from server_capacity.models.twin.twin import Bound, Twin

INSTANCES = (2, 5)
_SAMPLE = 500_000
_ROOM = np.linspace(0.0, 1.0, 5)[:-1]  # between the rate of one instance times their number, and all servers busy
_SEED = 17


def what_if(twin: Twin, bound: Bound, instances: Sequence[int] = INSTANCES) -> Extrapolations:
    """The capacity (requests/s, None where the limit is never kept) with Poisson arrivals unless they are named."""
    fitted = twin.variants.first()
    shorter = replace(fitted, services_s=fitted.services_s * 0.8)
    return Extrapolations(
        even_arrivals=crossing(fitted, bound.time_s, bound.allowed, even=True, sample=_SAMPLE).rate,
        service_20_shorter=crossing(shorter, bound.time_s, bound.allowed, sample=_SAMPLE).rate,
        instances=of_instances(fitted, bound, instances),
    )


def of_instances(fitted: Variants, bound: Bound, instances: Sequence[int]) -> list[WhatIf]:
    """The capacity of so many, behind a router that takes any at random, and one that takes the least outstanding."""
    one = crossing(fitted, bound.time_s, bound.allowed, sample=_SAMPLE).rate
    rows: list[WhatIf] = []
    for count in instances:
        # Of Poisson arrivals that are split at random, each part is Poisson: exactly so many times one.
        rows.append(WhatIf(count, "random", one and one * count))
        least = one and _least_outstanding(fitted, count, one, bound.time_s, bound.allowed)
        rows.append(WhatIf(count, "least_outstanding", least))
    return rows


def _least_outstanding(fitted: Variants, count: int, one: float, bound_s: float, allowed: float) -> float:
    most = float(fitted.most[0])
    rates = count * (one + (0.995 * most - one) * _ROOM)
    shares = shares_over(fitted, count, rates, bound_s, _SEED)
    return float(rates[-1]) if shares[-1] <= allowed else where(rates, shares, allowed)
