"""Answers that came from a cache which this wave cannot have filled. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.records.columns import ROW_KEY
from inference_benchmarker.records.user_metrics import CACHED_TOKENS, PREFIX
from inference_benchmarker.verdict.finding import Finding
from inference_benchmarker.words.wording import percent_text, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Floats, Mask, Records

_LOOKED_AT = 10_000  # requests from the wave's begin on: later ones may have been helped by these
_BLOCK = 16  # tokens: what a chat's template alone begins with is shorter


def cache_findings(facts: WaveFacts) -> Iterator[Finding]:
    """First turns with more cached tokens than any prompt and answer had that was sent before them in this wave.

    Nothing of this wave explains those, whichever prompts share what; where caches were warmed before, that does.
    """
    begun = _first_requests(facts)
    if begun is None:
        return
    sent, context, tokens, cached, is_first = begun
    order = np.argsort(sent, kind="stable")
    explained = np.concatenate([[0.0], np.maximum.accumulate(context[order])[:-1]])
    possible = (cached[order] >= _BLOCK) & (cached[order] <= tokens[order])
    known = is_first[order] & possible & (cached[order] > explained)
    if known.any():
        share = percent_text(float(cached[order][known].sum() / tokens[order][known].sum()))
        yield Finding(
            "cache_from_before",
            "warning",
            f"{share} of the tokens of {pluralize(int(known.sum()), 'first turn', 'first turns')} were cached, "
            "although nothing as long was sent before in this wave",
            "0",
            "An earlier run filled the server's cache: TTFT and throughput are those of a warm cache. Leave --seed "
            "out, or give --cache fresh.",
        )


def _first_requests(facts: WaveFacts) -> tuple[Floats, Floats, Floats, Floats, Mask] | None:
    """The first requests sent: when, their tokens with the answer's, those of the prompt, the cached, and first turns.

    A request whose tokens are unknown may have been of any length. Those that may have been sent after one that is not
    looked at are left out.
    """
    records = facts.records
    if facts.counts is not None or facts.warmed is not None or CACHED_TOKENS not in records.metrics:
        return None
    if len(facts.warmup) and CACHED_TOKENS not in facts.warmup.metrics:
        return None
    columns = (*ROW_KEY, "due", "sent", "tokens_in", "tokens_out", PREFIX + CACHED_TOKENS)
    first = records.between(0, _LOOKED_AT)
    parts = [part for some in (facts.warmup, first) for part in some.parts(*columns)]
    until = float(parts[-1].int("due")[parts[-1].int("turn") <= 1].max()) if len(records) > _LOOKED_AT else np.inf
    sent, context, tokens, cached, is_first = map(np.concatenate, zip(*map(_of_part, parts), strict=True))
    seen = sent < until
    return sent[seen], context[seen], tokens[seen], cached[seen], is_first[seen].astype(bool)


def _of_part(part: Records) -> tuple[Floats, ...]:
    sent = part.int("sent").astype(np.float64)
    known = part.has("tokens_in")
    tokens = np.where(known, part.int("tokens_in"), 0).astype(np.float64)
    answered = np.where(part.has("tokens_out"), part.int("tokens_out"), 0)
    context = np.where(known, tokens + answered, np.inf)
    cached = np.nan_to_num(part.metric(CACHED_TOKENS)) if CACHED_TOKENS in part.metrics else np.zeros(len(sent))
    is_first = ~part.has("turn") | (part.int("turn") <= 1)
    return sent, context, tokens, cached, is_first.astype(np.float64)
