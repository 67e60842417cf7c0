"""The gain of a counter over a window, by its samples around the window's start and end. Pure.

``increase`` makes a value of the whole window of the samples inside, so what came in the gaps at its ends is guessed.
The last sample before the start and the first one after the end have it all, and what came in between besides.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from server_capacity.metrics.prometheus.promql.answers import FARTHEST, no_sample
from server_capacity.metrics.prometheus.scraping.series import MOST_MIXED

if TYPE_CHECKING:
    from inference_benchmarker.facts.server_metric import Interval
    from server_capacity.metrics.prometheus.promql.answers import Points

    Point = tuple[float, float]

MOST_UNSEEN = 0.1
"""Of the window's time: so much may be without samples where the value of the rest is extrapolated to it.

So much of the gain may also be what a counter gained faster around the window's end than within.
"""

MOST_AROUND = 0.5
"""As FARTHEST, where the counter stood still before the wave."""

DENSER = "scrape more often, or send for longer"
LATER = 'scrape more often, send for longer, or give a "lag" as long as a scrape\'s interval'
APART = f"from the last samples before the window's start and end: too few lie inside; {LATER}"
FASTER = "it gained more until the first sample after the window's end than it did within, so others may be in it"
BEGAN_AGAIN = "it began again from zero between the last samples before the window's start and end"
NOT_SHOWN = "the server does not show the samples that it is extrapolated from"


@dataclass(frozen=True, slots=True)
class Gain:
    """A gain, or None, with a sentence on it; ``near``: the window's own may be another."""

    value: float | None
    note: str | None = None
    near: bool = False


def gain(
    points: Points, interval: Interval, increase: float | None, *, restarted: bool = False, goes_on: bool = False
) -> Gain:
    """The gain that the best samples tell; ``increase``: what the server makes of those inside.

    ``restarted``: the counter fell within the window; ``goes_on``: our requests may count after its end.
    """
    before, inside, after = _divided(points, interval)
    advice = DENSER if after else LATER
    restarted = restarted or any(now < earlier for (_, earlier), (_, now) in pairwise(points))
    if before and after and not restarted:
        return _bracketed(points, interval, goes_on=goes_on)
    if increase is not None and not points:
        return Gain(increase, NOT_SHOWN, near=True)
    if increase is not None and len(inside) > 1 and unseen_s(inside, interval) <= FARTHEST * _length(interval):
        return Gain(increase, extrapolated(points, interval, advice), near=is_unseen(points, interval))
    return _compared(points, interval, advice, restarted=restarted)


def unseen_s(points: Points, interval: Interval) -> float:
    """The seconds of the window before its first sample and after its last one."""
    _, inside, _ = _divided(points, interval)
    return (inside[0][0] - interval.start) + (interval.end - inside[-1][0]) if inside else _length(interval)


def is_unseen(points: Points, interval: Interval) -> bool:
    """Tells whether these are too many for a value that is extrapolated from the samples inside."""
    return unseen_s(points, interval) > MOST_UNSEEN * _length(interval)


def extrapolated(points: Points, interval: Interval, advice: str = DENSER) -> str:
    """The sentence on a value that a server makes of the samples inside."""
    said = f"{unseen_s(points, interval):.2g} s of {_length(interval):.3g} s"
    advised = f": {advice}" if is_unseen(points, interval) else ""
    return f"extrapolated from the samples inside, which leave out {said}{advised}"


def _compared(points: Points, interval: Interval, advice: str, *, restarted: bool) -> Gain:
    """From the last sample before the start to the last one before the end, where these are close to them."""
    before, inside, _ = _divided(points, interval)
    if not inside:
        return Gain(None, no_sample(interval))
    if restarted and len(inside) == 1:
        return Gain(None, BEGAN_AGAIN)
    if restarted or not before:
        return Gain(None, extrapolated(points, interval, advice))
    (first, low), (last, high) = before[-1], inside[-1]
    if (interval.start - first) + (interval.end - last) <= FARTHEST * _length(interval):
        return Gain(high - low, APART, near=True)
    return Gain(
        None, f"the last samples before the window's start and end are {_apart(first, last, interval)}: {advice}"
    )


def _bracketed(points: Points, interval: Interval, *, goes_on: bool) -> Gain:
    """From before the start to after the end; where others count too, or the warm-up, interpolated between samples."""
    before, inside, after = _divided(points, interval)
    first, last, length = before[-1], after[0], _length(interval)
    if (interval.start - first[0]) + (last[0] - interval.end) > length:
        return Gain(None, _too_little(first[0], last[0], interval))
    early, late = [value for at, value in before if at <= interval.begin][-2:], [value for _, value in after][:2]
    alone = not interval.of_others and len({*early}) < 2
    low, high = _between(first, (*inside, last)[0], interval.start), _between((first, *inside)[-1], last, interval.end)
    if alone and interval.begin == interval.start:
        low = _Read(first[1], around=interval.start - first[0])
    if alone and not goes_on and len({*late}) < 2:
        high = _Read(last[1], around=last[0] - interval.end)
    value, most = high.value - low.value, MOST_AROUND if len(early) > 1 else FARTHEST
    if low.around + high.around > most * length or max(low.off, high.off) > MOST_MIXED * length:
        return Gain(value, _too_little(first[0], last[0], interval), near=True)
    step, unsure = max(low.step, high.step), max(low.unsure, high.unsure)
    said = f"interpolated at the window's ends between samples {step:.2g} s apart" if step else None
    if (
        alone
        and not high.step
        and len(late) < 2
        and _faster((interval.start, low.value), inside, last, interval) > MOST_UNSEEN * value
    ):
        return Gain(value, f"{FASTER}: {DENSER}", near=True)
    if said and unsure > MOST_MIXED * value:
        return Gain(value, f"{said}, between which it gained up to {unsure:,.4g}: {DENSER}", near=True)
    return Gain(value, said)


def _faster(start: Point, inside: Points, last: Point, interval: Interval) -> float:
    """By how much more it gained in its last step than at its fastest pace before; 0 where nobody can tell."""
    pairs = pairwise((start, *inside))
    pace = max(((high - low) / (now - before) for (before, low), (now, high) in pairs), default=None)
    if pace is None:
        return 0.0
    at, value = inside[-1]
    return last[1] - value - pace * (interval.end - at)


class _Read(NamedTuple):
    """A counter's value at an end of the window: of a sample ``around`` it, or between two, ``step`` seconds apart.

    ``off``: the smaller of the times to these two, in which it may be another. ``unsure``: by so much, where the
    counter did not grow evenly between them.
    """

    value: float
    around: float = 0.0
    step: float = 0.0
    off: float = 0.0
    unsure: float = 0.0


def _between(before: Point, after: Point, instant: float) -> _Read:
    (first, low), (last, high) = before, after
    if low == high or last == first:
        return _Read(high)
    value = low + (high - low) * (instant - first) / (last - first)
    off, unsure = min(instant - first, last - instant), max(value - low, high - value)
    return _Read(value, step=last - first, off=off, unsure=unsure)


def _divided(points: Points, interval: Interval) -> tuple[Points, Points, Points]:
    """The samples before the start, inside, and after the end, where one at the very end is, too."""
    before = tuple(each for each in points if each[0] <= interval.start)
    inside = tuple(each for each in points if interval.start < each[0] <= interval.end)
    return before, inside, tuple(each for each in points if each[0] >= interval.end)


def _too_little(first: float, last: float, interval: Interval) -> str:
    return f"the samples before the window's start and after its end are {_apart(first, last, interval)}: {DENSER}"


def _apart(first: float, last: float, interval: Interval) -> str:
    return f"{last - first:.3g} s apart, which says too little of {_length(interval):.3g} s"


def _length(interval: Interval) -> float:
    return interval.end - interval.start
