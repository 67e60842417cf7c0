"""Between which rates a limit on a value of the user's own gives out, where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.summary.statistics.distribution import Distribution
from server_capacity.search.limits import limits_of, user_limits_of
from server_capacity.search.user_limits import Sums, UserLimit, judge_user, user_estimate
from tests.mentions import mentions

MEAN = UserLimit.of(Slo.parse("metric.hit.mean>0.8"))
P90 = UserLimit.of(Slo.parse("metric.depth.p90<5"))


def reported(limit: UserLimit, *seconds: list[float]) -> list[Sums]:
    """What requests reported in each second."""
    scores = [limit.scores(np.array(values, float)) for values in seconds]
    return [Sums(len(each), float(each.sum()), float((each * each).sum())) for each in scores]


def flags(share: float, number: int = 100) -> list[Sums]:
    """Ten seconds in each of which the same share of requests reported 1, the others 0."""
    ones = round(share * number)
    return reported(MEAN, *[[1.0] * ones + [0.0] * (number - ones)] * 10)


@pytest.mark.parametrize("text", ["metric.a.max<5", "metric.a.min>5", "spike:metric.a.mean<5"])
def test_what_no_search_can_keep_is_refused(text: str) -> None:
    with pytest.raises(BenchmarkError, match=r"not a limit that a capacity can be searched for.* Write the mean or a"):
        user_limits_of([Slo.parse(text)])


def test_a_search_is_steered_by_the_other_limits_alone() -> None:
    slos = [Slo.parse("p99<100ms"), Slo.parse("metric.hit.mean>0.8"), Slo.parse("metric.depth.p90<5")]
    assert [limit.expression for limit in limits_of(slos, 0.95)] == ["p99<100ms", "success>=0.95"]
    assert user_limits_of(slos) == (MEAN, P90)


@given(
    st.lists(st.integers(0, 6).map(float), min_size=1, max_size=60),
    st.sampled_from(["<", "<=", ">", ">="]),
    st.integers(1, 99),
    st.integers(0, 6),
)
def test_a_percentile_is_kept_where_its_share_is(values: list[float], op: str, percent: int, bound: int) -> None:
    slo = Slo.parse(f"metric.depth.p{percent}{op}{bound}")
    limit, found = UserLimit.of(slo), Distribution.of(values)
    assert found is not None
    beyond = round(float(limit.scores(np.array(values)).sum()))
    rank = -(-percent * len(values) // 100)
    most = len(values) - rank if op in ("<", "<=") else rank - 1
    assert slo.met(found.percentile(percent)) == (beyond <= most)
    if percent * len(values) % 100:  # else the share is allowed to be just that of the rank
        assert limit.kept(beyond / len(values)) == (beyond <= most)


@pytest.mark.parametrize(
    ("seconds", "judgement"),
    [
        ([], "cannot_tell"),
        (flags(0.9), "holds"),
        (flags(0.8), "cannot_tell"),
        (flags(0.79), "cannot_tell"),
        (flags(0.75), "fails"),
        (reported(MEAN, [0.0]), "cannot_tell"),
        (reported(MEAN, [0.0] * 3), "fails"),  # 0.2 ** 3 is under one in a hundred
        (reported(MEAN, [0.5, 0.6]), "cannot_tell"),  # two numbers say little of others
        (reported(MEAN, *[[0.7, 0.75, 0.72]] * 5), "fails"),
        (reported(MEAN, *[[0.0, 0.0], [1.0] * 8] * 3), "cannot_tell"),
        (reported(MEAN, *[[0.0] * 50, [1.0] * 50, [1.0] * 50] * 3), "cannot_tell"),  # seconds that are alike within
    ],
)
def test_a_wave_fails_where_chance_does_not_explain_it(seconds: list[Sums], judgement: str) -> None:
    assert judge_user(MEAN, seconds) == judgement


def test_the_rate_lies_between_the_last_that_kept_it_and_the_first_that_did_not() -> None:
    found = user_estimate(MEAN, [(400.0, flags(0.2)), (100.0, flags(0.9)), (200.0, flags(0.7)), (50.0, flags(0.95))])
    assert found.estimate.interval is not None
    assert (found.estimate.interval.low, found.estimate.interval.high) == (100.0, 200.0)
    assert found.estimate.rate == pytest.approx(150.0)
    assert found.reason == ""


def test_it_may_be_kept_at_each_rate_or_reported_by_nobody() -> None:
    assert user_estimate(MEAN, [(10.0, flags(0.9)), (20.0, flags(0.79))]).estimate.kept_everywhere
    for stretches, reason in (
        ([], "no ok request reported metric.hit"),
        ([(10.0, [Sums(0, 0.0, 0.0)])], "no ok request reported metric.hit"),
        ([(10.0, flags(0.81))], "metric.hit has a mean of 0.81 is too close to the limit to decide"),
        (
            [(10.0, flags(0.8)), (20.0, flags(0.1))],
            "has a mean of 0.1 at 20; below that, it is too close to the limit",
        ),
    ):
        found = user_estimate(MEAN, stretches)
        assert (found.estimate.rate, found.estimate.kept_everywhere) == (None, False)
        assert reason in found.reason


def test_what_the_lowest_rate_misses_is_kept_at_none() -> None:
    found = user_estimate(MEAN, [(10.0, flags(0.1)), (20.0, flags(0.95))])
    assert found.estimate.rate == 0.0
    assert mentions(found.reason, "metric.hit", "0.1", "10", "20")


@pytest.mark.parametrize("limit", [MEAN, P90])
def test_the_interval_holds_the_truth(limit: UserLimit) -> None:
    """Of 300 simulated searches: the share of requests beyond a limit grows with the rate, in bursts of a second."""
    draw, held, known = np.random.default_rng(3), 0, 0
    rates = [4.0, 16.0, 32.0, 64.0, 128.0, 256.0, 130.0, 180.0, 90.0, 140.0]
    worse = {MEAN: 0.2, P90: 0.1}[limit]  # at a rate of 140
    for _ in range(300):
        stretches = []
        for rate in rates:
            seconds = []
            for _ in range(5):
                share = min(max(worse * rate / 140 + draw.normal(0, 0.02), 0.0), 1.0)
                beyond = draw.random(draw.poisson(rate)) < share
                seconds.append(list(np.where(beyond, 0.0 if limit is MEAN else 9.0, 1.0)))
            stretches.append((rate, reported(limit, *seconds)))
        estimate = user_estimate(limit, stretches).estimate
        if estimate.interval is not None and estimate.rate:
            known += 1
            held += estimate.interval.low <= 140 <= estimate.interval.high
    assert known > 250
    assert held >= 0.95 * known
