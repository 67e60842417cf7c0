"""The scraped rounds within the wave's window: a row for each series, or one that says why there is none. Pure.

A gain is read from the last round before the window to the first one after it: nothing of ours came in between, so
no request is missed. With a warm-up, what it gained since that round is taken off.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.facts.server_metric import Interval, ServerMetric
from server_capacity.metrics.prometheus.exposition import Labels, render_selector
from server_capacity.metrics.prometheus.presets import DEFAULTS
from server_capacity.metrics.prometheus.scraping.distributions import distributions
from server_capacity.metrics.prometheus.scraping.history import History, Round
from server_capacity.metrics.prometheus.scraping.processes import mixed, several, start_times
from server_capacity.metrics.prometheus.scraping.series import SeriesValues, Window, about, counter, gauge

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from server_capacity.metrics.prometheus.block import Wanted
    from server_capacity.metrics.prometheus.exposition import Page

STREAM = "prometheus"
MOST_SERIES = 500
"""A metric with more series gives those with the largest values."""

MOST_MISSED = 0.1
LONGEST_GAP = 2.0
"""In intervals: each has one scrape, anywhere in it."""

LEAST_S = 1e-3
"""A window that is shorter is of a wave that sent nothing."""

SUFFIXES = ("", "_total", "_bucket", "_sum", "_count")
UNTYPED = (None, "unknown", "untyped")
UNITS = {"seconds": "Seconds", "bytes": "Bytes", "ratio": "Ratio", "celsius": "Celsius", "joules": "Joules"}


def window_of(history: History, interval: Interval, interval_s: float) -> Window:
    """The rounds of the window, and whether they are enough."""
    rounds = history.rounds
    start, end, loaded = interval.start, interval.end, interval.under_load.end
    good = [index for index, each in enumerate(rounds) if each.error is None]
    within = [index for index in good if rounds[index].began >= start and rounds[index].ended <= end]
    inside = [index for index in within if rounds[index].ended <= loaded]
    before = [index for index in good if rounds[index].ended <= start]
    after = [index for index in good if rounds[index].began >= end]
    first = next(iter((*before[-1:], *(within or after)[:1])), None)
    last = after[0] if after else within[-1] if within else None
    span = [index for index in good if first is not None and last is not None and first <= index <= last]
    covered = sum(rounds[index].began < loaded for index in span) + 1
    due = [each for each in rounds if start <= each.due <= end]
    missed = [each for each in due if each.error is not None]
    reasons = []
    if len(missed) > MOST_MISSED * len(due):
        reasons.append(f"{len(missed)} of {len(due)} rounds of scraping brought nothing ({missed[-1].error})")
    elif span and rounds[span[0]].began > start + LONGEST_GAP * interval_s:
        reasons.append(f"the first sample is {rounds[span[0]].began - start:.1f} s after the start")
    elif span and rounds[span[-1]].ended < end - LONGEST_GAP * interval_s:
        reasons.append(f"the last sample is {end - rounds[span[-1]].ended:.1f} s before the end")
    started = start_times(history, span)
    return Window(
        history,
        tuple(inside),
        tuple(span),
        not reasons,
        "; ".join(reasons) or None,
        max(loaded - start, LEAST_S),
        loaded=tuple(span[:covered]),
        cut=start if interval.begin < start else None,
        several=several(history, span, started),
        mixed=mixed(history, span, dict(started)),
        started=dict(started),
    )


def sample_names(wanted: Iterable[Wanted]) -> set[str]:
    """The names of all samples that may be needed."""
    return {name + suffix for each in wanted for name, _ in each.selectors for suffix in SUFFIXES}


def all_missing(wanted: Sequence[Wanted], page: Page) -> str:
    """That the page has nothing of what is wanted; empty where it has something, and the rest may come with load."""
    history = History()
    history.add(Round(0.0, 0.0, 0.0), page)
    if any(first_there(each, history)[0] for each in wanted):
        return ""
    if len(wanted) == 1:
        return f"the page has {none_of(wanted[0])}"
    return f"the page has none of the {len(wanted)} metrics asked for: {none_of(wanted[0])}, and so on"


def read(wanted: Wanted, window: Window, instance: str) -> list[ServerMetric]:
    """A row for each series of the metric, or one that says why there is none; none at all for an optional item."""
    selector, kind = first_there(wanted, window.history)
    name = wanted.selectors[0] if selector is None else selector
    blank = ServerMetric(
        STREAM,
        wanted.name,
        dict.fromkeys(wanted.statistics or DEFAULTS[kind], None),
        unit=wanted.item.unit if wanted.item else unit_of(name[0], kind, window.history),
        namespace=wanted.preset,
        dimensions={"instance": instance},
        complete=False,
    )
    if selector is None or not window.span:
        if wanted.item and wanted.item.optional:
            return []
        return [replace(blank, reason=_absent(wanted, window))]
    if window.several:
        return [replace(blank, reason=window.several)]
    found = list(_series(selector, kind, tuple(blank.statistics), window))
    kept = {id(each) for _, each in sorted(found, key=lambda pair: -pair[1].size)[:MOST_SERIES]}
    rows = [
        replace(
            _row(blank, each, window, _broken(wanted, window.history), _left_out(wanted, window.history)),
            dimensions=_dimensions(blank, wanted, selector[0], labels),
        )
        for labels, each in found
        if id(each) in kept
    ]
    gone = replace(blank, reason=f"{render_selector(*selector)} was not on the page within the window")
    return left_out(rows, len(found)) or [gone]


def _broken(wanted: Wanted, history: History) -> str | None:
    """The fault of a line that begins with one of the metric's names."""
    return next((history.broken[name] for name in sample_names([wanted]) if name in history.broken), None)


def _left_out(wanted: Wanted, history: History) -> str | None:
    """Why series of the metric may be missing."""
    return next((history.left_out[name] for name in sample_names([wanted]) if name in history.left_out), None)


def _row(
    blank: ServerMetric, found: SeriesValues, window: Window, broken: str | None, left_out: str | None
) -> ServerMetric:
    values = {name: value if value is None or math.isfinite(value) else None for name, value in found.values.items()}
    missing = all(value is None for value in values.values())
    return replace(
        blank,
        statistics=values,
        start=found.start,
        end=found.end,
        complete=window.complete and not missing and left_out is None and found.gap is None,
        reason=joined(*found.reasons, found.gap, broken, window.reason, left_out),
        series_of=next(iter(found.values)) if found.series else None,
        series=found.series,
        samples=found.samples,
        bounds=found.bounds if found.gap is None else about(values),
        buckets=found.buckets,
    )


def _dimensions(blank: ServerMetric, wanted: Wanted, name: str, labels: Labels) -> dict[str, str]:
    """The labels beside the page's address, and under a preset the metric's own name."""
    return {**blank.dimensions, **({"__name__": name} if wanted.preset else {}), **dict(labels)}


def _absent(wanted: Wanted, window: Window) -> str:
    good = any(each.error is None for each in window.history.rounds)
    if not good or not window.span:
        errors = [each.error for each in window.history.rounds if each.error]
        return errors[-1] if errors else "the page was not scraped within the window"
    return _broken(wanted, window.history) or _left_out(wanted, window.history) or f"the page has {none_of(wanted)}"


def first_there(wanted: Wanted, history: History) -> tuple[tuple[str, Labels] | None, str]:
    """The first selector that the page has, and the kind of its metric; None where it has none of them."""
    for name, labels in wanted.selectors:
        if kind := _kind(name, labels, history):
            if wanted.item and history.types.get(name) in UNTYPED and {kind, wanted.item.kind} == {"gauge", "counter"}:
                kind = wanted.item.kind  # a preset knows better than the name
            return (name, labels), kind
    return None, wanted.item.kind if wanted.item else "gauge"


def _kind(name: str, labels: Labels, history: History) -> str | None:
    """The way to read the metric: as its type says, else as its name does; None where it is not on the page."""
    said = history.types.get(name)
    if history.keys(f"{name}_bucket", labels) and said in ("histogram", *UNTYPED):
        return "histogram"
    if said == "summary" and history.keys(f"{name}_count", labels):
        return "summary"
    if said != "gauge" and history.keys(f"{name}_total", labels):
        return "counter"
    if not history.keys(name, labels):
        return None
    if said in ("counter", "gauge"):
        return said
    suffix = next((each for each in SUFFIXES[1:] if name.endswith(each)), None)
    return "counter" if suffix and history.types.get(name.removesuffix(suffix)) != "gauge" else "gauge"


def unit_of(name: str, kind: str, history: History) -> str | None:
    """The unit by the page or the metric's name."""
    if kind == "counter":
        return None
    suffix = history.units.get(name) or name.rpartition("_")[2]
    return UNITS.get(suffix)


def _series(
    selector: tuple[str, Labels], kind: str, asked: tuple[str, ...], window: Window
) -> Iterator[tuple[Labels, SeriesValues]]:
    name, labels = selector
    history = window.history
    if kind in ("histogram", "summary"):
        yield from distributions(name, labels, kind, asked, window)
        return
    keys = history.keys(name, labels) or history.keys(f"{name}_total", labels)
    for key in sorted(keys):
        track = history.tracks[key]
        found = counter(track, asked, window) if kind == "counter" else gauge(track, asked, window)
        if found:
            yield key[1], found


def none_of(wanted: Wanted) -> str:
    """The names that were looked for in vain."""
    names = [render_selector(*selector) for selector in wanted.selectors]
    return f"neither {' nor '.join(names)}" if len(names) > 1 else f"no {names[0]}"


def left_out(rows: list[ServerMetric], found: int) -> list[ServerMetric]:
    """The rows; the last one says how many series have none."""
    if rows and found > len(rows):
        note = f"{found - len(rows)} more series with smaller values left out"
        rows[-1] = replace(rows[-1], reason=joined(rows[-1].reason, note))
    return rows


def joined(*reasons: str | None) -> str | None:
    """One sentence of those there are."""
    return "; ".join(reason for reason in reasons if reason) or None
