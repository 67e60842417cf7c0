"""Requests by label, and values of the user's own by name, added up while a wave runs. Pure.

They come from the rows that workers report anyway, so that no worker does more for them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.records.batch import OUTCOME
from inference_benchmarker.records.counts import LabelCounts
from inference_benchmarker.records.histogram import BUCKET_SHIFT
from inference_benchmarker.records.names import OTHER
from inference_benchmarker.records.record import OK, OUTCOMES
from inference_benchmarker.records.user_metrics import MOST_METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

MOST_LABELS = 50  # with counts of their own; of those that came later there is one count
_LATENCY = "latency"
_OUTCOME_BITS = 2


@dataclass(slots=True)
class ValueCounts:
    """The values of one metric that ok requests reported: their number and sum, the least and the greatest."""

    count: int = 0
    total: float = 0.0
    least: float = float("inf")
    most: float = float("-inf")

    def merge(self, other: ValueCounts) -> None:
        """Count what another one counted, too."""
        self.count += other.count
        self.total += other.total
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)


@dataclass(slots=True)
class LabelCounters:
    """The requests of each label with their latency by bucket, and each metric's values, without the warm-up's."""

    labels: defaultdict[str, LabelCounts] = field(default_factory=lambda: defaultdict(LabelCounts))
    metrics: defaultdict[str, ValueCounts] = field(default_factory=lambda: defaultdict(ValueCounts))

    def add(
        self, rows: npt.NDArray[Any], values: npt.NDArray[Any], labels: Sequence[str], metrics: Sequence[str]
    ) -> None:
        """Take in a batch of a worker, whose names have these numbers. ValueError for a number without a name."""
        if rows["label"].any():
            self._add_labels(rows[(rows["label"] > 0) & (rows["index"] >= 0)], labels)
        if len(values):
            self._add_values(rows, values, metrics)

    def merge(self, other: LabelCounters) -> None:
        """Count what another one counted, too."""
        self.merge_labels(other.labels)
        for name, found in other.metrics.items():
            if name in self.metrics or len(self.metrics) < MOST_METRICS:
                self.metrics[name].merge(found)

    def merge_labels(self, labels: Mapping[str, LabelCounts]) -> None:
        """Count the requests of some labels, too."""
        for name, found in labels.items():
            own = self._label(name)
            for outcome in OUTCOMES:
                setattr(own, outcome, getattr(own, outcome) + getattr(found, outcome))
            if _LATENCY in found.times:
                own.times[_LATENCY].update(found.times[_LATENCY])

    def _label(self, name: str) -> LabelCounts:
        return self.labels[name if name in self.labels or len(self.labels) < MOST_LABELS else OTHER]

    def _add_labels(self, rows: npt.NDArray[Any], names: Sequence[str]) -> None:
        label, outcome = rows["label"].astype(np.int64), rows["outcome"] & OUTCOME
        if outcome.max(initial=0) >= len(OUTCOMES):
            raise ValueError("a request without an outcome")
        for (number, of), count in _pair_counts(label, outcome.astype(np.int64), _OUTCOME_BITS):
            own = self._label(_name(names, number))
            setattr(own, OUTCOMES[of], getattr(own, OUTCOMES[of]) + count)
        timed = outcome != OUTCOMES.index("failed")
        took = np.maximum(rows["done"] - rows["sent"], 0)[timed].astype(np.float32)
        buckets = (took.view(np.uint32) >> BUCKET_SHIFT).astype(np.int64)
        for (number, bucket), count in _pair_counts(label[timed], buckets, 32 - BUCKET_SHIFT):
            self._label(_name(names, number)).times[_LATENCY][bucket] += count

    def _add_values(self, rows: npt.NDArray[Any], values: npt.NDArray[Any], names: Sequence[str]) -> None:
        if int(values["row"].max()) >= len(rows):
            raise ValueError("a metric of no request")
        of = rows[values["row"]]
        counted = values[(of["index"] >= 0) & (of["outcome"] & OUTCOME == OK)]
        for number in np.unique(counted["name"]).tolist():
            own = counted["value"][counted["name"] == number]
            name = _name(names, number)
            if name in self.metrics or len(self.metrics) < MOST_METRICS:
                self.metrics[name].merge(ValueCounts(len(own), float(own.sum()), float(own.min()), float(own.max())))


def _pair_counts(
    high: npt.NDArray[np.int64], low: npt.NDArray[np.int64], bits: int
) -> Iterator[tuple[tuple[int, int], int]]:
    """Each pair that there is, and how often; the second of a pair has so many bits."""
    pairs, counts = np.unique(high << bits | low, return_counts=True)
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        yield (pair >> bits, pair & (1 << bits) - 1), count


def _name(names: Sequence[str], number: int) -> str:
    if number >= len(names):
        raise ValueError("a request with a name that nobody reported")
    return names[number]
