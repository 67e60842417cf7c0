"""The newest values of a watched page, for the live view. Pure; what is stored is read over the whole window."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from inference_benchmarker.facts.server_metric import LiveMetric
from server_capacity.metrics.prometheus.scraping.reading import first_there, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from server_capacity.metrics.prometheus.block import Wanted
    from server_capacity.metrics.prometheus.exposition import Labels
    from server_capacity.metrics.prometheus.scraping.history import History

OVER_S = 5.0


def readings(wanted: Sequence[Wanted], history: History) -> Iterator[LiveMetric]:
    """The latest value of each metric that has one.

    Of a gauge the largest of its series; of a counter its gain a second over the last ``OVER_S`` seconds, of all
    series; of a histogram the mean of what was observed in them.
    """
    good = [index for index in _last_rounds(history) if history.rounds[index].error is None]
    for each in wanted:
        selector, kind = first_there(each, history)
        if selector is None or not good:
            continue
        value = _value(kind, selector, history, good[0], good[-1])
        if value is not None and math.isfinite(value):
            unit = "1/s" if kind == "counter" else each.item.unit if each.item else unit_of(selector[0], kind, history)
            yield LiveMetric(each.name, value, unit)


def _last_rounds(history: History) -> list[int]:
    """The indices of the rounds of the last few seconds, earliest first."""
    found: list[int] = []
    for index in range(len(history.rounds) - 1, -1, -1):
        found.append(index)
        if history.rounds[index].began <= history.rounds[found[0]].began - OVER_S:
            break
    return found[::-1]


def _value(kind: str, selector: tuple[str, Labels], history: History, first: int, last: int) -> float | None:
    name, labels = selector
    if kind == "gauge":
        values = [history.at(key, last) for key in history.keys(name, labels)]
        return max((value for value in values if value is not None), default=None)
    if kind == "counter":
        seconds = history.rounds[last].began - history.rounds[first].began
        gain = _gain(history, (f"{name}_total", name), labels, first, last)
        return None if gain is None or seconds <= 0 else gain / seconds
    observed = _gain(history, (f"{name}_count",), labels, first, last)
    total = _gain(history, (f"{name}_sum",), labels, first, last)
    return total / observed if observed and total is not None else None


def _gain(history: History, names: Sequence[str], labels: Labels, first: int, last: int) -> float | None:
    """By how much the series of the first name that is there grew together; None where none is known at both ends."""
    keys = next((keys for name in names if (keys := history.keys(name, labels))), [])
    ends = [(history.at(key, first), history.at(key, last)) for key in keys]
    gains = [after - before for before, after in ends if before is not None and after is not None and after >= before]
    return math.fsum(gains) if gains else None
