"""The requests at the answer by kind, each against the limits: by label, and by the length of their inputs. Pure."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.summary.gathering import Numbering, summed
from inference_benchmarker.summary.samples import Streams, samples
from inference_benchmarker.summary.statistics.grouped_histogram import GroupedHistogram
from inference_benchmarker.words.units import NS
from server_capacity.experiments.measurements.counting import shown_metric
from server_capacity.experiments.measurements.judging import columns_of, judged, timed_rows
from server_capacity.experiments.measurements.tokens_per_request import tokens_per_request
from server_capacity.results.types.capacity import Kind, Tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Floats, Int64, Mask, Records
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.results.types.capacity import SessionsAt
    from server_capacity.search.limits import Limit

MOST_KINDS = 50
"""Of more labels those with the most requests are shown."""

_LENGTHS = [str(2**bits) if bits == 0 else f"{2**bits:,} to {2 ** (bits + 1) - 1:,}" for bits in range(63)]
"""Inputs of so many tokens: each bucket is twice as wide as the one before."""


def tokens_at_answer(waves: Sequence[Wave], limits: Sequence[Limit], at: SessionsAt | None = None) -> Tokens | None:
    """The ``tokens`` of capacity.json, of the waves at the interval's lower end; None where it is unknown.

    ``at``: their load in other units, of sessions. Its rates are those here, too, so that a report has one load.
    """
    by_label, by_length = Kinds(limits), Kinds(limits)
    for wave in waves:
        streams = Streams.of(wave.records)
        for part in wave.records.parts(*columns_of(streams, wave.plan.goodput), "label", "tokens_in"):
            codes, names = part.coded("label")
            by_label.add(wave, part, streams, by_label.numbering.of(codes, names))
            lengths = by_length.numbering.of(_bits(part), _LENGTHS)
            by_length.add(wave, part, streams, lengths, part.has("tokens_in") & (part.int("tokens_in") > 0))
    turns_per_s = None if at is None else at.turns_per_s
    seconds = by_label.sent / turns_per_s if turns_per_s else sum(_seconds(wave) for wave in waves)
    tokens = [wave.summary.tokens for wave in waves]
    rates = [each.tokens_out_per_s for each in tokens if each is not None and each.tokens_out_per_s is not None]
    labels = [row for row in by_label.rows(seconds) if row.name]
    known_lengths = sorted(by_length.rows(seconds), key=lambda row: _LENGTHS.index(row.name))
    if not rates and not labels and not known_lengths:
        return None
    output = None if at is None else at.output_tokens_per_s
    return Tokens(
        output or (fmean(rates) if rates else None),
        turns_per_s or fmean(wave.summary.rates.completed for wave in waves),
        labels,
        known_lengths,
        tokens_per_request(waves),
    )


class Kinds:
    """Gathers the requests of each kind, and how many of each are over each limit."""

    def __init__(self, limits: Sequence[Limit]) -> None:
        self.numbering = Numbering()
        self._limits = limits
        self._sent = np.zeros(0, np.int64)
        self._pairs = [(np.zeros(0, np.int64), np.zeros(0, np.int64)) for _ in limits]
        self._times = GroupedHistogram()
        self._ages: list[tuple[Int64, Floats]] = [(np.zeros(0, np.int64), np.zeros(0))]

    @property
    def sent(self) -> int:
        """The requests of all kinds."""
        return int(self._sent.sum())

    def add(
        self, wave: WaveFacts, part: Records, streams: Streams, kinds: Int64, with_kind: Mask | None = None
    ) -> None:
        """Take in a part of a wave whose requests are of these kinds; ``with_kind``: those whose kind is known."""
        known = np.ones(len(part), bool) if with_kind is None else with_kind
        self._sent = summed(self._sent, np.bincount(kinds[known & ~part.repeats]))
        times = dict(samples(part, open_loop=True, streams=streams))
        for place, limit in enumerate(self._limits):
            for rows, over in judged(part, limit, wave.plan.goodput, times):
                mine = known[rows]
                of, beyond = self._pairs[place]
                more = np.bincount(kinds[rows][mine]), np.bincount(kinds[rows][mine & over])
                self._pairs[place] = summed(of, more[0]), summed(beyond, more[1])
        sample = times.get(shown_metric(self._limits))
        if sample is not None:
            rows, values = timed_rows(part, sample)
            self._times.add(kinds[rows][known[rows]], values[known[rows]])
            aged = np.flatnonzero(sample.aged_in)
            self._ages.append((kinds[aged][known[aged]], sample.ages[known[aged]]))

    def rows(self, seconds: float) -> Iterator[Kind]:
        """A row for each kind, the most frequent first: requests, requests/s, p99 (s), the share over each limit."""
        names = self.numbering.names
        groups, ages = (np.concatenate(column) for column in zip(*self._ages, strict=True))
        times = self._times.distributions(len(names), groups, ages) if names else []
        sent = summed(self._sent, np.zeros(len(names), np.int64))
        pairs = [[summed(each, np.zeros(len(names), np.int64)) for each in pair] for pair in self._pairs]
        for number in np.argsort(-sent, kind="stable")[:MOST_KINDS].tolist():
            if sent[number]:
                time = times[number]
                yield Kind(
                    names[number],
                    int(sent[number]),
                    rate=float(sent[number]) / seconds if seconds else None,
                    p99=None if time is None else time.percentile(99),
                    share_over=[_share(of[number], over[number]) for of, over in pairs],
                )


def _share(of: int, over: int) -> float | None:
    return float(over) / float(of) if of else None


def _seconds(wave: WaveFacts) -> float:
    return (wave.window.planned_ns or wave.window.duration_ns) / NS


def _bits(part: Records) -> Int64:
    """The bucket of each input's length."""
    tokens = np.maximum(part.int("tokens_in"), 1)
    return np.floor(np.log2(tokens)).astype(np.int64)
