"""The prior: kinds of endpoints, and how one is drawn.

Of every kind alike:

- The rate with every server busy is log-uniform: of 70% within 5 to 5,000 requests/s, of 15% each within 0.2 to 5 and
  5,000 to 20,000.
- Servers are log-uniform within 1 to 64. Services are exact, exponential, lognormal (CV log-uniform within 0.2 to 1.5)
  or bimodal (one in ten is long; CV uniform within 0.3 to 2), a quarter each.
- The limit is on p50, p90, p95, p99 (twice as often) or p99.9, and log-uniform within 1.5 to 20 services; or, of a kind
  that refuses, on success: 95%, 99% or 99.9%.

A draw counts where an idle endpoint has at most 0.3 times the allowed share over; ``truth.py`` looks at that.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tests.performance.capacity.endpoints import Endpoint, success, times
from tests.performance.capacity.queues import Rules, Service

if TYPE_CHECKING:
    from collections.abc import Callable

    from server_capacity.search.limits import Limit

    Random = np.random.Generator

OPEN = (
    *("exact", "exponential", "lognormal", "bimodal", "batches", "refusing", "bounded", "sharing", "last first"),
    *("instances", "pauses", "slow start", "credits", "slow-down", "leak", "client"),
)
"""Kinds to choose and to report by."""
HELD_BACK = ("urgent", "fewest", "in turn", "correlated", "cold cache", "remembering")
"""Kinds that only the sealed set has."""
CHANGING = ("slow-down", "leak", "credits")
"""Kinds whose truth is the rate that lasts; it sets in while the search runs."""
_RATES = ((0.7, 5.0, 5e3), (0.15, 0.2, 5.0), (0.15, 5e3, 2e4))
_PERCENTILES = (50, 90, 95, 99, 99, 99.9)


@dataclass(frozen=True, slots=True)
class Change:
    """A change while a search runs; parts are of its time.

    Up to ``after`` services take ``before`` times as long; they grow by ``growth`` times the first; credits for service
    at full speed last for ``credit``, and then servers keep ``baseline`` of their speed.
    """

    after: float = 0.0
    before: float = 1.0
    growth: float = 0.0
    credit: float = 0.0
    baseline: float = 1.0


@dataclass(frozen=True, slots=True)
class Member:
    """An endpoint of the family: ``rules`` are those that last.

    ``client``: the most that the client can send, over the true capacity.
    """

    kind: str
    rules: Rules
    limits: tuple[Limit, ...]
    change: Change = Change()
    client: float | None = None

    @property
    def slowdown(self) -> float:
        """So many times as long services take in the end as at first; 1 where they do not change."""
        return (1.0 + self.change.growth) / (self.change.before * self.change.baseline)

    @property
    def lasting(self) -> Endpoint:
        """The endpoint once nothing changes any more."""
        rules = replace(self.rules, slow_s=0.0, slow_factor=1.0, cold_requests=0.0, cold_factor=1.0, most_servers=0)
        return Endpoint(self.kind, repr(rules), rules, self.limits)

    def searched(self, time_s: float) -> Endpoint:
        """The endpoint for a search of so many seconds."""
        change, rules = self.change, self.rules
        if change.after:
            rules = replace(rules, slow_s=change.after * time_s, slow_factor=change.before)
        if change.growth:
            rules = replace(rules, mean_s=rules.mean_s / (1.0 + change.growth), leak=change.growth / time_s)
        if change.credit:
            busy = 0.7 * (1.0 - change.baseline) * rules.servers  # of servers that do more than what they earn
            rules = replace(rules, burst_s=change.credit * time_s * busy, baseline=change.baseline)
        return Endpoint(self.kind, repr(rules), rules, self.limits)

    @property
    def digest(self) -> str:
        """Of everything that was drawn."""
        drawn = repr(self).replace(", turns=None", "")  # limits had no turns when the truths were made
        return hashlib.sha256(drawn.encode()).hexdigest()[:12]


def drawn(kind: str, seed: str, attempt: int) -> Member:
    """A member of a kind, whether its limit can be kept or not."""
    number = int.from_bytes(hashlib.sha256(f"{seed} {kind} {attempt}".encode()).digest()[:8])
    random = np.random.default_rng(number)
    return _MAKING.get(kind, _plain)(kind, random)


def _log_uniform(random: Random, low: float, high: float) -> float:
    return math.exp(random.uniform(math.log(low), math.log(high)))


def _rate(random: Random) -> float:
    place = int(random.choice(len(_RATES), p=[part for part, _, _ in _RATES]))
    return _log_uniform(random, *_RATES[place][1:])


def _rules(random: Random, service: Service | None = None, most_servers: float = 64.0) -> Rules:
    """Servers in order of arrival."""
    servers = round(_log_uniform(random, 1.0, most_servers))
    kinds: tuple[Service, ...] = ("exact", "exponential", "lognormal", "bimodal")
    kind = service or kinds[random.integers(4)]
    cv = {"exact": 0.0, "exponential": 1.0}.get(kind)
    if cv is None:
        cv = _log_uniform(random, 0.2, 1.5) if kind == "lognormal" else float(random.uniform(0.3, 2.0))
    return Rules(servers, servers / _rate(random), kind, cv)


def _time_limits(random: Random, service_s: float, most: float = 20.0) -> tuple[Limit, ...]:
    percentile = float(random.choice(_PERCENTILES))
    return times(percentile, service_s * _log_uniform(random, 1.5, most)), success(0.95)


def _plain(kind: str, random: Random) -> Member:
    services: dict[str, Service] = {
        "exact": "exact",
        "exponential": "exponential",
        "lognormal": "lognormal",
        "bimodal": "bimodal",
    }
    rules = _rules(random, services.get(kind))
    return Member(kind, rules, _time_limits(random, rules.mean_s))


def _batches(kind: str, random: Random) -> Member:
    """Each request of a batch adds to its service, so that the share over can rise, fall and rise again."""
    rules, size = _rules(random, "exact", 8.0), int(2 ** random.integers(1, 6))
    mean_s = rules.mean_s * size
    delay_s, each_s = mean_s * float(random.uniform(0.2, 3.0)), mean_s * float(random.uniform(0.0, 0.1))
    rules = replace(rules, mean_s=mean_s, batch_size=size, batch_delay_s=delay_s, each_s=each_s)
    percentile = float(random.choice(_PERCENTILES))
    bound_s = delay_s + (mean_s + size * each_s) * float(random.uniform(1.1, 6.0))
    return Member(kind, rules, (times(percentile, bound_s), success(0.95)))


def _refusing(kind: str, random: Random) -> Member:
    rules = _rules(random)
    rules = replace(rules, queue_limit=int(random.integers(1, 4 * rules.servers + 8)))
    share = success(float(random.choice([0.95, 0.99, 0.999])))
    return Member(kind, rules, (share,))


def _bounded(kind: str, random: Random) -> Member:
    """Both limits may be the one that gives out first."""
    rules = _rules(random)
    rules = replace(rules, queue_limit=int(random.integers(4, 20 * rules.servers + 20)))
    percentile = float(random.choice(_PERCENTILES))
    bound_s = rules.mean_s * _log_uniform(random, 1.5, 20.0)
    return Member(kind, rules, (times(percentile, bound_s), success(float(random.choice([0.95, 0.99, 0.999])))))


def _ordered(kind: str, random: Random) -> Member:
    rules = _rules(random)
    if kind == "sharing":
        rules = replace(rules, order="shared")
    elif kind == "last first":
        rules = replace(rules, order="lifo")
    else:
        rules = replace(rules, order="urgent", urgent=float(random.uniform(0.1, 0.6)))
    return Member(kind, rules, _time_limits(random, rules.mean_s))


def _routed(kind: str, random: Random) -> Member:
    rules, instances = _rules(random, most_servers=16.0), int(random.integers(2, 9))
    rules = replace(rules, instances=instances, mean_s=rules.mean_s * instances)
    if kind != "instances":
        rules = replace(rules, routing="fewest" if kind == "fewest" else "in turn")
    return Member(kind, rules, _time_limits(random, rules.mean_s))


def _pauses(kind: str, random: Random) -> Member:
    every_s = _log_uniform(random, 5.0, 30.0)
    rules = replace(_rules(random), pause_every_s=every_s, pause_s=_log_uniform(random, 0.05, 0.5))
    return Member(kind, rules, _time_limits(random, rules.mean_s))


def _slow_start(kind: str, random: Random) -> Member:
    member = _plain(kind, random)
    slow_s, factor = _log_uniform(random, 3.0, 25.0), float(random.uniform(1.3, 4.0))
    return replace(member, rules=replace(member.rules, slow_s=slow_s, slow_factor=factor))


def _changing(kind: str, random: Random) -> Member:
    member = _plain(kind, random)
    if kind == "slow-down":
        slower = _log_uniform(random, 1.1, 3.0)
        return replace(member, change=Change(after=float(random.uniform(0.1, 0.7)), before=1.0 / slower))
    if kind == "leak":
        return replace(member, change=Change(growth=_log_uniform(random, 0.1, 2.0)))
    credit, baseline = float(random.uniform(0.1, 0.6)), float(random.uniform(0.3, 0.8))
    return replace(member, change=Change(credit=credit, baseline=baseline))


def _client(kind: str, random: Random) -> Member:
    return replace(_plain(kind, random), client=_log_uniform(random, 0.4, 1.6))


def _correlated(kind: str, random: Random) -> Member:
    """Services are alike over so many requests in a row."""
    rules = _rules(random, "lognormal")
    together = _log_uniform(random, 3.0, 1000.0)
    rules = replace(rules, correlation=math.exp(-1.0 / together))
    return Member(kind, rules, _time_limits(random, rules.mean_s))


def _cold_cache(kind: str, random: Random) -> Member:
    member = _plain(kind, random)
    requests = member.rules.most * _log_uniform(random, 3.0, 20.0)
    rules = replace(member.rules, cold_requests=requests, cold_factor=float(random.uniform(1.3, 4.0)))
    return replace(member, rules=rules)


def _remembering(kind: str, random: Random) -> Member:
    rules = _rules(random, most_servers=16.0)
    more, threshold = rules.servers * int(random.integers(2, 4)), rules.servers * int(random.integers(2, 9))
    rules = replace(rules, most_servers=more, threshold=threshold)
    return Member(kind, rules, _time_limits(random, rules.mean_s))


_MAKING: dict[str, Callable[[str, Random], Member]] = {
    "batches": _batches,
    "refusing": _refusing,
    "bounded": _bounded,
    "pauses": _pauses,
    "slow start": _slow_start,
    "client": _client,
    "correlated": _correlated,
    "cold cache": _cold_cache,
    "remembering": _remembering,
    **dict.fromkeys(("sharing", "last first", "urgent"), _ordered),
    **dict.fromkeys(("instances", "fewest", "in turn"), _routed),
    **dict.fromkeys(CHANGING, _changing),
}
