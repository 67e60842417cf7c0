"""The easy way out: doubling and bisecting with separate waves, and an interval that takes requests as independent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from server_capacity.search.answer import Answer, Interval
from tests.performance.capacity.queues import Queue

if TYPE_CHECKING:
    from server_capacity.search.limits import Limit
    from tests.performance.capacity.endpoints import Endpoint

TRIAL_S = 10.0
START_RPS = 10.0
_NARROW = 1.01
_Z = 1.959964


class Trial(NamedTuple):
    """A wave at one rate from an empty queue: what it says, and what it says for sure (None: nothing)."""

    rate: float
    keeps: bool
    surely: bool | None


def wilson(over: int, of: int) -> tuple[float, float]:
    """The 95% interval of a share whose requests are independent."""
    if not of:
        return 0.0, 1.0
    share, square = over / of, _Z * _Z / of
    middle = (share + square / 2) / (1 + square)
    half = _Z / (1 + square) * math.sqrt(share * (1 - share) / of + square / of / 4)
    return max(0.0, middle - half), min(1.0, middle + half)


def answer(trials: list[Trial]) -> Answer:
    """The last rate that held; the interval is from what surely held to what surely did not."""
    failed = min((trial.rate for trial in trials if not trial.keeps), default=math.inf)
    rate = max((trial.rate for trial in trials if trial.keeps and trial.rate < failed), default=0.0)
    high = min((trial.rate for trial in trials if trial.surely is False), default=math.inf)
    low = max((trial.rate for trial in trials if trial.surely and trial.rate < high), default=0.0)
    return Answer("found", rate, Interval(low, high))


def search(endpoint: Endpoint, time_s: float, seed: int) -> tuple[Answer, float]:
    """The answer, and the seconds of load that it took: at most ``time_s``."""
    trials: list[Trial] = []
    low, high, rate = 0.0, math.inf, START_RPS
    while (len(trials) + 1) * TRIAL_S <= time_s and high > low * _NARROW:
        trial = _trial(endpoint, rate, 1000 * seed + len(trials))
        trials.append(trial)
        low, high = (rate, high) if trial.keeps else (low, rate)
        rate = 2 * rate if high == math.inf else (low + high) / 2
    return answer(trials), len(trials) * TRIAL_S


def _trial(endpoint: Endpoint, rate: float, seed: int) -> Trial:
    verdicts = [_verdict(endpoint, limit, rate, seed) for limit in endpoint.limits]
    surely = [sure for _, sure in verdicts]
    return Trial(
        rate, all(keeps for keeps, _ in verdicts), False if False in surely else None if None in surely else True
    )


def _verdict(endpoint: Endpoint, limit: Limit, rate: float, seed: int) -> tuple[bool, bool | None]:
    even = endpoint.arrivals == "constant"
    counts = Queue(endpoint.rules, seed).long_run(
        seed + 500, rate, limit.bound_s or math.inf, warm_s=0.0, window_s=TRIAL_S, windows=1, even=even
    )
    sent, slow, refused = (int(part[0]) for part in counts)
    over, of = (refused, sent) if limit.metric == "success" else (slow, sent - refused)
    low, high = wilson(over, of)
    surely = True if high <= limit.allowed else False if low > limit.allowed else None
    return over <= limit.allowed * of, surely
