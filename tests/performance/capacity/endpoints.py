"""Endpoints with a known capacity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from server_capacity.search.limits import Limit
from tests.performance.capacity.queues import Rules

if TYPE_CHECKING:
    from inference_benchmarker.plan.load import Arrivals


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint and the limits it has to keep.

    ``truth``: the highest rate (requests/s) below which they hold in the long run, good to ``truth_sd`` of itself;
    None where it was not simulated yet.
    """

    name: str
    title: str
    rules: Rules
    limits: tuple[Limit, ...]
    truth: float | None = None
    truth_sd: float = 0.0
    arrivals: Arrivals = "poisson"


def times(percentile: float, bound_s: float) -> Limit:
    """The limit on a percentile of response time."""
    return Limit(f"p{percentile:g}<{bound_s * 1e3:g}ms", "response_time", round(1 - percentile / 100, 9), bound_s)


def success(share: float) -> Limit:
    """The limit on the share of requests that succeed."""
    return Limit(f"success>={share:g}", "success", round(1 - share, 9))


FOUR_EXACT = Rules(4, 0.02)
FOUR_EXPONENTIAL = Rules(4, 0.02, "exponential")
# Truths are those of truths.py: closed forms of M/M/1, M/M/c and M/M/c/K, else from 10^8 arrivals at each of two rates.
ENDPOINTS = {
    endpoint.name: endpoint
    for endpoint in (
        Endpoint(
            "exact", "4 x exactly 20 ms, p99 < 100 ms", FOUR_EXACT, (times(99, 0.1), success(0.95)), 173.965, 4e-4
        ),
        Endpoint(
            "exponential",
            "4 x exponential 20 ms, p99 < 200 ms",
            FOUR_EXPONENTIAL,
            (times(99, 0.2), success(0.95)),
            175.0452,
        ),
        Endpoint(
            "single",
            "1 x exponential 10 ms, p99 < 100 ms",
            Rules(1, 0.01, "exponential"),
            (times(99, 0.1), success(0.95)),
            53.9483,
        ),
        Endpoint(
            "lognormal",
            "16 x lognormal 50 ms, p95 < 150 ms",
            Rules(16, 0.05, "lognormal", 0.5),
            (times(95, 0.15), success(0.95)),
            300.42,
            3e-4,
        ),
        Endpoint(
            "refusing",
            "4 x exponential 20 ms, 10 may wait, success >= 99%",
            Rules(4, 0.02, "exponential", queue_limit=10),
            (success(0.99),),
            154.9226,
        ),
        Endpoint(
            "batcher",
            "batches of 8, 50 ms wait, 20 ms a batch and 0.95 ms a request, p99 < 75 ms",
            Rules(1, 0.02, batch_size=8, batch_delay_s=0.05, each_s=0.00095),
            (times(99, 0.075), success(0.95)),
            32.455,
            3e-4,
        ),
        Endpoint(
            "plain_batcher",
            "batches of 8, 50 ms wait, 20 ms a batch, p99 < 75 ms",
            Rules(1, 0.02, batch_size=8, batch_delay_s=0.05),
            (times(99, 0.075), success(0.95)),
            354.02,
            4e-4,
        ),
    )
}


def _held_out(title: str, rules: Rules, limit: Limit, truth: float, truth_sd: float = 0.0) -> Endpoint:
    """An endpoint that neither the search nor what it expects of queues was ever adjusted to."""
    limits = (limit,) if limit.bound_s is None else (limit, success(0.95))
    return Endpoint(title, title, rules, limits, truth, truth_sd)


HELD_OUT = {
    endpoint.name: endpoint
    for endpoint in (
        _held_out("8 x exponential 50 ms, p95 < 200 ms", Rules(8, 0.05, "exponential"), times(95, 0.2), 136.8102),
        _held_out("2 x exponential 30 ms, p99 < 200 ms", Rules(2, 0.03, "exponential"), times(99, 0.2), 40.5352),
        _held_out("32 x exponential 40 ms, p99 < 250 ms", Rules(32, 0.04, "exponential"), times(99, 0.25), 773.6117),
        _held_out("1 x exponential 20 ms, p90 < 100 ms", Rules(1, 0.02, "exponential"), times(90, 0.1), 26.9742),
        _held_out(
            "2 x exponential 30 ms, 6 may wait, success >= 97%",
            Rules(2, 0.03, "exponential", queue_limit=6),
            success(0.97),
            49.6117,
        ),
        _held_out(
            "16 x exponential 50 ms, 20 may wait, success >= 99%",
            Rules(16, 0.05, "exponential", queue_limit=20),
            success(0.99),
            292.2994,
        ),
        _held_out(
            "4 x lognormal 30 ms, as spread as exponential, p95 < 150 ms",
            Rules(4, 0.03, "lognormal", 1.0),
            times(95, 0.15),
            108.82,
            6e-4,
        ),
        _held_out(
            "24 x lognormal 80 ms, p90 < 160 ms", Rules(24, 0.08, "lognormal", 0.3), times(90, 0.16), 284.462, 4e-4
        ),
        _held_out("12 x exactly 40 ms, p95 < 100 ms", Rules(12, 0.04), times(95, 0.1), 277.785, 4e-4),
        _held_out("3 x bimodal 20 ms, p97 < 120 ms", Rules(3, 0.02, "bimodal", 0.8), times(97, 0.12), 122.603, 7e-4),
        _held_out(
            "batches of 4, 30 ms wait, 30 ms a batch and 2 ms a request, p95 < 75 ms",
            Rules(1, 0.03, batch_size=4, batch_delay_s=0.03, each_s=0.002),
            times(95, 0.075),
            59.724,
            3e-4,
        ),
        _held_out(
            "2 x batches of 16, 60 ms wait, 40 ms a batch and 1 ms a request, p99 < 120 ms",
            Rules(2, 0.04, batch_size=16, batch_delay_s=0.06, each_s=0.001),
            times(99, 0.12),
            529.461,
            6e-4,
        ),
    )
}
