"""Who was the limit of a wave whose rate changes: no rising rate is taken for an endpoint that falls behind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.stage import Stage
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.words.units import NS
from tests.queues import ORDERS, observed_at, services_of

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.load import Arrivals

CAPACITY = 100
SERVERS = 4
WITHIN = ("50:10s,10..90:10s,20:5s", "80:5s,10:5s,80:5s,0:3s,80:5s", "90..5:15s", "0..80:15s", "5:10s,90:10s")


def offered(text: str, arrivals: Arrivals, order: str, *, seed: int, far_s: float = 0.0) -> WaveFacts:
    """The wave against servers that answer 100 a second, ``far_s`` away."""
    load = OpenLoop(arrivals=arrivals, stages=tuple(map(Stage.parse, text.split(","))))
    plan = WavePlan(load, Bounds(), seed=seed)
    dues = [arrival.due / NS for arrival in TokenBucket.of(plan).arrivals(0)]
    services = services_of("exponential", np.random.default_rng(seed), len(dues), SERVERS / CAPACITY)
    done = [instant + far_s for instant in ORDERS[order](dues, services, SERVERS)]
    return replace(observed_at(1, float(load.stages_s), dues, done), plan=plan)


def found_in(facts: WaveFacts) -> list[str]:
    findings = judge(facts, summarise(facts)).findings
    return [finding.measured for finding in findings if finding.code == "server_limited"]


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
@pytest.mark.parametrize("order", ["first come first served", "processor sharing"])
@pytest.mark.parametrize("far_s", [0.0, 2.0])
def test_an_endpoint_that_keeps_up_is_not_blamed_for_a_rate_that_rises(
    arrivals: Arrivals, order: str, far_s: float
) -> None:
    wrong = {
        (text, seed): found
        for text in WITHIN
        for seed in range(4)
        if (found := found_in(offered(text, arrivals, order, seed=seed, far_s=far_s)))
    }
    assert wrong == {}


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
@pytest.mark.parametrize("order", ["first come first served", "last come first served", "processor sharing"])
def test_a_stage_over_capacity_is_named_though_the_next_one_makes_up_for_it(arrivals: Arrivals, order: str) -> None:
    for seed in range(4):
        (found,) = found_in(offered("50:5s,over=160:5s,20:15s", arrivals, order, seed=seed))
        assert found.startswith("stage over: ")


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_a_ramp_beyond_capacity_at_the_end_is_seen_in_the_whole_wave(arrivals: Arrivals) -> None:
    for seed in range(4):
        assert found_in(offered("20..250:20s", arrivals, "first come first served", seed=seed))
