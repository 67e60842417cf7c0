"""The requests of a run one by one: a cloud of their latencies, the slowest by name, and errors by the second. Pure.

Of a wave of any size only some thousand points are kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.records.columns import ROW_KEY
from inference_benchmarker.records.record import OUTCOMES
from inference_benchmarker.summary.gathering import gather
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.units import NS
from visualization.figures.figures import Axis
from visualization.figures.folding import by_step
from visualization.run_page.figure_types import (
    SECONDS,
    Figure,
    Flag,
    Trace,
    scale_of,
    scaled,
    time_unit,
    whole_wave,
)
from visualization.run_page.timeline_figures import is_too_long, stage_bands

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Floats, Int64, Records
    from inference_benchmarker.records.record import RequestRecord
    from inference_benchmarker.summary.summary import Summary
    from visualization.run_page.figure_types import Colour, Kind

MOST_EXACT = 4_000
WORST = 10
_ACROSS, _UP, _SHADES = 200, 24, 3
_ODD, _PRIME = 7_919, 104_729  # what makes of an instant a number that is like a drawn one
_MOST_KEYS = 6
_OF_OUTCOME: tuple[tuple[str, Kind, Colour], ...] = (
    ("ok", "dots", 0),
    ("failed", "squares", "bad"),
    ("abandoned", "rings", "warn"),
)


class _Chosen:
    """Keeps of each place the request that has the greatest weight there: when it was sent, and its latency.

    ``counts``: how many there were.
    """

    def __init__(self, places: int) -> None:
        self._weights = np.full(places, -1.0)
        self._sent, self._latency = np.zeros(places), np.zeros(places)
        self.counts = np.zeros(places, np.int64)

    def add(self, places: Int64, weights: Floats, sent: Floats, latency: Floats) -> None:
        """Take in some more."""
        self.counts += np.bincount(places, minlength=len(self.counts))
        order = np.lexsort((weights, places))
        last = order[np.append(places[order][1:] != places[order][:-1], True)]
        better = last[weights[last] > self._weights[places[last]]]
        at = places[better]
        self._weights[at], self._sent[at], self._latency[at] = weights[better], sent[better], latency[better]

    def points(self, places: Int64) -> list[tuple[float, float]]:
        """(second sent, latency) of those at some places, in their order."""
        there = places[self.counts[places] > 0]
        return list(zip(self._sent[there].tolist(), self._latency[there].tolist(), strict=True))


class Cloud:
    """Gathers (second sent, latency) of each request by its outcome, thinned where there are many.

    A grid is laid over the picture. Of the requests of an outcome one is kept in each of its cells, any one, so that
    no pattern is seen that is not there; and the slowest in each of its columns, so that no extreme is lost.
    """

    columns = ("sent", "done", "outcome")

    def __init__(self, requests: int, last_s: float, ends_s: tuple[float, float]) -> None:
        self.thinned = requests > MOST_EXACT
        self._last_s, self._ends_s = max(last_s, 1e-9), ends_s
        self._all: list[tuple[Int64, Floats, Floats]] = []
        self._some, self._slowest = _Chosen(len(OUTCOMES) * _ACROSS * _UP), _Chosen(len(OUTCOMES) * _ACROSS)

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        sent_ns = part.int("sent")
        sent, latency = sent_ns / NS, (part.int("done") - sent_ns) / NS
        outcome: Int64 = np.zeros(len(sent), np.int64)
        for number, name in enumerate(OUTCOMES):
            outcome[part.outcome(name)] = number
        if not self.thinned:
            self._all.append((outcome, sent, latency))
            return
        columns = outcome * _ACROSS + self._column(sent)
        any_one = (sent_ns * _ODD % _PRIME).astype(np.float64)
        self._some.add(columns * _UP + self._row(latency), any_one, sent, latency)
        self._slowest.add(columns, np.maximum(latency, 0.0), sent, latency)

    def points(self, outcome: str) -> list[list[tuple[float, float]]]:
        """Those of an outcome by how many each stands for, those that stand for most first."""
        number = OUTCOMES.index(outcome)
        if not self.thinned:
            parts = [(sent[codes == number], latency[codes == number]) for codes, sent, latency in self._all]
            return [[pair for x, y in parts for pair in zip(x.tolist(), y.tolist(), strict=True)]]
        cells = np.arange(_ACROSS * _UP) + number * _ACROSS * _UP
        slowest = self._slowest.points(np.arange(_ACROSS) + number * _ACROSS)
        counts = self._some.counts[cells]
        share = np.log(np.maximum(counts, 1)) / math.log(max(int(counts.max()), 2))
        shades = np.minimum(((1 - share) * _SHADES).astype(np.int64), _SHADES - 1)
        found = [self._some.points(cells[shades == shade]) for shade in range(_SHADES)]
        there = {pair for points in found for pair in points}
        return [*found[:-1], [*found[-1], *(pair for pair in slowest if pair not in there)]]

    def _column(self, sent: Floats) -> Int64:
        return np.clip(sent / self._last_s * _ACROSS, 0, _ACROSS - 1).astype(np.int64)

    def _row(self, latency: Floats) -> Int64:
        """On the axis on which it is drawn."""
        low, high = self._ends_s
        if scale_of([low, high]) == "log":
            share = np.log(np.maximum(latency, low) / low) / math.log(high / low)
        else:
            share = latency / (high or 1.0)
        return np.clip(share * _UP, 0, _UP - 1).astype(np.int64)


class Worst:
    """Gathers the requests that took longest, whatever became of them."""

    columns = (*ROW_KEY, "worker", "label", "due", "sent", "done", "build_ns", "outcome", "error")

    def __init__(self) -> None:
        self._kept: list[tuple[int, RequestRecord]] = []

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        latency = part.int("done") - part.int("sent")
        places = np.argsort(-latency, kind="stable")[:WORST]
        mask = np.zeros(len(latency), bool)
        mask[places] = True
        chosen = part.where(mask)
        self._kept += [(record.done - record.sent, record) for record in _records(chosen)]
        self._kept = sorted(self._kept, key=lambda pair: -pair[0])[:WORST]

    @property
    def requests(self) -> list[RequestRecord]:
        """They, the slowest first."""
        return [record for _, record in self._kept]


def _records(part: Records) -> Iterator[RequestRecord]:
    """The records of a part that has not all columns."""
    from inference_benchmarker.records.record import RequestRecord

    for row in part.table.to_pylist():
        columns = {name: row[name] for name in Worst.columns}
        yield RequestRecord(**{**columns, "label": columns["label"] or ""})


class ErrorsBySecond:
    """Gathers the failed requests of some keys, and of all others together, in the second in which each was over."""

    columns = ("error", "done")

    def __init__(self, keys: Sequence[str], seconds: int) -> None:
        self._keys = list(keys)
        self._seconds = seconds
        self.counts = np.zeros((len(self._keys) + 1, seconds))

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        codes, names = part.coded("error")
        failed = np.flatnonzero(codes >= 0)
        if len(failed):
            self.count(codes[failed], names, part.int("done")[failed] // NS, np.ones(len(failed)))

    def count(self, codes: Int64, names: Sequence[str], seconds: Int64, counts: npt.NDArray[np.generic]) -> None:
        """Take in so many failures of each key in each second."""
        others = len(self._keys)
        rows = np.array([self._keys.index(name) if name in self._keys else others for name in names], np.int64)
        places = rows[codes] * self._seconds + np.clip(seconds, 0, self._seconds - 1)
        self.counts += np.bincount(places, counts, self.counts.size).reshape(self.counts.shape)


@dataclass(frozen=True, slots=True)
class RequestFigures:
    """The pictures of single requests, and the slowest of them; ``of``: how many there were to choose from."""

    cloud: Figure | None
    errors: Figure | None
    worst: tuple[RequestRecord, ...]
    of: int


def request_figures(facts: WaveFacts, summary: Summary) -> RequestFigures:
    """All of them, in one way through the records."""
    keys = [row.key for row in summary.errors[:_MOST_KEYS]]
    last_s = whole_wave(summary)[1]
    errors = ErrorsBySecond(keys, 1 if is_too_long(summary) else max(math.ceil(last_s), 1))
    ends = _ends_s(summary)
    if not len(facts.records) or ends is None:
        return RequestFigures(None, None, (), 0)
    cloud, worst = Cloud(len(facts.records), last_s, ends), Worst()
    gather(facts.records, cloud, worst, errors if facts.counts is None else None)
    if facts.counts is not None:
        failed = facts.counts.window["failed"]
        seconds, codes = failed.second.astype(np.int64), failed.key.astype(np.int64)
        errors.count(codes, facts.counts.errors, seconds, failed.count)
    return RequestFigures(
        _cloud_figure(cloud, worst, facts, summary),
        None if is_too_long(summary) else _error_figure(errors, keys, summary),
        tuple(worst.requests),
        len(facts.records),
    )


def _ends_s(summary: Summary) -> tuple[float, float] | None:
    """The shortest and the longest latency of all, failed requests included."""
    known = [each for each in (summary.latency, summary.failed_latency) if each is not None]
    return (min(each.minimum for each in known), max(each.maximum for each in known)) if known else None


def _cloud_figure(cloud: Cloud, worst: Worst, facts: WaveFacts, summary: Summary) -> Figure:
    traces = tuple(
        Trace(name, tuple(points), colour, kind, faint)
        for name, kind, colour in _OF_OUTCOME
        for faint, points in enumerate(cloud.points(name))
        if points
    )
    values = [value for trace in traces for value in trace.values]
    unit, factor = time_unit(values)
    traces = tuple(replace(trace, points=scaled(trace.points, factor)) for trace in traces)
    flags = tuple(
        Flag(record.sent / NS, (record.done - record.sent) / NS * factor, str(number))
        for number, record in enumerate(worst.requests, 1)
    )
    shown = sum(len(trace.points) for trace in traces)
    note = "Each point is a request, at the second in which it was sent."
    if cloud.thinned:
        of = f"{shown:,} of {len(facts.records):,} requests, the slowest of every moment among them"
        note = f"{of}; darker points stand for many requests."
    if facts.counts is not None:
        note = f"The slowest {len(facts.records):,} requests: no record was kept of the others."
    title, axis = "Latency of each request", Axis("Latency", unit, scale_of(values))
    bands, span = stage_bands(summary), whole_wave(summary)
    return Figure(title, SECONDS, axis, traces, (), bands, flags, span, note)


def _error_figure(errors: ErrorsBySecond, keys: Sequence[str], summary: Summary) -> Figure | None:
    rows = [(one_line(key), row) for key, row in zip((*keys, "others"), errors.counts, strict=True) if row.any()]
    title, bands, span = "Failed requests", stage_bands(summary), whole_wave(summary)
    traces = tuple(Trace(key, by_step(row.tolist(), span[1], fmean), number) for number, (key, row) in enumerate(rows))
    return Figure(title, SECONDS, Axis(title, "/s"), traces, bands=bands, span=span) if traces else None
