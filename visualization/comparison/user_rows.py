"""The metrics of the user's own that runs are compared by. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.records.metrics import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inference_benchmarker.wave.wave import Wave
    from visualization.comparison.intervals import Metric

_STATS = ("mean", "p50", "p99")


def user_metrics_of(waves: Iterable[Wave]) -> list[Metric]:
    """The metrics that any of these waves has, each with the statistics to compare."""
    names = sorted({name for wave in waves for name in wave.summary.metrics})
    return [(PREFIX + name, stat) for name in names for stat in _STATS]
