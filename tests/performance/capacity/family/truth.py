"""The true capacity of a member, its error, and the score of an oracle that counts at the true rate.

The oracle counts for a search's whole time at the true rate, from a warm queue, and knows the curve's slope there. Its
interval is as wide as covers 95%, and its score is that width, as its median interval misses nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tests.performance.capacity.family.drawing import drawn
from tests.performance.capacity.queues import Queue
from tests.performance.capacity.truths import closed_form

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from server_capacity.search.limits import Limit
    from tests.performance.capacity.endpoints import Endpoint
    from tests.performance.capacity.family.drawing import Member

    Floats = NDArray[np.float64]

TIMES_S = (60, 120, 300)
_ARRIVALS, _FEWER = 5e6, 5e5
_LEAST, _MOST = 0.01, 1.2  # of the rate with every server busy
_STEP = 1.06
_APART, _LEAST_APART = 0.015, 0.001
_LEAST_SLOPE, _SURELY, _FULL = 0.3, 0.03, 0.995
_WINDOW_S, _MOST_WINDOWS, _LEAST_WINDOWS = 60.0, 2_000_000, 40
_BATCHES = 40
_ENOUGH = 200  # windows that tell a quantile
_IDLE, _IDLE_PART = 0.02, 0.3


class Truth(NamedTuple):
    """``rate`` (requests/s), good to ``sd`` of itself; ``slope``: d ln share / d ln rate.

    ``scores``: the oracle's, over the rate, for each of ``TIMES_S``.
    """

    rate: float
    sd: float
    slope: float
    scores: tuple[float, ...]


class _Windows(NamedTuple):
    """Of each window of so many ``seconds`` the share over a limit, and the requests that it is of."""

    seconds: float
    over: Floats
    of: Floats

    @property
    def share(self) -> float:
        return float(self.over.sum() / max(1.0, self.of.sum()))

    def joined(self, times: int) -> _Windows:
        """Windows so many times as long."""
        count = len(self.of) // times
        parts = (each[: count * times].reshape(count, times).sum(axis=1) for each in (self.over, self.of))
        return _Windows(self.seconds * times, *parts)

    def away(self, share: float) -> Floats:
        """Each window's share over that of all, less 1."""
        return np.asarray(self.over / np.maximum(self.of, 1.0) / max(share, 1e-12) - 1.0)


def member_of(kind: str, seed: str) -> tuple[int, Member, Truth]:
    """The first draw whose limits an idle endpoint keeps well and that has a capacity; with its attempt's number."""
    for attempt in range(200):
        member = drawn(kind, seed, attempt)
        if is_kept_idle(member.lasting):
            truth = truth_of(member)
            if truth is not None:
                return attempt, member, truth
    raise AssertionError(f"no endpoint of {kind} was drawn in 200 attempts")


def truth_of(member: Member) -> Truth | None:
    """The lowest rate at which a limit gives out; None where none does, or where no simulation is long enough to tell.

    That is so beside saturation, of a queue without an end, and where a curve is so flat that its error is large.
    """
    found = [each for limit in member.limits if (each := _of_limit(member.lasting, limit)) is not None]
    truth = min(found, key=lambda each: each.rate, default=None)
    endless = member.rules.queue_limit is None
    if truth is None or truth.sd > _SURELY or (endless and truth.rate > _FULL * member.rules.most):
        return None
    baseline = member.change.baseline
    if baseline == 1.0:
        return truth
    # While less is asked for than credits are earned they stay; a random walk to where they are spent is that rare.
    rules, at_time = member.rules, member.searched(TIMES_S[0]).rules
    correction = math.log(1.0 / member.limits[0].allowed) * rules.mean_s / (2.0 * at_time.burst_s)
    if correction > _SURELY:
        return None
    rate = baseline * rules.most * (1.0 - correction)
    return truth if truth.rate < rate else truth._replace(rate=rate, sd=correction)


def is_kept_idle(endpoint: Endpoint) -> bool:
    """Tells whether an endpoint with next to nothing to do has far fewer over its limits than is allowed."""
    rate = _IDLE * endpoint.rules.most
    seconds = max(30_000 / rate, 200 * endpoint.rules.pause_every_s)
    return all(
        _counted(endpoint, limit, rate, rate * seconds).share <= _IDLE_PART * limit.allowed for limit in endpoint.limits
    )


def _of_limit(endpoint: Endpoint, limit: Limit) -> Truth | None:
    low, high = _LEAST * endpoint.rules.most, _MOST * endpoint.rules.most
    if limit.bound_s is None and endpoint.rules.queue_limit is None:
        return None
    if endpoint.rules.batch_size > 1:  # the share may fall again: the first crossing counts
        high = low
        while _counted(endpoint, limit, high, 3e5).share <= limit.allowed:
            low, high = high, high * _STEP
            if low > _MOST * endpoint.rules.most:
                return None
    elif _counted(endpoint, limit, high, 1e5).share <= limit.allowed:
        return None
    exactly = closed_form(endpoint) if limit is endpoint.limits[0] else None
    rate = exactly or _bisected(endpoint, limit, low, high)
    apart = _APART
    arrivals = _FEWER
    for _ in range(8):
        rates = rate / (1.0 + apart), rate * (1.0 + apart)
        counted = [_counted(endpoint, limit, each, arrivals, seed=3) for each in rates]
        logs = [math.log(max(each.share, 1e-9) / limit.allowed) for each in counted]
        slope = max(_LEAST_SLOPE, (logs[1] - logs[0]) / math.log(rates[1] / rates[0]))
        found = exactly or rates[0] * math.exp(min(4 * apart, max(-2 * apart, -logs[0] / slope)))
        near, narrow = rates[0] / (1 + apart) <= found <= rates[1] * (1 + apart), apart * slope <= 1.0
        if near and (narrow or apart == _LEAST_APART):
            if arrivals == _ARRIVALS:
                break
            arrivals = _ARRIVALS
        rate, apart = found, apart if narrow else max(_LEAST_APART, 0.5 / slope)
    scores = tuple(_score(counted, slope, seconds) for seconds in TIMES_S)
    if exactly:
        return Truth(exactly, 0.0, slope, scores)
    # Of a cliff, a rate on either side is all that is known.
    error = max(_error(each) for each in counted) / slope if counted[0].over.any() else apart
    return Truth(found, error, slope, scores)


def _bisected(endpoint: Endpoint, limit: Limit, low: float, high: float) -> float:
    while high > 1.01 * low:
        rate = math.sqrt(low * high)
        arrivals = 1e5 if high > 1.2 * low else 5e5
        kept = _counted(endpoint, limit, rate, arrivals).share <= limit.allowed
        low, high = (rate, high) if kept else (low, rate)
    return math.sqrt(low * high)


def _counted(endpoint: Endpoint, limit: Limit, rate: float, arrivals: float, seed: int = 1) -> _Windows:
    """The same random numbers at each rate."""
    seconds = arrivals / rate
    window_s = min(max(_WINDOW_S, seconds / _MOST_WINDOWS), seconds / _LEAST_WINDOWS)
    warm_s = min(0.2 * seconds, 5000 * endpoint.rules.mean_s)
    counts = Queue(endpoint.rules, seed).long_run(
        seed + 1, rate, limit.bound_s or math.inf, warm_s, window_s, round(seconds / window_s)
    )
    if limit.metric == "success":
        return _Windows(window_s, counts.refused.astype(float), counts.of.astype(float))
    return _Windows(window_s, counts.over.astype(float), (counts.of - counts.refused).astype(float))


def _error(counted: _Windows) -> float:
    """The standard error of ln(share), by batch means."""
    away = counted.joined(max(1, len(counted.of) // _BATCHES)).away(counted.share)
    return float(away.std(ddof=1)) / math.sqrt(len(away))


def _score(counted: list[_Windows], slope: float, seconds: float) -> float:
    times = max(1, round(seconds / counted[0].seconds))
    if len(counted[0].of) // times >= _ENOUGH:
        away = np.concatenate([each.joined(times).away(each.share) for each in counted])
        return 2.0 * float(np.quantile(np.abs(away), 0.95)) / slope
    away = np.concatenate([each.away(each.share) for each in counted])
    return 2.0 * 1.96 * float(away.std()) * math.sqrt(counted[0].seconds / seconds) / slope
