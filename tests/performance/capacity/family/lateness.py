"""Planted lateness of the client: stretches of a search count for nothing, and the answer is computed again.

A client that is late by chance takes away some stretches; one that is late when many requests are in flight, or when
many are over a limit, takes away those that speak against a rate.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from server_capacity.search.estimate import answer
from server_capacity.search.settings import Settings
from server_capacity.search.stretch import CLIENT
from tests.performance.capacity.driver import play
from tests.performance.capacity.family.drawing import CHANGING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from server_capacity.search.limits import Limit
    from server_capacity.search.stretch import Stretch
    from tests.performance.capacity.family.sets import Known

Lateness = Literal["none", "at random", "by requests in flight", "by requests over"]
NEAR = ("above", "below", "bisect")
_IDLE = 5  # stretches, of those at the lowest rates, one of which tells the time without a wait
_OF_WAIT, _OF_SHARE, _MOST = (
    0.4,
    0.4,
    0.9,
)  # the chance to be late: of a wait over that time; of a share over what is allowed


class Reported(NamedTuple):
    """Of an answer: near stretches, those of them that were late, ln(rate / truth), and where the truth is."""

    near: int
    late: int
    error: float | None
    covers: bool
    too_high: bool


def reported(members: Iterable[Known], time_s: float, most_rate: float) -> Iterator[dict[Lateness, Reported]]:
    """A search of each member that does not change, up to a rate; what is found without lateness counts."""
    for known in members:
        truth = known.truth.rate
        if known.member.kind in (*CHANGING, "client", "slow start") or truth > most_rate:
            continue
        endpoint, settings = known.member.searched(time_s), Settings(time_s=time_s)
        played = play(endpoint, settings, 1000 * known.index + 1)
        if played.answer.interval is not None:
            yield {
                lateness: _reported(endpoint.limits, settings, played.stretches, lateness, known)
                for lateness in get_args(Lateness)
            }


def _reported(
    limits: Sequence[Limit], settings: Settings, stretches: Sequence[Stretch], lateness: Lateness, known: Known
) -> Reported:
    chances, draws = _chances(limits, stretches, lateness), np.random.default_rng([known.index, 9])
    late = [each.purpose in NEAR and draws.random() < chance for each, chance in zip(stretches, chances, strict=True)]
    kept = [replace(each, void=CLIENT) if is_late else each for each, is_late in zip(stretches, late, strict=True)]
    found, truth = answer(limits, settings, kept), known.truth.rate
    near = sum(each.purpose in NEAR for each in stretches)
    if found.rate is None or found.interval is None:
        return Reported(near, sum(late), None, covers=False, too_high=(found.at_least or 0.0) > truth)
    interval = found.interval
    error = math.log(found.rate / truth)
    return Reported(near, sum(late), error, interval.low <= truth <= interval.high, interval.low > truth)


def _chances(limits: Sequence[Limit], stretches: Sequence[Stretch], lateness: Lateness) -> list[float]:
    """For each stretch the chance that the client is late in it."""
    if lateness == "none":
        return [0.0] * len(stretches)
    if lateness == "at random":
        by_load = _chances(limits, stretches, "by requests in flight")
        near = [chance for each, chance in zip(stretches, by_load, strict=True) if each.purpose in NEAR]
        return [statistics.fmean(near) if near else 0.0] * len(stretches)
    if lateness == "by requests over":
        return [min(_MOST, _OF_SHARE * _over(limits, each)) for each in stretches]
    lowest = sorted((each for each in stretches if each.rate and each.mean_s), key=lambda each: each.rate)[:_IDLE]
    idle_s = min(each.mean_s for each in lowest)
    return [min(_MOST, _OF_WAIT * max(0.0, each.mean_s / idle_s - 1.0)) for each in stretches]


def _over(limits: Sequence[Limit], stretch: Stretch) -> float:
    """The share over a limit, in times of what is allowed, of the limit of which most are."""
    counts = [[part.counts[place] for part in stretch.slices] for place in range(len(limits))]
    shares = (sum(each.over for each in some) / max(1, sum(each.of for each in some)) for some in counts)
    return max(share / limit.allowed for share, limit in zip(shares, limits, strict=True))


def table(found: Sequence[dict[Lateness, Reported]]) -> str:
    """A line for each lateness."""
    columns = ("near stretches discarded", "found", "interval contains it", "lower end above it", "error, median")
    lines = [f"| the client is late | {' | '.join(columns)} |", "|---" * 6 + "|"]
    for lateness in get_args(Lateness):
        mine = [each[lateness] for each in found]
        errors = [each.error for each in mine if each.error is not None]
        cells = (
            f"{sum(each.late for each in mine)} of {sum(each.near for each in mine)}",
            f"{len(errors)} of {len(mine)}",
            f"{100 * sum(each.covers for each in mine) / len(errors):.1f}%",
            str(sum(each.too_high for each in mine)),
            f"{100 * statistics.median(errors):+.1f}%",
        )
        lines.append(f"| {lateness} | {' | '.join(cells)} |")
    return "\n".join(lines)
