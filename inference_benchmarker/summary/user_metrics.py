"""Values of the user's own, over the ok requests that reported them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.records.user_metrics import PREFIX
from inference_benchmarker.summary.statistics.grouped_histogram import GroupedHistogram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.records.columns import Records
    from inference_benchmarker.summary.statistics.distribution import Distribution


class MetricsGathered:
    """Gathers the metrics of these names; as tokens, those of failed and abandoned requests are in no number."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.columns = ("outcome", *(PREFIX + name for name in names))
        self._values = GroupedHistogram()

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        ok = part.outcome("ok")
        for number, name in enumerate(self._names):
            values = part.metric(name)[ok & part.has(PREFIX + name)]
            self._values.add(np.full(len(values), number), values)

    def distributions(self) -> dict[str, Distribution]:
        """Each metric's by its name, without those that no ok request reported. Nothing can be added any more."""
        found = self._values.distributions(len(self._names), np.zeros(0, np.int64), np.zeros(0))
        return {name: each for name, each in zip(self._names, found, strict=True) if each is not None}
