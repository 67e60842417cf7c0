"""The cost of a million tokens of each kind, at the lower end of how many come: two ways to divide one bill. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from visualization.pareto.measuring import CACHED, INPUT, OUTPUT, TOTAL, UNCACHED

if TYPE_CHECKING:
    from collections.abc import Callable

    from visualization.pareto.points import Point

    PerMillion = Callable[[float, float], float | None]
    """The cost of a million of what comes so often a second, while an hour costs so much."""

KINDS = (INPUT, CACHED, OUTPUT)
WHOLE = (
    "Each column is the whole cost over the tokens of its kind alone: they are views of one bill, not parts of it to "
    "add up"
)


@dataclass(frozen=True, slots=True)
class Weights:
    """The cost of a token of each kind in terms of another: the bill is divided by them."""

    input: float
    cached: float
    output: float

    def of(self, kind: str) -> float:
        """The weight of a token of a kind."""
        weight: float = getattr(self, kind)
        return weight

    @property
    def text(self) -> str:
        """As they are given."""
        return f"{self.input:g}:{self.cached:g}:{self.output:g}"


def costs_of(point: Point, weights: Weights | None, per_million: PerMillion) -> dict[str, float]:
    """By kind; of ``input`` the tokens that did not come from the cache, where the server reported which did.

    From the lower ends of the intervals, or what was measured where there are none. ``total``: over all tokens.
    """
    hour = point.configuration.hour
    if hour is None:
        return {}
    rates = {kind: rate.value if rate.low is None else rate.low for kind, rate in point.rates.items()}
    parts = {kind: rates[kind] for kind in (CACHED, OUTPUT) if kind in rates}
    parts |= {INPUT: rates.get(UNCACHED, rates[INPUT])} if INPUT in rates else {}
    found = {kind: per_million(hour, rate) for kind, rate in parts.items()}
    if weights is not None:
        unit = per_million(hour, sum(weights.of(kind) * rate for kind, rate in parts.items()))
        found = {kind: None if unit is None else unit * weights.of(kind) for kind in parts}
    found[TOTAL] = per_million(hour, rates[TOTAL]) if TOTAL in rates else None
    return {kind: cost for kind, cost in found.items() if cost is not None}
