"""Whether the endpoint fell behind; asked only where the client is clean. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.finding import Finding, duration_text, percent_text
from inference_benchmarker.plan import NS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from client_capacity.case import Case
    from inference_benchmarker.columns import Floats

SERVER_LIMITED = "server_limited"
ANSWERED_SHARE = 0.95
LEAST_REQUESTS = 20
LEAST_ERRORS = 4
STEADY_SHARE = 0.2
REFUSALS = (" 429", " 503", "Throttl", "TooManyRequests", "ServiceUnavailable")  # in an error's key: no capacity


def endpoint_findings(case: Case) -> Iterator[Finding]:
    """The endpoint fell behind while the client was clean: requests queued there, or it refused some."""
    measured = _dropped_for_the_endpoint(case) or _queue_growth(case) or _refusals(case)
    if measured is not None:
        lag = case.summary.lag
        clean = "" if lag is None else f", while the schedule lag stayed at p99 {duration_text(lag.percentile(99))}"
        yield Finding(
            SERVER_LIMITED,
            "warning",
            measured + clean,
            f"{percent_text(ANSWERED_SHARE)} answered",
            "More arrives than the endpoint answers, so latency tells how long the wave was, not how fast the endpoint "
            "is: find the rate it holds with lower --client-rps, or scale it.",
        )


def _dropped_for_the_endpoint(case: Case) -> str | None:
    """Ten thousand requests in flight; a cap that the user set lower says nothing about the endpoint."""
    ledger = case.summary.ledger
    if ledger.dropped <= (1 - ANSWERED_SHARE) * ledger.scheduled or case.observed.plan.max_in_flight is not None:
        return None
    return f"{_completed_of_scheduled(case)}, and {sum(case.observed.caps):,} requests were in flight"


def _queue_growth(case: Case) -> str | None:
    """How latency grew, where it grew so steadily that fewer than 95% of the arrivals can have been answered.

    A first-come first-served queue with arrivals at rate r and answers at rate c < r grows latency by
    s = r/c - 1 seconds a second, so c/r = 1/(1 + s). s is taken from the median latencies of the wave's second
    and last quarter. The growth must be four standard errors of their difference, and a fifth of it at least lie on
    either side of the third quarter: a queue that only fills up at first grows no more by then. Abandoned requests
    count with their age, a lower bound.
    """
    planned = case.observed.window.planned_ns
    if not case.observed.open_loop or not planned:
        return None
    records = case.observed.records
    quarter = records.int("due") * 4 // planned
    latency = (records.int("done") - records.int("sent")) / NS
    second, third, last = (latency[quarter == number] for number in (1, 2, 3))
    if min(len(second), len(third), len(last)) < LEAST_REQUESTS:
        return None
    before, between, after = (float(np.median(values)) for values in (second, third, last))
    growth = after - before
    error = float(np.hypot(_median_error(second), _median_error(last)))
    cut_off = np.count_nonzero(records.outcome("abandoned")[quarter == 3]) > len(last) / 2  # their ages only shrink
    steady = cut_off or min(between - before, after - between) >= STEADY_SHARE * growth
    slope = growth / (planned / NS / 2)
    if growth < LEAST_ERRORS * error or not steady or 1 / (1 + max(slope, 0.0)) >= ANSWERED_SHARE:
        return None
    return f"{_completed_of_scheduled(case)}, latency grew from {duration_text(before)} to {duration_text(after)}"


def _median_error(values: Floats) -> float:
    """Standard error of a median: sqrt(pi/2) sigma / sqrt(n), sigma as 1.4826 times the median deviation."""
    deviation = float(np.median(np.abs(values - np.median(values))))
    return 1.2533 * 1.4826 * deviation / math.sqrt(len(values))


def _refusals(case: Case) -> str | None:
    sent = case.summary.ledger.sent
    rows = [row for row in case.summary.errors if any(word in row.key for word in REFUSALS)]
    refused = sum(row.count for row in rows)
    if not sent or refused / sent <= 1 - ANSWERED_SHARE:
        return None
    return f"{refused:,} of {sent:,} requests were refused ({rows[0].key})"


def _completed_of_scheduled(case: Case) -> str:
    rates = case.summary.rates
    return f"{rates.completed:.4g}/s completed of {rates.scheduled or rates.sent:.4g}/s"
