"""The pieces of a wave's streams, which may be no tokens, or come at no speed of a user. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.summary.gathering import gather
from inference_benchmarker.summary.request_times import TIME_COLUMNS, has_usage, request_times
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Records

COUNTED, TOGETHER = "tokens are counted pieces", "pieces arrive together"
_MOST_WITHOUT_USAGE = 0.05
_LEAST_SHARE, _LEAST_S = 0.05, 1e-3
"""Less of the latency than this share from the first piece to the last, and less than this for each token: a buffer was
emptied. After a long prompt or a queue the share alone is as small."""


@dataclass(slots=True)
class Pieces:
    """Gathers the number of successful requests that generated anything, and of streams of several pieces.

    ``without_usage``, ``at_once``: how many of these have counted tokens, and have pieces that arrive together.
    """

    generated: int = 0
    without_usage: int = 0
    streams: int = 0
    at_once: int = 0
    columns = tuple(dict.fromkeys(("outcome", *TIME_COLUMNS["latency"], *TIME_COLUMNS["tpot"])))

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        ok, reported = part.outcome("ok"), has_usage(part)
        self.generated += int(np.count_nonzero(ok & (reported | part.has("chunks"))))
        self.without_usage += int(np.count_nonzero(ok & ~reported & part.has("chunks")))
        times, latency = request_times(part)["tpot"], request_times(part)["latency"].values
        span = (part.int("last_token") - part.int("first_token")) / NS
        at_once = (span < _LEAST_SHARE * latency) & (times.values < _LEAST_S)
        self.streams += int(np.count_nonzero(ok & times.has))
        self.at_once += int(np.count_nonzero(ok & times.has & at_once))

    @property
    def are_counted(self) -> bool:
        """Tells whether they stand for tokens that the server did not report."""
        return self.without_usage > _MOST_WITHOUT_USAGE * self.generated

    @property
    def are_reported(self) -> bool:
        """Tells whether the server reported the tokens."""
        return bool(self.generated) and not self.are_counted

    @property
    def arrive_together(self) -> bool:
        """Tells whether most answers come all at once, as from a proxy with a buffer."""
        return self.at_once > self.streams / 2


def pieces_of(facts: WaveFacts) -> Pieces:
    """Those of a wave; none where requests were counted instead of recorded."""
    found = Pieces()
    if facts.counts is None:
        gather(facts.records, found)
    return found
