"""Runs -> a set of bars for each label, each turn of sessions and each kind of error. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from inference_benchmarker.words.text import one_line
from visualization.figures.figures import STATISTICS, Bar, Bars, with_values
from visualization.figures.runs import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from inference_benchmarker.report.request_numbers import Times, Turn
    from inference_benchmarker.report.summary_types import Errors, Labelled
    from visualization.figures.runs import Run

Row = TypeVar("Row")

SOURCES = ("turns", "labels", "errors")
"""The sources of these bars: a run that has nothing of a name has no row there."""

MOST = 12
MOST_TURNS = 8
_LONG = 120


def label_bars(runs: Sequence[Run]) -> Iterator[Bars]:
    """The latency of each label, at most ``MOST``, those of most requests; those of a run beside one another."""
    by_run = [_labels(run) for run in runs]
    chosen = _most_frequent(by_run, lambda row: row.sent)
    for name in sorted(chosen, key=lambda name: [name in rows for rows in by_run].index(True)):
        rows = [rows.get(name) for rows in by_run]
        bars = {choice: tuple(_time(row, key) for row in rows) for choice, key in STATISTICS.items()}
        yield Bars("label", one_line(name, _LONG) or "no label", "ms", "labels", with_values(bars))


def error_bars(runs: Sequence[Run]) -> Iterator[Bars]:
    """The failed requests of each kind, the most frequent first, at most ``MOST``."""
    by_run = [_errors(run) for run in runs]
    for name in _most_frequent(by_run, lambda row: row.count):
        bars = tuple(_count(run, rows.get(name)) for run, rows in zip(runs, by_run, strict=True))
        yield Bars("error", one_line(name, _LONG), "", "errors", {"": bars})


def turn_bars(runs: Sequence[Run]) -> Iterator[Bars]:
    """The TTFT of each turn where answers are streams, then the latency of each, of the first turns of sessions."""
    by_run = [_turns(run) for run in runs]
    for time, what in (("ttft", "TTFT"), ("latency", "latency")):
        for name in _shown_turns(runs):
            rows = [rows.get(name) for rows in by_run]
            bars = {choice: tuple(_of_turn(row, time, key) for row in rows) for choice, key in STATISTICS.items()}
            if any(bar.value is not None for each in bars.values() for bar in each):
                yield Bars("turn", f"Turn {name[0]}{'+' if name[1] else ''}, {what}", "ms", "turns", with_values(bars))


def turns_left_out(runs: Sequence[Run]) -> int:
    """The number of turns beyond ``MOST_TURNS``."""
    return max(len({name for run in runs for name in _turns(run)}) - MOST_TURNS, 0)


def labels_left_out(runs: Sequence[Run]) -> int:
    """The number of labels beyond ``MOST``."""
    return max(len({name for run in runs for name in _labels(run)}) - MOST, 0)


def errors_left_out(runs: Sequence[Run]) -> int:
    """The number of kinds of errors beyond ``MOST``."""
    return max(len({name for run in runs for name in _errors(run)}) - MOST, 0)


def _turns(run: Run) -> dict[tuple[int, bool], Turn]:
    """The turns of a run's sessions by their number, and whether it stands for all that follow, too."""
    sessions = None if run.summary is None else run.summary.sessions
    return {} if sessions is None else {(row.turn, row.and_later): row for row in sessions.by_turn}


def _shown_turns(runs: Sequence[Run]) -> list[tuple[int, bool]]:
    return sorted({name for run in runs for name in _turns(run)})[:MOST_TURNS]


def _of_turn(row: Turn | None, time: str, key: str) -> Bar:
    times: Times | None = None if row is None else getattr(row, time)
    bar = _milliseconds(times, key)
    return replace(bar, sign="≥") if times is not None and bar.value is not None and _is_bound(times, key) else bar


def _milliseconds(times: Times | None, key: str) -> Bar:
    value = None if times is None else shown(times, key)
    return Bar(None if value is None else 1e3 * value)


def _is_bound(times: Times, key: str) -> bool:
    """Tells whether a statistic is the age of a request that was abandoned, or above one."""
    bound = times.lower_bound_from
    return bound is not None and (key == "mean" or getattr(times, key) >= bound)


def _labels(run: Run) -> dict[str, Labelled]:
    return {} if run.summary is None else {row.label: row for row in run.summary.labels}


def _errors(run: Run) -> dict[str, Errors]:
    return {} if run.summary is None else {row.key: row for row in run.summary.errors}


def _most_frequent(by_run: Sequence[Mapping[str, Row]], count: Callable[[Row], int]) -> list[str]:
    totals: Counter[str] = Counter()
    for rows in by_run:
        for name, row in rows.items():
            totals[name] += count(row)
    return [name for name, _ in totals.most_common(MOST)]


def _time(row: Labelled | None, key: str) -> Bar:
    return _milliseconds(None if row is None else row.latency, key)


def _count(run: Run, row: Errors | None) -> Bar:
    """None failed so where the run has a summary that does not name it; its first text as a note."""
    if row is None:
        return Bar(0.0 if run.success_rate is not None else None)
    return Bar(float(row.count), note=one_line(row.texts[0], _LONG) if row.texts else "")
