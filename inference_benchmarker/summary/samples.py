"""The times of a wave's requests, by the name of their distribution in a summary. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.summary.distribution import Distribution
from inference_benchmarker.summary.request_times import request_times
from inference_benchmarker.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from inference_benchmarker.records.columns import Floats, Mask, Records


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


def samples(records: Records, *, open_loop: bool) -> Iterator[tuple[str, Sample]]:
    """The sample of each time, by the name of its distribution in ``Summary``."""
    ok, abandoned = records.outcome("ok"), records.outcome("abandoned")
    build, times = records.int("build_ns"), request_times(records)
    latency = times["latency"].values
    yield "latency", Sample.of(latency, ok, abandoned)
    if open_loop:
        yield "response_time", Sample.of(times["response_time"].values, ok, abandoned)
    yield "failed_latency", Sample.of(latency, records.outcome("failed"))
    yield "lag", Sample.of(_s(records.int("sent") - build - records.int("due")), np.ones(len(records), bool))
    yield "build", Sample.of(_s(build), build > 0)
    if records.has("chunks").any() or records.has("first_token").any():
        yield from _token_samples(records, ok, abandoned)


def times(records: Records, *, open_loop: bool) -> dict[str, Any]:
    """The distribution of each time; None where there is nothing to measure."""
    names = ("latency", "response_time", "failed_latency", "lag", "build", "ttft", "itl", "tpot")
    found = {name: Distribution.of(s.measured, s.ages) for name, s in samples(records, open_loop=open_loop)}
    return {name: found.get(name) for name in names}


def _token_samples(records: Records, ok: Mask, abandoned: Mask) -> Iterator[tuple[str, Sample]]:
    times = request_times(records)
    (ttft, streamed), (tpot, spread) = times["ttft"], times["tpot"]
    yield "ttft", Sample.of(ttft, (ok | abandoned) & streamed, _waiting(records), times["latency"].values)
    yield "itl", _inter_token(records, (ok | abandoned) & streamed, abandoned & streamed)
    yield "tpot", Sample.of(tpot, ok & spread)


def _waiting(records: Records) -> Mask:
    """Abandoned streams whose first token had not come, where any came.

    Whether a request is a stream is not known before ``invoke`` has begun to yield: then it is one if all others are.
    """
    ok, abandoned = records.outcome("ok"), records.outcome("abandoned")
    is_stream, has_token = records.has("chunks"), records.has("first_token")
    if not ((ok | abandoned) & has_token).any():
        return np.zeros(len(records), bool)
    return abandoned & ~has_token & (is_stream | (is_stream | ~ok).all())


def _inter_token(records: Records, streamed: Mask, open_streams: Mask) -> Sample:
    """Every gap between tokens; the last token's age in an abandoned stream is a gap's lower bound.

    Ages below the median gap are left out: they say nothing, and would make a lower bound of every value.
    """
    gaps = records.gaps(streamed)
    typical = float(np.median(gaps)) if len(gaps) else 0.0
    waiting = _s(records.int("done") - records.int("last_token"))
    aged = open_streams & (waiting > typical)
    return Sample(gaps, streamed, waiting[aged], aged)


def _s(nanoseconds: npt.NDArray[Any]) -> Floats:
    seconds: Floats = nanoseconds / NS
    return seconds
