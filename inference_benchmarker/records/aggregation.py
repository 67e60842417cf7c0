"""Adds up what workers counted, batch by batch; a batch is untrusted input. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.data.typed import require
from inference_benchmarker.records.counting import LABEL_SHIFT, WARMUP
from inference_benchmarker.records.counts import (
    COLUMNS,
    FAILED,
    MOST,
    MOST_SECOND,
    MOST_STAGE,
    MOST_SUM,
    SCALARS,
    SUMS,
    TIMES_OF_LABELS,
    Counts,
    LabelCounts,
    Series,
)
from inference_benchmarker.records.histogram import Histogram, bucket_of
from inference_benchmarker.records.record import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt


_TOTALS: dict[str, Any] = {
    "labels": dict[str, list[int]],
    "label_times": dict[str, list[int]],
    "finish": list[int],
    "first": list[int],
    "last_due": int,
    "last_done": int,
}


class BatchAggregator:
    """Adds up the batches of workers; memory grows with the seconds, stages and kinds of the wave.

    Batches come about in the order of time. What of a second comes after many later ones is a count more of it.
    """

    OPEN_S = 5

    def __init__(self) -> None:
        self._open: defaultdict[int, defaultdict[tuple[int, str], Counter[int]]] = defaultdict(
            lambda: defaultdict(Counter)
        )
        self._newest = -MOST_SECOND
        self._closed: defaultdict[str, bytearray] = defaultdict(bytearray)
        self._errors: dict[str, int] = {}
        self._first: dict[str, int] = {}
        self.labels: defaultdict[str, LabelCounts] = defaultdict(LabelCounts)
        self._finish: Counter[str] = Counter()

    def add(
        self, meta: Mapping[str, Any], labels: Sequence[str], errors: Sequence[str], reasons: Sequence[str]
    ) -> None:
        """Take in what a batch says beside its rows; names are those of its worker. ValueError where it is none."""
        for name, stage in (("warmup", WARMUP), ("feed", None)):
            for cell in _list_of_dicts(meta.get(name, [])):
                self._add_cell(cell, errors, stage)
        require(totals := meta["totals"], dict[str, Any], "totals")
        for name, kind in _TOTALS.items():
            require(totals[name], kind, name)
        for number, count in _pairs(totals["finish"], len(reasons) - 1):
            self._finish[reasons[number]] += count
        for number, instant in _pairs(totals["first"], len(errors) - 1, MOST_SUM):
            key = errors[number]
            self._first[key] = min(self._first.get(key, instant), instant)
        self._add_labels(totals, labels)
        self._close(self._newest - self.OPEN_S)

    def counts(self) -> Counts:
        """All that was added."""
        self._close(MOST_SECOND + 1)
        series = {what: _series(np.frombuffer(rows, _dtype(what))) for what, rows in self._closed.items()}
        return Counts(series, tuple(self._errors), self._first, self.labels, dict(self._finish))

    def _add_cell(self, cell: dict[str, Any], errors: Sequence[str], of_stage: int | None) -> None:
        second = _number(cell.get("s"), -MOST_SECOND if of_stage == WARMUP else 0, MOST_SECOND)
        stage = _number(cell.get("n"), 0, MOST_STAGE) if of_stage is None else of_stage
        self._newest = max(self._newest, second)
        found = self._open[second]
        for what, value in cell.items():
            if what in SCALARS or what in SUMS:
                found[stage, what][0] += _number(value, -MOST_SUM if what in SUMS else 0, MOST[what])
            elif what == FAILED:
                for number, count in _pairs(value, len(errors) - 1):
                    found[stage, what][self._errors.setdefault(errors[number], len(self._errors))] += count
            elif what in MOST:
                counts = found[stage, what]
                for key, count in Histogram.from_json(value).counts.items():
                    if counts[key] + count > MOST[what]:
                        raise ValueError(f"{what} with a count out of bounds")
                    counts[key] += count

    def _add_labels(self, totals: dict[str, Any], labels: Sequence[str]) -> None:
        """The requests without a label are the rest of all."""
        for outcome, pairs in totals["labels"].items():
            for label, count in _pairs(pairs, len(labels) - 1, MOST_SUM):
                if outcome in OUTCOMES and label:
                    found = self.labels[labels[label]]
                    setattr(found, outcome, getattr(found, outcome) + count)
        for name, pairs in totals["label_times"].items():
            for key, count in _pairs(pairs, (len(labels) << LABEL_SHIFT) - 1, MOST_SUM):
                label, half = key >> LABEL_SHIFT, key & ((1 << LABEL_SHIFT) - 1)
                if name in TIMES_OF_LABELS and label:
                    self.labels[labels[label]].times[name][bucket_of(half)] += count

    def _close(self, before: int) -> None:
        """Put the seconds before one of them away, in columns."""
        rows: defaultdict[str, list[tuple[int, int, int, int]]] = defaultdict(list)
        for second in sorted(second for second in self._open if second < before):
            for (stage, what), counts in self._open.pop(second).items():
                if max(counts.values(), default=0) > MOST[what]:
                    raise ValueError(f"{what} with a count out of bounds")
                rows[what] += [(second, stage, key, count) for key, count in sorted(counts.items())]
        for what, found in rows.items():
            self._closed[what] += np.array(found, _dtype(what)).tobytes()


def _series(rows: npt.NDArray[Any]) -> Series:
    return Series.of(*(rows[name] for name in COLUMNS))


def _dtype(what: str) -> np.dtype[Any]:
    """The columns of a series as they are kept: 12 bytes a row, of most kinds."""
    key, count = "<i4" if what == FAILED else "<u2", "<i8" if what in SUMS else "<u4"
    kinds = {"second": "<i4", "stage": "<i2", "key": key, "count": count}
    return np.dtype(list(kinds.items()))


def _list_of_dicts(data: Any) -> list[dict[str, Any]]:
    if type(data) is not list or not all(type(each) is dict for each in data):
        raise ValueError("counts that are no list of cells")
    return data


def _pairs(data: Any, most: int, most_count: int = (1 << 53)) -> Iterator[tuple[int, int]]:
    if type(data) is not list or len(data) % 2:
        raise ValueError("counts that are no pairs")
    for key, count in zip(data[::2], data[1::2], strict=True):
        yield _number(key, 0, most), _number(count, -most_count, most_count)


def _number(value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError("counts with a number out of bounds")
    return value
