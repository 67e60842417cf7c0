"""The family of endpoints that a search is judged by: what is drawn, its truths, and the tables made of searches."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from server_capacity.search.answer import Answer, Interval
from server_capacity.search.curve import ENDS
from tests.performance.capacity.endpoints import Endpoint, times
from tests.performance.capacity.family import calibrating, drifts, searches, sets, tables, truth
from tests.performance.capacity.family.drawing import HELD_BACK, OPEN, drawn
from tests.performance.capacity.family.searches import Searched
from tests.performance.capacity.family.sets import Known, kind_of, known, seed_of
from tests.performance.capacity.family.truth import TIMES_S, member_of, truth_of
from tests.performance.capacity.queues import Rules
from tests.performance.capacity.results import Result
from tests.performance.capacity.truths import closed_form, share_over

if TYPE_CHECKING:
    from pathlib import Path

compiled = pytest.mark.skipif(
    not (shutil.which("cc") or shutil.which("gcc")), reason="the simulated queues need a C compiler"
)
STORED = [each for name in ("choose", "report") for each in known(name)]


def test_stored_truths_are_of_endpoints_that_are_drawn_today() -> None:
    assert {each.member.kind for each in STORED} == set(OPEN)
    assert all(0 <= each.truth.sd < 0.05 and each.truth.rate > 0 for each in STORED)


def test_no_endpoint_is_in_two_sets() -> None:
    digests = [each.member.digest for each in STORED]
    assert len(set(digests)) == len(digests)
    assert drawn("exact", seed_of("sealed", 0, "abc"), 0) != drawn("exact", seed_of("sealed", 0, "abd"), 0)


@pytest.mark.parametrize(("name", "commit"), [("sealed", ""), ("choose", "abc")])
def test_only_the_sealed_set_comes_from_a_commit(name: str, commit: str) -> None:
    with pytest.raises(ValueError, match="sealed"):
        seed_of(name, 0, commit)


def test_a_third_of_the_sealed_set_is_of_kinds_that_no_other_set_has() -> None:
    kinds = [kind_of("sealed", index) for index in range(288)]
    assert sum(kind in HELD_BACK for kind in kinds) == 96
    assert set(kinds) == {*OPEN, *HELD_BACK}
    assert {kind_of("choose", index) for index in range(200)} == set(OPEN)


@pytest.mark.parametrize("kind", [*OPEN, *HELD_BACK])
def test_what_is_drawn_is_within_the_prior(kind: str) -> None:
    for attempt in range(20):
        member = drawn(kind, "a test", attempt)
        assert member == drawn(kind, "a test", attempt)
        assert 0.19 < member.rules.most / max(1.0, member.rules.most_servers / member.rules.servers) < 20_001
        assert 1 <= member.rules.servers <= 64


def test_truths_with_a_closed_form_are_it() -> None:
    steady = [each for each in STORED if not each.member.change.credit]
    exact = [(each, rate) for each in steady if (rate := closed_form(each.member.lasting))]
    assert len(exact) > 20
    for each, rate in exact:
        assert each.truth.rate <= rate * 1.00001  # the other limit may give out first


@pytest.mark.parametrize("other", [{"order": "shared"}, {"pause_every_s": 5.0}, {"queue_limit": 50}, {"slow_s": 1.0}])
def test_only_plain_queues_have_a_closed_form(other: dict[str, Any]) -> None:
    endpoint = Endpoint("e", "", Rules(4, 0.02, "exponential", instances=2), (times(99, 0.2),))
    assert closed_form(endpoint) == pytest.approx(2 * 175.0452)
    assert closed_form(replace(endpoint, rules=replace(endpoint.rules, **other))) is None


@compiled
def test_a_simulated_truth_is_that_of_the_closed_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truth, "_ARRIVALS", 3e5)
    member = replace(drawn("exponential", "a test", 0), rules=Rules(3, 0.01, "exponential"), limits=(times(99, 0.05),))
    exactly = truth_of(member)
    simulated = truth_of(replace(member, rules=replace(member.rules, pause_every_s=1e9)))  # there is no pause yet
    assert exactly is not None
    assert simulated is not None
    assert exactly.sd == 0 < simulated.sd
    assert simulated.rate == pytest.approx(exactly.rate, abs=5 * simulated.sd * exactly.rate)
    assert simulated.slope == pytest.approx(exactly.slope, rel=0.2)


@compiled
@pytest.mark.parametrize(
    "each", [each for each in STORED if each.index in {0, 7, 8, 9}], ids=lambda each: each.member.kind
)
def test_a_limit_gives_out_at_the_stored_truth(each: Known) -> None:
    endpoint = each.member.lasting
    away = max(0.02, 1.0 / each.truth.slope, 8 * each.truth.sd)
    shares = [
        max(share_over(endpoint, limit, each.truth.rate * part, 3e5) / limit.allowed for limit in endpoint.limits)
        for part in (1 - away, 1 + away)
    ]
    assert shares[0] < 1 < shares[1]


@compiled
def test_what_changes_has_its_lasting_rules_in_the_end() -> None:
    slow, leaking = drawn("slow-down", "a test", 0), drawn("leak", "a test", 0)
    rules = slow.searched(60.0).rules
    assert 6.0 <= rules.slow_s <= 42.0
    assert rules.slow_factor < 1.0
    assert replace(rules, slow_s=0.0, slow_factor=1.0) == slow.rules
    assert slow.slowdown == pytest.approx(1 / rules.slow_factor)
    rules = leaking.searched(60.0).rules
    assert rules.mean_s * (1 + 60.0 * rules.leak) == pytest.approx(leaking.rules.mean_s)


@compiled
def test_searches_are_kept_and_not_made_twice(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    few = [each for each in STORED if each.member.kind in ("exact", "client")][:2]
    searches.search(few, 60.0, 1, file, math.inf)
    made = file.read_text()
    searches.search(few, 60.0, 1, file, math.inf)
    assert file.read_text() == made
    assert [each.index for each in searches.read(file)] == [each.index for each in few]


def made(seed: int, low: float, high: float, time_s: float = 60.0, answers: float = 1000.0) -> Searched:
    answer = Answer("found", (low + high) / 2, Interval(low, high))
    result = Result.of("exact 0", seed, 100.0, answer)
    return Searched("exact", 0, time_s, 0.1, findable=True, slowdown=1.0, slower=False, answers=answers, result=result)


def test_the_table_counts_what_contains_the_truth() -> None:
    text = tables.table([made(1, 90, 110), made(2, 101, 111), made(3, 81, 99), made(4, 95, 105)])
    assert "| exact | 4 | 100.0% | 50.0% (15 to 85) | 25.0% (5 to 70) | 7.0% |" in text


def test_methods_are_compared_search_by_search() -> None:
    one, other = [made(1, 90, 110), made(2, 90, 110)], [made(2, 95, 105), made(1, 96, 104), made(3, 1, 2)]
    last = tables.comparison(one, other).splitlines()[-1]
    assert last.startswith("| all | 2 | 100.0% / 100.0% | 0.0% / 0.0% | 2 / 2 | 0.450 | 0.450 | 100.0%")


def at(seed: int, away: float, answers: float) -> Searched:
    """A search whose interval is a tenth to either side of its rate, which is ``away`` from the truth, in ln(rate)."""
    rate = 100.0 * math.exp(-away)
    searched = made(seed, rate * math.exp(-0.1), rate * math.exp(0.1), answers=answers)
    return replace(searched, result=replace(searched.result, rate=rate))


def test_a_calibration_moves_the_ends_of_each_class_to_where_one_in_twenty_misses() -> None:
    aways = {each.answers: [(place + 1) * 0.05 / 40 for place in range(-10, 90)] for each in ENDS}
    found = [at(seed, away, answers) for answers, some in aways.items() for seed, away in enumerate(some)]
    for today, ends in zip(ENDS, calibrating.calibration(found), strict=True):
        within = [
            -0.1 * ends.lower / today.lower <= away <= 0.1 * ends.upper / today.upper for away in aways[ends.answers]
        ]
        assert 95 <= sum(within) <= 97
        assert ends.lower < ends.upper


def test_too_few_searches_are_nothing_to_calibrate_by() -> None:
    with pytest.raises(ValueError, match="too few to calibrate"):
        calibrating.calibration([at(seed, 0.01, each.answers) for each in ENDS for seed in range(18)])


@compiled
def test_a_member_is_the_first_draw_that_has_a_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truth, "_ARRIVALS", 1e5)
    attempt, member, found = member_of("refusing", "a test")
    assert member == drawn("refusing", "a test", attempt)
    assert found.rate > 0
    assert len(found.scores) == len(TIMES_S)
    assert sets.kind_of("choose", 5) == member.kind


@compiled
def test_a_slow_down_is_searched_with_and_without_it() -> None:
    [pair] = drifts.pairs(range(12, 13), 60.0)
    assert pair.slowdown > 1.1
    assert not pair.falsely
    line = drifts.line(
        [pair, drifts.Pair(2.0, found=True, falsely=False), drifts.Pair(1.2, found=False, falsely=True)], 60
    )
    assert line.endswith("0 of 1 | 1 of 3 |")
