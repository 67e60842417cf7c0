"""The order of variants, their ties, and the words for both."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.exit_codes import INTERRUPTED, INVALID, MISSED, OK
from server_capacity.planning.costs.recommender import recommender_of
from server_capacity.results.codec import check_ranking
from server_capacity.results.ranking_order import ranking, require_order
from server_capacity.results.ranking_row import Aim, failed_row, instances_for, low_of
from server_capacity.results.text.ranking import WIDTH, to_text
from tests.rankings import ranked, row, traffic

if TYPE_CHECKING:
    from server_capacity.results.types.ranking import RankedRow

C5, M5, G5 = "ml.c5.xlarge", "ml.m5.xlarge", "ml.g5.xlarge"


def test_the_cheapest_that_serves_the_target_is_first() -> None:
    data = ranked(1000, (M5, 300, 0.32), (C5, 250, 0.204))

    assert [each.variant["instance_type"] for each in data.rows] == [C5, M5]
    assert [each.instances_for_target for each in data.rows] == [6, 5]
    assert data.headline == (
        f"{C5} is cheapest for 1,000/s: 6 instances, $1.22/h (us-east-1, given); next {M5}, 31% more."
    )
    assert [each.rank for each in data.rows] == [1, 2]
    first = data.rows[0]
    assert first.cost_hour == pytest.approx(1.224)
    assert first.cost_per_million == pytest.approx(1.224 / 3.6e6 * 1e6)
    assert data.exit_code == OK


@pytest.mark.parametrize(
    ("target", "rows", "headline"),
    [
        (1000, [(M5, 300, None), (C5, 200, None)], f"{M5} serves 1,000/s with the fewest instances: 5; next {C5}, 8."),
        (
            None,
            [(M5, 300, 0.3), (C5, 200, 0.1)],
            f"{C5} is cheapest: $0.20 per million requests at 70% use (us-east-1, given); next {M5}, 100% more.",
        ),
        (None, [(M5, 300, None), (C5, 200, None)], f"{M5} has the highest capacity: 309/s; next {C5}, 33% less."),
        (None, [(M5, 300, None)], f"{M5} has the highest capacity: 309/s."),
        (
            100,
            [(M5, 300, 0.3), (C5, 200, 0.3)],
            f"{M5} and {C5} tie for 100/s within their intervals: 1 instance, $0.30/h (us-east-1, given).",
        ),
        (None, [(M5, 300, None), (C5, 295, None)], f"{M5} and {C5} tie within their intervals: 309/s or 304/s."),
    ],
)
def test_the_answer_is_one_line(target: float | None, rows: list[Any], headline: str) -> None:
    assert ranked(target, *rows).headline == headline


_ENDS = st.floats(0, 1000).map(lambda rate: round(rate, 3))
_OUTCOMES = st.sampled_from(["found", "at_least", "client_limited", "cannot_tell", "interrupted"])


@st.composite
def found_rows(draw: st.DrawFn) -> tuple[list[RankedRow], Aim]:
    """Rows as searches leave them, among them intervals from 0, wide ones, and what held at least a rate."""
    rows, aim = [], Aim(draw(st.sampled_from([None, 1.0, 500.0, 1e6])))
    for name in draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6, unique=True)):
        low, high = sorted((draw(_ENDS), draw(_ENDS)))
        price = draw(st.sampled_from([None, 0.1, 2.0]))
        made = row(name, low, high, price=price, aim=aim, outcome=draw(_OUTCOMES))
        if made.outcome != "found" and draw(st.booleans()):
            made = at_least(name, low, price, aim)
        named = draw(st.sampled_from(["instance_type", "payload.pattern"]))
        rows.append(replace(made, variant={named: name}, ended=draw(st.sampled_from(["complete", "early"]))))
    return rows, aim


@given(found_rows())
def test_every_ranking_that_is_written_is_read_again(found: tuple[list[RankedRow], Aim]) -> None:
    made = ranking(*found)
    kept = check_ranking(json.loads(json.dumps(encoded(made), allow_nan=False)))
    require_order(kept)
    assert kept.headline == made.headline


def test_a_ranking_of_absurd_prices_is_read_again() -> None:
    aim = Aim(1e5)
    made = ranking([row("a", 1e-3, 2e-3, price=1e12, aim=aim)], aim)
    kept = check_ranking(json.loads(json.dumps(encoded(made), allow_nan=False)))
    assert kept.rows[0].cost_month == made.rows[0].cost_month


def test_a_row_that_has_no_rank_is_no_side_of_a_comparison_of_traffics() -> None:
    early = replace(traffic("hot", 50, 53), ended="early")
    data = ranking([traffic("even", 100, 106), early], Aim())
    assert data.payload_variants is not None
    assert data.payload_variants.equivalent is None
    assert "pattern=hot has no interval to compare" in data.payload_variants.text


def test_where_a_price_is_missing_money_does_not_rank() -> None:
    data = ranked(1000, (M5, 300, 0.01), (C5, 310, None))
    assert data.ranked_by == "instances_for_target"
    assert f"No price of {C5}, so the order is not by cost." in data.remarks[0]
    assert "--price TYPE=USD" in ranked(None, (M5, 300, None)).remarks[0]


def test_what_held_at_least_a_rate_may_be_better_than_it_looks() -> None:
    aim = Aim(1000)
    unbounded = row(M5, 100, price=0.2, aim=aim, outcome="at_least")
    unbounded = replace(unbounded, interval=None, rate=100.0)
    data = ranking([unbounded, row(C5, 300, price=0.2, aim=aim)], aim)
    assert [each.variant["instance_type"] for each in data.rows] == [C5, M5]
    assert data.rows[0].tied_with == [2]


def at_least(name: str, rate: float, price: float | None, aim: Aim | None = None) -> RankedRow:
    """The row of a type that kept every limit at every rate that was tried."""
    return replace(row(name, rate, price=price, aim=aim, outcome="at_least"), interval=None, rate=rate)


@pytest.mark.parametrize("price", [0.2, None])
def test_without_a_target_what_held_at_least_a_rate_ties_with_what_it_may_beat(price: float | None) -> None:
    data = ranking([at_least(M5, 30, price), row(C5, 50, 60, price=price)], Aim())
    assert [(each.rank, each.tied_with) for each in data.rows] == [(1, [2]), (1, [1])]
    assert f"{C5} and {M5} tie within their intervals: " in data.headline
    both = ranking([at_least(M5, 30, price), at_least(C5, 50, price)], Aim())
    assert [each.rank for each in both.rows] == [1, 1]


@pytest.mark.parametrize("target", [None, 1000])
def test_what_costs_nothing_is_cheapest(target: float | None) -> None:
    data = ranked(target, (M5, 300, 0.2), (C5, 50, 0.0))
    assert [(each.variant["instance_type"], each.rank) for each in data.rows] == [(C5, 1), (M5, 2)]
    assert data.headline.startswith(f"{C5} is cheapest")
    assert data.headline.endswith(f"; next {M5}.")


P99 = {"expression": "p99<100ms", "metric": "response_time", "allowed": 0.01, "bound": 0.1, "unit": "s"}


@pytest.mark.parametrize(
    ("limits", "wave", "shown"),
    [
        ([{**P99, "at_low": 0.075}], 300, "75 ms"),
        ([{**P99, "at_low": 0.075}], 300.02, "75 ms"),
        ([{**P99, "at_low": 0.075}], 250, "~109 ms"),
        ([{**P99, "at_low": None}], 300, "~109 ms"),
        ([{**P99, "allowed": 0.05, "at_low": 0.05}], 300, "~109 ms"),
        ([{**P99, "metric": "ttft", "allowed": 0.05, "at_low": 0.05}, {**P99, "at_low": 0.075}], 300, "~109 ms"),
    ],
)
def test_p99_is_that_of_the_wave_that_confirmed(limits: list[dict[str, Any]], wave: float, shown: str) -> None:
    held = row(
        C5,
        300,
        limits=limits,
        confirmation=[{"rate": wave, "verdict": "holds"}, {"rate": 300, "verdict": "cannot_tell", "spoilt": "lag"}],
    )
    text = " ".join(to_text(ranking([held], Aim())).split())
    assert f" {shown} " in text
    assert ("neighbouring rates, not measured at the lower end" in text) == shown.startswith("~")


def test_several_instances_are_taken_for_equal_parts() -> None:
    aim = Aim(100, 1.0)
    two = row(M5, 20, price=1, aim=aim, endpoint={"instances": 2})
    assert low_of(two) == 10
    assert two.instances_for_target == 10


rows = st.lists(
    st.tuples(st.floats(0.01, 1e5), st.floats(1.0001, 2), st.floats(0.001, 50)), min_size=1, max_size=8
).map(lambda found: [(f"t{number}", *each) for number, each in enumerate(found)])


@given(rows, st.none() | st.floats(0.1, 1e6), st.booleans(), st.floats(0.1, 1))
def test_an_order_is_by_what_is_sure_and_ties_are_mutual(
    made: list[tuple[str, float, float, float]], target: float | None, priced: bool, utilisation: float
) -> None:
    aim = Aim(target, utilisation)
    data = ranking(
        [row(name, low, low * wide, price=cost if priced else None, aim=aim) for name, low, wide, cost in made], aim
    )
    found = data.rows

    assert len(found) == len(made)
    assert found[0].rank == 1
    for number, each in enumerate(found, 1):
        assert number not in each.tied_with
        assert all(number in found[other - 1].tied_with for other in each.tied_with)
        assert each.rank is not None
        assert each.rank <= number
    by = data.ranked_by
    keys = [-low_of(each) if by == "rate" else getattr(each, by) for each in found]  # type: ignore[operator]
    assert keys == sorted(keys)
    if target is not None:
        for each in found:
            assert each.instances_for_target is not None
            assert each.interval is not None
            carried = target / each.instances_for_target
            assert carried <= each.interval.low * utilisation * (1 + 1e-6)
    json.dumps(encoded(data), allow_nan=False)


@given(rows, st.floats(0.1, 1e6), st.randoms())
def test_the_order_does_not_depend_on_that_of_the_searches(
    made: list[tuple[str, float, float, float]], target: float, random: Any
) -> None:
    aim = Aim(target)
    listed = [row(name, low, low * wide, price=cost, aim=aim) for name, low, wide, cost in made]
    shuffled = random.sample(listed, len(listed))
    assert ranking(listed, aim).headline == ranking(shuffled, aim).headline


@given(st.floats(0.1, 1e5), st.integers(1, 1000), st.floats(0.1, 1))
def test_a_target_of_whole_instances_takes_that_many(low: float, instances: int, utilisation: float) -> None:
    assert instances_for(instances * low * utilisation, low, utilisation) == instances
    assert instances_for(instances * low * utilisation * 1.001, low, utilisation) == instances + 1
    assert instances_for(math.nextafter(0, 1), low, utilisation) == 1


def test_a_variant_that_failed_keeps_the_others() -> None:
    aim = Aim(1000)
    failed = failed_row({"instance_type": G5}, "f.py, line 3: endpoint_factory() raised ResourceLimitExceeded.", code=1)
    data = ranking([failed, row(C5, 250, price=0.2, aim=aim)], aim)

    assert (data.rows[0].rank, data.rows[1].rank, data.exit_code) == (1, None, MISSED)
    assert f"✗ {G5}: f.py, line 3: endpoint_factory() raised ResourceLimitExceeded." in " ".join(to_text(data).split())
    alone = ranking([failed], aim)
    assert alone.exit_code == MISSED
    assert alone.headline.startswith("No variant has a capacity: f.py, line 3: endpoint_factory() raised")
    assert ranking([replace(failed, outcome="client_limited")], aim).exit_code == INVALID


def test_the_first_line_says_that_answers_of_a_ranked_variant_may_be_none() -> None:
    shed = "498 of 925 ok requests received a response with a status from 400 on (429: 498)"
    found = ranking([row("a", 100), row("b", 90, warnings=[shed])], Aim())
    assert shed in found.headline
    assert shed not in ranking([row("a", 100), row("b", 90)], Aim()).headline


def test_the_first_line_says_that_a_variant_meets_its_limit_at_no_rate() -> None:
    none = failed_row({"a": "1"}, "No rate meets p99<1s: at 1/s 5 of 5 were over.", "not_kept")
    none = replace(none, exit_code=1)
    found = ranking([row("b", 100), none], Aim())
    assert found.headline.endswith(" a=1 has no rank: No rate meets p99<1s: at 1/s 5 of 5 were over.")
    assert found.exit_code == 0
    assert "has no rank" not in ranking([none], Aim()).headline


def test_an_interrupt_keeps_what_there_is() -> None:
    aim = Aim()
    waiting = failed_row({"instance_type": M5}, "Interrupted before it was measured.", "interrupted")
    data = ranking([row(C5, 250, aim=aim), waiting], aim, interrupted=True)
    assert data.exit_code == INTERRUPTED
    assert data.headline == f"Interrupted after 1 of 2 variants; so far {C5} has the highest capacity: 258/s."


def test_an_interrupt_of_the_first_says_so() -> None:
    cut = row(C5, 250, outcome="interrupted")
    waiting = failed_row({"instance_type": M5}, "The command ended before it was measured.", "interrupted")
    data = ranking([cut, waiting], Aim(), interrupted=True)
    assert data.headline.startswith(f"Interrupted during the first of 2 variants; so far {C5} has the highest capacity")


def test_a_long_reason_ends_with_a_whole_word() -> None:
    reason = f"{'d' * 110}.py, line 49: endpoint_factory() raised RuntimeErrors: no."
    headline = ranking([failed_row({"a": "1"}, reason)], Aim()).headline
    assert headline.endswith("endpoint_factory() raised …"), headline


def test_without_a_limit_it_says_what_holds_means() -> None:
    bare, limited = row(C5, 250, limit="keeps up"), row(M5, 30)
    assert "no --slo was violated" in to_text(ranking([bare], Aim()))
    assert "no --slo was violated" not in to_text(ranking([bare, limited], Aim()))
    assert " for 60/s" in ranking([row(C5, 250, price=1, aim=Aim(60.0))], Aim(60.0)).headline


@pytest.mark.parametrize(
    ("others", "equivalent", "said"),
    [
        (
            [("hot", 101, 104)],
            True,
            "pattern=even and pattern=hot are equivalent: their capacities differ by at most 4%",
        ),
        ([("hot", 150, 160)], False, "the capacity is 53% higher for pattern=hot than for pattern=even"),
        ([("hot", 95, 140)], None, "the intervals overlap, and a difference of 47% would not show"),
        ([("hot", 101, 104), ("popular", 60, 70)], False, "higher for pattern=hot than for pattern=popular"),
    ],
)
def test_traffics_are_equivalent_where_intervals_are_near(others: Any, equivalent: bool | None, said: str) -> None:
    data = ranking([traffic("even", 100, 102), *(traffic(*each) for each in others)], Aim())
    assert data.payload_variants is not None
    assert data.payload_variants.equivalent is equivalent
    require_order(replace(data, payload_variants=replace(data.payload_variants, text="As an earlier version put it.")))
    assert said in data.headline


def test_a_traffic_without_an_interval_is_not_reported() -> None:
    none = failed_row({"payload.pattern": "hot"}, "No rate meets p99<1s.", "not_kept")
    found = ranking([traffic("even", 100, 102), none], Aim()).payload_variants
    assert found is not None
    assert found.equivalent is None
    assert "pattern=hot has no interval" in found.text
    assert ranked(None, (C5, 1, None), (M5, 2, None)).payload_variants is None


def test_the_text_fits_and_says_the_answer_first_and_last() -> None:
    aim = Aim(1000)
    tokens = {"tokens_per_s": 3400.0, "requests_per_s": 170.0}
    long = {"instance_type": M5, "env.OMP_NUM_THREADS": "4", "payload.pattern": "popular"}
    job = recommender_of("job-1", {"Status": "COMPLETED", "InferenceRecommendations": [
        {"EndpointConfiguration": {"InstanceType": C5, "InitialInstanceCount": 1}, "Metrics": {"MaxInvocations": 6000,
            "ModelLatency": 20, "CostPerHour": 0.204, "CostPerInference": 5.6e-7}}]})  # fmt: skip
    made = ranking(
        [
            row(C5, 250, price=0.204, aim=aim, tokens=tokens),
            replace(row(M5, 12345.6, price=0.32, aim=aim, tokens=tokens), variant=long),
            row(G5, 12400, price=0.33, aim=aim, tokens=None),
            failed_row({"instance_type": "ml.p5.48xlarge"}, "x" * 300),
        ],
        aim,
    )
    data = replace(made, recommender=job)
    lines = to_text(data, "folder").splitlines()
    assert lines[0] == lines[-2] == data.headline
    ours = to_text(made).splitlines()
    assert max(len(line) for line in ours[1:-1] if "xxx" not in line) <= WIDTH + 8, "rates of five digits"
    few = to_text(ranked(1000, (C5, 250, 0.204), (M5, 300, 0.32)))
    assert max(map(len, few.splitlines()[1:-1])) <= WIDTH
    assert "per hour" in few
    text = " ".join(" ".join(lines).split())
    assert "us-east-1, given, 2026-11-23" in text
    assert "Inference Recommender" in text
    assert "at saturation" in text
    assert "61%" in text
    assert "Per million output tokens" in text
    assert "Hourly prices of an instance" in text
