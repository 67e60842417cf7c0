"""Counts and times by name: the requests of each label and of each error, and why answers ended. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.records.columns import ROW_KEY
from inference_benchmarker.summary.gathering import Numbering, summed
from inference_benchmarker.summary.request_times import request_times
from inference_benchmarker.summary.statistics.grouped_histogram import GroupedHistogram
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inference_benchmarker.records.columns import Floats, Int64, Records
    from inference_benchmarker.summary.statistics.distribution import Distribution


@dataclass(frozen=True, slots=True)
class LabelRow:
    """The requests of one label; ``ttft``: None where none of them was a stream."""

    label: str
    sent: int
    ok: int
    failed: int
    latency: Distribution | None
    response_time: Distribution | None
    ttft: Distribution | None = None


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """The failed requests of one error key; ``first_s`` is when the first of them was over."""

    key: str
    count: int
    first_s: float
    texts: tuple[str, ...]


class LabelsSeen:
    """Gathers whether there are labels to tell apart: ``named``.

    Of a failed request the model that was asked is known, which is no row where no answer names one.
    """

    columns = ("outcome", "label")

    def __init__(self) -> None:
        self._any_ok = self._answered = self._asked = False

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        if self._answered:
            return
        codes, names = part.coded("label")
        ok = part.outcome("ok")
        self._any_ok |= bool(ok.any())
        if any(names):
            self._answered |= _any_name(codes[ok], names)
            self._asked |= _any_name(codes, names)

    @property
    def named(self) -> bool:
        """Tells whether any request that was ok has a label, or any at all where none was ok."""
        return self._answered if self._any_ok else self._asked


class LabelsGathered:
    """Gathers the requests of each label, in the open loop with their response times."""

    def __init__(self, *, open_loop: bool) -> None:
        self.columns = ("outcome", "label", "sent", "done", "first_token", *((*ROW_KEY, "due") if open_loop else ()))
        self._numbering = Numbering()
        self._counts = {name: np.zeros(0, np.int64) for name in ("sent", "ok", "failed")}
        self._times = {name: _OfLabels() for name in ("latency", *(("response_time",) if open_loop else ()))}
        self._ttft = GroupedHistogram()

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        labels = self._numbering.of(*part.coded("label"))
        ok, failed, abandoned = map(part.outcome, ("ok", "failed", "abandoned"))
        of_ok, of_abandoned = labels[ok], labels[abandoned]
        for name, some in (("sent", labels), ("ok", of_ok), ("failed", labels[failed])):
            self._counts[name] = summed(self._counts[name], np.bincount(some))
        for name, each in self._times.items():
            values = request_times(part)[name].values
            each.measured.add(of_ok, values[ok])
            each.aged.append((of_abandoned, values[abandoned]))
        ttft, streamed = request_times(part)["ttft"]
        begun = (ok | abandoned) & streamed  # it is known even where the rest of the answer did not come
        self._ttft.add(labels[begun], ttft[begun])

    def rows(self) -> tuple[LabelRow, ...]:
        """A row for each label, the most frequent first."""
        names = self._numbering.names
        counts = {name: summed(found, np.zeros(len(names), np.int64)) for name, found in self._counts.items()}
        times = {name: each.distributions(len(names)) for name, each in self._times.items()}
        ttft = self._ttft.distributions(len(names), np.zeros(0, np.int64), np.zeros(0))
        rows = [
            LabelRow(
                label=name or "(none)",
                **{of: int(found[number]) for of, found in counts.items()},
                latency=times["latency"][number],
                response_time=times["response_time"][number] if "response_time" in times else None,
                ttft=ttft[number],
            )
            for number, name in enumerate(names)
            if counts["sent"][number]
        ]
        return tuple(sorted(rows, key=lambda row: (-row.sent, row.label)))


class _OfLabels:
    """One time of each label's requests."""

    def __init__(self) -> None:
        self.measured = GroupedHistogram()
        self.aged: list[tuple[Int64, Floats]] = []

    def distributions(self, number: int) -> list[Distribution | None]:
        labels, ages = (np.concatenate(column) for column in zip(*self.aged, strict=True))
        return self.measured.distributions(number, labels, ages)


class ErrorsGathered:
    """Gathers the failed requests of each error key."""

    columns = ("error", "done")

    def __init__(self) -> None:
        self._numbering = Numbering()
        self._counts = np.zeros(0, np.int64)
        self._first_ns = np.zeros(0)

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        codes, names = part.coded("error")
        failed = np.flatnonzero(codes >= 0)
        if not len(failed):
            return
        keys = self._numbering.of(codes[failed], names)
        self._counts = summed(self._counts, np.bincount(keys))
        missing = len(self._counts) - len(self._first_ns)
        self._first_ns = np.pad(self._first_ns, (0, missing), constant_values=np.inf)
        np.minimum.at(self._first_ns, keys, part.int("done")[failed].astype(np.float64))

    def rows(self, texts: Mapping[str, Sequence[str]]) -> tuple[ErrorRow, ...]:
        """A row for each key with its first texts, the most frequent first."""
        counted = zip(self._numbering.names, self._counts.tolist(), self._first_ns.tolist(), strict=False)
        rows = [ErrorRow(key, count, first / NS, tuple(texts.get(key, ()))) for key, count, first in counted if count]
        return tuple(sorted(rows, key=lambda row: (-row.count, row.key)))


class FinishReasonsGathered:
    """Gathers the number of ok requests by the reason for which their answers ended."""

    columns = ("outcome", "finish_reason")

    def __init__(self) -> None:
        self._numbering = Numbering()
        self._counts = np.zeros(0, np.int64)

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        codes, names = part.coded("finish_reason")
        if names:
            of_ok = codes[part.outcome("ok") & (codes >= 0)]
            self._counts = summed(self._counts, np.bincount(self._numbering.of(of_ok, names)))

    def counts(self) -> dict[str, int]:
        """Each reason's, the most frequent first."""
        found = zip(self._numbering.names, self._counts.tolist(), strict=False)
        return dict(sorted((pair for pair in found if pair[1]), key=lambda pair: (-pair[1], pair[0])))


def _any_name(codes: Int64, names: Sequence[str]) -> bool:
    counts = np.bincount(codes + 1, minlength=len(names) + 1)[1:]
    return any(name and count for name, count in zip(names, counts.tolist(), strict=True))
