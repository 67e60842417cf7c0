"""The conversations of a search as a simulation sends them again: lengths, cached tokens and think times. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inference_benchmarker.records.user_metrics import CACHED_TOKENS
from inference_benchmarker.summary.request_times import output_tokens
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.records.columns import Records


class Turn(NamedTuple):
    """Tokens of the prompt, those at its beginning that the cache had, and of the answer; the think time before it."""

    prompt: int
    cached: int
    output: int
    think_s: float


Session = tuple[Turn, ...]


def sessions_in(part: Records) -> Iterator[Session]:
    """The completed sessions all of whose turns have token counts; rows of a session follow each other."""
    if not len(part) or not part.has("tokens_in").any():
        return
    index, completed = part.int("index"), part.named("ended", "completed")
    prompts, outputs = part.int("tokens_in"), output_tokens(part)
    cached = part.metric(CACHED_TOKENS) if CACHED_TOKENS in part.metrics else np.zeros(len(part))
    cached = np.clip(np.nan_to_num(cached), 0, np.maximum(prompts - 1, 0))
    thinks = np.where(part.has("think_ns"), part.int("think_ns"), 0) / NS
    known = part.outcome("ok") & part.has("tokens_in") & (prompts > 0) & (outputs > 0)
    ends = np.flatnonzero(np.append(index[1:] != index[:-1], True)) + 1
    for begin, end in zip(np.append(0, ends[:-1]), ends, strict=True):
        if completed[end - 1] and known[begin:end].all():
            yield tuple(
                Turn(int(prompts[row]), int(cached[row]), int(outputs[row]), float(thinks[row]))
                for row in range(begin, end)
            )
