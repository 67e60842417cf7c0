"""Sums and percentiles of each second of a wave, as its parts come. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.records.ordered import ReorderBuffer
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    import numpy.typing as npt

    from inference_benchmarker.records.columns import Floats, Int64, Records

_SHIFT = 40
"""A value of less than 18 minutes, in ns, has its second before it in one whole number, by which both are sorted."""
_MASK = (1 << _SHIFT) - 1


class SecondSums:
    """A sum for each second from 0 on: the number of instants in it, or of what they weigh."""

    def __init__(self) -> None:
        self._sums = np.zeros(0)

    def add(self, seconds: Int64, weights: npt.NDArray[Any] | None = None) -> None:
        """Take in some more."""
        if len(seconds) and int(seconds.min()) < 0:
            after = seconds >= 0
            seconds, weights = seconds[after], weights if weights is None else weights[after]
        more = np.bincount(seconds, weights)
        if len(more) > len(self._sums):
            self._sums = np.pad(self._sums, (0, len(more) - len(self._sums)))
        self._sums[: len(more)] += more

    def first(self, seconds: int) -> Floats:
        """Those of so many seconds."""
        return np.pad(self._sums[:seconds], (0, max(seconds - len(self._sums), 0)))

    def column(self, seconds: int) -> list[str]:
        """The same as text."""
        return [str(int(total)) for total in self.first(seconds).tolist()]


class InFlightTime:
    """The time that requests were in flight, summed over them, in each second from 0 on."""

    def __init__(self) -> None:
        self._since = {"sent": (SecondSums(), SecondSums()), "done": (SecondSums(), SecondSums())}

    def add(self, records: Records) -> None:
        """Take in the requests of a part; it has ``sent`` and ``done``."""
        for name in self._since:
            self.add_instants(name, records.int(name))

    def add_instants(self, name: str, instants: Int64, counts: npt.NDArray[Any] | None = None) -> None:
        """Take in instants at which requests were ``sent`` or ``done``; ``counts``: how many at each."""
        numbers, rests = self._since[name]
        instants = np.maximum(instants, 0)
        second = instants // NS
        rest = (second + 1) * NS - instants
        numbers.add(second, counts)
        rests.add(second, rest if counts is None else rest * counts)

    def first(self, seconds: int) -> list[int]:
        """That of each of so many seconds, in ns."""
        sent, done = (self._time_since(*sums, seconds) for sums in self._since.values())
        return [int(nanoseconds) for nanoseconds in sent - done]

    @staticmethod
    def _time_since(counts: SecondSums, rests: SecondSums, seconds: int) -> Int64:
        """The part of each second that lies after an instant, summed over the instants."""
        counted, rest = (sums.first(seconds).astype(np.int64) for sums in (counts, rests))
        since: Int64 = (np.cumsum(counted) - counted) * NS + rest
        return since


class SecondPercentiles:
    """Percentiles, as ``Distribution`` has them, of the values in each second; whole percents, values in ns."""

    def __init__(self, *percents: int) -> None:
        self._percents = percents
        self._buffer = ReorderBuffer()
        self._wide = False
        self._seconds: list[Int64] = []
        self._values: list[npt.NDArray[Any]] = []

    def add(self, seconds: Int64, values: Int64, watermark_ns: int | None) -> None:
        """Values in some seconds, of which no later one is before the watermark's."""
        if not self._wide and len(values) and not 0 <= int(values.min()) <= int(values.max()) <= _MASK:
            self._widen()
        keys = self._keys(seconds, values)
        self._take(self._buffer.push(keys, None if watermark_ns is None else self._begin(watermark_ns // NS)))

    def add_counts(self, seconds: Int64, values: Floats, counts: Int64) -> None:
        """Values in ns by how often they came in a second, all of a second at once; a count may be taken back."""
        order = np.lexsort((values, seconds))
        seconds, values, sums = seconds[order], values[order], np.cumsum(counts[order])
        ends = _ends(seconds) | _ends(values)
        seconds, values, sums = seconds[ends], values[ends], sums[ends]
        last = np.flatnonzero(_ends(seconds))
        before = np.append(0, sums[last])[:-1]
        some = sums[last] > before
        last, before = last[some], before[some]
        ranks = (before - (-percent * (sums[last] - before) // 100) for percent in self._percents)
        self._seconds.append(seconds[last])
        self._values.append(np.stack([values[np.searchsorted(sums, rank)] for rank in ranks]))

    def columns(self, seconds: int) -> list[list[str]]:
        """Each percentile in seconds, as text, for so many seconds; empty where there are no values."""
        columns = [[""] * seconds for _ in self._percents]
        for many, values in zip(self._seconds, self._values, strict=True):
            for column, found in zip(columns, (values / NS).tolist(), strict=True):
                for second, value in zip(many.tolist(), found, strict=True):
                    if 0 <= second < seconds:
                        column[second] = f"{value:.6f}"
        return columns

    def _keys(self, seconds: Int64, values: Int64) -> npt.NDArray[Any]:
        return seconds + 1j * values if self._wide else seconds << _SHIFT | values

    def _begin(self, second: int) -> complex:
        """A key that none of the second is below."""
        return complex(second, -math.inf) if self._wide else second << _SHIFT

    def _widen(self) -> None:
        """Go on with complex numbers, sorted by both of their parts: slower, and they hold any value."""
        rest = self._buffer.push(np.zeros(0, np.int64), None)
        self._buffer, self._wide = ReorderBuffer(), True
        self._buffer.push(self._keys(rest >> _SHIFT, rest & _MASK), -math.inf)

    def _take(self, keys: npt.NDArray[Any]) -> None:
        """The percentiles of some whole seconds, whose keys are in order."""
        if not len(keys):
            return
        seconds = keys.real.astype(np.int64) if self._wide else keys >> _SHIFT
        begins = np.flatnonzero(np.append(True, seconds[1:] != seconds[:-1]))
        counts = np.diff(np.append(begins, len(keys)))
        found = [keys[begins - (-percent * counts // 100) - 1] for percent in self._percents]
        self._seconds.append(seconds[begins])
        self._values.append(np.stack([each.imag if self._wide else each & _MASK for each in found]))


def _ends(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """The places after which another value comes."""
    return np.append(values[1:] != values[:-1], True)[: len(values)]
