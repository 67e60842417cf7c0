"""Places along an axis and its ticks. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from visualization.figures.figures import Scale as Kind

_STEPS = (1, 2, 2.5, 5, 10)
_MOST_TICKS = 5
_SIZES = ((1e12, "T"), (1e9, "G"), (1e6, "M"))
_NINES = {math.log10(2): "p50", 1.0: "p90", 2.0: "p99", 3.0: "p99.9", 4.0: "p99.99"}


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from ``low`` to ``high``. ``nines``: 1 is p90, 2 is p99, and so on."""

    kind: Kind
    low: float
    high: float

    @classmethod
    def over(cls, kind: Kind, values: Iterable[float]) -> Scale:
        """The axis that has room for some values: from 0 on where it is linear."""
        known = list(values)
        low, high = min(known, default=0.0), max(known, default=1.0)
        if kind == "log":
            return cls(kind, low / 1.1, max(high * 1.1, low * 1.5))
        if kind == "nines":
            return cls(kind, min(low, 0.0), high or 1.0)
        low, high = min(low, 0.0), max(high, 0.0)
        return cls(kind, low * 1.08, high * 1.08 if high > low else low + 1.0)

    def place(self, value: float) -> float:
        """The place of a value, from 0 to 1."""
        if self.kind == "log":
            return math.log(value / self.low) / math.log(self.high / self.low) if value > 0 else 0.0
        return (value - self.low) / (self.high - self.low)

    def ticks(self, most: int = _MOST_TICKS) -> list[tuple[float, str]]:
        """The values that are named along it, about ``most``, and how."""
        if self.kind == "nines":
            return [(value, name) for value, name in _NINES.items() if self.low <= value <= self.high]
        return [(value, tick_text(value)) for value in (self._decades() if self.kind == "log" else self._even(most))]

    def _even(self, most: int) -> list[float]:
        rough = (self.high - self.low) / most
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(each * size for each in _STEPS if each * size >= rough * 0.999)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]

    def _decades(self) -> list[float]:
        """1, 2 and 5 of each power of ten; of many powers the 1 alone, or every other one."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for digits, every in (((1, 2, 5), 1), ((1,), 1), ((1,), 2), ((1,), 4)):
            found = [digit * 10.0**power for power in powers[::every] for digit in digits]
            inside = [value for value in found if self.low <= value <= self.high]
            if len(inside) <= _MOST_TICKS + 1:
                break
        return inside


def tick_text(value: float) -> str:
    """A number on an axis, where there is little room."""
    size, letter = next((each for each in _SIZES if abs(value) >= each[0]), (1, ""))
    value = value / size
    return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}") + letter
