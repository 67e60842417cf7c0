"""The numbers of each host, and the test of whether one is worse than the others."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.report.summary_json import host_part
from inference_benchmarker.summary.hosts import host_rows
from tests.hosted import hosted
from tests.waves import drawn, wave


def test_a_wave_of_this_host_alone_has_no_rows() -> None:
    assert host_rows(wave([[0.1] * 10])) == ()


def test_each_host_has_its_own_numbers() -> None:
    latency = np.tile([0.010, 0.020, 0.030, 0.040], (20, 25))
    rows = host_rows(hosted(latency, (1, 3), lag_s=np.tile([0.001, 0, 0, 0], 500)))
    assert [row.ledger.sent for row in rows] == [500, 1500]
    assert [row.latency and row.latency.percentile(50) for row in rows] == pytest.approx([0.010, 0.030])
    assert [row.lag and row.lag.maximum for row in rows] == pytest.approx([0.001, 0.0])
    described = encoded(host_part(rows[0]))
    assert (described["sent"], described["cpu"], described["steal"]) == (500, 0.1, 0.0)
    assert described["lag"]["p99"] == pytest.approx(0.001)


def test_a_host_that_is_farther_away_is_worse_and_the_others_are_not() -> None:
    latency = drawn(1, rate=90, seconds=30, cv=0.5)
    latency[:, 2::3] *= 1.5
    rows = host_rows(hosted(latency))
    assert [row.more_latency is not None and row.more_latency.is_worse for row in rows] == [False, False, True]
    (excess,) = (row.more_latency for row in rows[2:])
    assert excess is not None
    assert excess.share == pytest.approx(0.5, abs=0.1)


def test_what_all_hosts_see_at_one_time_is_no_noise() -> None:
    """The endpoint is ten times as slow in every other second; a host sees a third more all along."""
    latency = drawn(2, rate=90, seconds=40, cv=0.2) * np.tile([1.0, 10.0], 20)[:, None]
    latency[:, 2::3] *= 1.33
    worse = [row.more_latency is not None and row.more_latency.is_worse for row in host_rows(hosted(latency))]
    assert worse == [False, False, True]


def test_equal_hosts_are_seldom_called_worse() -> None:
    """With heavy tails, too."""
    called = 0
    for seed in range(100):
        rows = host_rows(hosted(drawn(seed, rate=60, seconds=20, cv=2.0)))
        called += any(row.more_latency is not None and row.more_latency.is_worse for row in rows)
    assert called < 5


def test_a_host_exactly_at_the_bound_is_called_worse_once_in_fifty_at_the_most() -> None:
    called = 0
    for seed in range(200):
        latency = drawn(seed, rate=60, seconds=20, cv=0.5)
        latency[:, 0::2] *= 1.2
        (row, _) = host_rows(hosted(latency, (1, 1)))
        called += row.more_latency is not None and row.more_latency.is_worse
    assert called <= 8


def test_lag_is_compared_too() -> None:
    lag = np.random.default_rng(3).exponential(0.001, 2700)
    lag[1::3] *= 4
    worse = [
        row.more_lag is not None and row.more_lag.is_worse
        for row in host_rows(hosted(np.full((30, 90), 0.1), lag_s=lag))
    ]
    assert worse == [False, True, False]


def test_nothing_is_distinguished_from_a_few_requests() -> None:
    latency = np.full((2, 30), 0.1)
    latency[:, 2::3] *= 3
    assert all(row.more_latency is None and row.more_lag is None for row in host_rows(hosted(latency)))
    assert all(row.more_latency is None for row in host_rows(hosted(np.full((30, 90), 0.1), (2,))))


def test_hosts_that_send_other_payloads_are_not_compared() -> None:
    latency = drawn(1, rate=90, seconds=30, cv=0.5)
    latency[:, 2::3] *= 1.5
    found = replace(hosted(latency), environment={"payloads": 6})
    assert all(row.more_latency is None for row in host_rows(found))
    assert all(row.more_latency is not None for row in host_rows(replace(found, environment={"payloads": 5})))
    drawn_hosts = replace(found, plan=replace(found.plan, load=OpenLoop(Decimal(90), "poisson")))
    assert all(row.more_latency is not None for row in host_rows(drawn_hosts))
