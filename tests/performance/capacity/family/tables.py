"""Coverage by kind, the interval's score against the oracle's, and two methods pair by pair."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from tests.performance.capacity.easy_way import wilson
from tests.performance.capacity.family.drawing import CHANGING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.performance.capacity.family.searches import Searched

_HEAD = (
    "| kind, time | searches | found, of findable | interval contains it (95%) | lower end above it "
    "| half-width, median | score / oracle's, median | wrongly none |\n|---|---|---|---|---|---|---|---|"
)

_COMPARED_HEAD = (
    "| kind, time | pairs | contains it | lower end above it | found | width, ratio | score, ratio | better in |"
)
_SLOWDOWNS = (("less than 1.3 times as long", 1.0, 1.3), ("1.3 times and more", 1.3, math.inf))


def table(searched: Sequence[Searched]) -> str:
    """A line for each kind, one for each time, and one for all; of what changes, the truth is the rate that lasts."""
    steady = [each for each in searched if each.kind not in CHANGING]
    unsteady = ", ".join(CHANGING)
    groups = {
        kind: [each for each in searched if each.kind == kind] for kind in _in_order(each.kind for each in searched)
    }
    for time_s in sorted({each.time_s for each in searched}):
        groups[f"all but {unsteady}; {time_s:g} s"] = [each for each in steady if each.time_s == time_s]
    groups[f"all but {unsteady}; all times"] = steady
    groups["of these, with something to find"] = [each for each in steady if each.findable]
    return "\n".join([_HEAD, *(_line(name, group) for name, group in groups.items())])


def _in_order(kinds: Iterable[str]) -> list[str]:
    """Each once; those that change come last."""
    return sorted(dict.fromkeys(kinds), key=lambda kind: kind in CHANGING)


def _line(name: str, searched: Sequence[Searched]) -> str:
    found = [each for each in searched if each.result.low is not None]
    findable = [each for each in searched if each.findable]
    cells = (
        name,
        f"{len(searched):,}",
        _share(each.result.low is not None for each in findable),
        _share((each.result.covers for each in found), interval=True),
        _share((each.too_high for each in searched), interval=True),
        f"{100 * _median(each.result.half / each.result.truth for each in found):.1f}%",
        f"{_median(each.score / each.oracle for each in found if each.findable and each.oracle > 0):.2f}",
        str(sum(each.result.outcome == "not_kept" for each in searched)),
    )
    return f"| {' | '.join(cells)} |"


def slow_downs(searched: Sequence[Searched]) -> str:
    """Of what gets slower, by how much, and of what does not: in how many searches it was said."""
    lines = ["| services in the end | searches | said to get slower |", "|---" * 3 + "|"]
    for kind in (*CHANGING, "steady"):
        mine = [each for each in searched if (each.kind if each.kind in CHANGING else "steady") == kind]
        for name, low, high in _SLOWDOWNS if kind in CHANGING else (("as at first", 0.0, math.inf),):
            some = [each for each in mine if low <= each.slowdown < high and each.findable]
            lines.append(f"| {kind}, {name} | {len(some)} | {_share((each.slower for each in some), interval=True)} |")
    return "\n".join(lines)


def comparison(searched: Iterable[Searched], other: Iterable[Searched]) -> str:
    """Two methods on the same random numbers: the scores where both found an interval, and what either has of it."""
    others = {each.key: each for each in other}
    pairs = [(each, others[each.key]) for each in searched if each.key in others and each.kind not in CHANGING]
    lines = [_COMPARED_HEAD, "|---" * 8 + "|"]
    groups = {
        kind: [pair for pair in pairs if pair[0].kind == kind] for kind in _in_order(one.kind for one, _ in pairs)
    }
    for time_s in sorted({one.time_s for one, _ in pairs}):
        groups[f"{time_s:g} s"] = [pair for pair in pairs if pair[0].time_s == time_s]
    groups["all"] = pairs
    return "\n".join([*lines, *(_compared(name, group) for name, group in groups.items())])


def _compared(name: str, pairs: Sequence[tuple[Searched, Searched]]) -> str:
    both = [pair for pair in pairs if all(each.result.half < math.inf for each in pair)]
    sides = list(zip(*pairs, strict=True))
    contains = " / ".join(_share(each.result.covers for each in side if each.result.low is not None) for side in sides)
    above = " / ".join(_share(each.too_high for each in side) for side in sides)
    found = " / ".join(str(sum(each.result.low is not None for each in side)) for side in sides)
    widths = _median(second.result.half / max(first.result.half, 1e-12) for first, second in both)
    scores = _median(second.score / max(first.score, 1e-12) for first, second in both)
    better = _share((second.score < first.score for first, second in both), interval=True)
    return f"| {name} | {len(pairs)} | {contains} | {above} | {found} | {widths:.3f} | {scores:.3f} | {better} |"


def _share(values: Iterable[bool], *, interval: bool = False) -> str:
    known = list(values)
    if not known:
        return "-"
    share = f"{100 * statistics.fmean(known):.1f}%"
    low, high = wilson(sum(known), len(known))
    return f"{share} ({100 * low:.0f} to {100 * high:.0f})" if interval else share


def _median(values: Iterable[float]) -> float:
    known = list(values)
    return statistics.median(known) if known else math.nan
