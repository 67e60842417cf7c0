"""The server's own metrics of both sides of a comparison: values without records behind them. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from inference_benchmarker.facts.server_metric import SIGNS
from visualization.comparison.changes import ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.facts.server_metric import ServerMetric
    from inference_benchmarker.wave.wave import Wave

_Key = tuple[str, int]
_Found = tuple[float, str | None, str]


@dataclass(frozen=True, slots=True)
class ServerRow:
    """A statistic of a server metric that two runs have: two values without records behind them."""

    name: str
    base: float
    new: float
    unit: str | None = None
    signs: tuple[str, str] = ("", "")
    """≥ or ≤ before a value that is only a bound, ≈ before one that is of a part of the window, or of more."""

    @property
    def change(self) -> float | None:
        """New / base - 1; of bounds there is none."""
        return None if any(self.signs) else ratio(self.base, self.new)


def server_rows(base: Sequence[Wave], new: Sequence[Wave]) -> Iterator[ServerRow]:
    """The values that both sides have: of several runs their mean, of those that have it."""
    before, after = (_over_runs(waves) for waves in (base, new))
    for key, (value, unit, sign) in before.items():
        if key in after:
            name, number = key
            changed, _, sign_after = after[key]
            yield ServerRow(name if number == 1 else f"{name} ({number})", value, changed, unit, (sign, sign_after))


def _over_runs(waves: Sequence[Wave]) -> dict[_Key, _Found]:
    found: defaultdict[_Key, list[_Found]] = defaultdict(list)
    for wave in waves:
        for key, value in _values(wave.server_metrics or ()):
            found[key].append(value)
    return {key: _mean(values) for key, values in found.items()}


def _mean(found: Sequence[_Found]) -> _Found:
    """Of what was found in each run; a bound among it makes it one."""
    values, units, signs = zip(*found, strict=True)
    return fmean(values), units[0], max(signs)


def _values(metrics: Sequence[ServerMetric]) -> Iterator[tuple[_Key, _Found]]:
    """The values that are there, their units, and the sign before what is only a bound.

    One name in several blocks is matched by its place: dimensions may differ by run.
    """
    seen: Counter[str] = Counter()
    for metric in metrics:
        for statistic, value in metric.statistics.items():
            name = f"{metric.name} {statistic}"
            seen[name] += 1
            if value is not None and metric.asked:
                yield (name, seen[name]), (value, metric.unit, SIGNS.get(metric.side(statistic) or "", ""))
