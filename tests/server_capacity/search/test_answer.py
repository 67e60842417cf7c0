"""From stretches that were counted to the answer: what must not change it, and what must."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from inference_benchmarker.plan.slo import Turns
from inference_benchmarker.summary.statistics.burst_counts import inverse_gaussian, negative_binomial
from server_capacity.search import estimate
from server_capacity.search.answer import Estimate, Interval, Memory
from server_capacity.search.estimate import answer
from server_capacity.search.limits import Limit, held_against
from server_capacity.search.settings import Settings
from server_capacity.search.stretch import Count, Slice, Stretch, with_client
from tests.mentions import mentions
from tests.server_capacity.search.queues import Queue, play
from tests.server_capacity.search.runs import run

P99 = Limit("p99<100ms", "response_time", 0.01, 0.1)
LOOSE = Limit("p99<10s", "response_time", 0.01, 10.0)
SHARES = {40: 0.0, 80: 0.001, 90: 0.004, 95: 0.006, 100: 0.011, 105: 0.02, 110: 0.05, 160: 0.9}


def stretches(shares: dict[int, float] = SHARES, seconds: float = 10.0, limits: int = 1) -> list[Stretch]:
    """One at each rate, as even as can be; of a second limit nothing is over."""
    made = []
    for number, (rate, share) in enumerate(shares.items()):
        start_s, each_s, of = number * seconds, seconds / 10, rate * 10 // 10
        over = [int(of * share * (place + 1)) - int(of * share * place) for place in range(10)]
        parts = tuple(
            Slice(
                start_s + place * each_s,
                start_s + (place + 1) * each_s,
                of,
                of,
                (Count(of, over[place]), Count(of, 0))[:limits],
            )
            for place in range(10)
        )
        rates = list(shares)
        before = rates[number - 1] if number else 0.0
        made.append(Stretch(number, 10 * rate / seconds, start_s, start_s + seconds, parts, "near", before))
    return made


def test_a_stretch_in_which_nothing_was_answered_keeps_nothing() -> None:
    """So one ends that is interrupted, or whose processes are killed, when it has begun."""
    begun = Stretch(0, 1.0, 0.0, 0.05, (Slice(0.0, 0.05, 0, 0, (Count(0, 0),)),), "grow")
    found = answer([P99], Settings(), [begun])
    assert (found.outcome, found.at_least) == ("cannot_tell", None)


def test_the_capacity_lies_where_the_share_over_crosses_what_is_allowed() -> None:
    found = answer([P99], Settings(), stretches())
    assert (found.outcome, found.limit) == ("found", "p99<100ms")
    assert found.interval is not None
    assert found.interval.low < 99 < found.interval.high


def test_what_is_over_without_waiting_makes_no_curve_flat() -> None:
    """Of a p95 that 0.65% of requests miss at any rate: the curve of those that wait is as steep as it is."""
    rates = (248, 256, 264, 272, 275, 295, 305, 310)
    shares = {rate: 0.0065 + 0.0435 * float(np.exp(38 * (rate / 300 - 1))) for rate in rates}
    *counted, last = stretches({**shares, 340: 0.95})
    found = answer(
        [Limit("p95<150ms", "response_time", 0.05, 0.15)], Settings(), [*counted, replace(last, in_flight=200)]
    )
    assert found.estimates[0].slope is not None
    assert found.estimates[0].slope > 30


def test_a_stretch_that_is_void_changes_nothing() -> None:
    kept = stretches()
    void = replace(kept[0], number=99, start_s=900.0, end_s=910.0, rate=70.0, void="instances changed")
    broken = tuple(replace(part, counts=(Count(part.sent, part.sent),)) for part in void.slices)
    assert answer([P99], Settings(), [*kept, replace(void, slices=broken)]) == answer([P99], Settings(), kept)


def test_a_disturbance_that_was_got_over_is_no_limit_of_the_client() -> None:
    kept = [each for each in stretches() if each.rate <= 80]
    late = replace(kept[0], number=99, void="the client was the limit: it was late")
    undecided = answer([P99], Settings(), [late, *kept])
    assert undecided.outcome == "cannot_tell"
    said = with_client(undecided.reason, [late, *kept])
    assert mentions(said, "the client was the limit", f"1 of {len(kept) + 1} stretches", "--time")
    assert with_client(undecided.reason, kept) == undecided.reason
    assert with_client("another reason", [late, *kept]) == "another reason"
    above = replace(late, rate=160.0)
    found = answer([P99], Settings(), [*kept, above])
    assert (found.outcome, found.at_least, found.reason) == ("at_least", 80, above.void)


def test_the_lowest_limit_holds_in_whatever_order_they_are_given() -> None:
    counted = stretches(limits=2)
    turned = [
        replace(each, slices=tuple(replace(part, counts=part.counts[::-1]) for part in each.slices)) for each in counted
    ]
    one, other = answer([P99, LOOSE], Settings(), counted), answer([LOOSE, P99], Settings(), turned)
    assert (one.rate, one.interval, one.limit) == (other.rate, other.interval, other.limit)
    assert [estimate.kept_everywhere for estimate in one.estimates] == [False, True, True]


def test_more_over_the_limit_is_never_a_higher_capacity() -> None:
    worse = {rate: min(1.0, 2 * share) for rate, share in SHARES.items()}
    found, lower = answer([P99], Settings(), stretches()), answer([P99], Settings(), stretches(worse))
    assert lower.rate is not None
    assert found.rate is not None
    assert lower.rate < found.rate


def test_a_share_over_that_no_load_explains_is_kept_at_no_rate() -> None:
    """Twice as many errors as allowed at each rate, of which no stretch has enough to tell."""
    flat = dict.fromkeys((40, 60, 80, 100, 120, 240), 0.02)
    found = answer([P99], Settings(), stretches(flat))
    assert (found.outcome, found.limit) == ("not_kept", "p99<100ms")

    assert answer([P99], Settings(), stretches(dict.fromkeys(flat, 0.008))).outcome == "cannot_tell"
    assert answer([P99], Settings(), stretches({**dict.fromkeys(flat, 0.0), 240: 0.15})).outcome == "found"
    assert answer([P99], Settings(), stretches({5: 0.04})).outcome == "cannot_tell"


def test_rates_above_the_answer_that_clearly_keep_every_limit_are_an_island() -> None:
    shares = {40: 0.0, 80: 0.004, 100: 0.011, 110: 0.05, 160: 0.9, 1600: 0.002, 1800: 0.003}
    (island,) = answer([P99], Settings(), stretches(shares)).islands
    assert (island.low, island.high) == (1600, 1800)


def test_the_rate_lies_in_the_interval_of_a_server_that_remembers(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = [Estimate("p99<100ms", rate, Interval(0.9 * rate, 1.1 * rate)) for rate in (150.0, 300.0)]
    monkeypatch.setattr(estimate, "_memory", lambda *_: Memory(sides[0], sides[1]))
    found = answer([P99], Settings(), stretches())
    assert found.rate is not None
    assert found.interval is not None
    assert found.interval.low <= found.rate <= found.interval.high == pytest.approx(330)


def test_without_any_stretch_nothing_can_be_known() -> None:
    assert answer([P99], Settings(), []).outcome == "cannot_tell"


@pytest.mark.parametrize("likelihood", [negative_binomial, inverse_gaussian])
def test_bursts_have_the_mean_and_the_variance_that_they_are_given(likelihood: object) -> None:
    assert callable(likelihood)
    mean, beyond = 6.0, 9.0
    counts = np.arange(1500)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])
    logs = np.array([float(likelihood([int(count)], np.log(mean), np.array(beyond))) for count in counts]) - factorials
    shares = np.exp(logs)
    assert shares.sum() == pytest.approx(1.0, abs=0.01)
    assert (shares @ counts) == pytest.approx(mean, rel=0.01)
    assert (shares @ counts**2) - mean**2 == pytest.approx(mean * (1 + beyond), rel=0.03)


@pytest.mark.parametrize("shares", [SHARES, dict.fromkeys(SHARES, 0.0)])
def test_a_limit_that_was_never_measured_may_give_out_before_all_others(shares: dict[int, float]) -> None:
    ttft = replace(P99, expression="ttft.p99<50ms", metric="ttft")
    counted = [
        replace(each, slices=tuple(replace(part, counts=(*part.counts, Count(0, 0))) for part in each.slices))
        for each in stretches(shares)
    ]
    limits = [P99, ttft]

    found = held_against(limits, counted, answer(limits, Settings(), counted))

    assert (found.outcome, found.rate, found.at_least) == ("cannot_tell", None, None)
    assert "ttft.p99<50ms" in found.reason
    assert not next(each for each in found.estimates if each.limit == ttft.expression).kept_everywhere
    assert found.reason.endswith("an invoke that yields")
    late = [P99, replace(P99, expression="turn5+.p99<1s", turns=Turns(5, 9))]
    reason = held_against(late, counted, answer(late, Settings(), counted)).reason
    assert reason == "no request has the value that turn5+.p99<1s limits: sessions may have too few turns"
    assert held_against([P99], counted, answer([P99], Settings(), counted)) == answer([P99], Settings(), counted)
    assert held_against(limits, [], answer(limits, Settings(), [])).reason == "every stretch was discarded"


def test_where_every_request_fails_no_limit_on_times_is_met() -> None:
    limits = [P99, Limit("success>=0.95", "success", 0.05)]
    failed = [
        replace(
            each, slices=tuple(replace(part, counts=(Count(0, 0), Count(part.sent, part.sent))) for part in each.slices)
        )
        for each in stretches()
    ]
    found = held_against(limits, failed, answer(limits, Settings(), failed))
    assert (found.outcome, found.limit) == ("not_kept", "success>=0.95")
    assert not any(each.kept_everywhere for each in found.estimates if each.limit != "keeps up")


LATER = {90: 0.0, 107: 0.0, 131: 0.0, 126: 0.0, 150: 0.0, 160: 0.001, 165: 0.003, 170: 0.008, 175: 0.02, 190: 0.3}


def test_a_server_that_growth_changed_remembers_and_the_answer_is_that_from_below() -> None:
    found = answer([P99], Settings(), stretches({32: 0.0, 64: 0.0, 128: 0.06, **LATER}))
    assert found.memory is not None
    assert found.interval == found.memory.below.interval
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == (64, 128)
    assert found.rate == pytest.approx(90.5, abs=0.1)
    assert found.memory.above.rate == pytest.approx(170, rel=0.05)
    assert [estimate.rate for estimate in found.estimates if estimate.limit == found.limit] == [found.rate]


@pytest.mark.parametrize("first", [{128: 0.0, 256: 0.7}, {128: 0.0, 171: 0.06}])
def test_what_was_broken_where_it_is_broken_later_is_no_memory(first: dict[int, float]) -> None:
    assert answer([P99], Settings(), stretches({32: 0.0, 64: 0.0, **first, **LATER})).memory is None


def test_a_stretch_that_was_kept_by_luck_is_no_lower_end() -> None:
    found = answer([P99], Settings(), stretches({40: 0.0, 80: 0.0, 181: 0.005, 256: 0.85}))

    assert found.rate is not None
    assert found.interval is not None
    assert found.interval.low < 181 < found.interval.high == 256
    assert found.interval.low < found.rate < found.interval.high


def test_a_median_is_estimated_from_rates_on_either_side_of_the_limit() -> None:
    """Shares from 0.3 on, which a median keeps, were taken for saturation: the rate was reported 5% too low."""
    p50 = Limit("p50<75ms", "response_time", 0.5, 0.075)
    near = [("below", 95.0, 10, 0.4), ("above", 105.0, 10, 0.6)] * 6
    found = answer([p50], Settings(), run(("grow", 64.0, 3, 0.05), ("grow", 128.0, 3, 0.95), *near))

    assert found.rate is not None
    assert found.interval is not None
    assert 98 < found.rate < 102
    assert found.interval.width < 10


def test_no_limit_of_the_table_gives_a_lower_rate_than_the_answer() -> None:
    """In 13 of 55 searches with three limits one did, once intervals were made as wide as the fits of the others."""
    limits = [Limit("p95", "response_time", 0.05, 0.1), Limit("p90", "response_time", 0.1, 0.064)]
    for seed in range(8):
        queue = Queue(1 + seed % 2, lambda draw: draw.expovariate(50))
        found = play(queue, limits, Settings(time_s=30.0), seed=seed).answer
        assert all(each.rate is None or each.rate >= (found.rate or 0.0) * 0.999 for each in found.estimates), seed
