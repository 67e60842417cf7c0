"""A proof tells a right plan from one that is an instance short: by the bursts alone, and against simulated queues."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server_capacity.experiments.proof.evidence import LEAST_S, LONGEST_S, Aim, Bursts
from server_capacity.experiments.proof.length import bursts_of
from server_capacity.results.types.bounds import Spread
from tests.performance.capacity.endpoints import ENDPOINTS
from tests.performance.capacity.proofs import counted
from tests.proofs import PLANNED

MANY_BURSTS = st.builds(Bursts, st.sampled_from([0.001, 0.01, 0.05]), st.floats(1.0, 400.0), st.floats(2.0, 40.0))


def aim(instances: int, load: float = 0.95, rate: float = 174.0) -> Aim:
    return Aim(instances * load * rate, instances, load, rate)


@settings(max_examples=40)
@given(MANY_BURSTS, st.integers(100, 100_000), st.integers(2, 10))
def test_more_over_a_limit_never_speaks_for_it(bursts: Bursts, of: int, instances: int) -> None:
    short = (instances + 1) / instances
    order = ["holds", "cannot_tell", "fails"]
    counts = sorted({0, int(bursts.allowed * of), bursts.fails_from(of) - 1, bursts.fails_from(of), of})
    judged = [order.index(bursts.judge(of, over, short)) for over in counts]
    assert judged == sorted(judged)
    assert bursts.judge(of, int(bursts.allowed * of) + 1, short) != "holds", "more than is allowed never holds"


@settings(max_examples=15)
@given(MANY_BURSTS, st.integers(1, 12), st.floats(0.5, 1.0))
def test_the_time_is_within_its_bounds_and_tells_where_it_is_not_the_longest(
    bursts: Bursts, instances: int, load: float
) -> None:
    asked = aim(instances, load, 20.0)
    seconds = asked.length_s(bursts)
    rejects, holds = asked.chances(bursts, seconds)
    assert LEAST_S <= seconds <= LONGEST_S
    assert seconds == LONGEST_S or (rejects >= 0.7 and holds >= 0.8)


def test_a_slower_endpoint_takes_longer_and_more_room_less() -> None:
    flat = Bursts(0.01, 18.0, 6.0)
    assert aim(5, rate=5.0).length_s(flat) > aim(5, rate=50.0).length_s(flat) > LEAST_S
    assert aim(5, 0.7, 5.0).length_s(flat) < aim(5, 0.99, 5.0).length_s(flat)


def test_an_interval_contains_the_share_as_often_as_it_says() -> None:
    """Counts are drawn as a gamma mixture of Poisson ones, not by the formula that is tested."""
    random, bursts, requests = np.random.default_rng(7), Bursts(0.01, 120.0, 20.0), 40_000
    rates = random.gamma(400 / 119.0, 119.0, 150)
    covered = [low <= 0.01 <= high for low, high in (bursts.interval(requests, over) for over in random.poisson(rates))]
    assert 0.9 <= np.mean(covered) <= 1.0
    low, high = bursts.interval(requests, 0)
    assert low < 1e-5
    assert 0.0 < high < 0.01


USUAL_LOAD = 0.7
MEASURED = {
    "exact": (252.0, 26.0),
    "exponential": (250.0, 28.0),
    "single": (11.0, 5.4),
    "lognormal": (250.0, 22.0),
    "refusing": (20.0, 12.0),
}
"""The dispersion and the slope of simulated endpoints."""


@pytest.mark.skipif(not (shutil.which("cc") or shutil.which("gcc")), reason="the simulated queues need a C compiler")
@pytest.mark.parametrize("known", [True, False], ids=["bursts of the search", "unknown bursts"])
def test_simulated_fleets_are_judged_as_often_as_is_said(known: bool) -> None:
    """Right: what a plan sends to each by default; just: all of it; short: what one instance more would just hold.

    Nothing is said of one that is near its limit, but that it is not rejected.
    """
    judged: dict[str, Counter[str]] = {"right": Counter(), "just": Counter(), "short": Counter()}
    said: dict[str, list[float]] = {"right": [], "just": [], "short": []}
    for number, (name, (dispersion, slope)) in enumerate(MEASURED.items()):
        endpoint = ENDPOINTS[name]
        assert endpoint.truth is not None
        limit = endpoint.limits[0]
        reported = Spread(dispersion, slope) if known else None
        bursts = bursts_of(limit, replace(PLANNED, limit=limit.expression, correlation=reported))
        for instances, seconds, again in product((1, 3, 8), (6.0, 30.0), range(3)):
            for kind, load in (("right", USUAL_LOAD), ("just", 1.0), ("short", (instances + 1) / instances)):
                asked = Aim(instances * load * endpoint.truth, instances, load, endpoint.truth)
                seed = [number, instances, round(seconds), again]
                judged[kind][bursts.judge(*counted(endpoint, asked, 3.0, seconds, seed), asked.short)] += 1
                said[kind].append(asked.chances(bursts, seconds)[0 if kind == "short" else 1])
    number = len(said["right"])
    assert judged["short"]["fails"] / number >= np.mean(said["short"]) - 0.1
    assert judged["right"]["holds"] / number >= np.mean(said["right"]) - 0.1
    assert judged["short"]["holds"] <= 0.02 * number
    assert judged["just"]["fails"] <= 0.02 * number
    assert judged["right"]["fails"] == 0
