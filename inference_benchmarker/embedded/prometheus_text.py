"""Prometheus' text format: families of samples, and histograms."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Histogram:
    """Whole numbers in cumulative buckets, as Prometheus counts them.

    ``per_unit`` of what is observed are one of what is shown: durations are observed in ns and shown in seconds.
    """

    def __init__(self, bounds: Sequence[float] = _SECONDS, per_unit: int = NS) -> None:
        self._bounds = bounds
        self._per_unit = per_unit
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0

    def observe(self, value: int, times: int = 1) -> None:
        """Count a value so many times; a bucket contains its upper bound."""
        self._counts[bisect_left(self._bounds, value / self._per_unit)] += times
        self._sum += value * times

    def lines(self, name: str, labels: str = "") -> Iterator[str]:
        """The samples, each with these labels."""
        total = 0
        before, whole = (f"{labels},", f"{{{labels}}}") if labels else ("", "")
        for bound, count in zip((*map(str, self._bounds), "+Inf"), self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{{before}le="{bound}"}} {total}'
        yield f"{name}_sum{whole} {self._sum / self._per_unit}"
        yield f"{name}_count{whole} {total}"


def family(name: str, kind: str, meaning: str, samples: Iterable[str]) -> str:
    """A family with its samples."""
    return "\n".join([f"# HELP {name} {meaning}", f"# TYPE {name} {kind}", *samples, ""])
