"""Twins of simulated endpoints: ``python -m tests.performance capacity-twin --help``.

A search explores each endpoint, a wave of a minute at the lower end of its interval confirms; from both a twin is made
and judged. Of those that fit: coverage of the truth by the twin's interval, and its half-width beside the search's.
Endpoints that are no queue with one line must be refused.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, median
from typing import TYPE_CHECKING

import numpy as np

from server_capacity.models.twin.fit import Refused, fit
from server_capacity.models.twin.misfit import judge
from server_capacity.models.twin.trace import Trace
from server_capacity.search.settings import Settings
from tests.performance.capacity.driver import Wave, play
from tests.performance.capacity.endpoints import ENDPOINTS, FOUR_EXACT, FOUR_EXPONENTIAL, Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from server_capacity.models.twin.twin import Twin, TwinEstimate

_CONFIRMATION_S = 60.0
_HEAD = "endpoint             twins  refused  coverage    bias    half  /search  CPU s"
_OTHERS = {
    "lifo_exact": ("exact", replace(FOUR_EXACT, order="lifo")),
    "lifo_exponential": ("exponential", replace(FOUR_EXPONENTIAL, order="lifo")),
    "staying_exact": ("exact", replace(FOUR_EXACT, most_servers=6, threshold=16, keep_s=15.0)),
    "staying_exponential": ("exponential", replace(FOUR_EXPONENTIAL, most_servers=6, threshold=16, keep_s=15.0)),
    "cold_exact": ("exact", replace(FOUR_EXACT, cold_requests=3000.0, cold_factor=2.0)),
    "cold_exponential": ("exponential", replace(FOUR_EXPONENTIAL, cold_requests=3000.0, cold_factor=2.0)),
}
FITTING = ("exact", "exponential", "single", "lognormal")
REFUSED = ("refusing", "batcher", "plain_batcher", *_OTHERS)


@dataclass(frozen=True, slots=True)
class Made:
    """One twin, or why there is none: ``half`` of its interval and ``search_half``, as shares of the rate."""

    reason: str
    rate: float = 0.0
    half: float = 0.0
    covers: bool = False
    search_half: float | None = None
    seconds: float = 0.0


def endpoint_of(name: str) -> Endpoint:
    """One of those that are searched, or another that is no queue with one line."""
    if name in ENDPOINTS:
        return ENDPOINTS[name]
    like, rules = _OTHERS[name]
    return replace(ENDPOINTS[like], name=name, title=name.replace("_", ", "), rules=rules, truth=None)


def made(endpoint: Endpoint, time_s: float, seed: int) -> Made:
    """Explores, confirms, fits and judges."""
    played = play(endpoint, Settings(time_s=time_s), seed)
    interval = played.answer.interval
    rate = interval.low if interval else played.answer.rate or played.answer.at_least or 1.0
    confirming = Wave(endpoint, seed + 1_000_000)
    confirming.send(rate, 0.0, _CONFIRMATION_S)
    confirming.settle(np.inf)
    began = time.process_time()
    twin = twin_of(endpoint, traced(played.wave), traced(confirming))
    if isinstance(twin, Refused):
        return Made(twin.reason, seconds=time.process_time() - began)
    found = twin.capacity(endpoint.limits)
    search_half = interval.width / 2 / (interval.low + interval.high) * 2 if interval else None
    return _reported(found, endpoint.truth, search_half, time.process_time() - began)


def twin_of(endpoint: Endpoint, exploration: Trace, confirmation: Trace) -> Twin | Refused:
    """The twin that predicted the confirmation wave."""
    twin = fit([exploration])
    if isinstance(twin, Refused):
        return twin
    misfit = judge(twin, confirmation, endpoint.limits)
    return twin if misfit.fits else Refused(f"misfit: {misfit.reason}")


def traced(wave: Wave) -> Trace:
    """All its requests."""
    at, done = wave.at[: wave.count], wave.done[: wave.count]
    return Trace(at, np.abs(done) - at, done > 0)


def _reported(found: TwinEstimate | None, truth: float | None, search_half: float | None, seconds: float) -> Made:
    if found is None or found.rate is None or found.interval is None:
        return Made("no rate keeps the limits")
    low, high = found.interval.low, found.interval.high
    covers = truth is not None and low <= truth <= high
    return Made("", found.rate, (high - low) / 2 / found.rate, covers, search_half, seconds)


def line(endpoint: Endpoint, twins: Sequence[Made]) -> str:
    """A row of the table."""
    fits = [twin for twin in twins if not twin.reason]
    row = f"{endpoint.name:20} {len(twins):5} {1 - len(fits) / len(twins):8.1%}"
    if not fits or endpoint.truth is None:
        return row + "".join(f" {twin.rate:.4g}/s" for twin in fits[:8])
    ratios = [twin.half / twin.search_half for twin in fits if twin.search_half]
    bias = fmean(twin.rate / endpoint.truth - 1 for twin in fits)
    return (
        f"{row} {fmean(twin.covers for twin in fits):9.1%} {bias:+7.2%} {median(twin.half for twin in fits):7.2%} "
        f"{median(ratios) if ratios else float('nan'):8.2f} {fmean(twin.seconds for twin in fits):6.1f}"
    )


def reasons(twins: Iterable[Made]) -> str:
    """Each reason, and how many have it."""
    counts: dict[str, int] = {}
    for twin in twins:
        plain = "".join("#" if letter.isdigit() else letter for letter in twin.reason)
        counts[plain] = counts.get(plain, 0) + 1
    return "\n".join(f"    {count} x {reason}" for reason, count in sorted(counts.items()) if reason)


def main(arguments: Sequence[str] | None = None) -> None:
    """The table, printed."""
    parser = argparse.ArgumentParser(prog="python -m tests.performance capacity-twin", description=__doc__)
    parser.add_argument("--endpoint", action="append", choices=[*FITTING, *REFUSED], help="default: all")
    parser.add_argument("--searches", type=int, default=300, metavar="N", help="of each endpoint (default: 300)")
    parser.add_argument("--seed", type=int, default=1, help="the first search's; the next has the next")
    parser.add_argument("--time", type=float, default=180.0, metavar="S", help="of load (default: 180)")
    parser.add_argument("--processes", type=int, default=1, metavar="N")
    parser.add_argument("--reasons", action="store_true", help="say why twins were refused")
    options = parser.parse_args(arguments)
    print(_HEAD)
    seeds = range(options.seed, options.seed + options.searches)
    with ProcessPoolExecutor(options.processes) as pool:
        for name in options.endpoint or (*FITTING, *REFUSED):
            endpoint = endpoint_of(name)
            twins = list(pool.map(partial(made, endpoint, options.time), seeds))
            print(line(endpoint, twins), flush=True)
            if options.reasons:
                print(reasons(twins), flush=True)
