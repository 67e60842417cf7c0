"""The engine that a search measured, fitted to the streams of its waves. Pure but for the waves it is given."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inference_benchmarker.embedded.llm.fit import fit
from inference_benchmarker.embedded.llm.measured import streams_of
from inference_benchmarker.embedded.llm.rules import BASE, PROFILES
from inference_benchmarker.embedded.llm.streams import Streams
from server_capacity.results.types.users_plan import FittedEngine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.embedded.llm.rules import EngineRules
    from inference_benchmarker.facts.wave_facts import WaveFacts

_APART_MS = 60_000.0


class Fitted(NamedTuple):
    """The rules of the engine, the time that a client sees beyond them in each turn, and what they rest on."""

    rules: EngineRules
    way_s: float
    engine: FittedEngine


def fitted(waves: Sequence[WaveFacts], kv_tokens: int | None) -> Fitted:
    """The engine behind these waves of one search; BenchmarkError where they are not those of one engine."""
    streams = _together([streams_of(wave) for wave in waves])
    found = fit(streams)
    usual = PROFILES[BASE]
    room = kv_tokens or usual.kv_tokens
    (square, each, base), (a, b, c, d) = ((part.value for part in parts) for parts in found.rules(room))
    rules = replace(
        usual,
        kv_tokens=room,
        prefill_ms=(square, each, base),
        step_ms=(a, b, c, d),
    )
    engine = FittedEngine(
        prefill_ms=list(rules.prefill_ms),
        step_ms=list(rules.step_ms),
        kv_tokens=rules.kv_tokens,
        way_ms=found.way.value,
        streams=found.streams,
        idle=found.idle,
        decodes=found.decodes,
        prompt=int(streams.computed.max()),
    )
    return Fitted(rules, found.way.value / 1000, engine)


def _together(waves: Sequence[Streams]) -> Streams:
    """The streams of waves that followed each other, as those of one: none is under way when the next wave begins."""
    moved, end = [], 0.0
    for wave in waves:
        by = end - float(wave.sent.min())
        times = {name: getattr(wave, name) + by for name in ("sent", "first", "last")}
        moved.append(replace(wave, **times))
        end = float(moved[-1].last.max()) + _APART_MS
    return Streams(*(np.concatenate([getattr(each, name) for each in moved]) for name in Streams.__slots__))
