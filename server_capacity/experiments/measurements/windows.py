"""One-minute windows of the waves at the interval's lower end: how many kept every limit, and whether they drift."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.facts.stages import spans_of
from inference_benchmarker.words.units import NS
from server_capacity.experiments.measurements.counting import count_stages
from server_capacity.results.types.bounds import Interval
from server_capacity.results.types.capacity import Windows
from server_capacity.results.types.search_waves import Drift, Soak, SoakWindow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from server_capacity.experiments.measurements.confirmed import Confirmed
    from server_capacity.search.answer import Answer, Estimate
    from server_capacity.search.limits import Limit
    from server_capacity.search.stretch import Stretch

WINDOW_S = 60.0
Z95 = 1.96
SHORTER = 0.55  # bursts are shorter below the limit, as the share over is smaller: the power of it
LEAST_DRIFT, LEAST_ERRORS, LEAST_WINDOWS = 0.1, 4.0, 5
"""A drift is reported where the median changed by more than a tenth, and by so many standard errors of its line."""


def windows_of(confirmed: Sequence[Confirmed], limits: Sequence[Limit]) -> Windows | None:
    """The whole windows of the waves at the last rate that was confirmed; None where none was that long.

    Waves that were spoilt do not count.
    """
    stretches = [each.stage.stretch for each in confirmed if not each.spoilt]
    kept = [
        kept for stretch in stretches if stretch.rate == stretches[-1].rate for kept in windows_kept(stretch, limits)
    ]
    if not kept:
        return None
    interval = Interval(*wilson(sum(kept), len(kept)))
    return Windows(WINDOW_S, len(kept), sum(kept), sum(kept) / len(kept), interval)


def predicted_windows(found: Answer, limits: Sequence[Limit]) -> Windows | None:
    """The share of windows at the lower end by the bursts that were seen; None where it is unknown."""
    limit = next((limit for limit in limits if limit.expression == found.limit), None)
    estimate = next((each for each in found.estimates if each.limit == found.limit), None)
    if limit is None or estimate is None or found.interval is None:
        return None
    share = window_share(estimate, limit.allowed, found.interval.low, WINDOW_S)
    return None if share is None else Windows(WINDOW_S, share=share)


def windows_kept(stretch: Stretch, limits: Sequence[Limit]) -> list[bool]:
    """Of each whole window of a stretch whether its requests kept every limit."""
    windows: list[list[list[int]]] = [[[0, 0] for _ in limits] for _ in range(int(stretch.seconds // WINDOW_S))]
    for piece in stretch.slices:
        place = int((piece.start_s + piece.end_s - 2 * stretch.start_s) / 2 // WINDOW_S)
        if place < len(windows):
            for total, count in zip(windows[place], piece.counts, strict=True):
                total[0] += count.of
                total[1] += count.over
    return [
        all(over <= limit.allowed * of for limit, (of, over) in zip(limits, window, strict=True)) for window in windows
    ]


def wilson(kept: int, of: int) -> tuple[float, float]:
    """A 95% interval of a share (Wilson's)."""
    share, z2 = kept / of, Z95 * Z95
    middle, half = share + z2 / (2 * of), Z95 * math.sqrt(share * (1 - share) / of + z2 / (4 * of * of))
    return max((middle - half) / (1 + z2 / of), 0.0), min((middle + half) / (1 + z2 / of), 1.0)


def soak_of(confirmed: Sequence[Confirmed], limits: Sequence[Limit]) -> Soak | None:
    """The course of the last long wave: median and p99 of each window, and its drift; None without one."""
    soaks = [each for each in confirmed if each.soak]
    if not soaks:
        return None
    wave, stretch = soaks[-1].wave, count_stages(soaks[-1].wave, limits)[0].stretch
    times = [_times(part) for _, _, part in spans_of(wave, int(WINDOW_S * NS))]
    rows = [
        SoakWindow(WINDOW_S * place, p50, p99, kept)
        for place, (kept, (p50, p99)) in enumerate(zip(windows_kept(stretch, limits), times, strict=False))
    ]
    return Soak(stretch.seconds, rows, drift([row.p50 for row in rows]))


def _times(part: WaveFacts) -> tuple[float | None, float | None]:
    """Median and p99 of the response times of those that were answered well."""
    found = [(each.int("done") - each.arrived)[each.outcome("ok")] for each in part.records.parts()]
    values = np.concatenate(found) / NS if found else np.zeros(0)
    if not len(values):
        return None, None
    p50, p99 = np.quantile(values, (0.5, 0.99), method="inverted_cdf").tolist()
    return p50, p99


def drift(medians: Sequence[float | None]) -> Drift | None:
    """The straight line through the windows' medians: its values at both ends, and whether that is more than chance."""
    values = np.array([value for value in medians if value is not None])
    if len(values) < LEAST_WINDOWS:
        return None
    at = np.arange(len(values)) - (len(values) - 1) / 2
    slope = float(at @ values / (at @ at))
    rest = values - values.mean() - slope * at
    error = math.sqrt(float(rest @ rest) / (len(values) - 2) / float(at @ at))
    first, last = (float(values.mean() + slope * end) for end in (at[0], at[-1]))
    clear = abs(slope) > LEAST_ERRORS * error and abs(last - first) > LEAST_DRIFT * float(values.mean())
    return Drift(first, last, bool(clear))


def window_share(estimate: Estimate, allowed: float, rate: float, seconds: float) -> float | None:
    """Of windows of so many seconds at ``rate`` (requests/s), the share with at most ``allowed`` over the limit.

    Requests over in a window are negative binomial; None where the estimate has no slope or dispersion.
    """
    if estimate.rate is None or estimate.slope is None or estimate.dispersion is None:
        return None
    steps = estimate.slope * (rate / estimate.rate - 1.0)
    mean = rate * seconds * min(1.0, allowed * math.exp(steps))
    beyond = max((estimate.dispersion - 1.0) * math.exp(SHORTER * steps), 1e-6)
    return at_most(int(allowed * rate * seconds + 1e-9), mean, beyond)


def at_most(count: int, mean: float, beyond: float) -> float:
    """The chance of at most ``count``, of a negative binomial of variance ``mean`` (1 + ``beyond``)."""
    if count < 0:
        return 0.0
    shape, numbers = mean / beyond, np.arange(count)
    ratios = np.log((numbers + shape) / (numbers + 1) * beyond / (1.0 + beyond))
    logs = -shape * math.log1p(beyond) + np.concatenate([[0.0], np.cumsum(ratios)])
    return min(1.0, float(np.exp(logs).sum()))
