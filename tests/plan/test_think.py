"""The times that users think: read and written alike, the same in every worker, and as long as they say."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.load import ClosedLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.problems import problems_of
from inference_benchmarker.plan.think import Think
from inference_benchmarker.words.units import NS
from tests.waves import closed_plan

FIVE = Decimal(5)


@pytest.mark.parametrize(
    ("text", "think"),
    [
        ("5s", Think(FIVE)),
        ("5", Think(FIVE)),
        ("250ms", Think(Decimal("0.25"))),
        ("0s", Think(Decimal(0))),
        ("exponential:5s", Think(FIVE, "exponential")),
        ("uniform:2s..8s", Think(FIVE, "uniform", half_s=Decimal(3))),
        ("uniform:0..1m", Think(Decimal(30), "uniform", half_s=Decimal(30))),
        ("lognormal:5s:0.5", Think(FIVE, "lognormal", cv=Decimal("0.5"))),
    ],
)
def test_a_think_time_is_read_and_written_alike(text: str, think: Think) -> None:
    assert Think.parse(text) == think
    assert Think.parse(think.text) == think
    assert not list(think.problems())


@pytest.mark.parametrize(
    "text", ["", "s", "-5s", "5 s", "poisson:5s", "uniform:5s", "lognormal:5s", "exponential", "1e3"]
)
def test_another_text_is_no_think_time(text: str) -> None:
    with pytest.raises(BenchmarkError, match=r"uniform:2s\.\.8s"):
        Think.parse(text)


@pytest.mark.parametrize("text", ["uniform:8s..2s", "99999h", "lognormal:5s:0", "lognormal:5s:11", "lognormal:0:1"])
def test_what_nobody_can_think_is_a_problem_of_the_plan(text: str) -> None:
    problems = problems_of(closed_plan(), endpoint_needed=False)
    plan = replace(closed_plan(), load=ClosedLoop(2, Think.parse(text)))
    assert len(problems_of(plan, endpoint_needed=False)) == len(problems) + 1


KINDS = ["exponential:2s", "uniform:1s..3s", "lognormal:2s:0.5", "2s"]


@given(seed=st.integers(0, 2**63 - 1), index=st.integers(-(10**6), 10**9), text=st.sampled_from(KINDS))
def test_a_think_time_depends_on_the_seed_and_the_arrival_alone(seed: int, index: int, text: str) -> None:
    one, other = Think.parse(text), Think.parse(text)
    assert one.ns(seed, index) == other.ns(seed, index) >= 0


@pytest.mark.parametrize(
    ("text", "distribution"),
    [
        ("exponential:2s", stats.expon(scale=2)),
        ("uniform:1s..3s", stats.uniform(1, 2)),
        ("lognormal:2s:0.5", stats.lognorm(math.sqrt(math.log(1.25)), scale=2 / math.sqrt(1.25))),
    ],
)
def test_think_times_have_the_distribution_that_they_say(text: str, distribution: object) -> None:
    think = Think.parse(text)
    drawn = [think.ns(7, index) / NS for index in range(20_000)]
    assert stats.kstest(drawn, distribution.cdf).pvalue > 0.001  # type: ignore[attr-defined]
    assert sum(drawn) / len(drawn) == pytest.approx(2, rel=0.03)
    assert think.mean_ns == 2 * NS


def test_a_plan_keeps_its_think_time() -> None:
    plan = replace(closed_plan(), load=ClosedLoop(3, Think.parse("uniform:2s..8s")))
    assert WavePlan.from_json(plan.to_json()) == plan
    old = plan.to_json()
    old["load"] = {"kind": "closed", "concurrency": 3}
    assert WavePlan.from_json(old).load == ClosedLoop(3)
