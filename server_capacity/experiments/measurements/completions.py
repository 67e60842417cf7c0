"""The requests of a search that were over by each instant, whichever of its waves sent them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Floats, Records

BIN_NS = NS // 4
"""Requests are counted in bins that begin at whole seconds of the wall clock, where the buckets of metrics do."""


@dataclass(frozen=True, slots=True)
class Span:
    """A time at one rate, unix seconds: a stretch, or a whole confirmation wave."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Completions:
    """The number of requests that were answered well, and of those that failed, by each of ``edges`` (unix seconds)."""

    edges: Floats
    good: Floats
    failed: Floats

    @classmethod
    def of(cls, waves: Sequence[WaveFacts]) -> Completions:
        """Those of all waves, their warm-ups included; abandoned ones were never over."""
        begins = [wave.window.start_unix_ns - wave.plan.warmup_ns for wave in waves]
        first = min(begins, default=0) // BIN_NS
        last = max((wave.window.start_unix_ns + wave.window.duration_ns for wave in waves), default=0) // BIN_NS
        counts = np.zeros((2, last - first + 1))
        for wave in waves:
            for records in (wave.warmup, wave.records):
                for part in records.parts("done", "outcome"):
                    counts += _ended_by_bin(part, wave.window.start_unix_ns - first * BIN_NS, counts.shape[1])
        edges = (first + np.arange(counts.shape[1] + 1)).astype(np.float64) * (BIN_NS / NS)
        begun = np.zeros((2, 1))
        good, failed = np.concatenate((begun, counts.cumsum(axis=1)), axis=1)
        return cls(edges, good, failed)

    def between(self, start: float, end: float) -> tuple[float, float]:
        """The numbers of those that were answered well, and that failed, from ``start`` to ``end`` (unix seconds)."""
        good, failed = (np.diff(np.interp((start, end), self.edges, each)) for each in (self.good, self.failed))
        return float(good[0]), float(failed[0])


def _ended_by_bin(part: Records, offset_ns: int, bins: int) -> Floats:
    places = np.clip((part.int("done") + offset_ns) // BIN_NS, 0, bins - 1)
    return np.array([np.bincount(places[part.outcome(name)], minlength=bins) for name in ("ok", "failed")], float)
