"""The true capacity of an endpoint: closed forms, or the share over a limit in a long simulation."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.performance.capacity.endpoints import ENDPOINTS, Endpoint
from tests.performance.capacity.queues import Queue, Rules

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from server_capacity.search.limits import Limit

_ARRIVALS = 4_000_000
KEPT = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "inference_benchmarker" / "simulated"


def share_over(endpoint: Endpoint, limit: Limit, rate: float, arrivals: float, seed: int = 1) -> float:
    """The share over a limit at a rate, in so many arrivals after a warm-up."""
    seconds = arrivals / rate
    warm_s = min(0.2 * seconds, 2000 * endpoint.rules.mean_s)
    even = endpoint.arrivals == "constant"
    counts = Queue(endpoint.rules, seed).long_run(
        seed + 1, rate, limit.bound_s or math.inf, warm_s, seconds, windows=1, even=even
    )
    of, over, refused = (int(part.sum()) for part in counts)
    return refused / of if limit.metric == "success" else over / max(1, of - refused)


def response_longer(servers: int, load: float, times_mean: float) -> float:
    """P(response time > so many mean service times) in M/M/c with ``load`` = rate x mean / servers."""
    offered = servers * load
    blocking = 1.0
    for n in range(1, servers + 1):
        blocking = offered * blocking / (n + offered * blocking)
    waits = blocking / (1 - load * (1 - blocking))
    slack = servers - 1 - offered
    beyond = times_mean if abs(slack) < 1e-9 else -math.expm1(-slack * times_mean) / slack
    return math.exp(-times_mean) * (1 + waits * beyond)


def refused_share(servers: int, load: float, room: int) -> float:
    """The share that M/M/c refuses where ``room`` may wait."""
    weights = [1.0]
    for n in range(1, servers + room + 1):
        weights.append(weights[-1] * load * servers / min(n, servers))
    return weights[-1] / sum(weights)


def closed_form(endpoint: Endpoint) -> float | None:
    """The capacity of M/M/c with a limit on response time, or on refusals where its queue is limited; else None.

    Requests that are routed at random make as many of them as there are instances.
    """
    rules, limit = endpoint.rules, endpoint.limits[0]
    plain = Rules(
        rules.servers,
        rules.mean_s,
        "exponential",
        rules.cv,
        queue_limit=rules.queue_limit if limit.bound_s is None else None,
        instances=rules.instances,
    )
    if rules != plain or endpoint.arrivals == "constant":
        return None

    def share(load: float) -> float:
        if limit.bound_s is None:
            return refused_share(rules.servers, load, rules.queue_limit or 0)
        return response_longer(rules.servers, load, limit.bound_s / rules.mean_s)

    low, high = 0.0, 1.0
    for _ in range(60):
        load = (low + high) / 2
        low, high = (low, load) if share(load) > limit.allowed else (load, high)
    return low * rules.most


def first_crossing(endpoint: Endpoint, limit: Limit, arrivals: float = _ARRIVALS) -> float:
    """The lowest rate at which a limit breaks; inf where none does.

    A coarse walk up, bisection, then a line between two rates of all the arrivals: the same random numbers for each.
    """
    most = endpoint.rules.most
    high = 0.02 * most
    while share_over(endpoint, limit, high, arrivals / 30) <= limit.allowed:
        high *= 1.08
        if high > 1.5 * most:
            return math.inf
    low, high = high / 1.15, high * 1.03
    for _ in range(5):
        rate = math.sqrt(low * high)
        kept = share_over(endpoint, limit, rate, arrivals / 4) <= limit.allowed
        low, high = (rate, high) if kept else (low, rate)
    rates = (math.sqrt(low * high) / 1.007, math.sqrt(low * high) * 1.007)
    below, above = (math.log(share_over(endpoint, limit, rate, arrivals) + 1e-9) for rate in rates)
    part = (math.log(limit.allowed) - below) / max(above - below, 1e-9)
    return float(rates[0] * 1.007 ** (2 * min(3.0, max(-2.0, part))))


def truth(endpoint: Endpoint) -> float:
    """The lowest of the limits' first crossings; requests/s, inf where none is broken."""
    return min(first_crossing(endpoint, limit) for limit in endpoint.limits)


def with_truth(endpoint: Endpoint) -> Endpoint:
    """The same endpoint with its truth: of a server that remembers before it grows, of a slow start once it is over."""
    if endpoint.truth is not None:
        return endpoint
    fresh = replace(endpoint, rules=replace(endpoint.rules, most_servers=0, slow_s=0.0))
    [found] = kept(f"truth-{endpoint.name}", repr((fresh.rules, fresh.limits)), lambda: [truth(fresh)])
    return replace(endpoint, truth=found)


def kept(name: str, key: str, make: Callable[[], Sequence[float]]) -> list[float]:
    """What ``make`` gives; from the user's cache where it was made under this name for the same key before."""
    file = KEPT / f"{name}.json"
    if file.exists():
        known = json.loads(file.read_text())
        if known["key"] == key:
            return [float(value) for value in known["values"]]
    values = list(make())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"key": key, "values": values}))
    return values


def precise(endpoint: Endpoint, arrivals: float = 1e8) -> tuple[float, float]:
    """The capacity and its relative standard deviation: closed form, or between two rates of so many arrivals each."""
    exactly = closed_form(endpoint)
    if exactly is not None:
        return exactly, 0.0
    limit = endpoint.limits[0]
    near = first_crossing(endpoint, limit)
    rates = (0.995 * near, 1.005 * near)
    windows = 100
    logs, errors = [], []
    for rate in rates:
        seconds = arrivals / rate / windows
        counts = Queue(endpoint.rules, 3).long_run(4, rate, limit.bound_s or math.inf, 600.0, seconds, windows)
        shares = counts.over / (counts.of - counts.refused)
        logs.append(math.log(shares.mean() / limit.allowed))
        errors.append(float(shares.std()) / math.sqrt(windows) / limit.allowed)
    slope = (logs[1] - logs[0]) / math.log(rates[1] / rates[0])
    return float(rates[0] * math.exp(-logs[0] / slope)), max(errors) / slope


if __name__ == "__main__":
    for each in ENDPOINTS.values():
        print(each.name, each.truth, *precise(each), flush=True)
