"""The streams of a wave, as a fit of the engine that served them needs them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.embedded.llm.streams import Streams
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records.user_metrics import CACHED_TOKENS
from inference_benchmarker.summary.request_times import output_tokens
from inference_benchmarker.words.wording import percent_text

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Records

MOST_OTHERS = 0.05
"""Of the requests: the engine served those that failed, too, and nobody knows for how long."""
_NS_PER_MS = 1e6


def streams_of(facts: WaveFacts) -> Streams:
    """The streams of at least two tokens, the warm-up's, too; BenchmarkError where the wave has none that tell."""
    if facts.counts is not None:
        raise BenchmarkError("A fit needs the record of each request.", "Send the wave without --records none.")
    parts = [part for records in (facts.warmup, facts.records) for part in records.parts()]
    sent = sum(len(part) for part in parts)
    if not any((part.int("chunks") >= 2).any() for part in parts):
        raise BenchmarkError(
            "No request streamed its answer in several pieces, so nobody knows when its tokens came.",
            "Send a wave to a language model that streams: a URL that ends in /v1.",
        )
    if not any(part.has("tokens_in").any() for part in parts):
        raise BenchmarkError(
            "The server counted no input tokens, and what a prompt takes depends on its length.",
            "Let it send its usage with each stream (stream_options: include_usage).",
        )
    streams = [_streams(part) for part in parts]
    found = Streams(*(np.concatenate([getattr(each, name) for each in streams]) for name in Streams.__slots__))
    if len(found) < (1 - MOST_OTHERS) * sent:
        others = percent_text(1 - len(found) / sent)
        raise BenchmarkError(
            f"{others} of the requests failed, or have no stream or no token counts, and the engine was busy with "
            f"them, too: at most {percent_text(MOST_OTHERS)} may."
        )
    return found


def _streams(part: Records) -> Streams:
    prompt = part.int("tokens_in").astype(np.float64)
    cached = part.metric(CACHED_TOKENS) if CACHED_TOKENS in part.metrics else np.zeros(len(part))
    computed = prompt - np.clip(np.nan_to_num(cached), 0, np.maximum(prompt - 1, 0))
    sent, first, last = (part.int(name) / _NS_PER_MS for name in ("sent", "first_token", "last_token"))
    output = output_tokens(part).astype(np.float64)
    known = part.outcome("ok") & (part.int("chunks") >= 2) & part.has("tokens_in") & (last > first)
    return Streams(sent, first, last, prompt, computed, output).take(known)
