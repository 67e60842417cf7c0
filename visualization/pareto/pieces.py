"""The pieces of a wave's streams, which may be no tokens, or come at no speed of a user. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.records.user_metrics import PREFIX, REASONING_TOKENS
from inference_benchmarker.summary.gathering import gather
from inference_benchmarker.summary.request_times import TIME_COLUMNS, has_usage, output_tokens, request_times
from inference_benchmarker.words.units import NS
from visualization.comparison.blocks import gap_counts

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Floats, Int64, Mask, Records

COUNTED, TOGETHER = "tokens are counted pieces", "tokens arrive together"
HIDDEN = "reasoning is not streamed"
_MOST_WITHOUT_USAGE = _MOST_HIDDEN = 0.05
_LEAST_SHARE, _LEAST_S = 0.05, 1e-3
"""Less of the latency than this share from the first piece to the last, and less than this for each token: a buffer was
emptied. After a long prompt or a queue the share alone is as small."""
_MOST_AT_FIRST = 0.25
"""Of the tokens after the first one those that may come with the first piece: the speed counts them as made later."""
_LUMP = 0.1
"""A piece comes with the first one in less than this share of the stream, and in less than ``_LEAST_S`` for each."""
_ROWS = 1 << 12  # whose gaps are in memory at a time


_COLUMNS = ("outcome", *TIME_COLUMNS["latency"], *TIME_COLUMNS["tpot"], "gaps", "first_answer")


@dataclass(slots=True)
class Pieces:
    """Gathers the number of successful requests that generated anything, and of streams of several pieces.

    ``without_usage``: how many have counted tokens; ``at_once``, ``hidden``: how many streams have tokens that arrive
    together, and tokens of reasoning that no piece has.
    """

    generated: int = 0
    without_usage: int = 0
    streams: int = 0
    at_once: int = 0
    hidden: int = 0
    columns: tuple[str, ...] = _COLUMNS

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        ok, reported = part.outcome("ok"), has_usage(part)
        self.generated += int(np.count_nonzero(ok & (reported | part.has("chunks"))))
        self.without_usage += int(np.count_nonzero(ok & ~reported & part.has("chunks")))
        times, latency = request_times(part)["tpot"], request_times(part)["latency"].values
        span = (part.int("last_token") - part.int("first_token")) / NS
        hidden = _hidden(part)
        at_once = (span < _LEAST_SHARE * latency) & (times.values < _LEAST_S)
        at_once |= _share_at_first(part, output_tokens(part) - hidden) > _MOST_AT_FIRST
        self.streams += int(np.count_nonzero(ok & times.has))
        self.at_once += int(np.count_nonzero(ok & times.has & at_once))
        self.hidden += int(np.count_nonzero(ok & times.has & (hidden > 0)))

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
        """Tells whether most answers, or large parts of them, come at once, as from a proxy with a buffer."""
        return self.at_once > self.streams / 2

    @property
    def hide_reasoning(self) -> bool:
        """Tells whether tokens count that were generated before the first piece, and are in none."""
        return self.hidden > _MOST_HIDDEN * self.streams


def pieces_of(facts: WaveFacts) -> Pieces:
    """Those of a wave; none where requests were counted instead of recorded."""
    reasoning = [PREFIX + REASONING_TOKENS] if REASONING_TOKENS in facts.records.metrics else []
    found = Pieces(columns=(*_COLUMNS, *reasoning))
    if facts.counts is None:
        gather(facts.records, found)
    return found


def _hidden(part: Records) -> Floats:
    """The tokens of reasoning of each request whose pieces are at most its other tokens, and show no reasoning."""
    tokens = output_tokens(part)
    if REASONING_TOKENS not in part.metrics:
        return np.zeros(len(part))
    reasoning = part.metric(REASONING_TOKENS)  # nan is none
    counts: Mask = (reasoning > _MOST_HIDDEN * tokens) & (part.int("chunks") + reasoning <= tokens)
    return np.where(counts & ~part.has("first_answer"), reasoning, 0.0)


def _share_at_first(part: Records, tokens: Floats) -> Floats:
    """The share of the tokens after the first one that came with the first piece, if each piece has as many."""
    pieces = np.maximum(part.int("chunks"), 1)
    slices = [_with_first(part.between(row, row + _ROWS)) for row in range(0, len(part), _ROWS)]
    share: Floats = (tokens * np.concatenate(slices) / pieces - 1) / np.maximum(tokens - 1, 1)
    return share


def _with_first(part: Records) -> Int64:
    """The number of pieces that came with the first one, which is one of them."""
    counts = gap_counts(part)
    gaps, rows = part.gaps(np.ones(len(part), bool)), np.repeat(np.arange(len(part)), counts)
    begins = np.cumsum(counts) - counts
    until = np.append(0.0, np.cumsum(gaps))
    since = until[1:] - until[begins][rows]
    place = np.arange(1, len(gaps) + 1) - begins[rows]
    span = (part.int("last_token") - part.int("first_token"))[rows] / NS
    comes_along: Mask = (since < _LUMP * span) & (since < _LEAST_S * place)
    return 1 + np.bincount(rows[comes_along], minlength=len(part))
