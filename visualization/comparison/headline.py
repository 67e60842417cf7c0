"""A comparison in one line: which side is slower, at what, by how much and how surely. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from inference_benchmarker.words.text import one_line
from visualization.comparison.changes import is_success
from visualization.comparison.ending import ended_early
from visualization.comparison.estimates import LEAST_BLOCKS
from visualization.comparison.sessions import SESSION, is_of_sessions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from visualization.comparison.changes import MetricChange
    from visualization.comparison.comparison import Comparison

NEEDED = f"one run a side needs {LEAST_BLOCKS} s of load at one rate"
_USUAL = ("response_time", "latency")
_TIMES = {"response_time": "response time", "latency": "latency", "ttft": "TTFT", "itl": "ITL", "tpot": "TPOT"}
_AT_MOST = 3
_OPEN = "Cannot tell whether"
_LARGE = 0.05  # of the success rate
_LONGEST = 160  # of what was measured differently; all of it stands above the table
NOTHING_LEFT = -0.9995  # a change that is rounded to -100%
_WHOLE = 0.095  # from a change of 10% on its digits after the point say nothing,
_NARROW = 0.02  # unless the interval is hardly wider than they are


def headline(comparison: Comparison) -> str:
    """The outcome for whoever reads one line.

    It first says if waves are missing, or if limits that were given are violated or all kept, and of numbers that can
    be trusted if the loads differ.
    """
    cut, found = comparison.cut, finding(comparison)
    if cut is not None:
        return f"{ended_early(comparison.outcome, cut)}: {found}"
    if comparison.passed and found.startswith(_OPEN):
        return f"PASSED: every limit is kept. {found}"
    decided = comparison.outcome == "failed" or comparison.passed
    return f"{comparison.outcome.upper()}: {found}" if decided else found


def finding(comparison: Comparison) -> str:
    """The first line without its word: what is known of the sides, whatever was allowed."""
    loads = comparison.loads if comparison.base.valid and comparison.new.valid else ""
    found = f"Different loads ({loads}): {_outcome(comparison)}" if loads else _outcome(comparison)
    unlike = one_line("; ".join(comparison.unlike), _LONGEST) if not loads else ""
    apart = [f"Measured differently: {unlike}"] if unlike and comparison.checks else []
    return " ".join([found, *(f"{each}." for each in (*_success(comparison), *apart, *comparison.warnings))])


def _success(comparison: Comparison) -> Iterator[str]:
    """A large change of the success rate that no interval decides: nothing else in the line would say so."""
    for row in comparison.rows:
        change = row.change
        if is_success(row.metric) and row.outcome == "cannot tell" and change is not None and abs(change) >= _LARGE:
            base, new = (f"{100 * value.value:.3g}%" for value in (row.base, row.new) if value is not None)
            yield f"{row.metric.capitalize()} {base} in {comparison.base.name}, {new} in {comparison.new.name}"


def _outcome(comparison: Comparison) -> str:
    base, new = comparison.base.name, comparison.new.name
    invalid = [side.name for side in (comparison.base, comparison.new) if not side.valid]
    if invalid:
        return f"INVALID ({' and '.join(invalid)}): these are not the endpoint's numbers."
    primary = [row for row in comparison.rows if row.primary and row.interval is not None]
    alone = len({row.metric for row in primary} & set(_TIMES)) == 1
    if changed := [row for row in primary if row.outcome in ("worse", "improved")]:
        return f"{new} is {_joined([_changed(row, alone=alone) for row in changed])}."
    others = [row for row in comparison.rows if row.outcome in ("worse", "improved")]
    apart = f", but {_joined([_changed(row, alone=False) for row in others])}" if others else ""
    times = [row for row in primary if row.metric in _TIMES]
    same = [row for row in times if row.outcome == "unchanged"]
    open_ = [row for row in times if row.outcome != "unchanged"]
    if same:
        within = _joined([f"{_place(row, alone=alone)} within {_widest(row)}" for row in same])
        rest = f"; {_joined([_place(row, alone=alone) for row in open_])} it is undecided" if open_ else ""
        return f"{new} is as fast as {base} {within}{apart}{rest}."
    if others:
        return f"{new} is {_joined([_changed(row, alone=False) for row in others])}."
    if open_:
        text = _joined([f"{_place(row, alone=alone)} {_span(row)}" for row in open_])
        return f"{_OPEN} {new} is slower than {base}: {text}."
    needed = f" ({NEEDED})" if comparison.too_short else ""
    bare = f"the changes {_without(comparison)} have no intervals{needed}"
    return f"{_OPEN} {new} is slower than {base}: {bare}."


def _without(comparison: Comparison) -> str:
    """The changes that have no intervals: all of the table, or those of the times that the first line is about."""
    bare = [row for row in comparison.rows if row.primary and row.metric in _TIMES]
    if not bare or all(row.interval is None for row in comparison.rows):
        return "in the table"
    alone = len({row.metric for row in bare}) == 1
    return _joined([_place(row, alone=alone) for row in bare])


def _changed(row: MetricChange, *, alone: bool) -> str:
    """The change and its interval: 14% slower at p99, 95%: 9 to 19%."""
    change, ends = row.change or 0.0, (row.low or 0.0, math.inf if row.high is None else row.high)
    low, high = ends if change >= 0 else (-ends[1], -ends[0])
    digits = 0 if abs(change) >= _WHOLE and high - low >= _NARROW else 1
    upto = " or more" if math.isinf(high) else f" to {100 * high:.{digits}f}%"
    interval = f"{100 * low:.{digits}f}{'%' if math.isinf(high) else ''}{upto}"
    size = f"{100 * abs(change):.{digits}f}%"
    if _time(row.metric):
        what = f"{'slower' if change > 0 else 'faster'} {_place(row, alone=alone)}"
    else:
        what = f"{'higher' if change > 0 else 'lower'} in {row.metric}"
    return f"{size} {what}, 95%: {interval}"


def _place(row: MetricChange, *, alone: bool) -> str:
    """The statistic, and the time that it is of where that is not plain: at p99, at TTFT p99."""
    return f"at {row.stat}" if alone and row.metric in _USUAL else f"at {_time(row.metric) or row.metric} {row.stat}"


def _time(metric: str) -> str:
    """The name of a time, of some turns too (``turn2+.ttft``); of another metric none."""
    if metric == SESSION:
        return "session duration"
    turns, dot, of_turns = metric.rpartition(".")
    if not (dot and is_of_sessions(metric)):
        return _TIMES.get(metric, "")
    return f"{turns} {_TIMES[of_turns]}" if of_turns in _TIMES else ""


def _widest(row: MetricChange) -> str:
    low, high = row.interval or (-math.inf, math.inf)
    return f"{math.ceil(1000 * max(abs(low), abs(high))) / 10:g}%"


def _span(row: MetricChange) -> str:
    low, high = row.low or 0.0, math.inf if row.high is None else row.high
    if math.isinf(high) and low <= NOTHING_LEFT:
        return "by an unknown factor"
    return f"{100 * low:+.0f}% or more" if math.isinf(high) else f"{100 * low:+.0f} to {100 * high:+.0f}%"


def _joined(parts: Sequence[str]) -> str:
    """At most three of them: the rest stands in the table."""
    shown = list(parts[:_AT_MOST])
    return "; ".join(shown) if any("," in part for part in shown) else " and ".join(shown)
