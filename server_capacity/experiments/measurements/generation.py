"""Counts the output of a search: tokens a second, and the requests of each label, stretch by stretch. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.records.columns import ROW_KEY
from inference_benchmarker.summary.request_times import has_usage, output_tokens
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Int64, Records
    from server_capacity.experiments.measurements.completions import Span

_COLUMNS = (*ROW_KEY, "due", "done", "outcome", "label", "chunks", "tokens_out")


@dataclass(slots=True)
class Generated:
    """A stretch: output tokens a second of what was answered in it, and the requests that were due in it by label.

    ``tokens_per_s`` None where nothing generates.
    """

    tokens_per_s: float | None = None
    labels: dict[str, int] = field(default_factory=dict)


def generated(wave: WaveFacts, spans: Mapping[int, Span]) -> dict[int, Generated]:
    """Each stretch of the wave by its number; ``spans`` in unix seconds, in order of time, none beside the other."""
    numbers = list(spans)
    start = wave.window.start_unix_ns / NS
    edges = np.array([[span.start - start, span.end - start] for span in spans.values()]).reshape(-1, 2) * NS
    tokens = np.zeros(len(numbers), np.int64)
    any_tokens = False
    found = {number: Generated() for number in numbers}
    for part in wave.records.parts(*_COLUMNS):
        has = part.outcome("ok") & (has_usage(part) | part.has("chunks"))
        any_tokens |= bool(has.any())
        done = _places(edges, part.int("done"))
        inside = has & (done >= 0)
        tokens += np.bincount(done[inside], output_tokens(part)[inside], len(numbers)).astype(np.int64)
        _add_labels(part, _places(edges, part.arrived), [found[number] for number in numbers])
    for number, total in zip(numbers, tokens.tolist(), strict=True):
        seconds = spans[number].end - spans[number].start
        found[number].tokens_per_s = total / seconds if any_tokens and seconds > 0 else None
    return found


def _places(edges: np.ndarray, instants: Int64) -> Int64:
    """The place of the span that each instant lies in; -1 where it lies in none."""
    place = np.searchsorted(edges[:, 0], instants, "right") - 1
    inside = (place >= 0) & (instants < edges[np.maximum(place, 0), 1]) if len(edges) else np.zeros(len(instants), bool)
    return np.where(inside, place, -1)


def _add_labels(part: Records, places: Int64, found: list[Generated]) -> None:
    codes, names = part.coded("label")
    named = np.flatnonzero((codes >= 0) & (places >= 0))
    if not len(named) or not any(names):
        return
    pairs, counts = np.unique(np.stack([places[named], codes[named]]), axis=1, return_counts=True)
    for (place, code), count in zip(pairs.T.tolist(), counts.tolist(), strict=True):
        if names[code]:
            labels = found[place].labels
            labels[names[code]] = labels.get(names[code], 0) + count
