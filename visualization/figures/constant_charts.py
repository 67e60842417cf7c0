"""Tells what is equal in all runs, which is a line and no picture. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visualization.figures.figures import Bars, Curves

if TYPE_CHECKING:
    from visualization.figures.figures import Bar

_NEAR = 0.005  # as near as the durations of equal waves are
_NEAR_SHARE = 0.00005  # 99.9% and 100% are a difference
_SHOWN = 4


def is_same(chart: Bars | Curves) -> bool:
    """Tells whether two runs or more have it, and all the same value of each statistic."""
    if isinstance(chart, Curves):
        return False
    found, near = list(chart.statistics.values()), _NEAR_SHARE if chart.unit == "%" else _NEAR
    return len(found[0]) > 1 and all(_alike(bars, near) for bars in found)


def _alike(bars: tuple[Bar, ...], near: float) -> bool:
    values = [bar.value for bar in bars]
    known = [value for value in values if value is not None]
    if len(known) < len(values) or any(bar.sign or bar.note for bar in bars):
        return False
    return max(known) - min(known) <= near * max(map(abs, known))


def same_text(bars: Bars) -> tuple[str, str]:
    """Its name, and what all runs have of it: the mean where they differ by less than is shown."""
    unit = bars.unit if bars.unit[:1] in ("%", "/", "") else f" {bars.unit}"
    texts = []
    for choice, found in bars.statistics.items():
        values = [bar.value for bar in found if bar.value is not None]
        mean = sum(values) / len(values)
        text = f"{mean:,.0f}" if abs(mean) >= 10**_SHOWN else f"{mean:,.{_SHOWN}g}"
        texts.append(f"{choice} {text}{unit}".lstrip())
    return bars.title, ", ".join(texts)
