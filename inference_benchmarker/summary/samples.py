"""The times of a wave's requests, by the name of their distribution in a summary. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.records.columns import ROW_KEY
from inference_benchmarker.summary.gathering import gather
from inference_benchmarker.summary.request_times import request_times
from inference_benchmarker.summary.statistics.streaming_histogram import StreamingHistogram
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from inference_benchmarker.records.columns import Floats, Mask, Records
    from inference_benchmarker.records.parts import InParts

_NAMES = ("latency", "response_time", "failed_latency", "lag", "build", "ttft", "itl", "tpot")
_COLUMNS = ("outcome", "due", "sent", "done", "build_ns")
_OF_STREAMS = ("first_token", "last_token", "chunks", "tokens_out", "gaps")


@dataclass(frozen=True, slots=True)
class Sample:
    """A metric's values in seconds, and the records they are of: the measured ones, and ages that are lower bounds.

    A record has one value; of ``itl``, as many as it has gaps.
    """

    measured: Floats
    measured_in: Mask
    ages: Floats
    aged_in: Mask

    @classmethod
    def of(cls, values: Floats, measured_in: Mask, aged_in: Mask | None = None, ages: Floats | None = None) -> Sample:
        """Of a column: its values where measured, and where aged those of ``ages`` (of the same column without)."""
        aged_in = np.zeros(len(values), bool) if aged_in is None else aged_in
        return cls(values[measured_in], measured_in, (values if ages is None else ages)[aged_in], aged_in)


@dataclass(frozen=True, slots=True)
class Streams:
    """The streams of a whole wave, as far as the samples of each part of it depend on them.

    ``any``: a piece or a token came; ``timed``: the TTFT of a request counts; ``only``: all ok requests were streams.
    ``typical_gap_s``: the median gap between tokens, where the last token's age of an abandoned stream may count.
    """

    any: bool
    timed: bool
    only: bool
    typical_gap_s: float

    @classmethod
    def of(cls, records: InParts) -> Streams:
        """Those of some records."""
        seen = StreamsSeen()
        gather(records, seen)
        return seen.streams(records)


class StreamsSeen:
    """Gathers what ``Streams`` says."""

    columns = ("outcome", "chunks", "first_token")

    def __init__(self) -> None:
        self._any, self._timed, self._only, self._left_open = False, False, True, False

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        ok, abandoned = part.outcome("ok"), part.outcome("abandoned")
        is_stream, has_token = part.has("chunks"), part.has("first_token")
        self._any |= bool(is_stream.any() or has_token.any())
        self._timed |= bool(((ok | abandoned) & has_token).any())
        self._only &= bool((is_stream | ~ok).all())
        self._left_open |= bool((abandoned & has_token).any())

    def streams(self, records: InParts) -> Streams:
        """All that was gathered; of the same records the gaps are gone through, where their median is needed."""
        typical = _median_gap_s(records) if self._left_open else 0.0
        return Streams(self._any, self._timed, self._only, typical)


def _median_gap_s(records: InParts) -> float:
    gaps = StreamingHistogram()
    for part in records.parts("outcome", "first_token", "gaps"):
        gaps.add(part.gaps(_with_token(part)))
    return gaps.median or 0.0


def samples(records: Records, *, open_loop: bool, streams: Streams) -> Iterator[tuple[str, Sample]]:
    """The sample of each time in a part of a wave, by the name of its distribution in ``Summary``."""
    ok, abandoned = records.outcome("ok"), records.outcome("abandoned")
    build, times = records.int("build_ns"), request_times(records)
    latency = times["latency"].values
    yield "latency", Sample.of(latency, ok, abandoned)
    if open_loop:
        yield "response_time", Sample.of(times["response_time"].values, ok, abandoned)
    yield "failed_latency", Sample.of(latency, records.outcome("failed"))
    yield "lag", Sample.of(_s(records.int("sent") - build - records.int("due")), np.ones(len(records), bool))
    yield "build", Sample.of(_s(build), build > 0)
    if streams.any:
        yield from _token_samples(records, streams)


class TimesGathered:
    """Gathers the distribution of each time, in the open loop response times too."""

    def __init__(self, streams: Streams, *, open_loop: bool) -> None:
        self.columns = (*_COLUMNS, *(ROW_KEY if open_loop else ()), *(_OF_STREAMS if streams.any else ()))
        self._streams, self._open_loop = streams, open_loop
        self._measured = {name: StreamingHistogram() for name in _NAMES}
        self._ages: dict[str, list[Floats]] = {name: [] for name in _NAMES}

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        for name, sample in samples(part, open_loop=self._open_loop, streams=self._streams):
            self._measured[name].add(sample.measured)
            self._ages[name].append(sample.ages)

    @property
    def middle_latency_s(self) -> tuple[float, float] | None:
        """The two in the middle of the ok requests; None without any."""
        return self._measured["latency"].middle

    def distributions(self) -> dict[str, Any]:
        """Each by its name; None where there is nothing to measure. The values are let go, and nothing can follow."""
        return {name: self._measured.pop(name).distribution(_joined(self._ages[name])) for name in _NAMES}


def _token_samples(records: Records, streams: Streams) -> Iterator[tuple[str, Sample]]:
    ok, abandoned, times = records.outcome("ok"), records.outcome("abandoned"), request_times(records)
    (ttft, streamed), (tpot, spread) = times["ttft"], times["tpot"]
    yield "ttft", Sample.of(ttft, _with_token(records), _waiting(records, streams), times["latency"].values)
    yield "itl", _inter_token(records, abandoned & streamed, streams.typical_gap_s)
    yield "tpot", Sample.of(tpot, ok & spread)


def _with_token(records: Records) -> Mask:
    return (records.outcome("ok") | records.outcome("abandoned")) & records.has("first_token")


def _waiting(records: Records, streams: Streams) -> Mask:
    """Abandoned streams whose first token had not come, where any came.

    Whether a request is a stream is not known before ``invoke`` has begun to yield: then it is one if all others are.
    """
    if not streams.timed:
        return np.zeros(len(records), bool)
    return records.outcome("abandoned") & ~records.has("first_token") & (records.has("chunks") | streams.only)


def _inter_token(records: Records, left_open: Mask, typical_s: float) -> Sample:
    """Every gap between tokens; the last token's age in an abandoned stream is a gap's lower bound.

    Ages below the median gap are left out: they say nothing, and would make a lower bound of every value.
    """
    streamed = _with_token(records)
    waiting = _s(records.int("done") - records.int("last_token"))
    aged = left_open & (waiting > typical_s)
    return Sample(records.gaps(streamed), streamed, waiting[aged], aged)


def _joined(ages: list[Floats]) -> Floats:
    return np.concatenate(ages) if ages else np.zeros(0)


def _s(nanoseconds: npt.NDArray[Any]) -> Floats:
    seconds: Floats = nanoseconds / NS
    return seconds
