"""The counts of a wave whose requests were counted: what stands for the records that nobody kept. Pure.

A count says of how many requests of a stage something became known in a second, by a key: the bucket of a time, the
20 ms of the second in which it happened, the number of an error. docs/reference/files.md lists them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.counting import BINS, MOST_SLOWEST, WARMUP
from inference_benchmarker.records.histogram import BUCKET_SHIFT, MOST_BUCKET
from inference_benchmarker.words.redact import quoted
from inference_benchmarker.words.units import MAX_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from inference_benchmarker.records.columns import Floats, Int64, Mask
    from inference_benchmarker.records.parts import InParts

PRECISION = 1 / 128
"""A bucket's middle differs from each of its values by such a share at most."""
SUMMED = (
    *("latency", "response_time", "lag", "failed_latency", "build", "ttft", "itl", "age", "response_age"),
    *("tokens_in", "tokens_out"),
)
TIMES = (*SUMMED, "stream_age", "first_age", "token_age")
_BINNED = ("sent_at", "ok_at", "failed_at", "abandoned_at")
SCALARS = ("sent", "ok", "abandoned", "streams", "usage", "impossible")
SUMS = tuple(f"{name}_sum" for name in SUMMED)
FAILED = "failed"
WHATS = (*SCALARS, FAILED, *_BINNED, *TIMES, *SUMS)
TIMES_OF_LABELS = ("latency", "response_time")
MOST_SECOND, MOST_STAGE = 3 * MAX_SECONDS, (1 << 15) - 1
MOST_SUM = 1 << 62
_AT_ONCE = 1 << 18  # so that what is made of some counts stays small
COLUMNS = ("second", "stage", "key", "count")
_AS_MANY: tuple[tuple[tuple[str, ...], str], ...] = (
    (("sent",), "sent_at"),
    (("ok",), "ok_at"),
    ((FAILED,), "failed_at"),
    ((FAILED,), "failed_latency"),
    (("abandoned",), "abandoned_at"),
    (("abandoned",), "age"),
    (("ok", "abandoned"), "latency"),
    (("ok", FAILED, "abandoned"), "lag"),
)
"""Of requests with these outcomes each has one such instant or time."""
MOST = {**dict.fromkeys(WHATS, (1 << 32) - 1), **dict.fromkeys(SUMS, MOST_SUM)}


@dataclass(frozen=True, slots=True)
class Series:
    """One kind of count: how many in each second, stage and by key, in the order of the seconds."""

    second: npt.NDArray[Any]
    stage: npt.NDArray[Any]
    key: npt.NDArray[Any]
    count: npt.NDArray[Any]

    @classmethod
    def of(cls, second: Any, stage: Any, key: Any, count: Any) -> Series:
        """Some columns as a series."""
        columns = [np.ascontiguousarray(column) for column in (second, stage, key, count)]
        if (columns[0][1:] < columns[0][:-1]).any():
            order = np.argsort(columns[0], kind="stable")
            columns = [column[order] for column in columns]
        return cls(*columns)

    @classmethod
    def empty(cls) -> Series:
        """A series of nothing."""
        nothing = np.zeros(0, np.int32)
        return cls(nothing, nothing, nothing, nothing)

    @property
    def total(self) -> int:
        """All counts together."""
        return int(self.count.sum(dtype=np.int64))

    @property
    def by_key(self) -> Int64:
        """The counts by key, from 0 on."""
        total = np.zeros(int(self.key.max()) + 1 if len(self.key) else 0)
        for begin in range(0, len(self.key), _AT_ONCE):
            some = slice(begin, begin + _AT_ONCE)
            total += np.bincount(self.key[some], self.count[some], len(total))
        return total.astype(np.int64)

    @property
    def by_stage(self) -> Int64:
        """The counts by stage, the warm-up's first."""
        stages = np.subtract(self.stage, WARMUP, dtype=np.int64)
        return np.bincount(stages, self.count, MOST_STAGE - WARMUP + 1).astype(np.int64)

    @property
    def bins(self) -> Int64:
        """The number of the 20 ms that each count is of, from wave start on."""
        bins: Int64 = self.second.astype(np.int64) * BINS + self.key
        return bins

    def before(self, bins: Int64) -> Int64:
        """The sum of the counts of all bins before each of these."""
        order = np.argsort(self.bins, kind="stable")
        sums = np.append(0, np.cumsum(self.count[order], dtype=np.int64))
        found: Int64 = sums[np.searchsorted(self.bins[order], bins)]
        return found

    def where(self, mask: Mask) -> Series:
        """The counts that are selected."""
        if mask.all():
            return self
        return Series(*(column[mask] for column in self._columns))

    def between(self, first: int, stop: int) -> Series:
        """The counts of some seconds."""
        begin, end = np.searchsorted(self.second, (first, stop))
        return Series(*(column[begin:end] for column in self._columns))

    @property
    def _columns(self) -> list[npt.NDArray[Any]]:
        return [getattr(self, name) for name in COLUMNS]


@dataclass(slots=True)
class LabelCounts:
    """The requests of a label by outcome; their times by bucket, which of very many labels not all have."""

    ok: int = 0
    failed: int = 0
    abandoned: int = 0
    times: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a wave, or of a part of it.

    ``errors`` are the names of the keys of ``failed``, ``first`` the instants of each one's first request in ns after
    wave start. ``labels`` (of the requests that have one) and ``finish_reasons`` are of the whole wave alone.
    ``start_ns``: when the part began; seconds are the wave's.
    """

    series: Mapping[str, Series]
    errors: tuple[str, ...] = ()
    first: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, LabelCounts] = field(default_factory=dict)
    finish_reasons: Mapping[str, int] = field(default_factory=dict)
    start_ns: int = 0

    def __getitem__(self, what: str) -> Series:
        return self.series.get(what) or Series.empty()

    def total(self, what: str) -> int:
        """All counts of a kind together."""
        return self[what].total

    @property
    def seconds(self) -> int:
        """The seconds from wave start to the last count."""
        return max((int(each.second[-1]) + 1 for each in self.series.values() if len(each.second)), default=0)

    @property
    def window(self) -> Counts:
        """The counts of the window's requests."""
        return self._each(lambda series: series.where(series.stage >= 0))

    @property
    def warmup(self) -> Counts:
        """The counts of the warm-up's requests."""
        return self.of_stage(WARMUP)

    def of_stage(self, number: int) -> Counts:
        """The counts of the requests whose arrivals were due in a stage."""
        return self._part(lambda series: series.where(series.stage == number))

    def between(self, first: int, stop: int) -> Counts:
        """The counts of some seconds: of requests that were sent in them, or over."""
        return self._part(lambda series: series.between(first, stop))

    def since(self, start_ns: int) -> Counts:
        """The same counts, of a part of the wave that began then."""
        return replace(self, start_ns=start_ns)

    def _part(self, change: Callable[[Series], Series]) -> Counts:
        return replace(self._each(change), labels={}, finish_reasons={})

    def _each(self, change: Callable[[Series], Series]) -> Counts:
        return replace(self, series={what: change(series) for what, series in self.series.items()})


def bucket_values(buckets: Int64) -> Floats:
    """The middle of each bucket; of one that has room for a single whole number, that."""
    wide = buckets.astype(np.int64)
    low, high = (((wide + step) << BUCKET_SHIFT).astype(np.uint32).view(np.float32) for step in (0, 1))
    low, high = low.astype(np.float64), high.astype(np.float64)
    values: Floats = np.where(high - low <= 1, low, (low + high) / 2)
    return values


def in_flight(counts: Counts, bins: Int64) -> Int64:
    """The requests in flight when each of these 20 ms began; what was abandoned stays."""
    over = counts["ok_at"].before(bins) + counts["failed_at"].before(bins)
    return counts["sent_at"].before(bins) - over


def check_series(series: Mapping[str, Series], errors: int) -> None:
    """Raise ValueError for counts that no wave leaves.

    They are of no kind, second or stage, of an error without a name, or not as many as others of the same requests.
    """
    for what, each in series.items():
        if what not in MOST:
            raise ValueError(f"counts of {quoted(what, 40)}")
        keys = 1 if what in SCALARS or what in SUMS else BINS if what in _BINNED else MOST_BUCKET + 1
        keys = errors if what == FAILED else keys
        bounds = {"second": (-MOST_SECOND, MOST_SECOND), "stage": (WARMUP, MOST_STAGE), "key": (0, keys - 1)}
        bounds["count"] = (-MOST_SUM if what in SUMS else 0, MOST[what])
        for name, (least, most) in bounds.items():
            values = getattr(each, name)
            if len(values) and not least <= values.min() <= values.max() <= most:
                raise ValueError(f"{what} whose {name} is from {values.min()} to {values.max()}")
    _check_outcomes(series)


def _check_outcomes(series: Mapping[str, Series]) -> None:
    nothing = np.zeros(MOST_STAGE - WARMUP + 1, np.int64)
    for outcomes, what in _AS_MANY:
        requests = sum((series[name].by_stage for name in outcomes if name in series), nothing)
        if not np.array_equal(requests, series[what].by_stage if what in series else nothing):
            raise ValueError(f"{what} is not of as many requests as {' and '.join(outcomes)}")


def slowest(records: InParts, most: int = MOST_SLOWEST) -> Records:
    """The requests of the highest latency among some, in their order; of equal ones the first."""
    kept: list[Records] = []
    for part in records.parts():
        kept = [_slowest(Records.joined([*kept, part]), most)]
    return Records.joined(kept)


def _slowest(records: Records, most: int) -> Records:
    latency = records.int("done") - records.int("sent")
    chosen = np.sort(np.argsort(-latency, kind="stable")[:most])
    mask = np.zeros(len(records), bool)
    mask[chosen] = True
    return records.where(mask)
