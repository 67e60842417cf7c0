"""Several traffics are equivalent to an endpoint, or not, by what it holds of each. Pure.

Intervals (95%) that do not overlap: they differ. All of them within 10% of each other, from the least end to the most:
they are equivalent. Anything else is undecided.
"""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING

from server_capacity.results.types.axes import PAYLOAD, label_of
from server_capacity.results.types.ranking import Traffics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.results.types.ranking import RankedRow

WITHIN = 0.10
"""Rates that differ by no more than this share are as good as the same."""


def traffics(rows: Sequence[RankedRow]) -> Traffics | None:
    """``equivalent``: True, False, or None where it is undecided; a sentence that says why. None without several."""
    judged = [_of_one_endpoint(group) for group in _by_endpoint(rows) if len(group) > 1]
    if not judged:
        return None
    answers = [equivalent for equivalent, _ in judged]
    whole = False if False in answers else None if None in answers else True
    return Traffics(equivalent=whole, text=" ".join(text for _, text in judged), within=WITHIN)


def _by_endpoint(rows: Sequence[RankedRow]) -> list[list[RankedRow]]:
    """The rows whose endpoints are the same, and whose traffics differ."""
    varied = [row for row in rows if any(name.startswith(PAYLOAD) for name in row.variant)]

    def endpoint(row: RankedRow) -> list[tuple[str, str]]:
        return sorted((name, text) for name, text in row.variant.items() if not name.startswith(PAYLOAD))

    return [list(group) for _, group in groupby(sorted(varied, key=endpoint), key=endpoint)]


def _of_one_endpoint(rows: Sequence[RankedRow]) -> tuple[bool | None, str]:
    known = [(row, row.interval) for row in rows if row.interval]
    on = label_of({name: text for name, text in rows[0].variant.items() if not name.startswith(PAYLOAD)})
    if len(known) < len(rows):
        missing = ", ".join(_traffic(row) for row in rows if not row.interval)
        return None, (
            f"For {on}, it is undecided whether the traffic patterns are equivalent: {missing} has no interval to "
            "compare."
        )
    least, its = min(known, key=lambda each: each[1].high)
    most, the_most = max(known, key=lambda each: each[1].low)
    if the_most.low > its.high:
        ratio = (most.rate or 0.0) / (least.rate or math.inf) - 1
        return (
            False,
            f"For {on}, the traffic patterns differ: the capacity is {ratio:.0%} higher for {_traffic(most)} than for "
            f"{_traffic(least)}.",
        )
    lowest = min(interval.low for _, interval in known)
    spread = max(interval.high for _, interval in known) / lowest - 1 if lowest > 0 else math.inf
    names = " and ".join(_traffic(row) for row in rows) if len(known) == 2 else "all traffic patterns"
    if spread <= WITHIN:
        return True, f"For {on}, {names} are equivalent: their capacities differ by at most {spread:.0%}."
    return None, (
        f"For {on}, it is undecided whether {names} are equivalent: the intervals overlap, and a difference of "
        f"{f'{spread:.0%}' if math.isfinite(spread) else 'any size'} would not show. Give more --time."
    )


def _traffic(row: RankedRow) -> str:
    return label_of({name: text for name, text in row.variant.items() if name.startswith(PAYLOAD)})
