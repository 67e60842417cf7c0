"""The tokens of a request at the answer, as the server reported them: what a million of them costs, and their spread.

Counted pieces are none: how many tokens a piece has may differ between two servers. Pure.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.records.user_metrics import CACHED_TOKENS, PREFIX
from inference_benchmarker.summary.gathering import gather
from inference_benchmarker.summary.request_times import has_usage
from server_capacity.results.types.capacity import PerRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inference_benchmarker.records.columns import Records
    from inference_benchmarker.records.parts import InParts
    from inference_benchmarker.wave.wave import Wave


def tokens_per_request(waves: Iterable[Wave]) -> PerRequest | None:
    """The means over the successful requests of the waves; None where no output was reported."""
    sums = _Sums()
    for wave in waves:
        gather(wave.records, sums.of(wave.records))
    return sums.means()


class _Sums:
    """The sums of what was reported; ``with_input``: of so many requests the input, ``with_cached``: what of it was."""

    def __init__(self) -> None:
        self.requests = self.with_input = self.with_cached = 0
        self.output = self.squares = self.input = self.cached = 0.0

    def of(self, records: InParts) -> _Gatherer:
        """A gatherer of some records, which may lack the column of cached tokens."""
        return _Gatherer(self, with_cached=CACHED_TOKENS in records.metrics)

    def means(self) -> PerRequest | None:
        """The means; requests that report no cached tokens, where others do, had none."""
        if not self.requests:
            return None
        mean = self.output / self.requests
        return PerRequest(
            self.requests,
            input=self.input / self.with_input if self.with_input else None,
            cached=self.cached / self.with_input if self.with_cached and self.with_input else None,
            output=mean,
            output_sd=math.sqrt(max(self.squares / self.requests - mean * mean, 0.0)),
        )


class _Gatherer:
    """Adds the tokens of successful requests to the sums."""

    def __init__(self, sums: _Sums, *, with_cached: bool) -> None:
        self._sums = sums
        cached = [PREFIX + CACHED_TOKENS] if with_cached else []
        self.columns = ("outcome", "chunks", "tokens_in", "tokens_out", *cached)

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        sums, ok = self._sums, part.outcome("ok")
        output = part.int("tokens_out")[ok & has_usage(part)].astype(np.float64)
        sums.requests += len(output)
        sums.output += float(output.sum())
        sums.squares += float((output * output).sum())
        has_input = ok & part.has("tokens_in")
        given = part.int("tokens_in")[has_input]
        sums.with_input += len(given)
        sums.input += float(given.sum())
        if CACHED_TOKENS in part.metrics:
            cached = part.metric(CACHED_TOKENS)[has_input]
            possible = (cached >= 0) & (cached <= given)  # nan is none
            sums.with_cached += int(np.count_nonzero(possible))
            sums.cached += float(cached[possible].sum())
