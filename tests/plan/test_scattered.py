"""Poisson arrivals from hosts whose clocks are apart: each has a worker that is drawn for it, and all stay Poisson.

Each statistic of one draw is held at 1%; seeds are fixed, so a failure means that what is drawn has changed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from itertools import islice, takewhile
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from inference_benchmarker.plan.hosts import Hosts, hosts_in
from inference_benchmarker.plan.load import Arrivals, Bounds, OpenLoop
from inference_benchmarker.plan.pacing import Arrival, TokenBucket
from inference_benchmarker.plan.schedule import NO_END
from inference_benchmarker.plan.stripe import owners
from inference_benchmarker.words.units import NS
from tests.goodness import anderson_darling_exponential, anderson_darling_limit
from tests.waves import open_plan

if TYPE_CHECKING:
    from inference_benchmarker.records.columns import Floats

MS = NS // 1000


def bucket(seed: int, workers: int, *, rate: int = 200, scattered: bool = True, **more: int) -> TokenBucket:
    number, seconds = more.get("number"), more.get("seconds", 3)
    return TokenBucket(
        OpenLoop(Decimal(rate), "poisson"),
        Bounds(None if number else Decimal(seconds), number),
        workers=workers,
        seed=seed,
        warmup_ns=more.get("warmup_ns", 0),
        scattered=scattered,
    )


def by_worker(found: TokenBucket) -> list[list[Arrival]]:
    return [list(found.arrivals(worker)) for worker in range(found.workers)]


def offset_gaps(found: TokenBucket, offsets_ns: list[int]) -> Floats:
    """The gaps between arrivals as the server sees them, where each worker's clock is off by this much."""
    pairs = zip(by_worker(found), offsets_ns, strict=True)
    seen = np.sort([arrival.due + offset for arrivals, offset in pairs for arrival in arrivals])
    inner = seen[(seen > max(offsets_ns)) & (seen < found.end_ns + min(offsets_ns))]  # where every worker sends
    return np.diff(inner).astype(np.float64)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**63 - 1), st.integers(1, 20), st.integers(0, 3))
def test_each_arrival_has_one_worker_and_all_are_those_of_one(seed: int, workers: int, warmup_s: int) -> None:
    found = bucket(seed, workers, rate=50, seconds=1, warmup_ns=warmup_s * NS)
    arrivals = sorted(each for mine in by_worker(found) for each in mine)
    (alone,) = by_worker(bucket(seed, 1, rate=50, seconds=1, warmup_ns=warmup_s * NS, scattered=False))
    assert arrivals == alone


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**63 - 1), st.integers(1, 20), st.integers(1, 200))
def test_a_number_of_requests_is_kept_and_counted_by_worker(seed: int, workers: int, number: int) -> None:
    found = bucket(seed, workers, number=number)
    mine = by_worker(found)
    assert sorted(each.index for arrivals in mine for each in arrivals) == list(range(number))
    assert found.count() == list(map(len, mine))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**63 - 1), st.integers(1, 20), st.integers(0, 3 * NS))
def test_those_due_by_an_instant_are_counted_by_worker(seed: int, workers: int, until: int) -> None:
    found = bucket(seed, workers)
    due = [sum(each.due < until for each in arrivals) for arrivals in by_worker(found)]
    assert abs(np.array(found.count(until)) - due).sum() <= 1  # an instant is cut to whole ns


def test_a_worker_is_drawn_as_often_as_any_other() -> None:
    drawn = Counter(islice(owners(7, 10), 100_000))
    assert set(drawn) == set(range(10))
    assert stats.chisquare(list(drawn.values())).pvalue > 0.01


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("offsets_ms", [[0, 7], [0, 3, -5, 9], [0, 1, 2, 3, 4, 5, 6, 7]], ids=str)
def test_gaps_stay_exponential_with_clocks_some_ms_apart(seed: int, offsets_ms: list[int]) -> None:
    found = bucket(seed, len(offsets_ms), rate=500, seconds=20)
    gaps = offset_gaps(found, [offset * MS for offset in offsets_ms])
    assert anderson_darling_exponential(gaps) < anderson_darling_limit(len(gaps))
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 2.58 / len(gaps) ** 0.5


def test_stripes_in_turn_would_not() -> None:
    """Their arrivals in turn keep each worker's gaps too even: why they are scattered."""
    gaps = offset_gaps(bucket(0, 2, rate=500, seconds=20, scattered=False), [0, 7 * MS])
    assert anderson_darling_exponential(gaps) > 5 * anderson_darling_limit(len(gaps))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 200), st.integers(1, 800))
def test_a_rate_that_changes_takes_up_where_each_worker_was(seed: int, workers: int, at_ms: int, rate: int) -> None:
    """All workers change at one instant: together they are one wave's arrivals that did so."""

    def changed(count: int, *, scattered: bool) -> list[tuple[int, int]]:
        found = []
        plan = OpenLoop(Decimal(200), "poisson", steered=True)
        pool = TokenBucket(plan, Bounds(), workers=count, seed=seed, scattered=scattered)
        for worker in range(count):
            stripe, before = pool.open_stripe(worker), []
            for arrival in stripe.arrivals():
                if arrival[1] >= at_ms * MS:
                    break
                before.append(arrival)
            first = arrival[0]
            rest = takewhile(lambda each: each[1] < 400 * MS, stripe.changed(at_ms * MS, Decimal(rate), first))
            found += [*before, *rest]
        return sorted(found)

    assert changed(workers, scattered=True) == changed(1, scattered=False)
    assert NO_END not in {due for _, due in changed(workers, scattered=True)}


@pytest.mark.parametrize(
    ("hosts", "arrivals", "in_turn"),
    [("", "poisson", True), ("a*4", "poisson", True), ("a*2,b*2", "constant", True), ("a*2,b*2", "poisson", False)],
)
def test_only_poisson_arrivals_of_several_hosts_are_scattered(hosts: str, arrivals: Arrivals, in_turn: bool) -> None:
    plan = replace(open_plan("100", "1", workers=4, seed=3), load=OpenLoop(Decimal(100), arrivals))
    found = TokenBucket.of(plan.on(Hosts(hosts_in(hosts) if hosts else ())))
    assert all(each.index % 4 == worker for worker in range(4) for each in found.arrivals(worker)) is in_turn
